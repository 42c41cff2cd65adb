/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike libnvidia-ml.so.1. Values move with the time since nvmlInit and
 * differ by GPU, by plain formulas, so that a test can compute what to expect. */
#include "nvml_fake.h"

#include "faults.h"
#include "h200.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct device {
    int index;
    int instance; /* of a MIG device: its position from 0; -1: a whole GPU */
};
enum { MIG_LIMIT = 7 };
struct gpm_sample {
    const struct device *device;
    uint64_t time_us;
};
static struct device devices[H200_LIMIT], migs[H200_LIMIT][MIG_LIMIT];
static atomic_int init_count;
static volatile unsigned char tables[1 << 20]; /* filled with zeros, as the real one does with much more */
static atomic_ullong begun_us;

static uint64_t mono_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static uint64_t elapsed_us(void)
{
    return mono_us() - atomic_load(&begun_us);
}

/* A triangle between low and high, one period per second, each GPU a little later than the one before. */
static unsigned wave(const struct device *device, unsigned low, unsigned high)
{
    uint64_t phase = (elapsed_us() / 1000 + (uint64_t)device->index * 125) % 1000;
    uint64_t up = phase < 500 ? phase : 1000 - phase;
    return low + (unsigned)(up * (high - low) / 500);
}

static unsigned mig_count(void)
{
    int64_t count = fault_number("mig", 0);
    return count < 0 ? 0 : count > MIG_LIMIT ? MIG_LIMIT : (unsigned)count;
}

static bool driver_is_gone(void)
{
    return fault_is_switched_on("driver_gone_while");
}

int nvml_check(const char *function, const void *device)
{
    if (atomic_load(&init_count) == 0)
        return NVML_ABI_UNINITIALIZED;
    if (driver_is_gone())
        return NVML_ABI_UNKNOWN;
    int result = fault_result(function);
    if (result != NVML_ABI_SUCCESS)
        return result;
    const struct device *known = device;
    bool is_mig = known != NULL && known >= migs[0] && known < migs[H200_LIMIT - 1] + MIG_LIMIT;
    if (known != NULL && !is_mig && (known < devices || known >= devices + h200_count()))
        return NVML_ABI_INVALID_ARGUMENT;
    return known != NULL && fault_gpu_is_lost() ? NVML_ABI_GPU_IS_LOST : NVML_ABI_SUCCESS;
}

/* For functions that answer with one number. */
#define ANSWER(function, device, out, value)                                                        \
    do {                                                                                            \
        int result_ = (device) == NULL ? NVML_ABI_INVALID_ARGUMENT : nvml_check(#function, device); \
        if (result_ == NVML_ABI_SUCCESS)                                                            \
            *(out) = (value);                                                                       \
        return result_;                                                                             \
    } while (0)

void *nvml_first_device(void)
{
    return &devices[0];
}

static int text_answer(int result, char *out, unsigned size, const char *text)
{
    if (result != NVML_ABI_SUCCESS)
        return result;
    if (size < strlen(text) + 1)
        return NVML_ABI_INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return NVML_ABI_SUCCESS;
}

/* As the real one starts nvidia-modprobe where a device file is missing. */
static void helper_run(void)
{
    pid_t helper = fork();
    if (helper == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    if (helper > 0)
        (void)waitpid(helper, NULL, 0);
}

int nvmlInit_v2(void)
{
    int result = fault_result("nvmlInit_v2");
    if (result != NVML_ABI_SUCCESS)
        return result;
    if (fault_number("nvml_init_forks", 0) != 0)
        helper_run();
    if (fault_number("no_device", 0) != 0 || driver_is_gone())
        return NVML_ABI_DRIVER_NOT_LOADED;
    if (atomic_fetch_add(&init_count, 1) == 0) {
        for (size_t i = 0; i < sizeof tables; i++)
            tables[i] = 0;
        atomic_store(&begun_us, mono_us());
        for (int i = 0; i < H200_LIMIT; i++) {
            devices[i] = (struct device){i, -1};
            for (int j = 0; j < MIG_LIMIT; j++)
                migs[i][j] = (struct device){i, j};
        }
        fault_gpu_is_lost(); /* its delay counts from here */
    }
    return NVML_ABI_SUCCESS;
}

int nvmlShutdown(void)
{
    int result = fault_result("nvmlShutdown");
    if (result != NVML_ABI_SUCCESS)
        return result;
    if (atomic_load(&init_count) == 0)
        return NVML_ABI_UNINITIALIZED;
    atomic_fetch_sub(&init_count, 1);
    return NVML_ABI_SUCCESS;
}

const char *nvmlErrorString(int result)
{
    (void)fault_result("nvmlErrorString");
    switch (result) {
    case NVML_ABI_SUCCESS:
        return "The operation was successful";
    case NVML_ABI_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ABI_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ABI_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ABI_NO_PERMISSION:
        return "Insufficient Permissions";
    case NVML_ABI_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case NVML_ABI_GPU_IS_LOST:
        return "GPU is lost";
    default:
        return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    return text_answer(nvml_check("nvmlSystemGetDriverVersion", NULL), text, size, H200_DRIVER);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    int result = nvml_check("nvmlSystemGetCudaDriverVersion_v2", NULL);
    if (result == NVML_ABI_SUCCESS)
        *version = H200_CUDA_VERSION;
    return result;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    int result = nvml_check("nvmlDeviceGetCount_v2", NULL);
    if (result == NVML_ABI_SUCCESS)
        *count = (unsigned)h200_count();
    return result;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    int result = nvml_check("nvmlDeviceGetHandleByIndex_v2", NULL);
    if (result == NVML_ABI_SUCCESS && index >= (unsigned)h200_count())
        result = NVML_ABI_INVALID_ARGUMENT;
    if (result == NVML_ABI_SUCCESS)
        *device = &devices[index];
    return result;
}

int nvmlDeviceGetName(void *device, char *text, unsigned size)
{
    const struct device *asked = device;
    bool is_mig = asked != NULL && asked->instance >= 0;
    return text_answer(nvml_check("nvmlDeviceGetName", device), text, size,
                       is_mig ? H200_NAME " MIG 1g.18gb" : H200_NAME);
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned size)
{
    int result = nvml_check("nvmlDeviceGetUUID", device);
    if (result != NVML_ABI_SUCCESS)
        return result;
    unsigned char bytes[16];
    const struct device *asked = device;
    char uuid[48] = "GPU-";
    h200_uuid(asked->index, bytes);
    if (asked->instance >= 0) {
        memcpy(uuid, "MIG-", 5);
        bytes[0] = (unsigned char)(bytes[0] + 1 + asked->instance);
    }
    for (int i = 0, at = 4; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            uuid[at++] = '-';
        at += snprintf(uuid + at, sizeof uuid - (size_t)at, "%02x", bytes[i]);
    }
    return text_answer(result, text, size, uuid);
}

int nvmlDeviceGetPciInfo_v3(void *device, struct nvml_abi_pci *pci)
{
    int result = nvml_check("nvmlDeviceGetPciInfo_v3", device);
    if (result != NVML_ABI_SUCCESS)
        return result;
    memset(pci, 0, sizeof *pci);
    pci->bus = 0x19u + 0x10u * (unsigned)((struct device *)device)->index;
    pci->pci_device_id = 0x233510de;
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus & 0xff);
    snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "0000:%02X:00.0", pci->bus & 0xff);
    return NVML_ABI_SUCCESS;
}

int nvmlDeviceGetArchitecture(void *device, unsigned *architecture)
{
    ANSWER(nvmlDeviceGetArchitecture, device, architecture, 9u); /* Hopper */
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
    *minor = 0;
    ANSWER(nvmlDeviceGetCudaComputeCapability, device, major, 9);
}

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
    *pending = 0;
    ANSWER(nvmlDeviceGetMigMode, device, current, mig_count() > 0 ? 1u : 0u);
}

int nvmlDeviceGetUtilizationRates(void *device, struct nvml_abi_utilization *rates)
{
    ANSWER(nvmlDeviceGetUtilizationRates, device, rates,
           ((struct nvml_abi_utilization){wave(device, 20, 98), wave(device, 5, 60)}));
}

int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius)
{
    if (sensor != NVML_ABI_TEMPERATURE_GPU)
        return NVML_ABI_INVALID_ARGUMENT;
    ANSWER(nvmlDeviceGetTemperature, device, celsius, wave(device, 34, 61));
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    ANSWER(nvmlDeviceGetPowerUsage, device, milliwatts, wave(device, 76000, 690000));
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts)
{
    ANSWER(nvmlDeviceGetEnforcedPowerLimit, device, milliwatts, 700000u);
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    ANSWER(nvmlDeviceGetTotalEnergyConsumption, device, millijoules, 1000000000ull + elapsed_us() * 380 / 1000);
}

static struct nvml_abi_memory memory_now(const struct device *device)
{
    struct nvml_abi_memory memory = {.total = H200_MEMORY_BYTES,
                                     .used = ((unsigned long long)wave(device, 512, 8192)) << 20};
    if (device->instance >= 0) /* an eighth, with a use that tells the instances apart */
        memory = (struct nvml_abi_memory){.total = 18ull << 30, .used = (100ull + (unsigned)device->instance) << 20};
    memory.free = memory.total - memory.used;
    return memory;
}

int nvmlDeviceGetMemoryInfo(void *device, struct nvml_abi_memory *memory)
{
    ANSWER(nvmlDeviceGetMemoryInfo, device, memory, memory_now(device));
}

int nvmlDeviceGetMemoryInfo_v2(void *device, struct nvml_abi_memory_v2 *memory)
{
    int result = nvml_check("nvmlDeviceGetMemoryInfo_v2", device);
    if (result == NVML_ABI_SUCCESS && memory->version != NVML_ABI_VERSION(struct nvml_abi_memory_v2, 2))
        result = 25; /* NVML_ERROR_ARGUMENT_VERSION_MISMATCH */
    if (result != NVML_ABI_SUCCESS)
        return result;
    struct nvml_abi_memory now = memory_now(device);
    memory->total = now.total;
    memory->reserved = 640ull << 20;
    memory->used = now.used;
    memory->free = now.free - memory->reserved;
    return NVML_ABI_SUCCESS;
}

int nvmlDeviceGetClockInfo(void *device, unsigned type, unsigned *mhz)
{
    if (type > NVML_ABI_CLOCK_MEM)
        return NVML_ABI_INVALID_ARGUMENT;
    ANSWER(nvmlDeviceGetClockInfo, device, mhz, type == NVML_ABI_CLOCK_MEM ? 3201u : wave(device, 345, 1980));
}

int nvmlDeviceGetFanSpeed(void *device, unsigned *percent)
{
    (void)percent;
    int result = nvml_check("nvmlDeviceGetFanSpeed", device);
    return result != NVML_ABI_SUCCESS ? result : NVML_ABI_NOT_SUPPORTED; /* passively cooled */
}

int nvmlDeviceGetPerformanceState(void *device, unsigned *state)
{
    ANSWER(nvmlDeviceGetPerformanceState, device, state, 0u);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    /* Idle at the low half of the wave, power cap near its top. */
    unsigned level = device != NULL ? wave(device, 0, 100) : 0;
    ANSWER(nvmlDeviceGetCurrentClocksThrottleReasons, device, reasons, level < 50 ? 1ull : level > 95 ? 4ull : 0ull);
}

int nvmlDeviceGetTotalEccErrors(void *device, unsigned error, unsigned counter, unsigned long long *count)
{
    if (error > NVML_ABI_ECC_UNCORRECTED || counter > 1)
        return NVML_ABI_INVALID_ARGUMENT;
    ANSWER(nvmlDeviceGetTotalEccErrors, device, count, error == NVML_ABI_ECC_CORRECTED ? 3ull : 0ull);
}

static void field_answer(const struct device *device, struct nvml_abi_field *field)
{
    uint64_t us = elapsed_us();
    field->timestamp_us = (long long)us;
    field->result = NVML_ABI_SUCCESS;
    field->value_type = NVML_ABI_VALUE_ULL;
    switch (field->field_id) {
    case NVML_ABI_FIELD_MEMORY_TEMP:
        field->value_type = NVML_ABI_VALUE_UINT;
        field->value.as_uint = wave(device, 38, 72);
        break;
    case NVML_ABI_FIELD_PCIE_TX_BYTES: /* 4 GB/s; a 32-bit counter as on the real one */
        field->value_type = NVML_ABI_VALUE_UINT;
        field->value.as_uint = (unsigned)(us * 4000);
        break;
    case NVML_ABI_FIELD_PCIE_RX_BYTES:
        field->value_type = NVML_ABI_VALUE_UINT;
        field->value.as_uint = (unsigned)(us * 2000);
        break;
    case NVML_ABI_FIELD_NVLINK_DATA_TX: /* KiB; 100 GiB/s and 90 GiB/s */
    case NVML_ABI_FIELD_NVLINK_RAW_TX:
        field->value.as_ull = us * 104857600 / 1000000;
        break;
    case NVML_ABI_FIELD_NVLINK_DATA_RX:
    case NVML_ABI_FIELD_NVLINK_RAW_RX:
        field->value.as_ull = us * 94371840 / 1000000;
        break;
    default:
        field->result = NVML_ABI_NOT_SUPPORTED;
    }
}

int nvmlDeviceGetFieldValues(void *device, int count, struct nvml_abi_field *fields)
{
    int result = nvml_check("nvmlDeviceGetFieldValues", device);
    for (int i = 0; result == NVML_ABI_SUCCESS && i < count; i++)
        field_answer(device, &fields[i]);
    return result;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct nvml_abi_process *processes)
{
    int result = nvml_check("nvmlDeviceGetComputeRunningProcesses_v3", device);
    if (result != NVML_ABI_SUCCESS)
        return result;
    unsigned capacity = *count;
    *count = 2; /* this process and another user's, whose memory is not reported */
    if (capacity < 2 || processes == NULL)
        return NVML_ABI_INSUFFICIENT_SIZE;
    unsigned instance = mig_count() > 0 ? 7u : NVML_ABI_NO_INSTANCE;
    const char *other = getenv("FAKE_NVML_PID");
    unsigned pid = other != NULL ? (unsigned)strtoul(other, NULL, 10) : (unsigned)getpid();
    processes[0] = (struct nvml_abi_process){pid, 1ull << 30, instance, instance};
    processes[1] = (struct nvml_abi_process){1, ~0ull, ~0u, ~0u};
    return NVML_ABI_SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count)
{
    ANSWER(nvmlDeviceGetMaxMigDeviceCount, device, count, (unsigned)MIG_LIMIT);
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **mig)
{
    int result = nvml_check("nvmlDeviceGetMigDeviceHandleByIndex", device);
    if (result == NVML_ABI_SUCCESS && index >= mig_count())
        result = NVML_ABI_NOT_FOUND;
    if (result == NVML_ABI_SUCCESS)
        *mig = &migs[((struct device *)device)->index][index];
    return result;
}

int nvmlDeviceGetGpuInstanceId(void *mig, unsigned *id)
{
    ANSWER(nvmlDeviceGetGpuInstanceId, mig, id, 7u + (unsigned)((struct device *)mig)->instance);
}

int nvmlDeviceGetComputeInstanceId(void *mig, unsigned *id)
{
    ANSWER(nvmlDeviceGetComputeInstanceId, mig, id, 0u);
}

int nvmlGpmMigSampleGet(void *device, unsigned gpu_instance_id, void *sample)
{
    struct gpm_sample *taken = sample;
    int result = nvml_check("nvmlGpmMigSampleGet", device);
    if (result == NVML_ABI_SUCCESS && (gpu_instance_id < 7 || gpu_instance_id >= 7 + mig_count()))
        result = NVML_ABI_INVALID_ARGUMENT;
    if (result == NVML_ABI_SUCCESS)
        *taken = (struct gpm_sample){device, elapsed_us()};
    return result;
}

int nvmlGpmQueryDeviceSupport(void *device, struct nvml_abi_gpm_support *support)
{
    ANSWER(nvmlGpmQueryDeviceSupport, device, &support->is_supported, 1u);
}

int nvmlGpmSampleAlloc(void **sample)
{
    int result = nvml_check("nvmlGpmSampleAlloc", NULL);
    if (result == NVML_ABI_SUCCESS && (*sample = calloc(1, sizeof(struct gpm_sample))) == NULL)
        result = 20; /* NVML_ERROR_MEMORY */
    return result;
}

int nvmlGpmSampleFree(void *sample)
{
    int result = fault_result("nvmlGpmSampleFree");
    free(sample);
    return result;
}

int nvmlGpmSampleGet(void *device, void *sample)
{
    struct gpm_sample *taken = sample;
    int result = nvml_check("nvmlGpmSampleGet", device);
    if (result == NVML_ABI_SUCCESS)
        *taken = (struct gpm_sample){device, elapsed_us()};
    return result;
}

int nvmlGpmMetricsGet(struct nvml_abi_gpm_metrics *metrics)
{
    int result = nvml_check("nvmlGpmMetricsGet", NULL);
    if (result != NVML_ABI_SUCCESS)
        return result;
    const struct gpm_sample *older = metrics->older, *newer = metrics->newer;
    if (metrics->version != 1 || older == NULL || newer == NULL || older->device == NULL ||
        newer->device != older->device || newer->time_us <= older->time_us)
        return NVML_ABI_INVALID_ARGUMENT;
    for (unsigned i = 0; i < metrics->metric_count; i++) {
        struct nvml_abi_gpm_metric *metric = &metrics->metrics[i];
        bool is_known = metric->metric_id >= 1 && metric->metric_id <= 13;
        metric->result = is_known ? NVML_ABI_SUCCESS : NVML_ABI_NOT_SUPPORTED;
        if (is_known) /* percent, between 3 and 93 */
            metric->value = wave(newer->device, 10, 80) + (double)metric->metric_id;
    }
    return NVML_ABI_SUCCESS;
}
