/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that run nvdisasm and llvm-objdump, several in parallel, and make cubin_disassembly records from their
 * output. Functions printed together share one run of the tool ("print"). One thread starts a pool, takes its results
 * in any order and ends it. Runs programs, so for the command line only. */
#ifndef GPUFL_ANALYSIS_LISTING_POOL_H
#define GPUFL_ANALYSIS_LISTING_POOL_H

#include "code/image.h"

enum listing_state {
    LISTING_WANTED,
    LISTING_MADE,
    LISTING_FAILED, /* the tool printed nothing for it */
    LISTING_LEFT,   /* timeout, stopped, more than 8 MiB of text, or all together more than 64 MiB */
    LISTING_WITHOUT_TOOL
};

struct listing_outcome {
    enum listing_state state;
    struct bytes text;  /* owned; MADE: the record without its closing brace */
    const char *reason; /* for any other state; static, or in text */
};

struct listing_request {
    const struct code_image *image; /* borrowed, like all below */
    const struct image_function *function;
    const char *tool;
    const char *symbol; /* the function's name in the record */
    uint64_t cubin_crc;
    struct listing_outcome
        outcome; /* the pool's until listing_pool_take; a state other than WANTED at the start is kept */
    /* Private to the pool. */
    const struct image_function *printed;
    struct listing_request *follower; /* the next request in the same print */
    bool is_follower;
};

struct listing_pool_options {
    const char *session_id;
    int64_t deadline_ns; /* of clock_mono_ns */
    unsigned threads;    /* maximum; 0: the number of cores that this process may use, but at most 8 */
    const int *stop_fd;  /* when it becomes readable, tools are stopped and the rest is left out; NULL: none */
    void (*on_progress)(void *user, size_t done, size_t total); /* NULL: not needed; on the caller's thread */
    void *user;
};

struct listing_pool;

/* Requests are started in order. They are borrowed until the pool ends. */
NODISCARD gpufl_status listing_pool_start(struct listing_pool **pool, struct listing_request *requests, size_t count,
                                          const struct listing_pool_options *options, struct problem *problem);
/* Waits until the request is finished; the caller then owns its outcome. */
struct listing_outcome *listing_pool_take(struct listing_pool *pool, size_t index);
/* Stops running tools; frees outcomes that were not taken. NULL is a no-op. */
void listing_pool_end(struct listing_pool *pool);

#endif
