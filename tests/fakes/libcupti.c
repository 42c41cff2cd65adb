/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike libcupti: attaching to the fake driver and the activity functions. */
#include "cupti_buffers.h"
#include "cupti_callbacks.h"
#include "cupti_fake.h"
#include "cupti_pc_sampling.h"
#include "cupti_range.h"
#include "cupti_records.h"
#include "cupti_replay.h"
#include "cupti_sass.h"
#include "faults.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { ATTRIBUTE_COUNT = 11 };

static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int attached_pid;
static void (*driver_set_tracer)(const struct fake_tracer *tracer);

static void trace_call_enter(struct fake_call *call)
{
    replay_begin();
    if (callbacks_call(call, CUPTI_ABI_API_ENTER) && call->domain == FAKE_DOMAIN_RUNTIME &&
        call->cbid == FAKE_ID_cudaGraphLaunch)
        sass_graph_launch(call->context_id);
}

static void trace_call_exit(struct fake_call *call)
{
    callbacks_call(call, CUPTI_ABI_API_EXIT);
    if (!replay_is_wanted())
        record_call(call);
}

static void trace_work(const struct fake_work *work)
{
    pc_sampling_work(work);
    range_work(work);
    sass_work(work);
    if (!replay_is_wanted())
        record_work(work);
}

static void trace_sync(const struct fake_sync *sync)
{
    if (!replay_is_wanted())
        record_sync(sync);
}

static void trace_memory(const struct fake_memory *memory)
{
    if (!replay_is_wanted())
        record_memory(memory);
}

static void trace_graph(uint32_t cbid, void *executable, bool is_kernel)
{
    struct cupti_abi_graph_data data = {.node_type = is_kernel ? 0 : 1, .executable = executable};
    callbacks_resource(cbid, NULL, NULL, &data);
}

static const struct fake_tracer tracer = {.call_enter = trace_call_enter,
                                          .call_exit = trace_call_exit,
                                          .work = trace_work,
                                          .sync = trace_sync,
                                          .memory = trace_memory,
                                          .resource = callbacks_context,
                                          .graph = trace_graph};

int cupti_attach(void)
{
    int result = CUPTI_ABI_SUCCESS;
    pthread_mutex_lock(&attach_lock);
    if (fault_number("no_device", 0) != 0) {
        result = CUPTI_ABI_UNKNOWN;
    } else if (driver_set_tracer == NULL) {
        void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
        if (driver != NULL)
            *(void **)&driver_set_tracer = dlsym(driver, "fake_cuda_set_tracer");
    }
    if (driver_set_tracer == NULL)
        result = CUPTI_ABI_UNKNOWN; /* as without a driver */
    if (result == CUPTI_ABI_SUCCESS) {
        driver_set_tracer(&tracer);
        atomic_store(&attached_pid, getpid());
    }
    pthread_mutex_unlock(&attach_lock);
    return result;
}

int cuptiGetVersion(uint32_t *version)
{
    int result = fault_result("cuptiGetVersion");
    if (result == CUPTI_ABI_SUCCESS)
        *version = cupti_version_played();
    return result;
}

int cuptiGetTimestamp(uint64_t *timestamp)
{
    *timestamp = clock_now_ns();
    return fault_result("cuptiGetTimestamp");
}

int cuptiGetResultString(uint32_t result, const char **text)
{
    (void)fault_result("cuptiGetResultString");
    static const struct {
        uint32_t result;
        const char *text;
    } known[] = {
        {0, "CUPTI_SUCCESS"},
        {1, "CUPTI_ERROR_INVALID_PARAMETER"},
        {7, "CUPTI_ERROR_INVALID_OPERATION"},
        {8, "CUPTI_ERROR_OUT_OF_MEMORY"},
        {12, "CUPTI_ERROR_MAX_LIMIT_REACHED"},
        {14, "CUPTI_ERROR_NOT_COMPATIBLE"},
        {15, "CUPTI_ERROR_NOT_INITIALIZED"},
        {21, "CUPTI_ERROR_INVALID_KIND"},
        {26, "CUPTI_ERROR_HARDWARE_BUSY"},
        {27, "CUPTI_ERROR_NOT_SUPPORTED"},
        {32, "CUPTI_ERROR_QUEUE_EMPTY"},
        {35, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"},
        {39, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
        {999, "CUPTI_ERROR_UNKNOWN"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].result == result) {
            *text = known[i].text;
            return CUPTI_ABI_SUCCESS;
        }
    *text = "<unknown>";
    return CUPTI_INVALID_PARAMETER;
}

int cuptiActivityRegisterCallbacks(cupti_abi_buffer_request_fn *request, cupti_abi_buffer_complete_fn *complete)
{
    int result = fault_result("cuptiActivityRegisterCallbacks");
    if (result == CUPTI_ABI_SUCCESS && (request == NULL || complete == NULL))
        result = CUPTI_INVALID_PARAMETER;
    if (result == CUPTI_ABI_SUCCESS)
        buffers_register(request, complete);
    return result;
}

static bool kind_is_call(uint32_t kind)
{
    return kind == CUPTI_ABI_KIND_DRIVER || kind == CUPTI_ABI_KIND_RUNTIME;
}

int cuptiActivityEnable(uint32_t kind)
{
    int result = fault_result("cuptiActivityEnable");
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (kind == CUPTI_ABI_KIND_INVALID || kind > CUPTI_ABI_KIND_LAST_KNOWN)
        return CUPTI_ABI_INVALID_KIND;
    if ((kind == CUPTI_ABI_KIND_CONCURRENT_KERNEL && pc_sampling_is_enabled()) ||
        (kind == CUPTI_ABI_KIND_KERNEL && kind_is_enabled(CUPTI_ABI_KIND_CONCURRENT_KERNEL)) ||
        (kind == CUPTI_ABI_KIND_CONCURRENT_KERNEL && kind_is_enabled(CUPTI_ABI_KIND_KERNEL)))
        return CUPTI_NOT_COMPATIBLE;
    if (kind == CUPTI_ABI_KIND_CONCURRENT_KERNEL && sass_is_counting())
        return CUPTI_NOT_COMPATIBLE;
    result = cupti_attach();
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (kind_is_call(kind))
        calls_enable(kind, true);
    kind_enable(kind, true);
    return CUPTI_ABI_SUCCESS;
}

int cuptiActivityDisable(uint32_t kind)
{
    pc_sampling_crash_if_damaged();
    int result = fault_result("cuptiActivityDisable");
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (kind == CUPTI_ABI_KIND_INVALID || kind > CUPTI_ABI_KIND_LAST_KNOWN)
        return CUPTI_ABI_INVALID_KIND;
    if (kind_is_call(kind))
        calls_enable(kind, false);
    kind_enable(kind, false);
    return CUPTI_ABI_SUCCESS;
}

static int one_call_enable(const char *function, uint32_t kind, uint32_t cbid, uint8_t enable)
{
    int result = fault_result(function);
    if (result == CUPTI_ABI_SUCCESS && (cbid == 0 || cbid >= CALL_ID_LIMIT))
        result = CUPTI_INVALID_PARAMETER;
    if (result == CUPTI_ABI_SUCCESS)
        result = cupti_attach();
    if (result == CUPTI_ABI_SUCCESS)
        call_enable(kind, cbid, enable != 0);
    return result;
}

int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
    return one_call_enable("cuptiActivityEnableRuntimeApi", CUPTI_ABI_KIND_RUNTIME, cbid, enable);
}

int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
    return one_call_enable("cuptiActivityEnableDriverApi", CUPTI_ABI_KIND_DRIVER, cbid, enable);
}

int cuptiActivityFlushAll(uint32_t flag)
{
    int result = fault_result("cuptiActivityFlushAll");
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (atomic_load(&attached_pid) != getpid())
        return CUPTI_ABI_NOT_INITIALIZED; /* also in a forked child, whose locks may be anybody's */
    bool is_forced = (flag & CUPTI_ABI_FLUSH_FORCED) != 0;
    replay_begin();
    (void)replay_advance(is_forced);
    records_reap(is_forced);
    buffers_flush(is_forced);
    return CUPTI_ABI_SUCCESS;
}

int cuptiActivityFlushPeriod(uint32_t milliseconds)
{
    buffers_wake_worker(milliseconds);
    return fault_result("cuptiActivityFlushPeriod");
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
    int fault = fault_result("cuptiActivityGetNextRecord");
    if (fault != CUPTI_ABI_SUCCESS)
        return fault;
    if (buffer == NULL || record == NULL)
        return CUPTI_INVALID_PARAMETER;
    size_t at = 0;
    uint32_t kind;
    if (*record != NULL) {
        at = (size_t)((uint8_t *)*record - buffer);
        memcpy(&kind, buffer + at, sizeof kind);
        at += record_size(kind);
    }
    if (at >= valid)
        return CUPTI_ABI_MAX_LIMIT_REACHED;
    if (valid - at < sizeof kind)
        return CUPTI_ABI_INVALID_KIND;
    memcpy(&kind, buffer + at, sizeof kind);
    if (record_size(kind) == 0 || record_size(kind) > valid - at)
        return CUPTI_ABI_INVALID_KIND;
    *record = buffer + at;
    return CUPTI_ABI_SUCCESS;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream_id, size_t *dropped)
{
    (void)context;
    (void)stream_id;
    int result = fault_result("cuptiActivityGetNumDroppedRecords");
    if (result == CUPTI_ABI_SUCCESS)
        *dropped = buffers_take_dropped();
    return result;
}

static pthread_mutex_t attributes_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t attributes[ATTRIBUTE_COUNT] = {3200000, 8 << 20, 250, 0, 0, 0, 3, 0, 0, 1, 16 << 20};

static size_t attribute_size(uint32_t attribute)
{
    return attribute == 5 || attribute == 8 || attribute == 9 ? 1 : sizeof(size_t);
}

static int attribute_check(const char *function, uint32_t attribute, const size_t *size, const void *value)
{
    int result = fault_result(function);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    return attribute < ATTRIBUTE_COUNT && size != NULL && value != NULL && *size >= attribute_size(attribute)
               ? CUPTI_ABI_SUCCESS
               : CUPTI_INVALID_PARAMETER;
}

int cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value)
{
    int result = attribute_check("cuptiActivitySetAttribute", attribute, size, value);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    pthread_mutex_lock(&attributes_lock);
    attributes[attribute] = 0;
    memcpy(&attributes[attribute], value, attribute_size(attribute));
    pthread_mutex_unlock(&attributes_lock);
    return CUPTI_ABI_SUCCESS;
}

int cuptiActivityGetAttribute(uint32_t attribute, size_t *size, void *value)
{
    int result = attribute_check("cuptiActivityGetAttribute", attribute, size, value);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    *size = attribute_size(attribute);
    pthread_mutex_lock(&attributes_lock);
    memcpy(value, &attributes[attribute], *size);
    pthread_mutex_unlock(&attributes_lock);
    return CUPTI_ABI_SUCCESS;
}

int cuptiSetThreadIdType(uint32_t type)
{
    int result = fault_result("cuptiSetThreadIdType");
    if (result == CUPTI_ABI_SUCCESS && type > CUPTI_ABI_THREAD_ID_SYSTEM)
        result = CUPTI_INVALID_PARAMETER;
    if (result == CUPTI_ABI_SUCCESS)
        records_set_system_thread_ids(type == CUPTI_ABI_THREAD_ID_SYSTEM);
    return result;
}

int cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
    records_set_latency(enable != 0);
    return fault_result("cuptiActivityEnableLatencyTimestamps");
}

int cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id)
{
    int result = fault_result("cuptiActivityPushExternalCorrelationId");
    return result != CUPTI_ABI_SUCCESS ? result : external_push(kind, id);
}

int cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t *last_id)
{
    int result = fault_result("cuptiActivityPopExternalCorrelationId");
    return result != CUPTI_ABI_SUCCESS ? result : external_pop(kind, last_id);
}

int cuptiActivityRegisterTimestampCallback(cupti_abi_timestamp_fn *now)
{
    int result = fault_result("cuptiActivityRegisterTimestampCallback");
    if (result == CUPTI_ABI_SUCCESS)
        records_set_clock(now);
    return result;
}

int cuptiFinalize(void)
{
    int result = fault_result("cuptiFinalize");
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    if (atomic_load(&attached_pid) != 0 && atomic_load(&attached_pid) != getpid()) {
        pthread_mutex_init(&attach_lock, NULL);
        callbacks_after_fork();
        works_after_fork();
        buffers_after_fork();
    }
    for (uint32_t kind = 1; kind <= CUPTI_ABI_KIND_LAST_KNOWN; kind++)
        (void)cuptiActivityDisable(kind);
    callbacks_reset();
    records_set_clock(NULL);
    pthread_mutex_lock(&attach_lock);
    if (driver_set_tracer != NULL)
        driver_set_tracer(NULL);
    atomic_store(&attached_pid, 0);
    pthread_mutex_unlock(&attach_lock);
    works_forget();
    buffers_forget();
    return CUPTI_ABI_SUCCESS;
}
