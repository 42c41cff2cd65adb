/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/segment_output.h"

#include "base/crc32c.h"
#include "logfile/line.h"
#include "logfile/session_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum { SKIPPABLE_MAGIC = 0x184D2A5A, SKIPPABLE_HEADER = 8, SIZE_DIGITS = 8, LEVEL = 1 };

static gpufl_status io_failure(struct segment_output *out, const char *what)
{
    return problem_set(out->problem, GPUFL_E_IO, "%s: %s: %s", out->sealed, what, strerror(errno));
}

static gpufl_status write_part(struct segment_output *out, const char *data, size_t size)
{
    while (size) {
        ssize_t written = write(out->part_fd, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return io_failure(out, "cannot write the sealed file");
        data += written;
        size -= (size_t)written;
    }
    return GPUFL_OK;
}

static gpufl_status compress(struct segment_output *out, const char *data, size_t size, ZSTD_EndDirective mode)
{
    ZSTD_inBuffer in = {data, size, 0};
    size_t left;
    do {
        ZSTD_outBuffer buffer = {out->output, out->output_size, 0};
        left = ZSTD_compressStream2(out->encoder, &buffer, &in, mode);
        if (ZSTD_isError(left))
            return problem_set(out->problem, GPUFL_E_NO_MEMORY, "%s: cannot compress: %s", out->sealed,
                               ZSTD_getErrorName(left));
        out->footer.frame_bytes += buffer.pos;
        out->footer.frame_crc32c = crc32c(out->footer.frame_crc32c, out->output, buffer.pos);
        gpufl_status status = write_part(out, out->output, buffer.pos);
        if (status)
            return status;
    } while (mode == ZSTD_e_end ? left != 0 : in.pos < in.size);
    return GPUFL_OK;
}

static void put_u32(char *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (char)(value >> 8 * i & 255);
}

/* The footer is JSON with a separate crc, like every line, followed by its size. */
static gpufl_status write_footer(struct segment_output *out)
{
    const struct segment_footer *footer = &out->footer;
    struct bytes *frame = &out->line;
    bytes_clear(frame);
    bytes_append(frame, "01234567", SKIPPABLE_HEADER); /* magic and size, filled in below */
    bytes_append_format(frame,
                        "{\"format\":\"%s\",\"channel\":\"%s\",\"segment\":%" PRIu64 ",\"first_seq\":%" PRIu64
                        ",\"last_seq\":%" PRIu64 ",\"lines\":%" PRIu64 ",\"plain_bytes\":%" PRIu64
                        ",\"frame_bytes\":%" PRIu64 ",\"frame_crc32c\":\"%08" PRIx32 "\"",
                        SEGMENT_FORMAT, footer->channel, footer->segment, footer->first_seq, footer->last_seq,
                        footer->lines, footer->plain_bytes, footer->frame_bytes, footer->frame_crc32c);
    line_append_crc(frame, SKIPPABLE_HEADER);
    uint32_t payload = (uint32_t)(frame->size - SKIPPABLE_HEADER) + SIZE_DIGITS;
    bytes_append_format(frame, "%08" PRIx32, payload);
    if (frame->failed)
        return problem_set(out->problem, GPUFL_E_NO_MEMORY, "%s: out of memory while sealing", out->sealed);
    put_u32(frame->data, SKIPPABLE_MAGIC);
    put_u32(frame->data + 4, payload);
    return write_part(out, frame->data, frame->size);
}

gpufl_status segment_output_open(struct segment_output *out, int dir_fd, enum channel channel, uint64_t index,
                                 struct problem *problem)
{
    *out = (struct segment_output){.dir_fd = dir_fd, .part_fd = -1, .problem = problem};
    session_name_rotated(out->part, sizeof out->part, channel, index, ".zst.part");
    session_name_rotated(out->sealed, sizeof out->sealed, channel, index, ".zst");
    snprintf(out->footer.channel, sizeof out->footer.channel, "%s", channel_names[channel]);
    out->footer.segment = index;
    ZSTD_CCtx *encoder = ZSTD_createCCtx();
    out->encoder = encoder;
    out->output_size = ZSTD_CStreamOutSize();
    out->output = malloc(out->output_size);
    if (!encoder || !out->output)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "%s: out of memory while sealing", out->sealed);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_checksumFlag, 1);
    unlinkat(dir_fd, out->part, 0); /* left by a sealer that was killed */
    out->part_fd = openat(dir_fd, out->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return out->part_fd < 0 ? io_failure(out, "cannot create the sealed file") : GPUFL_OK;
}

gpufl_status segment_output_line(struct segment_output *out, const char *object, size_t size, uint64_t seq)
{
    struct segment_footer *footer = &out->footer;
    bytes_clear(&out->line);
    bytes_append(&out->line, object, size);
    line_append_crc(&out->line, 0);
    if (out->line.failed)
        return problem_set(out->problem, GPUFL_E_NO_MEMORY, "%s: out of memory while sealing", out->sealed);
    if (!footer->lines)
        footer->first_seq = seq;
    footer->last_seq = seq;
    footer->lines++;
    return compress(out, out->line.data, out->line.size, ZSTD_e_continue);
}

gpufl_status segment_output_finish(struct segment_output *out, uint64_t plain_bytes, uint64_t *bytes)
{
    struct stat file = {0};
    out->footer.plain_bytes = plain_bytes;
    if (!out->footer.lines)
        return problem_set(out->problem, GPUFL_E_NOT_FOUND, "%s would be empty", out->sealed);
    gpufl_status status = compress(out, "", 0, ZSTD_e_end);
    if (!status)
        status = write_footer(out);
    if (!status && (fsync(out->part_fd) || fstat(out->part_fd, &file) ||
                    renameat(out->dir_fd, out->part, out->dir_fd, out->sealed)))
        status = io_failure(out, "cannot finish the sealed file");
    if (status)
        return status;
    fsync(out->dir_fd);
    close(out->part_fd);
    out->part_fd = -1;
    *bytes = (uint64_t)file.st_size;
    return GPUFL_OK;
}

void segment_output_close(struct segment_output *out)
{
    if (out->part_fd >= 0) {
        close(out->part_fd);
        unlinkat(out->dir_fd, out->part, 0);
    }
    ZSTD_freeCCtx(out->encoder);
    free(out->output);
    bytes_free(&out->line);
}
