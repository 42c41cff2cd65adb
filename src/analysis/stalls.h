/* SPDX-License-Identifier: Apache-2.0 */
/* PC samples of a session: the states of the sampled warps, in total, per function, per scope and per instruction. Made
 * once, then read-only; borrows the model's strings.
 *
 * CUPTI counts each sample under its reason, and those taken while the scheduler issued nothing a second time under
 * REASON_not_issued: the second number is a part of the first, not additional samples. */
#ifndef GPUFL_ANALYSIS_STALLS_H
#define GPUFL_ANALYSIS_STALLS_H

#include "analysis/session.h"

enum stall_family {
    STALL_ISSUED, /* the warp issued an instruction: no stall */
    STALL_READY,  /* it was ready, but another warp was chosen */
    STALL_MEMORY,
    STALL_PIPE,
    STALL_SYNC,
    STALL_CONTROL,
    STALL_OTHER
};

struct stall_kind {
    const char *name; /* long_scoreboard */
    enum stall_family family;
    const char *words;  /* what the warp did, for people; "" for reasons that this table does not contain */
    const char *advice; /* what to try when it dominates; "" if there is no advice */
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
    uint32_t path_id; /* 0: no scope, or unknown */
    uint64_t certain;
    struct stall_profile profile;
};

/* One instruction. */
struct hot_pc {
    uint64_t cubin_crc, samples, not_issued, stall_samples;
    uint32_t function_id, pc_offset;
    uint32_t source_file_id, source_line; /* v1; 0 unknown */
    uint32_t row_first, row_count;        /* in the rows of struct stalls */
    uint8_t stall;                        /* the kind with the most samples; STALL_ISSUED only if there is no other */
};

struct stalls {
    struct stall_kind kinds[STALL_KINDS_MAX]; /* names missing from the table come last */
    unsigned kind_count;
    struct stall_profile total;
    uint64_t certain, undecided;       /* with a certain execution; without execution or confidence in the log */
    double weighted;                   /* sum of confidences */
    struct function_stalls *functions; /* most samples first, like the others */
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
/* The most frequent kind, ignoring issued and ready ones if there is another; its number of samples in *count. */
unsigned stall_profile_top(const struct stalls *stalls, const struct stall_profile *profile, uint64_t *count);

/* The sampled function: demangled for people, mangled for the cubin. NULL: not in the log. */
const char *function_name(const struct session_model *model, uint32_t function_id);
const char *function_symbol(const struct session_model *model, uint32_t function_id);

#endif
