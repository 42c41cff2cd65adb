/* SPDX-License-Identifier: Apache-2.0 */
/* The README's program in C, without kernels: a scope is recorded. */
#include <gpufl/gpufl.h>
#include <stdio.h>

int main(void)
{
    gpufl_options options = GPUFL_OPTIONS_INIT;
    options.app_name = "outside";
    options.profiling_engine = GPUFL_ENGINE_TRACE;
    if (gpufl_init(&options) != GPUFL_OK) {
        fprintf(stderr, "%s\n", gpufl_last_error());
        return 1;
    }
    GFL_SCOPE("step")
    {
        puts(gpufl_version());
    }
    gpufl_shutdown();
    return 0;
}
