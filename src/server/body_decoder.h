/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a request body as it arrives: plain, gzip or zstd, in pieces of any size. Memory is bounded by the longest
 * line that is accepted, whatever the body claims to be; what grows beyond all reason while it is decoded is given up.
 * A decoder owns its memory; one thread at a time. */
#ifndef GPUFL_SERVER_BODY_DECODER_H
#define GPUFL_SERVER_BODY_DECODER_H

#include "base/bytes.h"
#include "base/status.h"

#include <pthread.h>

enum content_coding { CONTENT_PLAIN, CONTENT_GZIP, CONTENT_ZSTD, CONTENT_CODING_COUNT };
/* By the words of a Content-Encoding header, NULL or "" being plain. False: another coding. */
bool content_coding_parse(const char *text, enum content_coding *coding);

struct body_limits {
    uint64_t plain_bytes_max; /* of the decoded body */
    uint64_t ratio_max;       /* decoded bytes for each one sent, from ratio_free_bytes on */
    uint64_t ratio_free_bytes;
    size_t line_bytes_max; /* longer lines are left out, each with a call of its own */
};

enum body_line {
    BODY_LINE_WHOLE,
    BODY_LINE_UNENDED, /* the last one, without LF */
    BODY_LINE_TOO_LONG /* no text */
};
/* text: without LF and CR LF, valid during the call. Empty lines are not told, but counted in number (from 1). */
typedef void body_line_fn(void *user, enum body_line kind, uint64_t number, const char *text, size_t size);

enum body_result {
    BODY_GOOD,
    BODY_DAMAGED,   /* not what its coding says, or it ends in the middle */
    BODY_TOO_LARGE, /* plain_bytes_max or ratio_max */
    BODY_NO_MEMORY
};

/* zstd contexts that are used again: a small body costs less than making one. Any thread. */
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
    struct bytes plain; /* decoded, not yet a line */
    uint64_t sent_bytes, plain_bytes, line_number;
    bool is_mid_frame, is_skipping;
    char reason[160]; /* why the last result was not BODY_GOOD */
};

/* pool: may be NULL. */
NODISCARD gpufl_status body_decoder_open(struct body_decoder *decoder, enum content_coding coding,
                                         const struct body_limits *limits, struct body_decoder_pool *pool);
void body_decoder_close(struct body_decoder *decoder);
/* Nothing more will be fed: the memory goes, the counts stay. */
void body_decoder_rest(struct body_decoder *decoder);
/* After a result other than BODY_GOOD nothing more may be fed. */
NODISCARD enum body_result body_decoder_feed(struct body_decoder *decoder, const void *data, size_t size,
                                             body_line_fn *on_line, void *user);
NODISCARD enum body_result body_decoder_finish(struct body_decoder *decoder, body_line_fn *on_line, void *user);
/* What the decoder holds now. */
size_t body_decoder_memory(const struct body_decoder *decoder);

#endif
