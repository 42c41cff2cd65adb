/* SPDX-License-Identifier: Apache-2.0 */
/* PC samples of a session: what the sampled warps were doing, in all, per
 * function, per scope and per instruction. Made once, read only afterwards;
 * borrows the model's strings.
 *
 * CUPTI counts each sample under its reason, and those that were taken while the
 * scheduler issued nothing a second time under REASON_not_issued: the second
 * number is a part of the first, not more samples. */
#ifndef GPUFL_ANALYSIS_STALLS_H
#define GPUFL_ANALYSIS_STALLS_H

#include "analysis/session.h"

enum stall_family {
    STALL_ISSUED, /* the warp issued an instruction: no stall */
    STALL_READY,  /* it could have: another warp was chosen */
    STALL_MEMORY,
    STALL_PIPE,
    STALL_SYNC,
    STALL_CONTROL,
    STALL_OTHER
};

struct stall_kind {
    const char *name; /* long_scoreboard */
    enum stall_family family;
    const char *words;  /* what the warp did, for people; "" for reasons of GPUs that this table does not know */
    const char *advice; /* what to try when it dominates; "" when there is nothing to say */
};

enum { STALL_KINDS_MAX = 64 };
struct stall_profile {
    uint64_t samples, not_issued;
    uint64_t by_kind[STALL_KINDS_MAX];
};

struct function_stalls {
    uint64_t cubin_crc;
    uint32_t function_id;
    struct stall_profile profile;
};

struct scope_stalls {
    uint32_t path_id; /* 0: no scope, or none is known */
    uint64_t certain;
    struct stall_profile profile;
};

/* One instruction. */
struct hot_pc {
    uint64_t cubin_crc, samples, not_issued, stall_samples;
    uint32_t function_id, pc_offset;
    uint32_t source_file_id, source_line; /* v1; 0 unknown */
    uint32_t row_first, row_count;        /* in struct stalls' rows */
    uint8_t stall;                        /* the kind with most samples; STALL_ISSUED only when there is no other */
};

struct stalls {
    struct stall_kind kinds[STALL_KINDS_MAX]; /* names that the table lacks come last */
    unsigned kind_count;
    struct stall_profile total;
    uint64_t certain, undecided; /* samples whose execution is certain; that have none, or no confidence in the log */
    double weighted;             /* sum of confidences */
    struct function_stalls *functions; /* most samples first, as the others */
    struct scope_stalls *scopes;
    struct hot_pc *pcs;
    struct code_sample *rows; /* by cubin, function, pc */
    size_t function_count, scope_count, pc_count, row_count;
    uint8_t *metric_kinds; /* by metric id: the kind, with STALL_NOT_ISSUED */
    uint32_t metric_count;
};
enum { STALL_NOT_ISSUED = 0x80, STALL_KIND_MASK = 0x7f };

NODISCARD gpufl_status stalls_make(struct stalls *stalls, const struct session_model *model);
void stalls_free(struct stalls *stalls);
/* The kind and STALL_NOT_ISSUED of a row's metric. */
uint8_t stalls_metric_kind(const struct stalls *stalls, uint32_t metric_id);
void stall_profile_add(const struct stalls *stalls, struct stall_profile *profile, uint32_t metric_id,
                       uint64_t samples);
/* The kind that cost most, issuing and being ready left aside while there is another; samples of it in *count. */
unsigned stall_profile_top(const struct stalls *stalls, const struct stall_profile *profile, uint64_t *count);

/* The sampled function: demangled for people, mangled for the cubin. NULL: not in the log. */
const char *function_name(const struct session_model *model, uint32_t function_id);
const char *function_symbol(const struct session_model *model, uint32_t function_id);

#endif
