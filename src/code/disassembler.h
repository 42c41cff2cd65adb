/* SPDX-License-Identifier: Apache-2.0 */
/* nvdisasm: where it is, and running it under a time limit. It is started only by
 * the command line and by reports, never by the recorder inside a user's program. */
#ifndef GPUFL_CODE_DISASSEMBLER_H
#define GPUFL_CODE_DISASSEMBLER_H

#include "code/cubin.h"

#include <limits.h>

/* Looks at GPUFL_NVDISASM, then PATH, $CUDA_HOME/bin, $CUDA_PATH/bin, /usr/local/cuda/bin, then the one that Triton
 * brings along in the Pythons of VIRTUAL_ENV, CONDA_PREFIX and PATH. GPUFL_E_NOT_FOUND says where it was looked for. */
NODISCARD gpufl_status disassembler_find(char path[PATH_MAX], struct problem *problem);

struct disassembler_call {
    const char *tool;          /* path */
    const struct cubin *cubin; /* all of it is given to the tool */
    uint32_t symbol_index;     /* function to print */
    unsigned time_limit_ms;
};
/* Appends what the tool printed. GPUFL_E_LIMIT: it took too long and was ended, or printed more than out's limit;
 * GPUFL_E_IO: it failed or could not be run. */
NODISCARD gpufl_status disassembler_run(const struct disassembler_call *call, struct bytes *out,
                                        struct problem *problem);

#endif
