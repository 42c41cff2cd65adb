/* SPDX-License-Identifier: Apache-2.0 */
/* The samples and counters of code: instructions with their text and source line, and source lines with the sums of
 * their instructions. Covers the functions with the most samples, those with counters, and, because AMD kernels have
 * neither, the AMD kernels that ran. Made once, then read-only; borrows the model and the stalls. */
#ifndef GPUFL_ANALYSIS_HOT_CODE_H
#define GPUFL_ANALYSIS_HOT_CODE_H

#include "analysis/code_lookup.h"
#include "analysis/instruction_counts.h"
#include "analysis/stalls.h"

struct hot_function {
    uint64_t cubin_crc, samples;
    uint32_t function_id; /* ID_UNKNOWN: an AMD kernel, which has no samples and therefore no such id */
    const char *name;     /* NULL: not in the log */
    const char *symbol;   /* mangled; NULL: not in the log */
    enum image_vendor vendor;
    const char *problem; /* why lines or instructions are missing; "" */
    struct instruction_counts counts;
    bool has_counts;
};

/* One instruction with samples or counters. */
struct code_place {
    uint32_t function; /* index into functions */
    uint32_t pc_offset, line;
    const char *sass, *file; /* "" unknown */
    const char *called_from; /* "b.cu:7 < c.cu:9" if it was inlined, else "" */
    uint64_t samples, not_issued, stall_samples;
    struct instruction_counts counts;
    uint32_t row_first, row_count; /* of the stalls' rows */
    uint32_t source_file_id;
    uint8_t stall;
    bool is_raw, has_counts;
};

enum { LINE_STALLS_MAX = 3 };
struct hot_line {
    uint32_t function;
    const char *file; /* "": the line is unknown, and this is a single instruction */
    uint32_t line;
    const char *source; /* NULL: its text is not in the log */
    uint64_t samples, not_issued;
    struct {
        uint8_t kind;
        uint64_t samples;
    } stalls[LINE_STALLS_MAX]; /* most samples first; without issued and ready */
    unsigned stall_count;
    struct instruction_counts counts;
    bool has_counts;
    size_t place_first, place_count;
};

struct hot_code {
    struct hot_function *functions; /* most samples first */
    struct code_place *places;      /* by function, file, line, pc */
    struct hot_line *lines;         /* most samples first, then most executions */
    size_t function_count, place_count, line_count;
    struct code_lookup lookup;
};

NODISCARD gpufl_status hot_code_make(struct hot_code *code, const struct session_model *model,
                                     const struct stalls *stalls, enum code_effort effort);
void hot_code_free(struct hot_code *code);

#endif
