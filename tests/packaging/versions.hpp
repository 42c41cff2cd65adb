// SPDX-License-Identifier: Apache-2.0
// What both parts of a program do that were compiled with different versions of gpufl.hpp.
#include <gpufl/gpufl.hpp>

#define DEFINE_PART(name)                                                               \
    bool name##_init(const char *path)                                                  \
    {                                                                                   \
        gpufl::InitOptions options;                                                     \
        options.app_name = #name;                                                       \
        options.log_path = path;                                                        \
        options.profiling_engine = gpufl::ProfilingEngine::Trace;                       \
        return gpufl::init(options);                                                    \
    }                                                                                   \
    void name##_work()                                                                  \
    {                                                                                   \
        const gpufl::InitOptions options;                                               \
        gpufl::ScopedMonitor scope(options.app_name, gpufl::ScopeMeta{}.setTag(#name)); \
        GFL_BENCH(#name, gpufl::ScopeMeta{}.setTag("bench").setRepeat(2)){};            \
    }
