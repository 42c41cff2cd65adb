/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike librocprofiler-sdk.so: agents, names, and what the fake HIP does,
 * as records in the layout of the release that is played. */
#include "base/current_thread.h"
#include "faults.h"
#include "rocprofiler_fake.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static atomic_ullong next_correlation = 1, next_dispatch = 1, next_kernel = 1, next_range = 1;

static uint64_t thread_id(void)
{
    return current_thread_id();
}

uint64_t fake_rocprofiler_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- names; 1.0 has no PAGE_MIGRATION, so what follows it moved ---- */

static const char *const kinds_0[] = {"NONE",
                                      "HSA_CORE_API",
                                      "HSA_AMD_EXT_API",
                                      "HSA_IMAGE_EXT_API",
                                      "HSA_FINALIZE_EXT_API",
                                      "HIP_RUNTIME_API",
                                      "HIP_COMPILER_API",
                                      "MARKER_CORE_API",
                                      "MARKER_CONTROL_API",
                                      "MARKER_NAME_API",
                                      "MEMORY_COPY",
                                      "KERNEL_DISPATCH",
                                      "PAGE_MIGRATION",
                                      "SCRATCH_MEMORY",
                                      "CORRELATION_ID_RETIREMENT",
                                      "RCCL_API",
                                      "OMPT",
                                      "MEMORY_ALLOCATION"};
enum { PAGE_MIGRATION = 12, KIND_COUNT = 18 };

FAKE_API int rocprofiler_query_buffer_tracing_kind_name(int kind, const char **name, uint64_t *length)
{
    int count = fake_release() >= 600 ? KIND_COUNT : KIND_COUNT - 2;
    if (fake_release() >= 10000 && kind >= PAGE_MIGRATION)
        kind++;
    if (kind < 0 || kind >= count)
        return 4;
    *name = kinds_0[kind];
    *length = strlen(*name);
    return fault_result("rocprofiler_query_buffer_tracing_kind_name");
}

static int memory_kind(void)
{
    return fake_release() >= 10000 ? 16 : fake_release() >= 600 ? 17 : -1;
}

static const char *const calls[] = {
    "hipGetDevice", "hipGetDeviceCount",    "hipLaunchKernel",      "hipMemcpy",     "hipMemcpyAsync", "hipMalloc",
    "hipFree",      "hipDeviceSynchronize", "hipStreamSynchronize", "hipEventRecord"};
enum { CALL_COUNT = sizeof calls / sizeof *calls, CALL_FIRST = 7 /* so that 0 is nothing */ };

static int32_t operation_of(const char *name)
{
    for (int i = 0; i < CALL_COUNT; i++)
        if (strcmp(calls[i], name) == 0)
            return i + CALL_FIRST;
    return 0;
}

FAKE_API int rocprofiler_query_buffer_tracing_kind_operation_name(int kind, int32_t operation, const char **name,
                                                                  uint64_t *length)
{
    if (kind != ROCPROFILER_ABI_KIND_HIP_RUNTIME_API || operation < CALL_FIRST || operation >= CALL_FIRST + CALL_COUNT)
        return 5;
    *name = calls[operation - CALL_FIRST];
    *length = strlen(*name);
    return fault_result("rocprofiler_query_buffer_tracing_kind_operation_name");
}

FAKE_API int rocprofiler_iterate_buffer_tracing_kind_operations(int kind, int (*each)(int, int32_t, void *), void *user)
{
    int fault = fault_result("rocprofiler_iterate_buffer_tracing_kind_operations");
    for (int32_t i = 0; !fault && i < CALL_COUNT; i++)
        (void)each(kind, i + CALL_FIRST, user);
    return fault;
}

/* ---- agents ---- */

static uint32_t gpu_count(void)
{
    const char *text = getenv("FAKE_AMD_GPU_COUNT");
    return text ? (uint32_t)strtoul(text, NULL, 10) : 1;
}

/* FAKE_AMD_ARCHITECTURES=gfx942,gfx1100: by number; the last counts for all that follow. */
static const char *architecture(uint32_t gpu)
{
    static _Thread_local char name[16];
    const char *list = getenv("FAKE_AMD_ARCHITECTURES");
    if (!list)
        return "gfx942";
    for (const char *comma; gpu > 0 && (comma = strchr(list, ',')); gpu--)
        list = comma + 1;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(list, ","), list);
    return strcmp(name, "gfx1100") == 0 ? "gfx1100" : "gfx942";
}

uint32_t fake_gfx_version(uint32_t gpu)
{
    return strcmp(architecture(gpu), "gfx942") == 0 ? 90402 : 110000;
}

/* A GPU at c1, c2 and so on; with FAKE_AMD_PARTITIONS=N each has N agents, as KFD numbers them. */
static uint32_t location(uint32_t agent)
{
    const char *text = getenv("FAKE_AMD_PARTITIONS");
    uint32_t partitions = text ? (uint32_t)strtoul(text, NULL, 10) : 1;
    return (0xc1 + agent / partitions) << 8 | (agent % partitions) << 28;
}

FAKE_API int rocprofiler_query_available_agents(int version, int (*each)(int, const void **, size_t, void *),
                                                size_t agent_bytes, void *user)
{
    static struct rocprofiler_abi_agent agents[9];
    const void *pointers[9];
    int fault = fault_result("rocprofiler_query_available_agents");
    if (fault || agent_bytes > sizeof agents[0])
        return fault ? fault : 18;
    uint32_t count = gpu_count() < 8 ? gpu_count() : 8;
    for (uint32_t i = 0; i <= count; i++) {
        agents[i] =
            (struct rocprofiler_abi_agent){.size = sizeof agents[i], .id = FAKE_AMD_CPU, .type = 1, .name = "cpu"};
        if (i > 0)
            agents[i] = (struct rocprofiler_abi_agent){.size = sizeof agents[i],
                                                       .id = FAKE_AMD_GPU + i - 1,
                                                       .type = ROCPROFILER_ABI_AGENT_GPU,
                                                       .name = architecture(i - 1),
                                                       .product_name = "AMD Instinct MI300X",
                                                       .vendor_name = "AMD",
                                                       .model_name = "",
                                                       .cu_count = 304,
                                                       .simd_per_cu = 4,
                                                       .max_waves_per_simd = 8,
                                                       .wave_front_size = 64,
                                                       .lds_size_in_kb = 64,
                                                       .gfx_target_version = fake_gfx_version(i - 1),
                                                       .vendor_id = 0x1002,
                                                       .location_id = location(i - 1),
                                                       .local_mem_size = (uint64_t)192 << 30};
        pointers[i] = &agents[i];
    }
    return each(version, pointers, count + 1, user);
}

/* ---- calls and work ---- */

uint64_t fake_rocprofiler_call(const char *name)
{
    (void)name;
    return atomic_fetch_add(&next_correlation, 1);
}

void fake_rocprofiler_call_end(uint64_t correlation, const char *name, uint64_t start)
{
    const uint32_t kind = ROCPROFILER_ABI_KIND_HIP_RUNTIME_API;
    uint64_t end = fake_rocprofiler_now();
    const struct rocprofiler_abi_call_1 newer = {sizeof newer, kind, operation_of(name), {correlation, {0}}, 0,
                                                 start,        end,  thread_id()};
    const struct rocprofiler_abi_call_0 older = {sizeof older, kind, operation_of(name), {correlation, {0}},
                                                 start,        end,  thread_id()};
    if (fake_release() >= 10000)
        fake_buffer_put((int)kind, ROCPROFILER_ABI_CATEGORY_TRACING, kind, &newer, sizeof newer);
    else
        fake_buffer_put((int)kind, ROCPROFILER_ABI_CATEGORY_TRACING, kind, &older, sizeof older);
}

uint64_t fake_rocprofiler_load(const char *kernel_name, const void *code, size_t code_bytes)
{
    enum { CODE_OFFSET = 4096 };
    char uri[64];
    uint64_t kernel_id = atomic_fetch_add(&next_kernel, 1);
    struct rocprofiler_abi_code_object object = {.size = sizeof object,
                                                 .code_object_id = kernel_id,
                                                 .agent_id = FAKE_AMD_GPU,
                                                 .uri = "memory://1#offset=0&size=0",
                                                 .storage_type = ROCPROFILER_ABI_STORAGE_MEMORY,
                                                 .storage.memory = {(uint64_t)(uintptr_t)code, code_bytes}};
    int file = code_bytes && fault_number("rocprofiler_code_file", 0) ? memfd_create("code", 0) : -1;
    if (file >= 0) { /* inside a larger file, as in an executable */
        snprintf(uri, sizeof uri, "file:///program#offset=%d&size=%zu", CODE_OFFSET, code_bytes);
        object.storage_type = ROCPROFILER_ABI_STORAGE_FILE;
        object.storage.file = file;
        object.uri = uri;
        (void)!pwrite(file, code, code_bytes, CODE_OFFSET);
        (void)!pwrite(file, "end", 3, (off_t)(CODE_OFFSET + code_bytes));
    }
    if (code_bytes)
        fake_callback(ROCPROFILER_ABI_CALLBACK_CODE_OBJECT, ROCPROFILER_ABI_CODE_OBJECT_LOAD,
                      ROCPROFILER_ABI_PHASE_ENTER, 0, &object);
    struct rocprofiler_abi_kernel_symbol symbol = {.size = sizeof symbol,
                                                   .kernel_id = kernel_id,
                                                   .code_object_id = kernel_id,
                                                   .kernel_name = kernel_name,
                                                   .group_segment_size = 1024,
                                                   .sgpr_count = 32,
                                                   .arch_vgpr_count = 64,
                                                   .accum_vgpr_count = 4};
    fake_callback(ROCPROFILER_ABI_CALLBACK_CODE_OBJECT, ROCPROFILER_ABI_KERNEL_SYMBOL_REGISTER,
                  ROCPROFILER_ABI_PHASE_ENTER, 0, &symbol);
    if (file >= 0)
        close(file);
    return kernel_id;
}

void fake_rocprofiler_launch(const struct fake_hip_launch *launch)
{
    const uint32_t kind = ROCPROFILER_ABI_KIND_KERNEL_DISPATCH;
    struct rocprofiler_abi_dispatch record = {.size = sizeof record,
                                              .kind = kind,
                                              .operation = 2,
                                              .correlation = {launch->correlation, {0}},
                                              .thread_id = thread_id(),
                                              .start = launch->start,
                                              .end = launch->end,
                                              .info = {.size = offsetof(struct rocprofiler_abi_dispatch_info, reserved),
                                                       .agent_id = FAKE_AMD_GPU + launch->gpu,
                                                       .queue_id = launch->queue,
                                                       .kernel_id = launch->kernel_id,
                                                       .dispatch_id = atomic_fetch_add(&next_dispatch, 1),
                                                       .private_segment_size = 16,
                                                       .group_segment_size = launch->shared_bytes}};
    memcpy(record.info.grid_size, launch->grid, sizeof launch->grid);
    memcpy(record.info.workgroup_size, launch->block, sizeof launch->block);
    struct rocprofiler_abi_dispatch_data data = {sizeof data, 0, 0, record.info};
    fake_callback(ROCPROFILER_ABI_CALLBACK_KERNEL_DISPATCH, ROCPROFILER_ABI_DISPATCH_ENQUEUE,
                  ROCPROFILER_ABI_PHASE_ENTER, launch->correlation, &data);
    fake_count(&record.info, launch->correlation, launch->start, launch->end);
    fake_buffer_put_at((int)kind, ROCPROFILER_ABI_CATEGORY_TRACING, kind, &record, sizeof record, launch->end);
    fake_callback(ROCPROFILER_ABI_CALLBACK_KERNEL_DISPATCH, ROCPROFILER_ABI_DISPATCH_ENQUEUE,
                  ROCPROFILER_ABI_PHASE_EXIT, launch->correlation, &data);
}

void fake_rocprofiler_copy(uint64_t correlation, int operation, uint64_t src, uint64_t dst, uint64_t bytes,
                           uint64_t start, uint64_t end)
{
    const uint32_t kind = ROCPROFILER_ABI_KIND_MEMORY_COPY;
    struct { /* 1.0 tells the addresses, too */
        struct rocprofiler_abi_copy copy;
        uint64_t addresses[2];
    } record = {{sizeof record, kind, operation, {correlation, {0}}, thread_id(), start, end, dst, src, bytes}, {0}};
    if (fake_release() < 10000)
        record.copy.size = sizeof record.copy;
    fake_callback(ROCPROFILER_ABI_CALLBACK_MEMORY_COPY, operation, ROCPROFILER_ABI_PHASE_ENTER, correlation,
                  &record.copy.size);
    fake_buffer_put_at((int)kind, ROCPROFILER_ABI_CATEGORY_TRACING, kind, &record, sizeof record, end);
}

void fake_rocprofiler_memory(uint64_t correlation, int operation, uint64_t agent, uint64_t address, uint64_t bytes)
{
    int kind = memory_kind();
    uint64_t now = fake_rocprofiler_now();
    if (kind < 0)
        return;
    const struct rocprofiler_abi_memory_1 newer = {
        sizeof newer, (uint32_t)kind, operation, {correlation, {0}}, 0, thread_id(), now, now, agent, address, bytes};
    const struct rocprofiler_abi_memory_0 older = {
        sizeof older, (uint32_t)kind, operation, {correlation, {0}}, thread_id(), now, now, agent, address, bytes};
    if (fake_release() >= 10000)
        fake_buffer_put(kind, ROCPROFILER_ABI_CATEGORY_TRACING, (uint32_t)kind, &newer, sizeof newer);
    else
        fake_buffer_put(kind, ROCPROFILER_ABI_CATEGORY_TRACING, (uint32_t)kind, &older, sizeof older);
}

void fake_rocprofiler_marker(int operation, const char *text, uint64_t *range_id)
{
    const int kind = ROCPROFILER_ABI_CALLBACK_MARKER_CORE_API;
    struct rocprofiler_abi_marker marker = {.size = sizeof marker, .arguments.message = text};
    if (operation == ROCPROFILER_ABI_RANGE_STOP)
        marker.arguments.range_id = *range_id;
    fake_callback(kind, operation, ROCPROFILER_ABI_PHASE_ENTER, 0, &marker);
    if (operation == ROCPROFILER_ABI_RANGE_START)
        marker.result.range_id = *range_id = atomic_fetch_add(&next_range, 1);
    fake_callback(kind, operation, ROCPROFILER_ABI_PHASE_EXIT, 0, &marker);
}
