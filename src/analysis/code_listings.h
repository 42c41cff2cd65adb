/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the disassembly of a session's functions into the session: the output of nvdisasm and llvm-objdump for its
 * code, as cubin_disassembly records, so that later readers need neither the tool nor the vendor's software. Runs
 * several programs in parallel, so for the command line only. One caller at a time. */
#ifndef GPUFL_ANALYSIS_CODE_LISTINGS_H
#define GPUFL_ANALYSIS_CODE_LISTINGS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct code_listings_options {
    bool is_all;            /* every function, not only those with samples or counters and AMD kernels that ran */
    unsigned time_limit_ms; /* for the whole session */
    unsigned threads;       /* tools in parallel, at most; 0: as many as usable cores, but at most 8 */
    const int *stop_fd;     /* when it becomes readable, tools are stopped and the rest is left out; NULL: none */
    void (*on_progress)(void *user, size_t done,
                        size_t total); /* number of functions; on the caller's thread. NULL: not needed */
    void *user;
};

struct code_listings {
    size_t present;        /* functions whose text the log already had */
    size_t added;          /* functions whose text was added */
    size_t without_code;   /* the log contains no code of them */
    size_t failed;         /* the tool printed nothing for them */
    size_t without_tool;   /* the tool was not found */
    size_t left;           /* timeout, stopped, or too large */
    uint64_t bytes;        /* written */
    struct problem reason; /* why the first one failed or was left out */
};

/* Adds missing listings. A session without code is not an error. GPUFL_E_BUSY: it is still being written.
 * GPUFL_E_NOT_FOUND: no session, or none of the required tools. */
NODISCARD gpufl_status code_listings_add(const char *dir, const struct code_listings_options *options,
                                         struct code_listings *result, struct problem *problem);

#endif
