/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/segment_trim.h"

#include "base/clock.h"
#include "logfile/line.h"
#include "logfile/line_source.h"
#include "logfile/log_line.h"
#include "logfile/segment_output.h"
#include "logfile/session_dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct drop {
    uint64_t rows, lines;
    int64_t start_ns, end_ns; /* 0: unknown */
    bool has_loss;            /* its loss record is in the new segment */
};

struct trim {
    int dir_fd;
    const char *session_id;
    enum channel channel;
    struct segment_output out;
    struct batch_view view;
    struct bytes loss;
    struct drop drops[RECORD_TYPE_COUNT];
    uint64_t plain_bytes;
    struct problem *problem;
};

/* One line: its text without crc, and its type. */
struct trim_line {
    const char *object;
    size_t object_size;
    uint64_t seq;
    struct log_line line;
};

typedef gpufl_status (*trim_fn)(struct trim *trim, const struct trim_line *line);

bool trimmed_rows_read(const struct json_value *loss, struct trimmed_rows *trimmed)
{
    const char *type = json_get_text(loss, "record_type", "");
    int64_t rows = json_get_int(loss, "count", -1), lines = json_get_int(loss, "lines", -1);
    if (strcmp(json_get_text(loss, "reason", ""), SEGMENT_TRIM_REASON) != 0 || rows < 0 || lines < 1)
        return false;
    *trimmed = (struct trimmed_rows){record_type_of(type, strlen(type)), (uint64_t)rows, (uint64_t)lines};
    return trimmed->type != RECORD_UNKNOWN;
}

static void span_add(struct drop *drop, int64_t start_ns, int64_t end_ns)
{
    if (start_ns > 0 && (!drop->start_ns || start_ns < drop->start_ns))
        drop->start_ns = start_ns;
    if (end_ns > drop->end_ns)
        drop->end_ns = end_ns;
}

/* The type of the rows that this line loses; RECORD_UNKNOWN: the line stays. drop (may be NULL): gets the counts. */
static enum record_type dropped_type(const struct log_line *line, struct drop drops[RECORD_TYPE_COUNT])
{
    struct trimmed_rows before;
    if (line->type == RECORD_LOSS && trimmed_rows_read(line->object, &before)) {
        if (drops) {
            struct drop *drop = &drops[before.type];
            drop->rows += before.rows;
            drop->lines += before.lines;
            span_add(drop, json_get_int(line->object, "start_ns", 0), json_get_int(line->object, "end_ns", 0));
        }
        return before.type;
    }
    if (line->type == RECORD_UNKNOWN || record_catalogue[line->type].is_kept)
        return RECORD_UNKNOWN;
    if (drops) {
        struct drop *drop = &drops[line->type];
        int64_t time_ns = line->batch ? line->batch->base_time_ns : json_get_int(line->object, "ts_ns", 0);
        drop->rows += line->batch ? line->batch->row_count : 1;
        drop->lines++;
        span_add(drop, time_ns, time_ns);
    }
    return line->type;
}

static gpufl_status count_line(struct trim *trim, const struct trim_line *line)
{
    (void)dropped_type(&line->line, trim->drops);
    return GPUFL_OK;
}

static gpufl_status write_loss(struct trim *trim, enum record_type type, uint64_t seq)
{
    struct drop *drop = &trim->drops[type];
    bytes_clear(&trim->loss);
    bytes_append_format(&trim->loss,
                        "{\"version\":%d,\"type\":\"loss\",\"session_id\":\"%s\",\"ts_ns\":%" PRId64
                        ",\"reason\":\"" SEGMENT_TRIM_REASON "\",\"record_type\":\"%s\",\"count\":%" PRIu64
                        ",\"message\":\"the oldest records were dropped to keep the session below its limit\""
                        ",\"lines\":%" PRIu64,
                        record_catalogue[RECORD_LOSS].version, trim->session_id, clock_wall_ns(),
                        record_catalogue[type].name, drop->rows, drop->lines);
    if (drop->start_ns)
        bytes_append_format(&trim->loss, ",\"start_ns\":%" PRId64 ",\"end_ns\":%" PRId64, drop->start_ns, drop->end_ns);
    bytes_append_format(&trim->loss, ",\"seq\":%" PRIu64, seq);
    drop->has_loss = true;
    if (trim->loss.failed)
        return problem_set(trim->problem, GPUFL_E_NO_MEMORY, "no memory to trim a segment");
    return segment_output_line(&trim->out, trim->loss.data, trim->loss.size, seq);
}

static gpufl_status write_line(struct trim *trim, const struct trim_line *line)
{
    enum record_type type = dropped_type(&line->line, NULL);
    if (type == RECORD_UNKNOWN)
        return segment_output_line(&trim->out, line->object, line->object_size, line->seq);
    return trim->drops[type].has_loss ? GPUFL_OK : write_loss(trim, type, line->seq);
}

/* Opens the sealed file, or the plain one if it could not be sealed. */
static int segment_open(const struct trim *trim, uint64_t index, enum line_coding *coding, uint64_t *bytes)
{
    char name[64];
    struct stat file;
    struct segment_footer footer;
    session_name_rotated(name, sizeof name, trim->channel, index, ".zst");
    int fd = session_file_open(trim->dir_fd, name);
    *coding = LINE_CODING_ZSTD;
    if (fd >= 0) {
        *bytes = segment_footer_read(fd, &footer, NULL) ? 0 : footer.frame_bytes;
        return fd;
    }
    session_name_rotated(name, sizeof name, trim->channel, index, "");
    fd = session_file_open(trim->dir_fd, name);
    *coding = LINE_CODING_PLAIN;
    *bytes = fd >= 0 && !fstat(fd, &file) ? (uint64_t)file.st_size : 0;
    return fd;
}

static gpufl_status take_line(struct trim *trim, const char *text, size_t size, trim_fn fn)
{
    struct json_document document = {0};
    char reason[LINE_REASON_SIZE];
    struct line_end end = line_end_read(text, size);
    struct trim_line line = {.object = text, .object_size = end.object_size, .seq = (uint64_t)end.seq};
    gpufl_status status = GPUFL_OK;
    /* A damaged line becomes a gap: its rows cannot be counted. */
    if (end.crc == LINE_CRC_GOOD && end.seq >= 0) {
        gpufl_status decoded = log_line_decode(&line.line, &trim->view, &document, text, size, reason);
        if (decoded == GPUFL_OK)
            status = fn(trim, &line);
        else if (decoded == GPUFL_E_NO_MEMORY)
            status = problem_set(trim->problem, GPUFL_E_NO_MEMORY, "no memory to trim a segment");
    }
    json_free(&document);
    return status;
}

static gpufl_status visit(struct trim *trim, uint64_t index, trim_fn fn)
{
    struct line_source source;
    enum line_coding coding;
    uint64_t bytes;
    int fd = segment_open(trim, index, &coding, &bytes);
    if (fd < 0)
        return problem_set(trim->problem, GPUFL_E_IO, "cannot open %s segment %" PRIu64 ": %s",
                           channel_names[trim->channel], index, strerror(errno));
    gpufl_status status = line_source_open(&source, fd, coding, bytes);
    if (!status) {
        const char *text;
        size_t size;
        enum line_result result = LINE_WHOLE;
        while (!status && (result = line_source_next(&source, &text, &size)) == LINE_WHOLE)
            status = take_line(trim, text, size, fn);
        if (!status && result == LINE_FAILED)
            status = problem_set(trim->problem, GPUFL_E_DAMAGED, "%s segment %" PRIu64 ": %s",
                                 channel_names[trim->channel], index, source.reason);
        trim->plain_bytes = source.plain_bytes;
        line_source_close(&source);
    }
    close(fd);
    return status;
}

static void segment_remove(int dir_fd, enum channel channel, uint64_t index, bool with_sealed)
{
    char name[64];
    session_name_rotated(name, sizeof name, channel, index, "");
    unlinkat(dir_fd, name, 0);
    session_name_rotated(name, sizeof name, channel, index, ".zst");
    if (with_sealed)
        unlinkat(dir_fd, name, 0);
}

gpufl_status segment_trim(int dir_fd, const char *session_id, enum channel channel, uint64_t older, uint64_t index,
                          uint64_t *bytes, struct problem *problem)
{
    struct trim trim = {
        .dir_fd = dir_fd, .session_id = session_id, .channel = channel, .out = {.part_fd = -1}, .problem = problem};
    gpufl_status status = older ? visit(&trim, older, count_line) : GPUFL_OK;
    if (!status)
        status = visit(&trim, index, count_line);
    if (!status)
        status = segment_output_open(&trim.out, dir_fd, channel, index, problem);
    if (!status && older)
        status = visit(&trim, older, write_line);
    if (!status)
        status = visit(&trim, index, write_line);
    if (!status)
        status = segment_output_finish(&trim.out, trim.plain_bytes, bytes);
    if (!status) {
        segment_remove(dir_fd, channel, index, false);
        if (older)
            segment_remove(dir_fd, channel, older, true);
    }
    segment_output_close(&trim.out);
    batch_view_free(&trim.view);
    bytes_free(&trim.loss);
    return status;
}
