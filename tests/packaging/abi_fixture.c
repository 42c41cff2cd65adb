/* SPDX-License-Identifier: Apache-2.0 */
#include "abi_fixture.h"

int gpufl_init(const gpufl_options *options)
{
    return options ? (int)options->profiling_engine : 0;
}

#ifndef FUNCTION_REMOVED
void gpufl_shutdown(void) {}
#endif

#ifdef PARAMETER_CHANGED
void gpufl_read(gpufl_sample *sample, int index)
{
    sample->time_ns = (uint64_t)index;
}
#else
void gpufl_read(gpufl_sample *sample)
{
    sample->time_ns = 0;
}
#endif

#ifdef FUNCTION_ADDED
void gpufl_pause(void) {}
#endif
