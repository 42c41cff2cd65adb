/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the log layer: temporary directories, files, lines, kernels written through the real writer,
 * and a recording reader. */
#ifndef GPUFL_TESTS_SESSION_FIXTURE_H
#define GPUFL_TESTS_SESSION_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/batch.h"
#include "logfile/reader.h"
#include "logfile/writer.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIXTURE_ID "0f8fad5b-d9cb-469f-a165-70867728950e"

static inline void fixture_path(char out[512], const char *dir, const char *name)
{
    snprintf(out, 512, "%.250s/%.250s", dir, name);
}

static inline char *fixture_dir(void)
{
    static char path[256];
    const char *base = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.200s/gpufl-test-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}

static inline int fixture_remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status, (void)kind, (void)at;
    return remove(path);
}

static inline void fixture_remove(const char *path)
{
    nftw(path, fixture_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* cmocka's setup and teardown for tests that need an empty directory as their state. */
static inline int fixture_setup(void **state)
{
    *state = strdup(fixture_dir());
    return 0;
}

static inline int fixture_teardown(void **state)
{
    fixture_remove(*state);
    free(*state);
    return 0;
}

static inline void fixture_write(const char *dir, const char *name, const void *data, size_t size)
{
    char path[512];
    fixture_path(path, dir, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Reads the complete file; the caller frees. */
static inline char *fixture_read(const char *dir, const char *name, size_t *size)
{
    char path[512];
    fixture_path(path, dir, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *data = malloc(1 << 24);
    assert_non_null(data);
    *size = fread(data, 1, (1 << 24) - 1, file);
    data[*size] = '\0';
    fclose(file);
    return data;
}

static inline bool fixture_exists(const char *dir, const char *name)
{
    char path[512];
    struct stat status;
    fixture_path(path, dir, name);
    return lstat(path, &status) == 0;
}

static inline struct log_writer *fixture_open(const char *base, uint64_t rotate_bytes, bool seal)
{
    struct log_writer *writer = NULL;
    struct problem problem = {""};
    struct log_writer_options options = {
        .base_dir = base, .session_id = FIXTURE_ID, .rotate_bytes = rotate_bytes, .seal = seal};
    gpufl_status status = log_writer_open(&writer, &options, &problem);
    if (status)
        fail_msg("log_writer_open: %s", problem.text);
    return writer;
}

static inline gpufl_status fixture_line(struct log_writer *writer, enum channel channel, enum record_type type,
                                        const char *object)
{
    struct bytes line = {0};
    bytes_append_text(&line, object);
    gpufl_status status = log_writer_line(writer, channel, type, &line, 1);
    bytes_free(&line);
    return status;
}

static inline void fixture_line_all(struct log_writer *writer, enum record_type type, const char *object)
{
    struct bytes line = {0};
    bytes_append_text(&line, object);
    assert_int_equal(log_writer_line_all(writer, (1u << CHANNEL_COUNT) - 1, type, &line), GPUFL_OK);
    bytes_free(&line);
}

static const char fixture_job_start[] = "{\"version\":1,\"type\":\"job_start\",\"session_id\":\"" FIXTURE_ID
                                        "\",\"pid\":7,\"app\":\"fixture\",\"ts_ns\":1000";
static const char fixture_shutdown[] =
    "{\"type\":\"shutdown\",\"session_id\":\"" FIXTURE_ID "\",\"pid\":7,\"app\":\"fixture\",\"ts_ns\":9000";
static const char fixture_dictionary[] = "{\"version\":1,\"type\":\"dictionary_update\",\"session_id\":\"" FIXTURE_ID
                                         "\",\"kernel_dict\":{\"1\":\"axpy\",\"2\":\"gemm\"}";

/* Writes `count` kernels with alternating ids 1 and 2, and correlation ids from `first`. */
static inline gpufl_status fixture_kernels(struct log_writer *writer, struct batch *batch, uint32_t first,
                                           uint32_t count)
{
    struct bytes line = {0};
    batch->base_time_ns = 1000000 + first;
    for (uint32_t i = 0; i < count; i++) {
        int64_t *row = batch_row(batch);
        assert_non_null(row);
        row[KERNEL_DT_NS] = (int64_t)i * 1500;
        row[KERNEL_KERNEL_ID] = 1 + i % 2;
        row[KERNEL_STREAM_ID] = 7;
        row[KERNEL_DURATION_NS] = 900 + i;
        row[KERNEL_CORR_ID] = first + i;
        row[KERNEL_API_LEAD_NS] = i % 3 ? 4000 : CELL_UNKNOWN;
    }
    batch_encode(batch, FIXTURE_ID, "", &line);
    gpufl_status status = log_writer_line(writer, CHANNEL_DEVICE, RECORD_KERNEL_EVENT_BATCH, &line, count);
    bytes_free(&line);
    return status;
}

/* What a reader saw. */
struct fixture_seen {
    struct log_summary summary;
    uint64_t issues[LOG_ISSUE_UNFINISHED + 1], counts[LOG_ISSUE_UNFINISHED + 1], issue_count;
    struct log_issue last[LOG_ISSUE_UNFINISHED + 1];
    uint64_t kernels, corr_sum, duration_sum, unknown_leads;
    enum record_type first_type, last_type;
    uint64_t line_count;
    char order[4096]; /* type names, separated by spaces */
};

static inline bool fixture_take_line(void *user, const struct log_line *line)
{
    struct fixture_seen *seen = user;
    if (!seen->line_count++)
        seen->first_type = line->type;
    seen->last_type = line->type;
    size_t used = strlen(seen->order);
    snprintf(seen->order + used, sizeof seen->order - used, "%s%s", used ? " " : "", line->type_name);
    if (line->type == RECORD_KERNEL_EVENT_BATCH) {
        const struct batch_view *batch = line->batch;
        for (uint32_t row = 0; row < batch->row_count; row++) {
            seen->kernels++;
            seen->corr_sum += (uint64_t)batch->columns[KERNEL_CORR_ID].cells[row];
            seen->duration_sum += (uint64_t)batch->columns[KERNEL_DURATION_NS].cells[row];
            if (batch->columns[KERNEL_API_LEAD_NS].present)
                seen->unknown_leads += batch->columns[KERNEL_API_LEAD_NS].cells[row] == CELL_UNKNOWN;
        }
    }
    return true;
}

static inline void fixture_take_issue(void *user, const struct log_issue *issue)
{
    struct fixture_seen *seen = user;
    seen->issues[issue->kind]++;
    seen->counts[issue->kind] += issue->count;
    seen->last[issue->kind] = *issue;
    seen->issue_count++;
}

static inline struct fixture_seen fixture_see(const char *path)
{
    struct fixture_seen seen = {0};
    struct problem problem = {""};
    gpufl_status status = log_read(path, fixture_take_line, fixture_take_issue, &seen, &seen.summary, &problem);
    if (status)
        fail_msg("log_read: %s", problem.text);
    return seen;
}

#endif
