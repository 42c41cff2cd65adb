/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/engine_choice.h"

#include "base/log.h"
#include "sdk/amd_session.h"

gpufl_engine engine_granted(const struct options *options, const struct trace_grant *grant, struct deep *deep,
                            struct problem *why)
{
    if (options->profiling_engine == GPUFL_ENGINE_MONITOR)
        return GPUFL_ENGINE_MONITOR;
    bool has_amd = grant->amd.is_tried && grant->amd.status == GPUFL_OK;
    bool has_cupti = grant->status == GPUFL_OK && grant->cupti.granted;
    if (has_cupti)
        return deep ? deep_engine(deep, why) : GPUFL_ENGINE_TRACE;
    return has_amd ? GPUFL_ENGINE_TRACE : GPUFL_ENGINE_MONITOR;
}

void engine_warn(gpufl_engine wanted, gpufl_engine engine, const struct problem *why)
{
    log_message(GPUFL_LOG_WARNING, "asked for %s, running %s%s%s", engine_name(wanted), engine_name(engine),
                why->text[0] ? ": " : "", why->text);
}

gpufl_engine engine_choose(const struct options *options, struct trace_grant *grant, struct deep *deep)
{
    bool uses_nvidia = options->backend == GPUFL_BACKEND_AUTO || options->backend == GPUFL_BACKEND_NVIDIA;
    gpufl_engine wanted = options->profiling_engine;
    if (wanted == GPUFL_ENGINE_MONITOR)
        return wanted;
    if (options->backend == GPUFL_BACKEND_NONE)
        grant->status =
            problem_set(&grant->problem, GPUFL_E_UNSUPPORTED, "backend None has no %s engine", engine_name(wanted));
    else if (!uses_nvidia) /* without NVIDIA the result for CUPTI is that of rocprofiler, the only other source */
        grant->status = grant->amd.status, grant->problem = grant->amd.problem;
    amd_warn(options->profiling_engine, &grant->amd);
    struct problem why = {""};
    gpufl_engine engine = engine_granted(options, grant, deep, &why);
    if (engine == GPUFL_ENGINE_MONITOR)
        log_message(GPUFL_LOG_WARNING, "asked for %s, running Monitor (no kernels are recorded): %s",
                    engine_name(wanted), grant->problem.text);
    else if (why.text[0])
        engine_warn(wanted, engine, &why);
    return engine;
}
