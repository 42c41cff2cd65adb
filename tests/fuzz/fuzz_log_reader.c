/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as the files of a session: the first byte selects the files, the rest is their content. Covers
 * everything that verify reads. */
#include "logfile/reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
    "device.log",      "scope.log",        "system.000001.log",           "sass.log",
    "device.1.log.gz", "app.device.log.1", ".gpufl-window.device.1.json", ".gpufl-transport-loss.scope.2.json"};
enum { NAME_COUNT = sizeof names / sizeof *names };

static char dir[256];

static void remove_dir(void)
{
    char path[400];
    for (int i = 0; i < NAME_COUNT; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

static void write_file(const char *name, const uint8_t *data, size_t size)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
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
    /* Two files: damage in one must not affect the other, and windows need a sidecar. */
    unsigned first = data[0] % NAME_COUNT, second = data[0] / NAME_COUNT % NAME_COUNT;
    size_t half = (size - 1) / 2;
    write_file(names[first], data + 1, size - 1);
    if (second != first)
        write_file(names[second], data + 1 + half, size - 1 - half);
    struct verify_report report;
    struct problem problem;
    if (verify_session(dir, &report, &problem) == GPUFL_OK)
        verify_report_free(&report);
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, names[first]);
    unlink(path);
    snprintf(path, sizeof path, "%s/%s", dir, names[second]);
    unlink(path);
    return 0;
}
