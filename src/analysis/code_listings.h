/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a session's instructions, written into the session itself: what nvdisasm and llvm-objdump say
 * about the functions of its code, as cubin_disassembly records, so that whoever reads it later needs neither the tool
 * nor the GPU's vendor. Runs programs, several at once, so for the command line only. One caller at a time. */
#ifndef GPUFL_ANALYSIS_CODE_LISTINGS_H
#define GPUFL_ANALYSIS_CODE_LISTINGS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct code_listings_options {
    bool is_all;            /* every function, not only those with samples or counts and AMD's kernels that ran */
    unsigned time_limit_ms; /* for the whole session */
    unsigned threads;       /* tools at once, at most; 0: as many as this process may use cores, and not more than 8 */
    const int *stop_fd;     /* as soon as it is readable tools are ended and the rest is left; NULL: none */
    void (*on_progress)(void *user, size_t done,
                        size_t total); /* functions; on the caller's thread. NULL: nobody asks */
    void *user;
};

struct code_listings {
    size_t present;        /* functions whose text the log had */
    size_t added;          /* and has now */
    size_t without_code;   /* the log holds no code of them */
    size_t failed;         /* the tool had no text */
    size_t without_tool;   /* it was not found */
    size_t left;           /* the time was over, it was stopped, or they are too large */
    uint64_t bytes;        /* written */
    struct problem reason; /* why the first one failed or was left */
};

/* Adds what is missing. A session without code is no failure. GPUFL_E_BUSY: it is still being written.
 * GPUFL_E_NOT_FOUND: there is no session, or none of the tools that it needs. */
NODISCARD gpufl_status code_listings_add(const char *dir, const struct code_listings_options *options,
                                         struct code_listings *result, struct problem *problem);

#endif
