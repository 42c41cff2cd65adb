/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest rocprofiler tool: says in FAKE_TOOL_OUT that it was set up. */
#include "driver/rocprofiler_abi.h"
#include "fake_gpu.h"

#include <stdio.h>
#include <stdlib.h>

FAKE_API struct rocprofiler_abi_configure_result *rocprofiler_configure(uint32_t version, const char *runtime_version,
                                                                        uint32_t priority, void *client_id);

static int initialize(rocprofiler_abi_finalize finalize, void *tool_data)
{
    (void)finalize, (void)tool_data;
    const char *path = getenv("FAKE_TOOL_OUT");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fputs("initialized\n", file);
        fclose(file);
    }
    return 0;
}

struct rocprofiler_abi_configure_result *rocprofiler_configure(uint32_t version, const char *runtime_version,
                                                               uint32_t priority, void *client_id)
{
    static struct rocprofiler_abi_configure_result result = {sizeof result, initialize, NULL, NULL};
    (void)version, (void)runtime_version, (void)priority;
    ((struct rocprofiler_abi_client_id_1 *)client_id)->name = "other tool";
    return &result;
}
