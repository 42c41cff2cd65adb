/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/launch_probe.h"

#include "base/clock.h"
#include "driver/cold_caches.h"
#include "driver/library.h"

#include <stdio.h>

enum { sync_every = 500, gpu_cycles = 18000 };

/* Runs for the given number of cycles. */
static const char *const targets[] = {"sm_70", "sm_75", "sm_90"};
static const char kernel_text[] = ".version 6.3\n.target %s\n.address_size 64\n"
                                  ".visible .entry gpufl_probe(.param .u32 cycles)\n{\n"
                                  ".reg .pred %%p<2>;\n.reg .b32 %%r<5>;\n"
                                  "ld.param.u32 %%r1, [cycles];\nmov.u32 %%r2, %%clock;\n"
                                  "again:\nmov.u32 %%r3, %%clock;\nsub.u32 %%r4, %%r3, %%r2;\n"
                                  "setp.lt.u32 %%p1, %%r4, %%r1;\n@%%p1 bra again;\nret;\n}\n";

#define PROBE_FUNCTIONS(X)                                                                                    \
    X(init, cuInit, (unsigned flags))                                                                         \
    X(device_get, cuDeviceGet, (int *device, int ordinal))                                                    \
    X(context_retain, cuDevicePrimaryCtxRetain, (void **context, int device))                                 \
    X(context_set, cuCtxSetCurrent, (void *context))                                                          \
    X(synchronize, cuCtxSynchronize, (void))                                                                  \
    X(module_load, cuModuleLoadData, (void **module, const void *image))                                      \
    X(function_get, cuModuleGetFunction, (void **function, void *module, const char *name))                   \
    X(launch, cuLaunchKernel,                                                                                 \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_bytes, void *stream, void **parameters, void **extra))

struct probe {
#define PROBE_MEMBER(member, symbol, parameters) int(*member) parameters;
    PROBE_FUNCTIONS(PROBE_MEMBER)
#undef PROBE_MEMBER
    void *kernel;
};

static gpufl_status probe_bind(struct probe *probe, struct problem *problem)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    const struct library_search search = {"libcuda.so", "GPUFL_CUDA_PATH", NULL, names};
    struct library library = {0};
    struct problem cause = {""};
    if (library_open(&library, &search, &cause) != GPUFL_OK) {
        problem_set(problem, GPUFL_E_NO_DRIVER, "no NVIDIA driver: %s", cause.text);
        return GPUFL_E_NO_DRIVER;
    }
#define PROBE_BIND(member, symbol, parameters)                                          \
    probe->member = __extension__(int(*) parameters) library_symbol(&library, #symbol); \
    if (!probe->member) {                                                               \
        problem_set(problem, GPUFL_E_NO_DRIVER, "%s has no " #symbol, library.path);    \
        return GPUFL_E_NO_DRIVER;                                                       \
    }
    PROBE_FUNCTIONS(PROBE_BIND)
#undef PROBE_BIND
    return GPUFL_OK;
}

static gpufl_status probe_open(struct probe *probe, struct problem *problem)
{
    int device = 0, result = 1;
    void *context = NULL, *module = NULL;
    char text[sizeof kernel_text + 16];
    if (probe->init(0) || probe->device_get(&device, 0) || probe->context_retain(&context, device) ||
        probe->context_set(context))
        return problem_set(problem, GPUFL_E_NO_DRIVER, "there is no usable GPU; check it with nvidia-smi");
    for (size_t i = 0; i < sizeof targets / sizeof *targets && result; i++) {
        snprintf(text, sizeof text, kernel_text, targets[i]);
        result = probe->module_load(&module, text);
    }
    if (result || (result = probe->function_get(&probe->kernel, module, "gpufl_probe")))
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "the GPU's driver does not accept the kernel (%d)", result);
    return GPUFL_OK;
}

/* Nanoseconds per launch, without (host) or including the time until the GPU has finished; negative: CUDA failed. */
static double launches_time(const struct probe *probe, uint32_t count, uint32_t cycles, bool is_host)
{
    void *parameters[] = {&cycles};
    int result = 0;
    int64_t ns = 0, began_ns = clock_mono_ns();
    for (uint32_t i = 0; i < count && !result; i++) {
        result = probe->launch(probe->kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
        if (!is_host || (i + 1) % sync_every)
            continue;
        ns += clock_mono_ns() - began_ns; /* a full queue would delay the launches */
        result = result ? result : probe->synchronize();
        began_ns = clock_mono_ns();
    }
    result = result ? result : probe->synchronize();
    if (!is_host)
        ns = clock_mono_ns() - began_ns;
    return result ? -1 : (double)ns / count;
}

/* Nanoseconds per launch with cold CPU caches; negative: CUDA failed. */
static double cold_launches_time(const struct probe *probe)
{
    struct cold_caches caches;
    uint32_t cycles = 0;
    void *parameters[] = {&cycles};
    int result = 0;
    int64_t ns = 0;
    bool is_open = cold_caches_open(&caches);
    for (uint32_t i = 0; is_open && i < PROBE_COLD_LAUNCHES && !result; i++) {
        cold_caches_make(&caches);
        int64_t began_ns = clock_mono_ns();
        result = probe->launch(probe->kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
        ns += clock_mono_ns() - began_ns;
        if (!result && (i + 1) % sync_every == 0)
            result = probe->synchronize();
    }
    cold_caches_close(&caches);
    result = result ? result : probe->synchronize();
    return result || !is_open ? -1 : (double)ns / PROBE_COLD_LAUNCHES;
}

gpufl_status launch_probe_run(struct launch_times *times, struct problem *problem)
{
    struct probe probe = {0};
    gpufl_status status = probe_bind(&probe, problem);
    if (status == GPUFL_OK)
        status = probe_open(&probe, problem);
    if (status != GPUFL_OK)
        return status;
    bool is_warm = launches_time(&probe, PROBE_WARM_LAUNCHES, 0, false) >= 0;
    times->host_ns = launches_time(&probe, PROBE_HOST_LAUNCHES, 0, true);
    times->gpu_ns = launches_time(&probe, PROBE_GPU_LAUNCHES, gpu_cycles, false);
    times->cold_ns = cold_launches_time(&probe);
    if (!is_warm || times->host_ns < 0 || times->gpu_ns < 0 || times->cold_ns < 0)
        return problem_set(problem, GPUFL_E_NO_DRIVER, "a launch failed");
    return GPUFL_OK;
}
