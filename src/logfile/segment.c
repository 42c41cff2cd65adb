/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/segment.h"

#include "base/crc32c.h"
#include "format/batch.h"
#include "format/json.h"
#include "logfile/line.h"
#include "logfile/line_source.h"
#include "logfile/session_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

static const char format_name[] = "gpufl-segment-1";

enum { SKIPPABLE_MAGIC = 0x184D2A5A, SKIPPABLE_HEADER = 8, SIZE_DIGITS = 8, FOOTER_MAX = 4096, LEVEL = 1 };

/* One file being sealed; freed by seal_end. */
struct seal {
    int plain_fd, part_fd;
    struct line_source source;
    ZSTD_CCtx *encoder;
    char *output;
    size_t output_size;
    struct bytes line; /* the line in its sealed shape */
    struct segment_footer footer;
    const char *name; /* of the plain file, for messages */
    struct problem *problem;
};

static gpufl_status io_failure(struct seal *seal, const char *what)
{
    return problem_set(seal->problem, GPUFL_E_IO, "%s: %s: %s", seal->name, what, strerror(errno));
}

static gpufl_status write_part(struct seal *seal, const char *data, size_t size)
{
    while (size) {
        ssize_t written = write(seal->part_fd, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return io_failure(seal, "cannot write the sealed file");
        data += written;
        size -= (size_t)written;
    }
    return GPUFL_OK;
}

static gpufl_status compress(struct seal *seal, const char *data, size_t size, ZSTD_EndDirective mode)
{
    ZSTD_inBuffer in = {data, size, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {seal->output, seal->output_size, 0};
        left = ZSTD_compressStream2(seal->encoder, &out, &in, mode);
        if (ZSTD_isError(left))
            return problem_set(seal->problem, GPUFL_E_NO_MEMORY, "%s: cannot compress: %s", seal->name,
                               ZSTD_getErrorName(left));
        seal->footer.frame_bytes += out.pos;
        seal->footer.frame_crc32c = crc32c(seal->footer.frame_crc32c, seal->output, out.pos);
        gpufl_status status = write_part(seal, seal->output, out.pos);
        if (status)
            return status;
    } while (mode == ZSTD_e_end ? left != 0 : in.pos < in.size);
    return GPUFL_OK;
}

/* The line in its sealed shape: batches by columns, everything else as it is; with a crc of its own. */
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
    line_append_crc(&seal->line, 0);
    if (seal->line.failed)
        return problem_set(seal->problem, GPUFL_E_NO_MEMORY, "%s: no memory to seal it", seal->name);
    return GPUFL_OK;
}

static gpufl_status seal_line(struct seal *seal, const char *line, size_t size)
{
    struct segment_footer *footer = &seal->footer;
    struct line_end end = line_end_read(line, size);
    if (end.crc != LINE_CRC_GOOD || end.seq < 0)
        return problem_set(seal->problem, GPUFL_E_DAMAGED, "%s: line %" PRIu64 " is damaged", seal->name,
                           footer->lines + 1);
    gpufl_status status = shape_line(seal, line, size, &end);
    if (status)
        return status;
    if (!footer->lines)
        footer->first_seq = (uint64_t)end.seq;
    footer->last_seq = (uint64_t)end.seq;
    footer->lines++;
    return compress(seal, seal->line.data, seal->line.size, ZSTD_e_continue);
}

static gpufl_status seal_lines(struct seal *seal, const atomic_bool *cancel)
{
    for (;;) {
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            return problem_set(seal->problem, GPUFL_E_NOT_RUNNING, "%s: sealing was stopped", seal->name);
        const char *line;
        size_t size;
        gpufl_status status;
        switch (line_source_next(&seal->source, &line, &size)) {
        case LINE_WHOLE:
            status = seal_line(seal, line, size);
            break;
        case LINE_NO_MORE:
            seal->footer.plain_bytes = seal->source.plain_bytes;
            return seal->footer.lines ? compress(seal, "", 0, ZSTD_e_end)
                                      : problem_set(seal->problem, GPUFL_E_NOT_FOUND, "%s: it is empty", seal->name);
        case LINE_FAILED:
            status = problem_set(seal->problem, GPUFL_E_IO, "%s: %s", seal->name, seal->source.reason);
            break;
        default:
            status = problem_set(seal->problem, GPUFL_E_DAMAGED, "%s: line %" PRIu64 " is torn or too long", seal->name,
                                 seal->footer.lines + 1);
        }
        if (status)
            return status;
    }
}

static void put_u32(char *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (char)(value >> 8 * i & 255);
}

/* JSON, with a crc of its own as every line has, then its size. */
static gpufl_status write_footer(struct seal *seal)
{
    const struct segment_footer *footer = &seal->footer;
    struct bytes *frame = &seal->line;
    bytes_clear(frame);
    bytes_append(frame, "01234567", SKIPPABLE_HEADER); /* magic and size, filled in below */
    bytes_append_format(frame,
                        "{\"format\":\"%s\",\"channel\":\"%s\",\"segment\":%" PRIu64 ",\"first_seq\":%" PRIu64
                        ",\"last_seq\":%" PRIu64 ",\"lines\":%" PRIu64 ",\"plain_bytes\":%" PRIu64
                        ",\"frame_bytes\":%" PRIu64 ",\"frame_crc32c\":\"%08" PRIx32 "\"",
                        format_name, footer->channel, footer->segment, footer->first_seq, footer->last_seq,
                        footer->lines, footer->plain_bytes, footer->frame_bytes, footer->frame_crc32c);
    line_append_crc(frame, SKIPPABLE_HEADER);
    uint32_t payload = (uint32_t)(frame->size - SKIPPABLE_HEADER) + SIZE_DIGITS;
    bytes_append_format(frame, "%08" PRIx32, payload);
    if (frame->failed)
        return problem_set(seal->problem, GPUFL_E_NO_MEMORY, "%s: no memory to seal it", seal->name);
    put_u32(frame->data, SKIPPABLE_MAGIC);
    put_u32(frame->data + 4, payload);
    return write_part(seal, frame->data, frame->size);
}

static gpufl_status seal_begin(struct seal *seal, int dir_fd, const char *part)
{
    struct stat file;
    seal->plain_fd = session_file_open(dir_fd, seal->name);
    if (seal->plain_fd < 0 || fstat(seal->plain_fd, &file))
        return io_failure(seal, "cannot open it");
    if (line_source_open(&seal->source, seal->plain_fd, LINE_CODING_PLAIN, (uint64_t)file.st_size))
        return problem_set(seal->problem, GPUFL_E_NO_MEMORY, "%s: no memory to seal it", seal->name);
    seal->encoder = ZSTD_createCCtx();
    seal->output_size = ZSTD_CStreamOutSize();
    seal->output = malloc(seal->output_size);
    if (!seal->encoder || !seal->output)
        return problem_set(seal->problem, GPUFL_E_NO_MEMORY, "%s: no memory to seal it", seal->name);
    ZSTD_CCtx_setParameter(seal->encoder, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(seal->encoder, ZSTD_c_checksumFlag, 1);
    unlinkat(dir_fd, part, 0); /* left by a sealer that was killed */
    seal->part_fd = openat(dir_fd, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return seal->part_fd < 0 ? io_failure(seal, "cannot make the sealed file") : GPUFL_OK;
}

static void seal_end(struct seal *seal)
{
    if (seal->plain_fd >= 0)
        close(seal->plain_fd);
    if (seal->part_fd >= 0)
        close(seal->part_fd);
    if (seal->source.buffer)
        line_source_close(&seal->source);
    ZSTD_freeCCtx(seal->encoder);
    free(seal->output);
    bytes_free(&seal->line);
}

gpufl_status segment_seal(int dir_fd, enum channel channel, uint64_t index, const atomic_bool *cancel,
                          struct segment_footer *footer, uint64_t *sealed_bytes, struct problem *problem)
{
    char plain[64], part[64], sealed[64];
    session_name_rotated(plain, sizeof plain, channel, index, "");
    session_name_rotated(part, sizeof part, channel, index, ".zst.part");
    session_name_rotated(sealed, sizeof sealed, channel, index, ".zst");
    struct seal seal = {.plain_fd = -1, .part_fd = -1, .name = plain, .problem = problem};
    snprintf(seal.footer.channel, sizeof seal.footer.channel, "%s", channel_names[channel]);
    seal.footer.segment = index;
    gpufl_status status = seal_begin(&seal, dir_fd, part);
    if (!status)
        status = seal_lines(&seal, cancel);
    if (!status)
        status = write_footer(&seal);
    struct stat file = {0};
    if (!status && (fsync(seal.part_fd) || fstat(seal.part_fd, &file) || renameat(dir_fd, part, dir_fd, sealed)))
        status = io_failure(&seal, "cannot finish the sealed file");
    if (!status) {
        /* Both names for a moment: readers prefer the sealed one. */
        fsync(dir_fd);
        unlinkat(dir_fd, plain, 0);
        *footer = seal.footer;
        *sealed_bytes = (uint64_t)file.st_size;
    } else if (seal.part_fd >= 0) {
        unlinkat(dir_fd, part, 0);
    }
    seal_end(&seal);
    return status;
}

static bool footer_parse(const char *text, size_t size, struct segment_footer *footer)
{
    struct json_document document;
    /* The LF that ends the footer's line is not part of what its crc covers. */
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
                   !strcmp(json_get_text(root, "format", ""), format_name) && footer->lines > 0;
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
        return problem_set(problem, GPUFL_E_DAMAGED, "the footer is missing: the file is cut off");
    unsigned long payload = strtoul(digits, NULL, 16);
    char canonical[2 * sizeof payload + 1];
    snprintf(canonical, sizeof canonical, "%08lx", payload);
    if (strcmp(canonical, digits) != 0 || payload <= SIZE_DIGITS || payload > FOOTER_MAX ||
        (off_t)payload + SKIPPABLE_HEADER > size)
        return problem_set(problem, GPUFL_E_DAMAGED, "the footer is missing: the file is cut off");
    size_t frame_size = SKIPPABLE_HEADER + payload;
    off_t frame_at = size - (off_t)frame_size;
    if (pread(fd, frame, frame_size, frame_at) != (ssize_t)frame_size || get_u32(frame) != SKIPPABLE_MAGIC ||
        get_u32(frame + 4) != payload || !footer_parse(frame + SKIPPABLE_HEADER, payload - SIZE_DIGITS, footer) ||
        footer->frame_bytes != (uint64_t)frame_at)
        return problem_set(problem, GPUFL_E_DAMAGED, "the footer is damaged");
    return GPUFL_OK;
}
