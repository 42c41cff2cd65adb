/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that let nvdisasm and llvm-objdump print functions, several at once, and make cubin_disassembly records of it.
 * Functions that one print has in it share it. One thread starts a pool, takes its results in any order and ends it.
 * Runs programs, so for the command line only. */
#ifndef GPUFL_ANALYSIS_LISTING_POOL_H
#define GPUFL_ANALYSIS_LISTING_POOL_H

#include "code/image.h"

enum listing_state {
    LISTING_WANTED,
    LISTING_MADE,
    LISTING_FAILED, /* the tool had no text */
    LISTING_LEFT,   /* the time was over, it was stopped, or it has more than 8 MiB, or all together have 64 MiB */
    LISTING_WITHOUT_TOOL
};

struct listing_outcome {
    enum listing_state state;
    struct bytes text;  /* owned; MADE: the record without its closing brace */
    const char *reason; /* of any other; static, or in text */
};

struct listing_request {
    const struct code_image *image; /* borrowed, like all below */
    const struct image_function *function;
    const char *tool;
    const char *symbol; /* the function's name in the record */
    uint64_t cubin_crc;
    struct listing_outcome outcome; /* the pool's until listing_pool_take; given as anything but WANTED, it stays */
    /* The pool's own. */
    const struct image_function *printed;
    struct listing_request *follower; /* the next one in the same print */
    bool is_follower;
};

struct listing_pool_options {
    const char *session_id;
    int64_t deadline_ns; /* of clock_mono_ns */
    unsigned threads;    /* at most; 0: as many as this process may use cores, and not more than 8 */
    const int *stop_fd;  /* as soon as it is readable tools are ended and the rest is left; NULL: none */
    void (*on_progress)(void *user, size_t done, size_t total); /* NULL: nobody asks; on the caller's thread */
    void *user;
};

struct listing_pool;

/* Earlier requests are begun earlier. They are borrowed until the pool's end. */
NODISCARD gpufl_status listing_pool_start(struct listing_pool **pool, struct listing_request *requests, size_t count,
                                          const struct listing_pool_options *options, struct problem *problem);
/* Waits until that request has its outcome, which is then the caller's to read and to free. */
struct listing_outcome *listing_pool_take(struct listing_pool *pool, size_t index);
/* Ends the tools that still run; frees what was not. NULL is a no-op. */
void listing_pool_end(struct listing_pool *pool);

#endif
