/* SPDX-License-Identifier: Apache-2.0 */
/* The services that are configured in rocprofiler, once per process, and its callbacks. */
#include "driver/rocprofiler_table.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    buffer_bytes = 1 << 20, /* about 5,000 dispatches */
    /* rocprofiler calls back at the watermark and switches to a second buffer meanwhile. Only lossless buffers have
     * a second one; their writers wait if it also fills up before we have copied the first. */
    watermark_bytes = buffer_bytes / 4,
    code_bytes_max = 256 << 20,
    activities_per_batch = 32
};

/* ---- callbacks on the program's threads ---- */

/* A number in "file://PATH#offset=4096&size=10240"; absent: the code object is the whole file. */
static uint64_t uri_number(const char *uri, const char *key, uint64_t absent)
{
    const char *fragment = uri ? strchr(uri, '#') : NULL;
    const char *at = fragment ? strstr(fragment, key) : NULL;
    char *end = NULL;
    uint64_t value = at ? strtoull(at + strlen(key), &end, 10) : absent;
    return at && end == at + strlen(key) ? absent : value;
}

static void code_from_file(const struct rocprofiler *rocprofiler, const struct rocprofiler_abi_code_object *object)
{
    struct stat info;
    if (fstat(object->storage.file, &info) || info.st_size <= 0)
        return;
    uint64_t whole = (uint64_t)info.st_size, offset = uri_number(object->uri, "offset=", 0);
    uint64_t size = offset < whole ? uri_number(object->uri, "size=", whole - offset) : 0;
    if (!size || size > whole - offset || size > code_bytes_max)
        return;
    uint8_t *bytes = mmap(NULL, whole, PROT_READ, MAP_PRIVATE, object->storage.file, 0);
    if (bytes == MAP_FAILED)
        return;
    rocprofiler->sink.on_code(bytes + offset, size);
    munmap(bytes, whole);
}

static void on_code_object(const struct rocprofiler *rocprofiler, const struct rocprofiler_abi_code_object *object)
{
    if (object->size < sizeof *object || !rocprofiler->sink.on_code)
        return;
    if (object->storage_type == ROCPROFILER_ABI_STORAGE_FILE)
        code_from_file(rocprofiler, object);
    else if (object->storage_type == ROCPROFILER_ABI_STORAGE_MEMORY && object->storage.memory.base &&
             object->storage.memory.size && object->storage.memory.size <= code_bytes_max)
        rocprofiler->sink.on_code((const void *)(uintptr_t)object->storage.memory.base, object->storage.memory.size);
}

static void on_marker(const struct rocprofiler *rocprofiler, int32_t operation, uint32_t phase,
                      const struct rocprofiler_abi_marker *marker)
{
    const struct rocprofiler_sink *sink = &rocprofiler->sink;
    if (!marker || marker->size < sizeof *marker || !sink->on_range)
        return;
    const char *message = marker->arguments.message;
    /* The id of a range is known when the call that starts it returns. */
    if (operation == ROCPROFILER_ABI_MARK && phase == ROCPROFILER_ABI_PHASE_ENTER)
        sink->on_range(ROCPROFILER_RANGE_MARK, message ? message : "", 0);
    else if (operation == ROCPROFILER_ABI_RANGE_PUSH && phase == ROCPROFILER_ABI_PHASE_ENTER)
        sink->on_range(ROCPROFILER_RANGE_PUSH, message ? message : "", 0);
    else if (operation == ROCPROFILER_ABI_RANGE_POP && phase == ROCPROFILER_ABI_PHASE_ENTER)
        sink->on_range(ROCPROFILER_RANGE_POP, NULL, 0);
    else if (operation == ROCPROFILER_ABI_RANGE_START && phase == ROCPROFILER_ABI_PHASE_EXIT)
        sink->on_range(ROCPROFILER_RANGE_START, message ? message : "", marker->result.range_id);
    else if (operation == ROCPROFILER_ABI_RANGE_STOP && phase == ROCPROFILER_ABI_PHASE_ENTER)
        sink->on_range(ROCPROFILER_RANGE_STOP, NULL, marker->arguments.range_id);
}

/* A callback's data, in either release's form. */
struct callback {
    uint32_t kind, phase;
    int32_t operation;
    uint64_t correlation;
    const void *payload;
};

/* Registers started work, so that its record can be awaited. */
static void on_work(struct rocprofiler *rocprofiler, const struct callback *callback)
{
    if (callback->phase != ROCPROFILER_ABI_PHASE_ENTER)
        return;
    if (callback->kind == ROCPROFILER_ABI_CALLBACK_MEMORY_COPY) {
        rocprofiler_awaited_start(&rocprofiler->awaited[ROCPROFILER_AWAITED_COPIES], callback->correlation);
        return;
    }
    const struct rocprofiler_abi_dispatch_data *dispatch = callback->payload;
    const size_t needed = offsetof(struct rocprofiler_abi_dispatch_data, info.private_segment_size);
    if (callback->operation == ROCPROFILER_ABI_DISPATCH_ENQUEUE && dispatch && dispatch->size >= needed)
        rocprofiler_awaited_start(&rocprofiler->awaited[ROCPROFILER_AWAITED_KERNELS], dispatch->info.dispatch_id);
}

static void on_callback(struct rocprofiler *rocprofiler, const struct callback *callback)
{
    if (callback->kind == ROCPROFILER_ABI_CALLBACK_KERNEL_DISPATCH ||
        callback->kind == ROCPROFILER_ABI_CALLBACK_MEMORY_COPY) {
        on_work(rocprofiler, callback);
        return;
    }
    bool is_loaded = callback->kind == ROCPROFILER_ABI_CALLBACK_CODE_OBJECT &&
                     callback->phase == ROCPROFILER_ABI_PHASE_ENTER && callback->payload;
    if (is_loaded && callback->operation == ROCPROFILER_ABI_KERNEL_SYMBOL_REGISTER)
        rocprofiler_kernel_add(rocprofiler, callback->payload);
    if (!gate_enter(&rocprofiler->gate))
        return;
    if (is_loaded && callback->operation == ROCPROFILER_ABI_CODE_OBJECT_LOAD)
        on_code_object(rocprofiler, callback->payload);
    else if (callback->kind == ROCPROFILER_ABI_CALLBACK_MARKER_CORE_API)
        on_marker(rocprofiler, callback->operation, callback->phase, callback->payload);
    gate_leave(&rocprofiler->gate);
}

#define ON_CALLBACK(release)                                                                                        \
    static void on_callback_##release(struct rocprofiler_abi_callback_##release record,                             \
                                      union rocprofiler_abi_user_data *data, void *user)                            \
    {                                                                                                               \
        (void)data;                                                                                                 \
        const struct callback callback = {record.kind, record.phase, record.operation, record.correlation.internal, \
                                          record.payload};                                                          \
        on_callback(user, &callback);                                                                               \
    }
ON_CALLBACK(0)
ON_CALLBACK(1)
#undef ON_CALLBACK

/* ---- buffers, on rocprofiler's threads ---- */

static void read_lane(struct rocprofiler *rocprofiler, unsigned lane, struct rocprofiler_abi_header **headers,
                      size_t count)
{
    struct activity activities[activities_per_batch + 2];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (headers[i] && headers[i]->payload)
            used += rocprofiler_decode(rocprofiler, headers[i], activities + used);
        if (used >= activities_per_batch) {
            rocprofiler->sink.on_activities(lane, activities, used);
            used = 0;
        }
    }
    if (used)
        rocprofiler->sink.on_activities(lane, activities, used);
    rocprofiler->sink.on_activities(lane, NULL, 0);
}

static void count_dropped(struct rocprofiler *rocprofiler, unsigned lane, uint64_t dropped)
{
    uint64_t before = rocprofiler->dropped_before[lane], more = dropped > before ? dropped - before : 0;
    rocprofiler->dropped_before[lane] = dropped;
    atomic_fetch_add(&rocprofiler->dropped, more);
    /* Dropped records are counted as such, so they are not awaited. */
    struct rocprofiler_awaited *awaited = lane == LANE_KERNELS  ? &rocprofiler->awaited[ROCPROFILER_AWAITED_KERNELS]
                                          : lane == LANE_COPIES ? &rocprofiler->awaited[ROCPROFILER_AWAITED_COPIES]
                                                                : NULL;
    if (awaited)
        atomic_fetch_add(&awaited->delivered, more);
}

static void on_buffer(struct rocprofiler *rocprofiler, unsigned lane, struct rocprofiler_abi_header **headers,
                      size_t count, uint64_t dropped)
{
    count_dropped(rocprofiler, lane, dropped);
    if (!headers || !count || !gate_enter(&rocprofiler->gate))
        return;
    if (lane == LANE_COUNTERS)
        rocprofiler_counting_records(rocprofiler, headers, count);
    else
        read_lane(rocprofiler, lane, headers, count);
    gate_leave(&rocprofiler->gate);
}

#define LANE_CALLBACK(lane)                                                                                         \
    static void on_lane_##lane(struct rocprofiler_abi_id context, struct rocprofiler_abi_id buffer,                 \
                               struct rocprofiler_abi_header **headers, size_t count, void *user, uint64_t dropped) \
    {                                                                                                               \
        (void)context, (void)buffer;                                                                                \
        on_buffer(user, lane, headers, count, dropped);                                                             \
    }
LANE_CALLBACK(LANE_KERNELS)
LANE_CALLBACK(LANE_COPIES)
LANE_CALLBACK(LANE_CALLS)
LANE_CALLBACK(LANE_MEMORY)
LANE_CALLBACK(LANE_COUNTERS)
#undef LANE_CALLBACK
static const rocprofiler_abi_buffer_callback lane_callbacks[ROCPROFILER_LANES] = {
    on_lane_LANE_KERNELS, on_lane_LANE_COPIES, on_lane_LANE_CALLS, on_lane_LANE_MEMORY, on_lane_LANE_COUNTERS};

bool rocprofiler_make_buffer(struct rocprofiler *rocprofiler, struct rocprofiler_abi_id context,
                             enum rocprofiler_lane lane, struct problem *problem)
{
    const struct rocprofiler_table *call = &rocprofiler->call;
    struct rocprofiler_abi_id *buffer = &rocprofiler->buffers[lane], thread = {0};
    if (rocprofiler_status(rocprofiler, "rocprofiler_create_buffer",
                           call->create_buffer(context, buffer_bytes, watermark_bytes, ROCPROFILER_ABI_POLICY_LOSSLESS,
                                               lane_callbacks[lane], rocprofiler, buffer),
                           problem)) {
        buffer->handle = 0;
        return false;
    }
    /* Without a separate thread the buffer is served by rocprofiler's common one: slower, but correct. */
    if (call->create_thread && call->assign_thread && call->create_thread(&thread) == ROCPROFILER_ABI_SUCCESS)
        (void)call->assign_thread(*buffer, thread);
    return true;
}

size_t rocprofiler_bytes(const struct rocprofiler *rocprofiler)
{
    size_t bytes = sizeof *rocprofiler;
    for (int lane = 0; lane < ROCPROFILER_LANES; lane++)
        bytes += rocprofiler->buffers[lane].handle ? 2 * (size_t)buffer_bytes : 0;
    return bytes;
}

/* ---- agents ---- */

static int on_agents(int version, const void **agents, size_t count, void *user)
{
    (void)version;
    struct rocprofiler *rocprofiler = user;
    for (size_t i = 0; i < count && rocprofiler->agent_count < ROCPROFILER_AGENTS_MAX; i++) {
        const struct rocprofiler_abi_agent *agent = agents[i];
        if (!agent || agent->size < offsetof(struct rocprofiler_abi_agent, logical_node_id) ||
            agent->type != ROCPROFILER_ABI_AGENT_GPU)
            continue;
        struct rocprofiler_agent *out = &rocprofiler->agents[rocprofiler->agent_count];
        *out = (struct rocprofiler_agent){
            .pci_domain = agent->domain,
            .pci_bus = agent->location_id >> 8 & 0xff,
            .pci_device = agent->location_id >> 3 & 0x1f,
            /* KFD's number: in bits 28 to 31, or in other kernels in place of the function. */
            .partition = agent->location_id >> 28 ? agent->location_id >> 28 : agent->location_id & 7,
            .gfx_target_version = agent->gfx_target_version,
            .compute_units = agent->cu_count,
            .wave_size = agent->wave_front_size,
            .simds_per_unit = agent->simd_per_cu,
            .waves_per_simd_max = agent->max_waves_per_simd,
            .lds_bytes = agent->lds_size_in_kb * 1024,
            .memory_bytes = agent->local_mem_size,
        };
        snprintf(out->name, sizeof out->name, "%s", agent->name ? agent->name : "");
        snprintf(out->product, sizeof out->product, "%s", agent->product_name ? agent->product_name : "");
        rocprofiler->agent_handles[rocprofiler->agent_count++] = agent->id;
    }
    return ROCPROFILER_ABI_SUCCESS;
}

uint32_t rocprofiler_agent_index(const struct rocprofiler *rocprofiler, uint64_t handle)
{
    for (uint32_t i = 0; i < rocprofiler->agent_count; i++)
        if (rocprofiler->agent_handles[i] == handle)
            return i;
    return ROCPROFILER_AGENTS_MAX;
}

static bool find_agents(struct rocprofiler *rocprofiler, struct problem *problem)
{
    rocprofiler->agent_count = 0;
    if (rocprofiler_status(rocprofiler, "rocprofiler_query_available_agents",
                           rocprofiler->call.query_agents(ROCPROFILER_ABI_AGENT_VERSION, on_agents,
                                                          sizeof(struct rocprofiler_abi_agent), rocprofiler),
                           problem))
        return false;
    for (uint32_t i = 0; i < rocprofiler->agent_count; i++) {
        const struct rocprofiler_sink *sink = &rocprofiler->sink;
        rocprofiler->agents[i].device_id =
            sink->device_of ? sink->device_of(sink->user, &rocprofiler->agents[i], i) : i;
    }
    return true;
}

/* ---- HIP calls ---- */

static enum rocprofiler_call call_of(const char *name)
{
    static const struct {
        const char *prefix;
        enum rocprofiler_call call;
    } calls[] = {
        {"hipDeviceSynchronize", ROCPROFILER_CALL_WAIT_DEVICE},
        {"hipCtxSynchronize", ROCPROFILER_CALL_WAIT_DEVICE},
        {"hipStreamSynchronize", ROCPROFILER_CALL_WAIT_STREAM},
        {"hipEventSynchronize", ROCPROFILER_CALL_WAIT_EVENT},
        {"hipGraphLaunch", ROCPROFILER_CALL_GRAPH},
        {"hipLaunchHostFunc", ROCPROFILER_CALL_OTHER},
        {"hipLaunch", ROCPROFILER_CALL_WORK},
        {"hipModuleLaunch", ROCPROFILER_CALL_WORK},
        {"hipDrvLaunch", ROCPROFILER_CALL_WORK},
        {"hipExtLaunch", ROCPROFILER_CALL_WORK},
        {"hipExtModuleLaunch", ROCPROFILER_CALL_WORK},
        {"hipHccModuleLaunch", ROCPROFILER_CALL_WORK},
        {"hipMemcpy", ROCPROFILER_CALL_WORK},
        {"hipDrvMemcpy", ROCPROFILER_CALL_WORK},
        {"hipMemset", ROCPROFILER_CALL_WORK},
        {"hipMemPrefetch", ROCPROFILER_CALL_WORK},
        {"hipMalloc", ROCPROFILER_CALL_WORK},
        {"hipExtMalloc", ROCPROFILER_CALL_WORK},
        {"hipHostMalloc", ROCPROFILER_CALL_WORK},
        {"hipHostAlloc", ROCPROFILER_CALL_WORK},
        {"hipMemAlloc", ROCPROFILER_CALL_WORK},
        {"hipFree", ROCPROFILER_CALL_WORK},
        {"hipHostFree", ROCPROFILER_CALL_WORK},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strncmp(name, calls[i].prefix, strlen(calls[i].prefix)))
            return calls[i].call == ROCPROFILER_CALL_WORK && strstr(name, "Async") ? ROCPROFILER_CALL_ASYNC
                                                                                   : calls[i].call;
    return ROCPROFILER_CALL_OTHER;
}

static int on_operation(int kind, int32_t operation, void *user)
{
    struct rocprofiler *rocprofiler = user;
    const char *name = NULL;
    uint64_t length = 0;
    if (operation >= 0 && operation < ROCPROFILER_OPERATIONS_MAX &&
        rocprofiler->call.operation_name(kind, operation, &name, &length) == ROCPROFILER_ABI_SUCCESS && name)
        rocprofiler->calls[operation] = (uint8_t)call_of(name);
    return 0;
}

/* Only calls that cause work or wait for it: a HIP program makes ten cheap calls for each of those. */
static bool configure_calls(struct rocprofiler *rocprofiler, struct problem *problem)
{
    const struct rocprofiler_table *call = &rocprofiler->call;
    int32_t operations[ROCPROFILER_OPERATIONS_MAX];
    size_t count = 0;
    if (rocprofiler_status(rocprofiler, "rocprofiler_iterate_buffer_tracing_kind_operations",
                           call->iterate_operations(ROCPROFILER_ABI_KIND_HIP_RUNTIME_API, on_operation, rocprofiler),
                           problem))
        return false;
    for (int32_t i = 0; i < ROCPROFILER_OPERATIONS_MAX; i++)
        if (rocprofiler->calls[i] != ROCPROFILER_CALL_OTHER)
            operations[count++] = i;
    if (!count)
        return !problem_set(problem, GPUFL_E_UNSUPPORTED, "rocprofiler lists none of HIP's calls");
    return rocprofiler_make_buffer(rocprofiler, rocprofiler->context, LANE_CALLS, problem) &&
           !rocprofiler_status(rocprofiler, "rocprofiler_configure_buffer_tracing_service",
                               call->buffer_service(rocprofiler->context, ROCPROFILER_ABI_KIND_HIP_RUNTIME_API,
                                                    operations, count, rocprofiler->buffers[LANE_CALLS]),
                               problem);
}

/* ---- services ---- */

static bool configure_kind(struct rocprofiler *rocprofiler, int kind, enum rocprofiler_lane lane,
                           struct problem *problem)
{
    return rocprofiler_make_buffer(rocprofiler, rocprofiler->context, lane, problem) &&
           !rocprofiler_status(
               rocprofiler, "rocprofiler_configure_buffer_tracing_service",
               rocprofiler->call.buffer_service(rocprofiler->context, kind, NULL, 0, rocprofiler->buffers[lane]),
               problem);
}

static bool configure_callback(struct rocprofiler *rocprofiler, struct rocprofiler_abi_id context, int kind)
{
    rocprofiler_abi_callback callback = rocprofiler->version >= ROCPROFILER_ABI_VERSION_1_0
                                            ? (rocprofiler_abi_callback)on_callback_1
                                            : (rocprofiler_abi_callback)on_callback_0;
    return rocprofiler->call.callback_service(context, kind, NULL, 0, callback, rocprofiler) == ROCPROFILER_ABI_SUCCESS;
}

static int find_kind(const struct rocprofiler *rocprofiler, const char *wanted)
{
    for (int kind = 1; kind <= ROCPROFILER_ABI_KIND_LAST_ASKED; kind++) {
        const char *name = NULL;
        uint64_t length = 0;
        if (rocprofiler->call.kind_name(kind, &name, &length) == ROCPROFILER_ABI_SUCCESS && name &&
            !strcmp(name, wanted))
            return kind;
    }
    return -1;
}

gpufl_status rocprofiler_configure_services(struct rocprofiler *rocprofiler,
                                            const struct rocprofiler_trace_options *options, struct problem *problem)
{
    const struct rocprofiler_table *call = &rocprofiler->call;
    rocprofiler->sink = options->sink;
    memset(&rocprofiler->result, 0, sizeof rocprofiler->result);
    if (rocprofiler_status(rocprofiler, "rocprofiler_create_context", call->create_context(&rocprofiler->code_context),
                           problem) ||
        rocprofiler_status(rocprofiler, "rocprofiler_create_context", call->create_context(&rocprofiler->context),
                           problem) ||
        !find_agents(rocprofiler, problem) ||
        !configure_kind(rocprofiler, ROCPROFILER_ABI_KIND_KERNEL_DISPATCH, LANE_KERNELS, problem))
        return GPUFL_E_UNSUPPORTED;
    unsigned configured = ROCPROFILER_KERNELS;
    struct problem ignored = {""}; /* a refused feature lacks its bit, which the capability record reports */
    if (configure_kind(rocprofiler, ROCPROFILER_ABI_KIND_MEMORY_COPY, LANE_COPIES, &ignored))
        configured |= ROCPROFILER_COPIES;
    if (configure_calls(rocprofiler, &ignored))
        configured |= ROCPROFILER_CALLS | (options->features & ROCPROFILER_SYNC);
    rocprofiler->memory_kind = find_kind(rocprofiler, "MEMORY_ALLOCATION");
    if ((options->features & ROCPROFILER_MEMORY) && rocprofiler->memory_kind > 0 &&
        configure_kind(rocprofiler, rocprofiler->memory_kind, LANE_MEMORY, &ignored))
        configured |= ROCPROFILER_MEMORY;
    if (configure_callback(rocprofiler, rocprofiler->context, ROCPROFILER_ABI_CALLBACK_MARKER_CORE_API))
        configured |= ROCPROFILER_RANGES;
    if (configure_callback(rocprofiler, rocprofiler->code_context, ROCPROFILER_ABI_CALLBACK_CODE_OBJECT) &&
        call->start_context(rocprofiler->code_context) == ROCPROFILER_ABI_SUCCESS)
        configured |= ROCPROFILER_CODE;
    rocprofiler->awaited[ROCPROFILER_AWAITED_KERNELS].is_reported =
        configure_callback(rocprofiler, rocprofiler->context, ROCPROFILER_ABI_CALLBACK_KERNEL_DISPATCH);
    rocprofiler->awaited[ROCPROFILER_AWAITED_COPIES].is_reported =
        !(configured & ROCPROFILER_COPIES) ||
        configure_callback(rocprofiler, rocprofiler->context, ROCPROFILER_ABI_CALLBACK_MEMORY_COPY);
    rocprofiler->awaited[ROCPROFILER_AWAITED_COUNTERS].is_reported = true; /* gpufl chooses the counters of each
                                                                            * dispatch itself */
    rocprofiler->configured = configured;
    if (options->features & ROCPROFILER_COUNTERS)
        rocprofiler_configure_counting(rocprofiler, options->counters ? options->counters : "");
    atomic_store(&rocprofiler->state, ROCPROFILER_READY);
    return GPUFL_OK;
}
