/* SPDX-License-Identifier: Apache-2.0 */
/* Interprets SASS counters: counts of an instruction, a source line or a whole function, and ratios that point to a
 * problem. NaN means "not measured": a ratio is NaN if one of its counts is, or if no such instruction was executed.
 * Pure functions; thread-safe. */
#ifndef GPUFL_ANALYSIS_INSTRUCTION_COUNTS_H
#define GPUFL_ANALYSIS_INSTRUCTION_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

struct instruction_counts {
    double inst_executed;       /* warps */
    double thread_inst;         /* threads that were active */
    double thread_inst_pred_on; /* and not predicated off */
    double branch_divergent;    /* branches after which threads of a warp took different paths */
    double branch_uniform;
    double sectors_global; /* of 32 bytes, accessed by global memory instructions */
    double sectors_global_ideal;
    double wavefronts_shared; /* passes through shared memory */
    double wavefronts_shared_ideal;
    double sectors_local;
    double global_executed; /* warps at instructions that access global memory: the requests */
};

struct instruction_counts instruction_counts_none(void); /* all NaN */
/* Adds a row's value to the count of its metric; false: the metric has no member here. */
bool instruction_counts_set(struct instruction_counts *counts, const char *metric_name, uint64_t value);
/* Adds one instruction's counts to those of a line or function. */
void instruction_counts_add(struct instruction_counts *sum, const struct instruction_counts *instruction);

/* 1: every byte moved by global accesses was requested; 0.25: three of four were not. */
double instruction_coalescing(const struct instruction_counts *counts);
/* Per executed global access of a warp: 4 is ideal for 4-byte elements, 32 the worst. */
double instruction_sectors_per_request(const struct instruction_counts *counts);
/* Fraction of branches that did not split a warp. */
double instruction_branch_efficiency(const struct instruction_counts *counts);
/* Fraction of a warp's 32 threads that were active. */
double instruction_thread_efficiency(const struct instruction_counts *counts);
/* 1: no conflicts; 32: each access to shared memory took 32 passes instead of one. */
double instruction_bank_conflicts(const struct instruction_counts *counts);

#endif
