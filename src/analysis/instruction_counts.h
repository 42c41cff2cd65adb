/* SPDX-License-Identifier: Apache-2.0 */
/* What SASS counters mean: counts of an instruction, a source line or a whole
 * function, and the ratios that name a problem. NaN is "not measured" in and
 * out: a ratio is NaN when one of its counts is, or when nothing of its kind was
 * executed. Pure functions; any thread. */
#ifndef GPUFL_ANALYSIS_INSTRUCTION_COUNTS_H
#define GPUFL_ANALYSIS_INSTRUCTION_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

struct instruction_counts {
    double inst_executed;       /* warps */
    double thread_inst;         /* threads that were active */
    double thread_inst_pred_on; /* and not predicated off */
    double branch_divergent;    /* branches after which threads of a warp went different ways */
    double branch_uniform;
    double sectors_global; /* of 32 bytes, that global accesses touched */
    double sectors_global_ideal;
    double wavefronts_shared; /* passes through shared memory */
    double wavefronts_shared_ideal;
    double sectors_local;
    double global_executed; /* warps at instructions that access global memory: the requests */
};

struct instruction_counts instruction_counts_none(void); /* all NaN */
/* Adds a row's value to the count of its metric; false: a metric that has no place here. */
bool instruction_counts_set(struct instruction_counts *counts, const char *metric_name, uint64_t value);
/* Adds one instruction's counts to those of a line or function. */
void instruction_counts_add(struct instruction_counts *sum, const struct instruction_counts *instruction);

/* 1: every byte that global accesses moved was asked for; 0.25: three of four were not. */
double instruction_coalescing(const struct instruction_counts *counts);
/* Per executed global access of a warp: 4 is ideal for 4-byte elements, 32 the worst. */
double instruction_sectors_per_request(const struct instruction_counts *counts);
/* Share of branches that did not split a warp. */
double instruction_branch_efficiency(const struct instruction_counts *counts);
/* Share of a warp's 32 threads that did the work. */
double instruction_thread_efficiency(const struct instruction_counts *counts);
/* 1: no conflicts; 32: each access to shared memory took 32 passes where one would do. */
double instruction_bank_conflicts(const struct instruction_counts *counts);

#endif
