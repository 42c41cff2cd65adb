/* SPDX-License-Identifier: Apache-2.0 */
/* The README's program in C++, without kernels: a scope is recorded. */
#include <cstdio>
#include <gpufl/gpufl.hpp>

int main()
{
    gpufl::InitOptions options;
    options.app_name = "outside";
    options.profiling_engine = gpufl::ProfilingEngine::Trace;
    gpufl::init(options);
    GFL_SCOPE("step")
    {
        std::puts(gpufl_version());
    }
    gpufl::shutdown();
    return 0;
}
