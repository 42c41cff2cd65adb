/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a request body into lines as it arrives: plain, gzip or zstd, in pieces of any size. Memory is bounded by the
 * longest accepted line, whatever the body claims; decoding stops with an error when the body grows beyond the limits.
 * A decoder owns its memory; one thread at a time. */
#ifndef GPUFL_SERVER_BODY_DECODER_H
#define GPUFL_SERVER_BODY_DECODER_H

#include "base/bytes.h"
#include "base/status.h"

#include <pthread.h>

enum content_coding { CONTENT_PLAIN, CONTENT_GZIP, CONTENT_ZSTD, CONTENT_CODING_COUNT };
/* Parses a Content-Encoding header; NULL or "" is plain. False: another coding. */
bool content_coding_parse(const char *text, enum content_coding *coding);

struct body_limits {
    uint64_t plain_bytes_max; /* of the decoded body */
    uint64_t ratio_max;       /* decoded bytes per byte sent, checked beyond ratio_free_bytes */
    uint64_t ratio_free_bytes;
    size_t line_bytes_max; /* longer lines are skipped, with one call for each */
};

enum body_line {
    BODY_LINE_WHOLE,
    BODY_LINE_UNENDED, /* the last line, without LF */
    BODY_LINE_TOO_LONG /* no text */
};
/* text: without LF or CR LF, valid during the call. Empty lines are counted in number (from 1) but not passed on. */
typedef void body_line_fn(void *user, enum body_line kind, uint64_t number, const char *text, size_t size);

enum body_result {
    BODY_GOOD,
    BODY_DAMAGED,   /* invalid in its coding, or truncated */
    BODY_TOO_LARGE, /* plain_bytes_max or ratio_max */
    BODY_NO_MEMORY
};

/* zstd contexts for reuse: creating one costs more than decoding a small body. Thread-safe. */
enum { BODY_DECODER_POOL_MAX = 16 };
struct body_decoder_pool {
    pthread_mutex_t lock;
    void *idle[BODY_DECODER_POOL_MAX]; /* owned */
    unsigned count;
};
void body_decoder_pool_open(struct body_decoder_pool *pool);
void body_decoder_pool_close(struct body_decoder_pool *pool);

struct body_decoder {
    enum content_coding coding;
    struct body_decoder_pool *pool; /* NULL: none */
    struct body_limits limits;
    void *stream;       /* owned: z_stream or ZSTD_DCtx */
    struct bytes plain; /* decoded, not yet a complete line */
    uint64_t sent_bytes, plain_bytes, line_number;
    bool is_mid_frame, is_skipping;
    char reason[160]; /* why the last result was not BODY_GOOD */
};

/* pool: may be NULL. */
NODISCARD gpufl_status body_decoder_open(struct body_decoder *decoder, enum content_coding coding,
                                         const struct body_limits *limits, struct body_decoder_pool *pool);
void body_decoder_close(struct body_decoder *decoder);
/* No more data will be fed: frees the memory, keeps the counts. */
void body_decoder_rest(struct body_decoder *decoder);
/* After a result other than BODY_GOOD no more data may be fed. */
NODISCARD enum body_result body_decoder_feed(struct body_decoder *decoder, const void *data, size_t size,
                                             body_line_fn *on_line, void *user);
NODISCARD enum body_result body_decoder_finish(struct body_decoder *decoder, body_line_fn *on_line, void *user);
/* The memory that the decoder uses now. */
size_t body_decoder_memory(const struct body_decoder *decoder);

#endif
