/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/injected.h"

#include "driver/rocprofiler.h"
#include "sdk/options.h"
#include "sdk/session.h"

static void start(void)
{
    (void)session_start(NULL, true);
}

static void *configure_rocprofiler(uint32_t version, void *client_id)
{
    return options_are_disabled(NULL) ? NULL : rocprofiler_register(version, client_id, session_join_hip);
}

const struct gpufl_private gpufl_private = {sizeof gpufl_private, start, nvtx_attach, configure_rocprofiler};
