/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/instruction_counts.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const double warp_threads = 32;

/* X(member, metric without its prefix) */
#define METRIC_MAP(X)                                                        \
    X(inst_executed, "inst_executed")                                        \
    X(thread_inst, "thread_inst_executed")                                   \
    X(thread_inst_pred_on, "thread_inst_executed_pred_on")                   \
    X(branch_divergent, "branch_targets_threads_divergent")                  \
    X(branch_uniform, "branch_targets_threads_uniform")                      \
    X(sectors_global, "sectors_mem_global")                                  \
    X(sectors_global_ideal, "sectors_mem_global_ideal")                      \
    X(wavefronts_shared, "l1tex_pipe_lsu_wavefronts_mem_shared")             \
    X(wavefronts_shared_ideal, "l1tex_pipe_lsu_wavefronts_mem_shared_ideal") \
    X(sectors_local, "sectors_mem_local")
static const struct {
    const char *name;
    size_t offset;
} metrics[] = {
#define METRIC_ENTRY(member, name) {"smsp__sass_" name, offsetof(struct instruction_counts, member)},
    METRIC_MAP(METRIC_ENTRY)
#undef METRIC_ENTRY
};

static double sum(double left, double right)
{
    return isnan(left) ? right : isnan(right) ? left : left + right;
}

struct instruction_counts instruction_counts_none(void)
{
    const double none = NAN;
    return (struct instruction_counts){none, none, none, none, none, none, none, none, none, none, none};
}

bool instruction_counts_set(struct instruction_counts *counts, const char *metric_name, uint64_t value)
{
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        if (strcmp(metrics[i].name, metric_name) != 0)
            continue;
        double *count = (double *)(void *)((char *)counts + metrics[i].offset);
        *count = sum(*count, (double)value);
        return true;
    }
    return false;
}

/* Requests are the executions of instructions that accessed global sectors; known only per instruction. */
static double requests(const struct instruction_counts *counts)
{
    if (!isnan(counts->global_executed))
        return counts->global_executed;
    return counts->sectors_global > 0 ? counts->inst_executed : NAN;
}

void instruction_counts_add(struct instruction_counts *total, const struct instruction_counts *instruction)
{
    total->global_executed = sum(total->global_executed, requests(instruction));
#define METRIC_ADD(member, name) total->member = sum(total->member, instruction->member);
    METRIC_MAP(METRIC_ADD)
#undef METRIC_ADD
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN; /* also if whole is NaN */
}

double instruction_coalescing(const struct instruction_counts *counts)
{
    return ratio(counts->sectors_global_ideal, counts->sectors_global);
}

double instruction_sectors_per_request(const struct instruction_counts *counts)
{
    return ratio(counts->sectors_global, requests(counts));
}

double instruction_branch_efficiency(const struct instruction_counts *counts)
{
    return ratio(counts->branch_uniform, counts->branch_uniform + counts->branch_divergent);
}

double instruction_thread_efficiency(const struct instruction_counts *counts)
{
    return ratio(counts->thread_inst_pred_on, warp_threads * counts->inst_executed);
}

double instruction_bank_conflicts(const struct instruction_counts *counts)
{
    return ratio(counts->wavefronts_shared, counts->wavefronts_shared_ideal);
}
