/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between libgpufl and libgpufl_inject (src/inject), which start recording in a program that was not
 * written for gpufl. libgpufl exports only the functions of the installed headers, and this one table, in the version
 * node GPUFL_PRIVATE: nothing else may use it. */
#ifndef GPUFL_SDK_INJECTED_H
#define GPUFL_SDK_INJECTED_H

#include "sdk/nvtx.h"

#include <stddef.h>
#include <stdint.h>

/* A program may bring a libgpufl of another 1.x: members are added at the end, and read only if size covers them. */
struct gpufl_private {
    size_t size;
    /* Starts the session with options from the environment; for CUDA's injection entry point. */
    void (*start)(void);
    /* nvtx_attach (sdk/nvtx.h); for the entry point of the NVTX headers. */
    int (*attach_nvtx)(nvtx_get_table get_table);
    /* For rocprofiler-sdk's configure function, with its arguments: returns what that function must return; NULL: not
     * used. */
    void *(*configure_rocprofiler)(uint32_t version, void *client_id);
};

GPUFL_API extern const struct gpufl_private gpufl_private;

#endif
