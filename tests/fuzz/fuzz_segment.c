/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed segments: arbitrary bytes as a sealed file (reader and footer), and arbitrary lines with correct numbers and
 * CRCs that are sealed here, all of which must be read back. */
#include "logfile/line.h"
#include "logfile/reader.h"
#include "logfile/segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[256];
static const char plain_name[] = "device.000001.log", sealed_name[] = "device.000001.log.zst";

static void remove_file(const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    unlink(path);
}

static void remove_dir(void)
{
    remove_file(plain_name);
    remove_file(sealed_name);
    rmdir(dir);
}

static void write_file(const char *name, const void *data, size_t size)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
}

/* False: a record says that it is of a newer format, and reading stopped there. */
static bool read_all(struct log_summary *summary)
{
    *summary = (struct log_summary){0};
    gpufl_status status = log_read(dir, NULL, NULL, NULL, summary, NULL);
    if (status != GPUFL_OK && status != GPUFL_E_UNSUPPORTED)
        abort();
    return status == GPUFL_OK;
}

/* Converts each line of the input to a log line: without its last brace, with number and CRC. */
static void seal_lines(const uint8_t *data, size_t size)
{
    struct bytes file = {0};
    uint64_t seq = 0;
    for (size_t begin = 0; begin < size;) {
        const uint8_t *feed = memchr(data + begin, '\n', size - begin);
        size_t end = feed ? (size_t)(feed - data) : size;
        size_t object = end > begin && data[end - 1] == '}' ? end - 1 : end;
        char trailer[LINE_TRAILER_MAX];
        bytes_append(&file, data + begin, object - begin);
        bytes_append(&file, trailer, line_trailer(trailer, (const char *)data + begin, object - begin, ++seq));
        begin = end + 1;
    }
    write_file(plain_name, file.data ? file.data : "", file.size);
    bytes_free(&file);
    struct log_summary before, after;
    if (read_all(&before) && seal_session(dir, NULL) == GPUFL_OK && seq) {
        if (!read_all(&after) || after.lines != before.lines || after.damaged_lines != before.damaged_lines ||
            memcmp(after.rows, before.rows, sizeof after.rows) != 0)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!dir[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(dir, sizeof dir, "%.200s/gpufl-fuzz-XXXXXX", base ? base : "/tmp");
        if (!mkdtemp(dir))
            abort();
        atexit(remove_dir);
    }
    if (!size)
        return 0;
    if (data[0] & 1) {
        seal_lines(data + 1, size - 1);
    } else {
        write_file(sealed_name, data + 1, size - 1);
        struct log_summary summary;
        (void)read_all(&summary);
    }
    remove_file(plain_name);
    remove_file(sealed_name);
    return 0;
}
