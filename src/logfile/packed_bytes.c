/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/packed_bytes.h"

#include "base/base64.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>

enum { LEVEL = 3 };

gpufl_status packed_bytes_append(struct bytes *out, const void *data, size_t size, struct problem *problem)
{
    size_t bound = ZSTD_compressBound(size);
    char *frame = ZSTD_isError(bound) ? NULL : malloc(bound);
    if (!frame)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to compress %zu bytes", size);
    gpufl_status status = GPUFL_OK;
    size_t frame_size = ZSTD_compress(frame, bound, data, size, LEVEL);
    if (ZSTD_isError(frame_size))
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "cannot compress: %s", ZSTD_getErrorName(frame_size));
    else
        base64_encode(out, frame, frame_size);
    if (!status && out->failed)
        status = problem_set(problem, GPUFL_E_LIMIT, "%zu bytes do not fit a line, even compressed", size);
    free(frame);
    return status;
}

gpufl_status packed_bytes_read(struct bytes *out, const char *text, size_t size, uint64_t plain_size, uint64_t limit,
                               struct problem *problem)
{
    if (plain_size > limit)
        return problem_set(problem, GPUFL_E_LIMIT,
                           "the declared size of %" PRIu64 " bytes exceeds the limit of %" PRIu64, plain_size, limit);
    struct bytes frame = {0};
    size_t bad_at;
    gpufl_status status = GPUFL_OK;
    if (!base64_decode(&frame, text, size, &bad_at)) {
        status = bad_at == SIZE_MAX ? problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory")
                                    : problem_set(problem, GPUFL_E_DAMAGED, "not base64 at character %zu", bad_at);
    } else if (ZSTD_getFrameContentSize(frame.data, frame.size) != plain_size ||
               ZSTD_findFrameCompressedSize(frame.data, frame.size) != frame.size) {
        status = problem_set(problem, GPUFL_E_DAMAGED, "not one zstd frame of %" PRIu64 " bytes", plain_size);
    } else if (!bytes_reserve(out, plain_size)) {
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "cannot allocate %" PRIu64 " bytes", plain_size);
    } else {
        size_t got = plain_size ? ZSTD_decompress(out->data + out->size, plain_size, frame.data, frame.size) : 0;
        if (got != plain_size)
            status = problem_set(problem, GPUFL_E_DAMAGED, "the zstd frame is damaged");
        else
            out->size += got;
    }
    bytes_free(&frame);
    return status;
}
