/* SPDX-License-Identifier: Apache-2.0 */
/* AMD kernels that ran and whose code is in the log. AMD engines have no samples per instruction that refer to code, so
 * kernels are matched by name. Borrows everything; one thread per lookup. */
#ifndef GPUFL_ANALYSIS_RAN_KERNELS_H
#define GPUFL_ANALYSIS_RAN_KERNELS_H

#include "analysis/code_lookup.h"

struct ran_kernel {
    uint64_t cubin_crc;
    const char *symbol;  /* lives as long as the lookup */
    const char *name;    /* as in the log */
    const char *problem; /* why its lines are missing; "" */
    uint64_t gpu_ns;
};
typedef void (*ran_kernel_fn)(void *user, const struct ran_kernel *kernel);

/* Longest GPU time first; a name in several code objects is visited for each. Nothing if the lookup reads no code.
 * GPUFL_E_NO_MEMORY or GPUFL_OK. */
NODISCARD gpufl_status ran_kernels_visit(struct code_lookup *lookup, ran_kernel_fn on_kernel, void *user);

#endif
