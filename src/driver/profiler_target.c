/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/profiler_target.h"

#include "driver/cuda.h"
#include "driver/cupti_table.h"
#include "driver/profiler_host_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AVAILABILITY_BYTES_MAX = 64 << 20 };

struct target_table { /* NULL where the library lacks a function */
#define TARGET_MEMBER(member, symbol, parameter) int (*member)(struct parameter *);
    PROFILER_TARGET_ABI_FUNCTIONS(TARGET_MEMBER)
#undef TARGET_MEMBER
};

/* Not held during CUPTI calls: a thread in one of CUPTI's callbacks may need it while it holds CUPTI's own locks. */
static pthread_mutex_t use_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned use_count;
static bool is_ending;

static struct target_table table_of(const struct cupti *cupti)
{
    struct target_table table;
#define TARGET_BIND(member, symbol, parameter) \
    table.member = __extension__(int (*)(struct parameter *)) library_symbol(&cupti->library, #symbol);
    PROFILER_TARGET_ABI_FUNCTIONS(TARGET_BIND)
#undef TARGET_BIND
    return table;
}

static const struct {
    int result;
    gpufl_status status;
    const char *advice;
} refusals[] = {
    {CUPTI_ABI_INSUFFICIENT_PRIVILEGES, GPUFL_E_PERMISSION,
     "hardware counters are restricted to administrators (RmProfilingAdminOnly: 1 in /proc/driver/nvidia/params); run as "
     "root, grant CAP_PERFMON (driver 565 or newer) or CAP_SYS_ADMIN, or load the module with "
     "NVreg_RestrictProfilingToAdminUsers=0"},
    {PROFILER_ABI_HARDWARE_BUSY, GPUFL_E_BUSY,
     "another client holds the GPU's counters; stop DCGM profiling (dcgmi profile --pause), ncu, nsys or the other "
     "profiler on this GPU"},
    {PROFILER_ABI_OLD_PROFILER_API, GPUFL_E_BUSY,
     "another profiler in this process uses CUPTI's old profiling interface; run without it"},
    {CUPTI_ABI_MULTIPLE_SUBSCRIBERS, GPUFL_E_BUSY, "another profiler in this process holds CUPTI; run without it"},
    {PROFILER_ABI_VIRTUALIZED_DEVICE, GPUFL_E_UNSUPPORTED,
     "this is a virtual GPU (vGPU) without counters; the host can allow them with the plugin parameter "
     "enable_profiling=1"},
    {PROFILER_ABI_VIRTUALIZED_PRIVILEGES, GPUFL_E_PERMISSION,
     "this virtual GPU (vGPU) does not allow counters; the host can, with the plugin parameter enable_profiling=1"},
    {PROFILER_ABI_CONFIDENTIAL_COMPUTING, GPUFL_E_UNSUPPORTED,
     "confidential computing is on, which hides the counters; its devtools mode allows them"},
    {PROFILER_ABI_CMP_DEVICE, GPUFL_E_UNSUPPORTED, "this is a mining processor (CMP), which has no counters"},
    {PROFILER_ABI_MIG_DEVICE, GPUFL_E_UNSUPPORTED,
     "this MIG instance shares its counters; use a GPU instance with one compute instance, or switch MIG off"},
    {PROFILER_ABI_SLI_DEVICE, GPUFL_E_UNSUPPORTED, "SLI is on; switch it off to read counters"},
    {PROFILER_ABI_WSL_DEVICE, GPUFL_E_UNSUPPORTED,
     "WSL does not offer this; use Linux itself, or allow counters in the NVIDIA control panel of Windows"},
    {PROFILER_ABI_LEGACY_PROFILER, GPUFL_E_UNSUPPORTED, "this GPU is too new for that interface of CUPTI"},
    {PROFILER_ABI_NOT_SUPPORTED, GPUFL_E_UNSUPPORTED, "this GPU, driver or CUPTI does not offer it"},
    {PROFILER_ABI_NOT_COMPATIBLE, GPUFL_E_BUSY,
     "it cannot run beside what another part of the process does with CUPTI"},
    {PROFILER_ABI_OUT_OF_MEMORY, GPUFL_E_NO_MEMORY, "no memory for it, on the GPU or in the process"},
    {PROFILER_ABI_INVALID_DEVICE, GPUFL_E_INVALID, "there is no such device"},
    {PROFILER_ABI_INVALID_CONTEXT, GPUFL_E_INVALID, "the CUDA context is not valid any more"},
};

gpufl_status profiler_problem(const struct cupti *cupti, const char *function, int result, struct problem *problem)
{
    const char *text = cupti_result_text(cupti, result);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (refusals[i].result == result)
            return problem_set(problem, refusals[i].status, "%s: %s (%s, %d)", function, refusals[i].advice, text,
                               result);
    }
    struct cuda *cuda;
    if (cuda_load(&cuda, false, NULL) != GPUFL_OK || !cuda_device_count(cuda))
        return problem_set(problem, GPUFL_E_NO_DRIVER, "%s: no usable GPU driver in this process (%s, %d)", function,
                           text, result);
    return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s failed: %s (%d)", function, text, result);
}

gpufl_status profiler_lacks(const struct cupti *cupti, const char *function, struct problem *problem)
{
    return problem_set(problem, GPUFL_E_UNSUPPORTED,
                       "%s (API version %u) has no %s; install the CUPTI of a newer CUDA release", cupti_path(cupti),
                       cupti_version(cupti), function);
}

bool profiler_library_load(const struct cupti *cupti, const char *name, char *directory, size_t size)
{
    const char *path = cupti_path(cupti);
    const char *slash = strrchr(path, '/');
    snprintf(directory, size, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    char file[sizeof cupti->library.path + 64];
    if (library_find_mapped(name, file, sizeof file))
        return true; /* a second copy would crash */
    int length = snprintf(file, sizeof file, "%s/%s", directory, name);
    /* Never closed, like all vendor libraries. CUPTI then finds it by its soname. */
    return length > 0 && (size_t)length < sizeof file && dlopen(file, RTLD_NOW | RTLD_LOCAL) != NULL;
}

static gpufl_status profiler_begin(struct cupti *cupti, const struct target_table *call, struct problem *problem)
{
    char directory[sizeof cupti->library.path];
    bool has_host = profiler_library_load(cupti, "libnvperf_host.so", directory, sizeof directory);
    bool has_target = profiler_library_load(cupti, "libnvperf_target.so", directory, sizeof directory);
    struct profiler_abi_initialize parameter = {.struct_bytes = PROFILER_ABI_INITIALIZE_BYTES};
    int result = cupti_note(cupti, "cuptiProfilerInitialize", call->initialize(&parameter));
    if (result == CUPTI_ABI_NOT_INITIALIZED && !(has_host && has_target))
        return problem_set(problem, GPUFL_E_NOT_FOUND,
                           "%s is missing from %s, where libcupti is; install all of the CUPTI package",
                           has_host ? "libnvperf_target.so" : "libnvperf_host.so", directory);
    return result == CUPTI_ABI_SUCCESS ? GPUFL_OK : profiler_problem(cupti, "cuptiProfilerInitialize", result, problem);
}

gpufl_status profiler_target_acquire(struct cupti *cupti, struct problem *problem)
{
    struct target_table call = table_of(cupti);
    if (!call.initialize || !call.deinitialize)
        return profiler_lacks(cupti, "cuptiProfilerInitialize", problem);
    pthread_mutex_lock(&use_lock);
    bool is_used = use_count > 0, is_late = is_ending;
    use_count += is_used;
    pthread_mutex_unlock(&use_lock);
    if (is_used)
        return GPUFL_OK;
    if (is_late)
        return problem_set(problem, GPUFL_E_BUSY, "CUPTI's profiler is being ended; try again");
    /* Two first users may both get here; initializing twice is allowed. */
    gpufl_status status = profiler_begin(cupti, &call, problem);
    pthread_mutex_lock(&use_lock);
    use_count += status == GPUFL_OK;
    pthread_mutex_unlock(&use_lock);
    return status;
}

void profiler_target_release(struct cupti *cupti)
{
    pthread_mutex_lock(&use_lock);
    bool is_last = use_count == 1 && !is_ending;
    is_ending |= is_last;
    use_count -= use_count > 0;
    pthread_mutex_unlock(&use_lock);
    if (!is_last)
        return;
    struct profiler_abi_initialize parameter = {.struct_bytes = PROFILER_ABI_INITIALIZE_BYTES};
    struct target_table call = table_of(cupti);
    (void)cupti_note(cupti, "cuptiProfilerDeInitialize", call.deinitialize(&parameter));
    pthread_mutex_lock(&use_lock);
    is_ending = false;
    pthread_mutex_unlock(&use_lock);
}

void profiler_target_abandon(void)
{
    pthread_mutex_init(&use_lock, NULL); /* a thread of the parent may have held it */
    use_count = 0;
    is_ending = false;
}

static gpufl_status refuse_device(const struct profiler_abi_device_supported *answer, struct problem *problem)
{
    static const char *const api_names[] = {"range profiling", "PC sampling", "SASS metrics", "PM sampling"};
    const struct {
        uint32_t level;
        const char *reason;
    } causes[] = {
        {answer->architecture, "its architecture is too old, or too new for this CUPTI"},
        {answer->sli, "SLI is on; switch it off"},
        {answer->vgpu, "it is a virtual GPU (vGPU) whose host does not allow it; plugin parameter enable_profiling=1"},
        {answer->confidential_compute, "confidential computing is on; its devtools mode allows counters"},
        {answer->cmp, "it is a mining processor (CMP)"},
        {answer->wsl, "WSL does not offer it; use Linux itself"},
    };
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if (causes[i].level == PROFILER_ABI_SUPPORT_UNSUPPORTED || causes[i].level == PROFILER_ABI_SUPPORT_DISABLED)
            return problem_set(problem, GPUFL_E_UNSUPPORTED, "GPU %d has no %s: %s", answer->device,
                               api_names[answer->api], causes[i].reason);
    }
    return problem_set(problem, GPUFL_E_UNSUPPORTED, "GPU %d has no %s, and CUPTI reports no reason", answer->device,
                       api_names[answer->api]);
}

gpufl_status profiler_target_check(struct cupti *cupti, uint32_t device, enum profiler_api api, struct problem *problem)
{
    struct target_table call = table_of(cupti);
    if (!call.device_supported)
        return profiler_lacks(cupti, "cuptiProfilerDeviceSupported", problem);
    struct profiler_abi_device_supported parameter = {
        .struct_bytes = PROFILER_ABI_DEVICE_SUPPORTED_BYTES, .device = (int32_t)device, .api = api};
    int result = cupti_note(cupti, "cuptiProfilerDeviceSupported", call.device_supported(&parameter));
    if (result != CUPTI_ABI_SUCCESS)
        return profiler_problem(cupti, "cuptiProfilerDeviceSupported", result, problem);
    return parameter.is_supported == PROFILER_ABI_SUPPORT_SUPPORTED ? GPUFL_OK : refuse_device(&parameter, problem);
}

gpufl_status profiler_target_chip(struct cupti *cupti, uint32_t device, char chip[PROFILER_CHIP_NAME_BYTES],
                                  struct problem *problem)
{
    struct target_table call = table_of(cupti);
    if (!call.chip_name)
        return profiler_lacks(cupti, "cuptiDeviceGetChipName", problem);
    /* CUPTI crashes in this call without a driver, and before its profiler is initialized. */
    struct cuda *cuda;
    if (cuda_load(&cuda, false, problem) != GPUFL_OK)
        return GPUFL_E_NO_DRIVER;
    int device_count = cuda_device_count(cuda);
    if (device_count <= 0)
        return problem_set(problem, GPUFL_E_NO_DRIVER, "the CUDA driver is not initialized, or shows no GPU");
    if (device >= (uint32_t)device_count)
        return problem_set(problem, GPUFL_E_INVALID, "there is no GPU %u; CUDA reports %d", device, device_count);
    gpufl_status status = profiler_target_acquire(cupti, problem);
    if (status != GPUFL_OK)
        return status;
    struct profiler_abi_chip_name parameter = {.struct_bytes = PROFILER_ABI_CHIP_NAME_BYTES, .device_index = device};
    int result = cupti_note(cupti, "cuptiDeviceGetChipName", call.chip_name(&parameter));
    profiler_target_release(cupti);
    if (result != CUPTI_ABI_SUCCESS)
        return profiler_problem(cupti, "cuptiDeviceGetChipName", result, problem);
    size_t length = parameter.chip_name ? strnlen(parameter.chip_name, PROFILER_CHIP_NAME_BYTES) : 0;
    if (!length || length == PROFILER_CHIP_NAME_BYTES)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "CUPTI reports no usable chip name for GPU %u", device);
    memcpy(chip, parameter.chip_name, length + 1);
    return GPUFL_OK;
}

gpufl_status profiler_target_availability(struct cupti *cupti, void *context, uint8_t **image, size_t *image_bytes,
                                          struct problem *problem)
{
    struct target_table call = table_of(cupti);
    if (!call.availability)
        return profiler_lacks(cupti, "cuptiProfilerGetCounterAvailability", problem);
    struct profiler_abi_availability parameter = {.struct_bytes = PROFILER_ABI_AVAILABILITY_BYTES, .context = context};
    int result = cupti_note(cupti, "cuptiProfilerGetCounterAvailability", call.availability(&parameter));
    if (result != CUPTI_ABI_SUCCESS)
        return profiler_problem(cupti, "cuptiProfilerGetCounterAvailability", result, problem);
    size_t room = parameter.image_bytes;
    if (!room || room > AVAILABILITY_BYTES_MAX)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "CUPTI reports %zu bytes for the list of counters", room);
    parameter.image = malloc(room);
    if (!parameter.image)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    result = cupti_note(cupti, "cuptiProfilerGetCounterAvailability", call.availability(&parameter));
    if (result != CUPTI_ABI_SUCCESS) {
        free(parameter.image);
        return profiler_problem(cupti, "cuptiProfilerGetCounterAvailability", result, problem);
    }
    *image = parameter.image;
    *image_bytes = parameter.image_bytes < room ? parameter.image_bytes : room;
    return GPUFL_OK;
}
