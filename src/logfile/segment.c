/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/segment.h"

#include "format/batch.h"
#include "format/json.h"
#include "logfile/line.h"
#include "logfile/line_source.h"
#include "logfile/segment_output.h"
#include "logfile/session_dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SKIPPABLE_MAGIC = 0x184D2A5A, SKIPPABLE_HEADER = 8, SIZE_DIGITS = 8, FOOTER_MAX = 4096 };

/* One file being sealed; freed by seal_end. */
struct seal {
    int plain_fd;
    struct line_source source;
    struct bytes line; /* the line in sealed form */
    struct segment_output out;
    const char *name; /* of the plain file, for messages */
    struct problem *problem;
};

/* Converts batches to columns and leaves other lines unchanged; the result has no crc. */
static gpufl_status shape_line(struct seal *seal, const char *line, size_t size, const struct line_end *end)
{
    bytes_clear(&seal->line);
    enum record_type type = line_type_guess(line, size);
    gpufl_status status = GPUFL_E_UNSUPPORTED;
    if (record_catalogue[type].is_batch)
        status = batch_transpose(line, size, &seal->line);
    if (!status && seal->line.size && seal->line.data[seal->line.size - 1] == '}') {
        seal->line.size--;
    } else {
        bytes_clear(&seal->line);
        bytes_append(&seal->line, line, end->object_size);
    }
    if (seal->line.failed)
        return problem_set(seal->problem, GPUFL_E_NO_MEMORY, "%s: out of memory while sealing", seal->name);
    return GPUFL_OK;
}

static gpufl_status seal_line(struct seal *seal, const char *line, size_t size)
{
    struct line_end end = line_end_read(line, size);
    if (end.crc != LINE_CRC_GOOD || end.seq < 0)
        return problem_set(seal->problem, GPUFL_E_DAMAGED, "%s: line %" PRIu64 " is damaged", seal->name,
                           seal->out.footer.lines + 1);
    gpufl_status status = shape_line(seal, line, size, &end);
    if (status)
        return status;
    return segment_output_line(&seal->out, seal->line.data, seal->line.size, (uint64_t)end.seq);
}

static gpufl_status seal_lines(struct seal *seal, const atomic_bool *cancel)
{
    for (;;) {
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            return problem_set(seal->problem, GPUFL_E_NOT_RUNNING, "%s: sealing was cancelled", seal->name);
        const char *line;
        size_t size;
        gpufl_status status;
        switch (line_source_next(&seal->source, &line, &size)) {
        case LINE_WHOLE:
            status = seal_line(seal, line, size);
            break;
        case LINE_NO_MORE:
            return seal->out.footer.lines ? GPUFL_OK
                                          : problem_set(seal->problem, GPUFL_E_NOT_FOUND, "%s is empty", seal->name);
        case LINE_FAILED:
            status = problem_set(seal->problem, GPUFL_E_IO, "%s: %s", seal->name, seal->source.reason);
            break;
        default:
            status = problem_set(seal->problem, GPUFL_E_DAMAGED, "%s: line %" PRIu64 " is torn or too long", seal->name,
                                 seal->out.footer.lines + 1);
        }
        if (status)
            return status;
    }
}

static gpufl_status seal_begin(struct seal *seal, int dir_fd)
{
    struct stat file;
    seal->plain_fd = session_file_open(dir_fd, seal->name);
    if (seal->plain_fd < 0 || fstat(seal->plain_fd, &file))
        return problem_set(seal->problem, GPUFL_E_IO, "cannot open %s: %s", seal->name, strerror(errno));
    if (line_source_open(&seal->source, seal->plain_fd, LINE_CODING_PLAIN, (uint64_t)file.st_size))
        return problem_set(seal->problem, GPUFL_E_NO_MEMORY, "%s: out of memory while sealing", seal->name);
    return GPUFL_OK;
}

static void seal_end(struct seal *seal)
{
    if (seal->plain_fd >= 0)
        close(seal->plain_fd);
    if (seal->source.buffer)
        line_source_close(&seal->source);
    segment_output_close(&seal->out);
    bytes_free(&seal->line);
}

gpufl_status segment_seal(int dir_fd, enum channel channel, uint64_t index, const atomic_bool *cancel,
                          struct segment_footer *footer, uint64_t *sealed_bytes, struct problem *problem)
{
    char plain[64];
    session_name_rotated(plain, sizeof plain, channel, index, "");
    struct seal seal = {.plain_fd = -1, .out = {.part_fd = -1}, .name = plain, .problem = problem};
    gpufl_status status = seal_begin(&seal, dir_fd);
    if (!status)
        status = segment_output_open(&seal.out, dir_fd, channel, index, problem);
    if (!status)
        status = seal_lines(&seal, cancel);
    if (!status)
        status = segment_output_finish(&seal.out, seal.source.plain_bytes, sealed_bytes);
    if (!status) {
        unlinkat(dir_fd, plain, 0); /* for a moment both names exist; readers prefer the sealed file */
        *footer = seal.out.footer;
    }
    seal_end(&seal);
    return status;
}

static bool footer_parse(const char *text, size_t size, struct segment_footer *footer)
{
    struct json_document document;
    /* The crc does not cover the LF that terminates the footer's line. */
    if (!size || text[size - 1] != '\n' || line_end_read(text, size - 1).crc != LINE_CRC_GOOD ||
        json_parse(&document, text, size, NULL))
        return false;
    const struct json_value *root = document.root;
    const char *crc = json_get_text(root, "frame_crc32c", "");
    const char *channel = json_get_text(root, "channel", "");
    char *crc_end;
    *footer = (struct segment_footer){
        .segment = (uint64_t)json_get_int(root, "segment", 0),
        .first_seq = (uint64_t)json_get_int(root, "first_seq", 0),
        .last_seq = (uint64_t)json_get_int(root, "last_seq", 0),
        .lines = (uint64_t)json_get_int(root, "lines", 0),
        .plain_bytes = (uint64_t)json_get_int(root, "plain_bytes", 0),
        .frame_bytes = (uint64_t)json_get_int(root, "frame_bytes", 0),
        .frame_crc32c = (uint32_t)strtoul(crc, &crc_end, 16),
    };
    bool is_good = strlen(crc) == 8 && !*crc_end && strlen(channel) < sizeof footer->channel &&
                   !strcmp(json_get_text(root, "format", ""), SEGMENT_FORMAT) && footer->lines > 0;
    if (is_good)
        memcpy(footer->channel, channel, strlen(channel) + 1);
    json_free(&document);
    return is_good;
}

static uint32_t get_u32(const char *in)
{
    const unsigned char *at = (const unsigned char *)in;
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

gpufl_status segment_footer_read(int fd, struct segment_footer *footer, struct problem *problem)
{
    char digits[SIZE_DIGITS + 1] = "", frame[SKIPPABLE_HEADER + FOOTER_MAX];
    struct stat file;
    if (fstat(fd, &file))
        return problem_set(problem, GPUFL_E_IO, "cannot read the footer: %s", strerror(errno));
    off_t size = file.st_size;
    if (size < SKIPPABLE_HEADER + SIZE_DIGITS || pread(fd, digits, SIZE_DIGITS, size - SIZE_DIGITS) != SIZE_DIGITS)
        return problem_set(problem, GPUFL_E_DAMAGED, "the footer is missing: the file is truncated");
    unsigned long payload = strtoul(digits, NULL, 16);
    char canonical[2 * sizeof payload + 1];
    snprintf(canonical, sizeof canonical, "%08lx", payload);
    if (strcmp(canonical, digits) != 0 || payload <= SIZE_DIGITS || payload > FOOTER_MAX ||
        (off_t)payload + SKIPPABLE_HEADER > size)
        return problem_set(problem, GPUFL_E_DAMAGED, "the footer is missing: the file is truncated");
    size_t frame_size = SKIPPABLE_HEADER + payload;
    off_t frame_at = size - (off_t)frame_size;
    if (pread(fd, frame, frame_size, frame_at) != (ssize_t)frame_size || get_u32(frame) != SKIPPABLE_MAGIC ||
        get_u32(frame + 4) != payload || !footer_parse(frame + SKIPPABLE_HEADER, payload - SIZE_DIGITS, footer) ||
        footer->frame_bytes != (uint64_t)frame_at)
        return problem_set(problem, GPUFL_E_DAMAGED, "the footer is damaged");
    return GPUFL_OK;
}
