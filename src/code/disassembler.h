/* SPDX-License-Identifier: Apache-2.0 */
/* Finds nvdisasm (NVIDIA) and llvm-objdump (AMD), and runs them under a time limit. Used only by the command line and
 * by reports, never by the recorder in a user's program. Thread-safe; several may run in parallel. */
#ifndef GPUFL_CODE_DISASSEMBLER_H
#define GPUFL_CODE_DISASSEMBLER_H

#include "code/image.h"

#include <limits.h>

/* "nvdisasm" or "llvm-objdump" */
const char *disassembler_name(enum image_vendor vendor);
/* True if the environment sets the tool: GPUFL_NVDISASM, GPUFL_LLVM_OBJDUMP. */
bool disassembler_is_named(enum image_vendor vendor);
/* NVIDIA: GPUFL_NVDISASM, then PATH, $CUDA_HOME/bin, $CUDA_PATH/bin, /usr/local/cuda/bin, then the nvdisasm in Triton's
 * Python package in VIRTUAL_ENV, CONDA_PREFIX and PATH. AMD: GPUFL_LLVM_OBJDUMP, then $ROCM_PATH/llvm/bin,
 * /opt/rocm/llvm/bin, then PATH, the highest version first. The message of GPUFL_E_NOT_FOUND lists these places. */
NODISCARD gpufl_status disassembler_find(enum image_vendor vendor, char path[PATH_MAX], struct problem *problem);

struct disassembler_call {
    const char *tool;                      /* path */
    const struct code_image *image;        /* passed to the tool completely */
    const struct image_function *function; /* to print */
    unsigned time_limit_ms;
    const int *stop_fd; /* the tool is stopped when it becomes readable; NULL: none */
};
/* Appends the tool's output. GPUFL_E_LIMIT: it took too long, was stopped, or its output exceeds out's limit;
 * GPUFL_E_IO: it failed or could not be run; GPUFL_E_UNSUPPORTED: it does not support the GPU. */
NODISCARD gpufl_status disassembler_run(const struct disassembler_call *call, struct bytes *out,
                                        struct problem *problem);

#endif
