/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of AMD's code in the log that ran. AMD's engines have no samples by instruction that would lead to the code, so
 * names do. Borrows everything; one thread per lookup. */
#ifndef GPUFL_ANALYSIS_RAN_KERNELS_H
#define GPUFL_ANALYSIS_RAN_KERNELS_H

#include "analysis/code_lookup.h"

struct ran_kernel {
    uint64_t cubin_crc;
    const char *symbol;  /* lives as long as the lookup */
    const char *name;    /* as the log has it */
    const char *problem; /* why its lines are missing; "" */
    uint64_t gpu_ns;
};
typedef void (*ran_kernel_fn)(void *user, const struct ran_kernel *kernel);

/* Those with most GPU time first; one with the same name in several code objects comes with each. Nothing where the
 * lookup reads no code. GPUFL_E_NO_MEMORY or GPUFL_OK. */
NODISCARD gpufl_status ran_kernels_visit(struct code_lookup *lookup, ran_kernel_fn on_kernel, void *user);

#endif
