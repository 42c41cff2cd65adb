/* SPDX-License-Identifier: Apache-2.0 */
/* A trace: claim CUPTI, enable the requested records, deliver buffers, undo. CUPTI's buffer functions have no user
 * pointer and may still be called while or after a trace stops, so their state is process-wide and guarded by a
 * gate, which stop closes and waits for. */
#include "driver/cuda.h"
#include "base/stages.h"
#include "base/watch.h"
#include "driver/cupti_calls.h"
#include "driver/cupti_events.h"
#include "driver/cupti_fork.h"
#include "driver/cupti_subscription.h"
#include "driver/cupti_table.h"
#include "driver/gate.h"

#include <pthread.h>

static struct trace {
    struct gate gate;      /* around the functions below */
    atomic_ullong dropped; /* records dropped by CUPTI and not taken yet */
    atomic_int damage;     /* enum cupti_damage */
    uint8_t *(*buffer_request)(size_t *size);
    void (*buffer_complete)(uint8_t *buffer, size_t size, size_t valid);
    struct cupti *_Atomic cupti;
    /* Guarded by the lock. */
    bool is_running;
    uint64_t kinds;                                           /* bit per enabled activity kind */
    unsigned record_groups;                                   /* CUPTI_CALL_* whose records were enabled call by call */
    enum { API_UNDECIDED, API_BY_CALL, API_BY_KIND } api_way; /* for the life of the process, see below */
} trace;
static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;
static const int64_t gate_wait_ns = 1000000000; /* for callbacks in progress, which take microseconds */

/* Before 12.9 CUPTI can crash when it gets no buffer. It gets one of these instead, and its content is counted as
 * dropped. */
enum { spare_count = 4, spare_bytes = 16384 };
static struct spare {
    _Alignas(8) uint8_t bytes[spare_bytes];
    atomic_flag is_lent;
} spares[spare_count];

static uint8_t *spare_lend(size_t *size)
{
    const struct cupti *cupti = atomic_load(&trace.cupti);
    if (!cupti || cupti->version >= CUPTI_ABI_VERSION_12_9)
        return NULL;
    for (int i = 0; i < spare_count; i++) {
        if (!atomic_flag_test_and_set(&spares[i].is_lent)) {
            *size = spare_bytes;
            return spares[i].bytes;
        }
    }
    return NULL;
}

/* False when the buffer is not one of ours. */
static bool spare_take_back(uint8_t *buffer, size_t valid)
{
    for (int i = 0; i < spare_count; i++) {
        if (buffer != spares[i].bytes)
            continue;
        struct activity_cursor cursor = {atomic_load(&trace.cupti), buffer, valid <= spare_bytes ? valid : 0, NULL};
        struct activity activity;
        unsigned long long lost = 0;
        while (activity_next(&cursor, &activity))
            lost++;
        atomic_fetch_add(&trace.dropped, lost);
        atomic_flag_clear(&spares[i].is_lent);
        return true;
    }
    return false;
}

static void on_buffer_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    uint8_t *given = NULL;
    size_t bytes = 0;
    if (gate_enter(&trace.gate)) {
        given = trace.buffer_request(&bytes);
        cuda_note_use();
        gate_leave(&trace.gate);
    }
    if (!given)
        given = spare_lend(&bytes);
    *buffer = given;
    *size = given ? bytes : 0;
    *max_records = 0; /* as many as fit */
}

static void on_buffer_complete(void *context, uint32_t stream_id, uint8_t *buffer, size_t size, size_t valid)
{
    (void)context, (void)stream_id;
    if (!buffer || spare_take_back(buffer, valid) || !gate_enter(&trace.gate))
        return;
    trace.buffer_complete(buffer, size, valid <= size ? valid : size);
    gate_leave(&trace.gate);
}

gpufl_status cupti_refusal(struct cupti *cupti, const char *function, int result, struct problem *problem)
{
    const char *text = cupti_result_text(cupti, result);
    switch (result) {
    case CUPTI_ABI_MULTIPLE_SUBSCRIBERS:
        return problem_set(problem, GPUFL_E_BUSY,
                           "another profiler already uses CUPTI in this process; remove it or run without gpufl");
    case CUPTI_ABI_NOT_INITIALIZED:
    case CUPTI_ABI_UNKNOWN:
        return problem_set(problem, GPUFL_E_NO_DRIVER,
                           "%s failed: %s (%d): no usable NVIDIA driver; check it with nvidia-smi", function, text,
                           result);
    case CUPTI_ABI_INSUFFICIENT_PRIVILEGES:
        return problem_set(problem, GPUFL_E_PERMISSION,
                           "%s failed: %s (%d): the driver lets only administrators profile; see "
                           "NVreg_RestrictProfilingToAdminUsers",
                           function, text, result);
    default:
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s failed: %s (%d); library %s", function, text, result,
                           cupti->library.path);
    }
}

static bool enable_kind(struct cupti *cupti, uint32_t kind)
{
    if (cupti_note(cupti, "cuptiActivityEnable", cupti->call.enable(kind)) != CUPTI_ABI_SUCCESS)
        return false;
    trace.kinds |= 1ull << kind;
    return true;
}

/* Disables the other calls of the kind that was just enabled. */
static void silence_other_calls(int (*set_record)(uint32_t cbid, uint8_t is_on), bool is_runtime, unsigned groups)
{
    enum { id_end = 4096 };
    bool is_wanted[id_end] = {false};
    uint32_t highest = 0;
    for (size_t i = 0; i < cupti_call_count; i++) {
        const struct cupti_call *call = &cupti_calls[i];
        if (call->is_runtime != is_runtime || call->cbid >= id_end)
            continue;
        if (call->cbid > highest)
            highest = call->cbid;
        is_wanted[call->cbid] = (call->group & groups) != 0;
    }
    /* The library knows newer ids than our table, up to the first one that it refuses. */
    for (uint32_t cbid = 1; cbid < id_end; cbid++) {
        if (!is_wanted[cbid] && set_record(cbid, 0) != CUPTI_ABI_SUCCESS && cbid > highest)
            break;
    }
}

static unsigned set_records(struct cupti *cupti, unsigned groups, uint8_t is_on)
{
    unsigned accepted = 0;
    for (size_t i = 0; i < cupti_call_count; i++) {
        const struct cupti_call *call = &cupti_calls[i];
        int (*set_record)(uint32_t cbid, uint8_t is_on) =
            call->is_runtime ? cupti->call.enable_runtime_api : cupti->call.enable_driver_api;
        if ((call->group & groups) && set_record(call->cbid, is_on) == CUPTI_ABI_SUCCESS)
            accepted |= call->group;
    }
    return accepted;
}

/* There are two ways to get the API records of selected calls, and switching between them is impossible. CUPTI
 * accepts single calls, but records them only if the first were enabled before CUDA was initialized and the whole
 * kinds never were. Otherwise the whole kinds are enabled, and every unused call is disabled. */
static bool enable_api_records(struct cupti *cupti, unsigned features, bool is_before_cuda)
{
    unsigned groups = cupti_call_groups(features);
    bool has_calls = cupti->call.enable_runtime_api && cupti->call.enable_driver_api;
    if (trace.api_way == API_UNDECIDED)
        trace.api_way = is_before_cuda && has_calls ? API_BY_CALL : API_BY_KIND;
    if (trace.api_way == API_BY_CALL) {
        trace.record_groups = groups;
        return set_records(cupti, groups, 1) & CUPTI_CALL_LAUNCH;
    }
    bool has_runtime = enable_kind(cupti, CUPTI_ABI_KIND_RUNTIME);
    if (has_runtime && cupti->call.enable_runtime_api)
        silence_other_calls(cupti->call.enable_runtime_api, true, groups);
    bool has_driver = enable_kind(cupti, CUPTI_ABI_KIND_DRIVER);
    if (has_driver && cupti->call.enable_driver_api)
        silence_other_calls(cupti->call.enable_driver_api, false, groups);
    return has_runtime && has_driver;
}

static unsigned enable_features(struct cupti *cupti, const struct cupti_trace_options *options)
{
    static const struct {
        unsigned feature;
        uint32_t kind;
    } kinds[] = {{CUPTI_TRACE_SYNC, CUPTI_ABI_KIND_SYNCHRONIZATION},
                 {CUPTI_TRACE_MEMORY, CUPTI_ABI_KIND_MEMORY2},
                 {CUPTI_TRACE_EXTERNAL, CUPTI_ABI_KIND_EXTERNAL_CORRELATION},
                 {CUPTI_TRACE_OVERHEAD, CUPTI_ABI_KIND_OVERHEAD}};
    const unsigned of_calls = CUPTI_TRACE_SYNC | CUPTI_TRACE_EXTERNAL | CUPTI_TRACE_GRAPHS;
    unsigned granted = 0, features = options->features;
    bool is_listening = options->on_call && cupti_listen_calls(cupti, cupti_call_groups(features),
                                                               features & CUPTI_TRACE_EXTERNAL, options->on_call);
    if (is_listening) {
        granted = CUPTI_GRANTED_API | CUPTI_GRANTED_CALLBACKS | (features & of_calls);
        features &= ~of_calls;
    }
    bool has_copies = enable_kind(cupti, CUPTI_ABI_KIND_MEMCPY);
    if (enable_kind(cupti, CUPTI_ABI_KIND_MEMCPY2) && has_copies)
        granted |= CUPTI_GRANTED_COPIES;
    if (enable_kind(cupti, CUPTI_ABI_KIND_MEMSET))
        granted |= CUPTI_GRANTED_MEMSETS;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if ((features & kinds[i].feature) && enable_kind(cupti, kinds[i].kind))
            granted |= kinds[i].feature;
    }
    if (!is_listening && enable_api_records(cupti, features, options->is_before_cuda))
        granted |= CUPTI_GRANTED_API | (features & CUPTI_TRACE_GRAPHS);
    return granted;
}

/* Undoes start in reverse order; harmless for steps that were not done. */
static void undo(struct cupti *cupti)
{
    if (atomic_load(&trace.damage) != CUPTI_SOUND)
        return;
    cupti_silence(cupti);
    if (trace.record_groups)
        set_records(cupti, trace.record_groups, 0);
    for (int kind = 63; kind > 0; kind--) {
        if (trace.kinds >> kind & 1)
            cupti_note(cupti, "cuptiActivityDisable", cupti->call.disable((uint32_t)kind));
    }
    trace.record_groups = 0;
    trace.kinds = 0;
}

static void release(struct cupti *cupti)
{
    if (atomic_load(&trace.damage) != CUPTI_STUCK && !cupti_release(cupti))
        cupti_trace_damaged(CUPTI_STUCK); /* a thread of the program is still in a callback */
    if (!gate_close_until(&trace.gate, stages_until_ns(gate_wait_ns)))
        cupti_trace_damaged(CUPTI_STUCK);
}

static gpufl_status enable_kernels(struct cupti *cupti, struct problem *problem)
{
    int code = cupti_note(cupti, "cuptiActivityEnable", cupti->call.enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL));
    if (code != CUPTI_ABI_SUCCESS)
        return cupti_refusal(cupti, "cuptiActivityEnable(CONCURRENT_KERNEL)", code, problem);
    trace.kinds |= 1ull << CUPTI_ABI_KIND_CONCURRENT_KERNEL;
    return GPUFL_OK;
}

static gpufl_status start(struct cupti *cupti, const struct cupti_trace_options *options,
                          struct cupti_trace_result *result, struct problem *problem)
{
    gpufl_status status = cupti_start_afresh(cupti, problem);
    if (status != GPUFL_OK)
        return status;
    cupti_use_noted();
    status = cupti_claim(cupti, result->other_profiler, sizeof result->other_profiler, problem);
    if (status != GPUFL_OK)
        return status;
    atomic_store(&cupti->id_offset, options->id_offset);
    trace.buffer_request = options->buffer_request;
    trace.buffer_complete = options->buffer_complete;
    atomic_store(&trace.cupti, cupti);
    gate_open(&trace.gate);

    if (cupti->call.set_thread_id_type)
        result->has_system_thread_id =
            cupti_note(cupti, "cuptiSetThreadIdType", cupti->call.set_thread_id_type(CUPTI_ABI_THREAD_ID_SYSTEM)) ==
            CUPTI_ABI_SUCCESS;
    int code = cupti_note(cupti, "cuptiActivityRegisterCallbacks",
                          cupti->call.register_callbacks(on_buffer_request, on_buffer_complete));
    if (code != CUPTI_ABI_SUCCESS) {
        status = cupti_refusal(cupti, "cuptiActivityRegisterCallbacks", code, problem);
        goto fail;
    }
    status = enable_kernels(cupti, problem);
    if (status != GPUFL_OK)
        goto fail;
    result->granted = CUPTI_GRANTED_KERNELS | enable_features(cupti, options);
    return GPUFL_OK;

fail:
    undo(cupti);
    release(cupti);
    return status;
}

gpufl_status cupti_trace_start(struct cupti *cupti, const struct cupti_trace_options *options,
                               struct cupti_trace_result *result, struct problem *problem)
{
    *result = (struct cupti_trace_result){0};
    if (!options->buffer_request || !options->buffer_complete)
        return problem_set(problem, GPUFL_E_INVALID, "a trace needs both buffer functions");
    const char *hung = watch_hung("cu");
    if (hung)
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "%s did not return in an earlier session of this process; CUPTI is not used again", hung);
    pthread_mutex_lock(&trace_lock);
    gpufl_status status;
    if (trace.is_running)
        status = problem_set(problem, GPUFL_E_INVALID, "a trace is already running in this process");
    else if (atomic_load(&trace.damage) != CUPTI_SOUND)
        status =
            problem_set(problem, GPUFL_E_UNSUPPORTED,
                        "a call to CUPTI failed in an earlier session of this process; CUPTI is not started again, "
                        "since disabling it then crashes");
    else {
        cupti_forget_failure(cupti);
        status = start(cupti, options, result, problem);
        trace.is_running = status == GPUFL_OK;
    }
    pthread_mutex_unlock(&trace_lock);
    return status;
}

void cupti_flush(struct cupti *cupti, bool forced)
{
    cupti_look_for_users();
    cupti_use_begin();
    cupti_note(cupti, "cuptiActivityFlushAll", cupti->call.flush_all(forced ? CUPTI_ABI_FLUSH_FORCED : 0));
    cupti_use_end();
}

static void collect_dropped(struct cupti *cupti)
{
    size_t dropped = 0;
    cupti_use_begin();
    if (cupti->call.get_dropped && cupti->call.get_dropped(NULL, 0, &dropped) == CUPTI_ABI_SUCCESS)
        atomic_fetch_add(&trace.dropped, dropped);
    cupti_use_end();
}

bool cupti_trace_is_stuck(void)
{
    return atomic_load(&trace.damage) == CUPTI_STUCK;
}

void cupti_trace_stop(struct cupti *cupti)
{
    bool is_stuck = cupti_trace_is_stuck();
    if (!is_stuck) {
        pthread_mutex_lock(&trace_lock);
    } else if (pthread_mutex_trylock(&trace_lock)) {
        (void)gate_close_until(&trace.gate, stages_until_ns(gate_wait_ns)); /* a thread is in CUPTI with the lock */
        return;
    }
    if (trace.is_running) {
        undo(cupti);
        if (!is_stuck) {
            cupti_flush(cupti, true);
            collect_dropped(cupti);
        }
        release(cupti);
        trace.is_running = false;
    }
    pthread_mutex_unlock(&trace_lock);
}

void cupti_trace_quiet(struct cupti *cupti)
{
    if (cupti_trace_is_stuck())
        return;
    pthread_mutex_lock(&trace_lock);
    if (trace.is_running)
        undo(cupti);
    pthread_mutex_unlock(&trace_lock);
}

void cupti_trace_detach(struct cupti *cupti)
{
    cupti_trace_stop(cupti);
    pthread_mutex_lock(&trace_lock);
    if (!trace.is_running && atomic_load(&trace.damage) == CUPTI_SOUND && cupti->call.finalize &&
        cupti_note(cupti, "cuptiFinalize", cupti->call.finalize()) == CUPTI_ABI_SUCCESS)
        trace.api_way = API_UNDECIDED;
    pthread_mutex_unlock(&trace_lock);
}

void cupti_trace_abandon(void)
{
    pthread_mutex_init(&trace_lock, NULL); /* a thread of the parent may have held it */
    gate_abandon(&trace.gate);
    trace.is_running = false;
    trace.kinds = trace.record_groups = 0;
    trace.api_way = API_UNDECIDED;
    atomic_store(&trace.dropped, 0);
    for (int i = 0; i < spare_count; i++)
        atomic_flag_clear(&spares[i].is_lent);
    cupti_subscription_abandon();
}

void cupti_trace_damaged(enum cupti_damage damage)
{
    int found = atomic_load(&trace.damage);
    while (found < (int)damage && !atomic_compare_exchange_weak(&trace.damage, &found, damage)) {
    }
}

gpufl_status cupti_trace_pause(struct cupti *cupti, struct problem *problem)
{
    if (atomic_load(&trace.damage) != CUPTI_SOUND)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "CUPTI failed earlier and would crash now");
    pthread_mutex_lock(&trace_lock);
    gpufl_status status = GPUFL_OK;
    if (trace.kinds >> CUPTI_ABI_KIND_CONCURRENT_KERNEL & 1) {
        int code = cupti_note(cupti, "cuptiActivityDisable", cupti->call.disable(CUPTI_ABI_KIND_CONCURRENT_KERNEL));
        if (code == CUPTI_ABI_SUCCESS)
            trace.kinds &= ~(1ull << CUPTI_ABI_KIND_CONCURRENT_KERNEL);
        else
            status = cupti_refusal(cupti, "cuptiActivityDisable(CONCURRENT_KERNEL)", code, problem);
    }
    pthread_mutex_unlock(&trace_lock);
    return status;
}

gpufl_status cupti_trace_resume(struct cupti *cupti, struct problem *problem)
{
    pthread_mutex_lock(&trace_lock);
    gpufl_status status = trace.is_running && !(trace.kinds >> CUPTI_ABI_KIND_CONCURRENT_KERNEL & 1)
                              ? enable_kernels(cupti, problem)
                              : GPUFL_OK;
    pthread_mutex_unlock(&trace_lock);
    return status;
}

uint64_t cupti_take_dropped(struct cupti *cupti)
{
    collect_dropped(cupti);
    return atomic_exchange(&trace.dropped, 0);
}
