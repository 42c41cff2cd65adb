/* SPDX-License-Identifier: Apache-2.0 */
/* What src/inject needs from the SDK, most of all NVTX ranges as scopes without NVIDIA's tools: the NVTX headers
 * compiled into a program look for a tool library and let it fill in their function table. Exported for src/inject
 * only; not part of the public API. */
#ifndef GPUFL_SDK_NVTX_H
#define GPUFL_SDK_NVTX_H

#include "base/status.h"

/* NVTX's NvtxGetExportTableFunc_t. */
typedef const void *(*nvtx_get_table)(uint32_t table_id);
/* Hooks the calls that open and close ranges; returns 1 on success, as NVTX requires. Called once by every library
 * that contains the NVTX headers. */
GPUFL_API int gpufl_nvtx_attach(nvtx_get_table get_table);
/* Starts the session with options from the environment; for CUDA's injection entry point. */
GPUFL_API int gpufl_injected_start(void);
/* For rocprofiler-sdk's configure function, with its arguments: returns what that function must return; NULL: not
 * used. */
GPUFL_API void *gpufl_rocprofiler_configure(uint32_t version, void *client_id);

#endif
