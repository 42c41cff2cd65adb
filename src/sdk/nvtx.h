/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX ranges as scopes without NVIDIA's tools: the NVTX headers compiled into a program look for a tool library and let
 * it fill in their function table. */
#ifndef GPUFL_SDK_NVTX_H
#define GPUFL_SDK_NVTX_H

#include "base/status.h"

/* NVTX's NvtxGetExportTableFunc_t. */
typedef const void *(*nvtx_get_table)(uint32_t table_id);
/* Hooks the calls that open and close ranges; returns 1 on success, as NVTX requires. Called once by every library
 * that contains the NVTX headers. */
int nvtx_attach(nvtx_get_table get_table);

#endif
