/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the PC samples of an interval into rows. A sample names its function, not its launch: the executions of that
 * function within the interval are looked up, and the samples are split between their scopes in proportion to the
 * executions' time. Each row states the certainty of that split (confidence_bp). Samples with the same function,
 * scope and launch are added up for a second, so that the log grows with the number of distinct rows and not with
 * time. Samples of a function whose execution is not known yet (it still runs) wait, bounded. Executions whose scope
 * is not known get a separate row without a scope. Collector thread only. */
#ifndef GPUFL_CAPTURE_PC_ATTRIBUTION_H
#define GPUFL_CAPTURE_PC_ATTRIBUTION_H

#include "capture/kernel_history.h"
#include "capture/names.h"

enum { PC_FUNCTIONS_MAX = 32 * 1024 };

struct pc_attribution; /* opaque */

struct pc_attribution_options {
    struct recorder *recorder; /* borrowed, as are the next two */
    struct names *names;
    struct kernel_history *history;
};

struct pc_interval {
    int64_t start_ns, end_ns; /* the samples were taken between */
    uint32_t context_id, device_id, window_id;
};
struct pc_count { /* samples of one instruction with one stall reason */
    uint64_t pc_offset;
    uint32_t function; /* of pc_attribution_define */
    uint32_t stall_index, samples, correlation_id;
};

NODISCARD gpufl_status pc_attribution_make(struct pc_attribution **out, const struct pc_attribution_options *options);
void pc_attribution_free(struct pc_attribution *attribution);
/* `function`: the caller's number for it, 1 to PC_FUNCTIONS_MAX; call it before passing its samples. */
void pc_attribution_define(struct pc_attribution *attribution, uint32_t function, uint64_t cubin_crc,
                           const char *symbol);
/* The meaning of a stall index on a device; call it before passing its samples, repeatedly if need be. */
void pc_attribution_stall(struct pc_attribution *attribution, uint32_t device_id, uint32_t stall_index,
                          const char *name);
void pc_attribution_add(struct pc_attribution *attribution, const struct pc_interval *interval,
                        const struct pc_count *counts, uint32_t count);
/* Writes rows older than a second before now_ns; INT64_MAX: everything. */
void pc_attribution_write(struct pc_attribution *attribution, int64_t now_ns);
uint64_t pc_attribution_unattributed(const struct pc_attribution *attribution); /* samples written without a scope */
size_t pc_attribution_bytes(const struct pc_attribution *attribution);

#endif
