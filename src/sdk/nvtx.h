/* SPDX-License-Identifier: Apache-2.0 */
/* What src/inject needs of the SDK; first of all NVTX ranges as scopes, without NVIDIA's tools: the NVTX headers compiled into
 * a program look for a tool library and let it fill in their function table.
 * Exported for src/inject only; not part of the public API. */
#ifndef GPUFL_SDK_NVTX_H
#define GPUFL_SDK_NVTX_H

#include "base/status.h"

/* NVTX's NvtxGetExportTableFunc_t. */
typedef const void *(*nvtx_get_table)(uint32_t table_id);
/* Takes over the calls that open and close ranges; 1 on success, as NVTX wants it. Called once by
 * every library that carries the NVTX headers. */
GPUFL_API int gpufl_nvtx_attach(nvtx_get_table get_table);
/* Starts the session from the environment; for CUDA's injection entry point. */
GPUFL_API int gpufl_injected_start(void);
/* For rocprofiler-sdk's: what its configure function must return, with its arguments; NULL: leave us out. */
GPUFL_API void *gpufl_rocprofiler_configure(uint32_t version, void *client_id);

#endif
