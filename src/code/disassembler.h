/* SPDX-License-Identifier: Apache-2.0 */
/* nvdisasm for NVIDIA's code and llvm-objdump for AMD's: where they are, and running them under a time limit. They are
 * started only by the command line and by reports, never by the recorder inside a user's program. Any thread, also
 * several at once. */
#ifndef GPUFL_CODE_DISASSEMBLER_H
#define GPUFL_CODE_DISASSEMBLER_H

#include "code/image.h"

#include <limits.h>

/* "nvdisasm" or "llvm-objdump" */
const char *disassembler_name(enum image_vendor vendor);
/* Whether the environment names the tool: GPUFL_NVDISASM, GPUFL_LLVM_OBJDUMP. */
bool disassembler_is_named(enum image_vendor vendor);
/* NVIDIA: looks at GPUFL_NVDISASM, then PATH, $CUDA_HOME/bin, $CUDA_PATH/bin, /usr/local/cuda/bin, then the one that
 * Triton brings along in the Pythons of VIRTUAL_ENV, CONDA_PREFIX and PATH. AMD: looks at GPUFL_LLVM_OBJDUMP, then
 * $ROCM_PATH/llvm/bin, /opt/rocm/llvm/bin, then PATH, the highest version first. GPUFL_E_NOT_FOUND says where it was
 * looked for. */
NODISCARD gpufl_status disassembler_find(enum image_vendor vendor, char path[PATH_MAX], struct problem *problem);

struct disassembler_call {
    const char *tool;                      /* path */
    const struct code_image *image;        /* all of it is given to the tool */
    const struct image_function *function; /* to print */
    unsigned time_limit_ms;
    const int *stop_fd; /* the tool is ended as soon as it is readable; NULL: none */
};
/* Appends what the tool printed. GPUFL_E_LIMIT: it took too long or was stopped, or printed more than out's limit;
 * GPUFL_E_IO: it failed or could not be run; GPUFL_E_UNSUPPORTED: it does not know the GPU. */
NODISCARD gpufl_status disassembler_run(const struct disassembler_call *call, struct bytes *out,
                                        struct problem *problem);

#endif
