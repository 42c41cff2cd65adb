/* SPDX-License-Identifier: Apache-2.0 */
/* The library that `gpufl trace` names in CUDA_INJECTION64_PATH, NVTX_INJECTION64_PATH and ROCP_TOOL_LIBRARIES. The
 * CUDA driver calls the first function inside cuInit, each copy of the NVTX headers the second at its first call,
 * rocprofiler-sdk the third when HIP starts. Loading the library alone has no effect. */
#include "sdk/injected.h"

GPUFL_API int InitializeInjection(void);
GPUFL_API int InitializeInjectionNvtx2(nvtx_get_table get_table);
GPUFL_API void *rocprofiler_configure(uint32_t version, const char *runtime_version, uint32_t priority,
                                      void *client_id);

int InitializeInjection(void)
{
    gpufl_private.start();
    return 1; /* The program must run whether or not it can be traced, so the driver always gets "success". */
}

int InitializeInjectionNvtx2(nvtx_get_table get_table)
{
    return gpufl_private.attach_nvtx(get_table);
}

void *rocprofiler_configure(uint32_t version, const char *runtime_version, uint32_t priority, void *client_id)
{
    (void)runtime_version, (void)priority;
    return gpufl_private.configure_rocprofiler(version, client_id);
}
