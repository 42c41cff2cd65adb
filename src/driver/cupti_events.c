/* SPDX-License-Identifier: Apache-2.0 */
/* The subscription to CUPTI: its owner, and CUPTI's callbacks. Claiming it also keeps a second profiler from taking
 * our records. */
#include "driver/cupti_events.h"

#include "base/user_time.h"
#include "driver/captures.h"
#include "driver/cuda.h"
#include "base/stages.h"
#include "driver/cuda_abi.h"
#include "driver/cupti_calls.h"
#include "driver/cupti_subscription.h"
#include "driver/cupti_users.h"
#include "driver/cupti_table.h"
#include "driver/gate.h"
#include "driver/graph_sizes.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { id_end = 1024 }; /* callback ids of launches are far below */

typedef void call_fn(const struct user_call *call, bool is_enter);

/* Calls may come from any thread, also while a session ends: from the program's, and from the one that waits for the
 * GPU. */
static struct events {
    struct gate gate;
    atomic_uint generation; /* of the subscription, to detect per-thread state of an earlier one */
    _Atomic(call_fn *) on_call;
    _Atomic(const struct cupti_listener *) listener;
    _Atomic(struct cupti *) cupti;
    void *subscriber;
    atomic_uint call_groups;   /* CUPTI_CALL_* enabled for on_call */
    atomic_uint launch_groups; /* and for on_launch */
    atomic_bool has_external;
    atomic_bool has_linked_users;    /* linked with CUPTI: they may push external ids at any time */
    bool has_streams, has_resources; /* resource callbacks: of destroyed streams; of contexts and modules */
    uint8_t groups[2][id_end]; /* CUPTI_CALL_* by domain (driver, runtime) and callback id; constant once filled in */
} events;

static unsigned group_of(uint32_t domain, uint32_t cbid)
{
    return cbid < id_end ? events.groups[domain == CUPTI_ABI_DOMAIN_RUNTIME][cbid] : 0;
}

/* By how much a call that begins or ends a capture changes the number of captures in progress, from the entry to the
 * begin call until the exit from the end call. An end that is refused because of a wrong thread or stream does not
 * change the capture. */
static int capture_change(uint32_t domain, uint32_t cbid, const struct cupti_abi_callback_data *call, unsigned group,
                          bool is_enter)
{
    static _Thread_local bool has_begun; /* the call in progress begins a new capture */
    const int *result = call->function_return_value;
    const void *stream = call->function_params ? *(void *const *)call->function_params : NULL;
    bool is_per_thread = cupti_call_is_per_thread(domain == CUPTI_ABI_DOMAIN_RUNTIME, cbid);
    bool is_done = !result || *result == CUDA_ABI_SUCCESS;
    if (group & CUPTI_CALL_CAPTURE) {
        if (is_enter)
            return has_begun = captures_begin(call->context, stream, is_per_thread) != 0;
        return has_begun && !is_done ? captures_end(stream, is_per_thread) : 0;
    }
    is_done |= result && (*result == CUDA_ABI_CAPTURE_INVALIDATED || *result == CUDA_ABI_CAPTURE_UNJOINED);
    return !is_enter && is_done ? captures_end(stream, is_per_thread) : 0;
}

static void tell_capture(int change, bool is_enter)
{
    const struct cupti_listener *listener = atomic_load(&events.listener);
    if (listener && listener->on_capture)
        listener->on_capture(listener->user, change, is_enter);
}

static void tell_launch(const struct cupti_abi_callback_data *call, unsigned group, bool is_enter)
{
    const struct cupti_listener *listener = atomic_load(&events.listener);
    if (!listener || !listener->on_launch)
        return;
    const struct launch_call launch = {.context = call->context,
                                       .context_id = call->context_uid,
                                       .correlation_id = cupti_unique_id(events.cupti, call->correlation_id),
                                       .symbol = group & CUPTI_CALL_LAUNCH ? call->symbol_name : NULL,
                                       .is_graph = (group & CUPTI_CALL_GRAPH) != 0,
                                       .graph_kernels = group & CUPTI_CALL_GRAPH && call->function_params
                                                            ? graph_sizes_kernels(*(void *const *)call->function_params)
                                                            : 0};
    listener->on_launch(listener->user, &launch, is_enter);
}

/* The program's current external id, as CUPTI would record it with the call. CUPTI has no function to read it: it is
 * popped and pushed again, which costs about 35 ns per kind. In a program linked with CUPTI that is done at every
 * call. In others external ids are rare: kinds that were never seen are tried at a thread's first call, and then at
 * growing intervals. */
static void find_external(struct cupti *cupti, struct user_call *user)
{
    enum { all_kinds = 0x3e, calls_between_tries_max = 256 };
    static atomic_uint seen_kinds;
    static _Thread_local uint32_t calls_until_try, calls_between_tries;
    unsigned kinds = atomic_load_explicit(&seen_kinds, memory_order_relaxed);
    if (atomic_load_explicit(&events.has_linked_users, memory_order_relaxed)) {
        kinds = all_kinds;
    } else if (calls_until_try) {
        calls_until_try--;
    } else {
        kinds = all_kinds;
        calls_until_try = calls_between_tries;
        calls_between_tries =
            calls_between_tries < calls_between_tries_max ? 2 * calls_between_tries + 1 : calls_between_tries_max;
    }
    for (uint32_t kind = 1; kinds >> kind; kind++) {
        uint64_t id;
        if (!(kinds >> kind & 1) || cupti->call.pop_external(kind, &id) != CUPTI_ABI_SUCCESS)
            continue;
        (void)cupti->call.push_external(kind, id);
        atomic_fetch_or_explicit(&seen_kinds, 1u << kind, memory_order_relaxed);
        user->external_kind = kind;
        user->external_id = id;
    }
}

static void tell_call(uint32_t domain, uint32_t cbid, const struct cupti_abi_callback_data *call, unsigned group,
                      bool is_enter)
{
    enum { stream_wait_event = 2, stream_wait = 3 }; /* their first parameter is the stream */
    bool is_runtime = domain == CUPTI_ABI_DOMAIN_RUNTIME;
    struct cupti *cupti = atomic_load_explicit(&events.cupti, memory_order_relaxed);
    call_fn *on_call = atomic_load_explicit(&events.on_call, memory_order_relaxed);
    struct user_call user = {.correlation_id = cupti_unique_id(events.cupti, call->correlation_id),
                             .context_id = call->context_uid,
                             .wait_type = group & CUPTI_CALL_SYNC ? cupti_call_sync_type(is_runtime, cbid) : 0,
                             .is_launch = (group & (CUPTI_CALL_LAUNCH | CUPTI_CALL_GRAPH)) != 0};
    if (!is_enter) /* while a graph is captured, a launch may only be recorded in it */
        user.has_kernel = (group & CUPTI_CALL_LAUNCH) && call->function_return_value &&
                          !*(const int *)call->function_return_value && !captures_any();
    if (!is_enter && atomic_load_explicit(&events.has_external, memory_order_relaxed))
        find_external(cupti, &user);
    if (!is_enter && (user.wait_type == stream_wait_event || user.wait_type == stream_wait) && call->function_params &&
        cupti->call.get_stream_id)
        user.has_stream =
            cupti->call.get_stream_id(call->context, *(void *const *)call->function_params,
                                      cupti_call_is_per_thread(is_runtime, cbid), &user.stream_id) == CUPTI_ABI_SUCCESS;
    if (on_call)
        on_call(&user, is_enter);
}

/* A runtime call makes driver calls internally; only the outer one is the user's. on_call needs no session, so a
 * launch enters the gate, which all threads share, only for a listener that needs launches. */
static void on_api_call(uint32_t domain, uint32_t cbid, const struct cupti_abi_callback_data *call)
{
    static _Thread_local unsigned runtime_call_generation;
    unsigned generation = atomic_load_explicit(&events.generation, memory_order_relaxed);
    bool is_inner = runtime_call_generation == generation;
    bool is_enter = call->site == CUPTI_ABI_API_ENTER;
    if (domain == CUPTI_ABI_DOMAIN_RUNTIME)
        runtime_call_generation = is_enter ? generation : 0;
    else if (is_inner)
        return;
    unsigned group = group_of(domain, cbid);
    const unsigned capture = CUPTI_CALL_CAPTURE | CUPTI_CALL_CAPTURE_END;
    int change = group & capture ? capture_change(domain, cbid, call, group, is_enter) : 0;
    if (group & atomic_load_explicit(&events.call_groups, memory_order_relaxed))
        tell_call(domain, cbid, call, group, is_enter);
    const unsigned listened = CUPTI_CALL_LAUNCH | CUPTI_CALL_GRAPH | capture;
    if (group & listened && atomic_load_explicit(&events.launch_groups, memory_order_relaxed) &&
        gate_enter(&events.gate)) {
        if (group & capture)
            tell_capture(change, is_enter);
        else
            tell_launch(call, group, is_enter);
        gate_leave(&events.gate);
    }
}

/* A capture ends when its stream or the stream's context is destroyed. */
static void forget_captures(uint32_t cbid, const struct cupti_abi_resource_data *data)
{
    int change = cbid == CUPTI_ABI_RESOURCE_STREAM_DESTROYING    ? captures_forget_stream(data->stream)
                 : cbid == CUPTI_ABI_RESOURCE_CONTEXT_DESTROYING ? captures_forget_context(data->context)
                                                                 : 0;
    for (; change < 0; change++)
        tell_capture(-1, false);
}

static void on_resource(uint32_t cbid, const struct cupti_abi_resource_data *data)
{
    const struct cupti_listener *listener = atomic_load(&events.listener);
    struct cupti *cupti = atomic_load(&events.cupti);
    forget_captures(cbid, data);
    if (cbid >= CUPTI_ABI_RESOURCE_GRAPHEXEC_STARTING) {
        graph_sizes_note(cbid, data->descriptor);
        return;
    }
    if (!listener || cbid == CUPTI_ABI_RESOURCE_STREAM_DESTROYING)
        return;
    const struct cupti_abi_module_data *module = data->descriptor;
    if (cbid == CUPTI_ABI_RESOURCE_MODULE_LOADED) {
        if (listener->on_module && module && module->cubin && module->cubin_bytes)
            listener->on_module(listener->user, module->module_id, module->cubin, module->cubin_bytes);
        return;
    }
    struct gpu_context context;
    bool is_created = cbid == CUPTI_ABI_RESOURCE_CONTEXT_CREATED;
    if (cupti_context_describe(cupti, data->context, &context)) {
        if (listener->on_context)
            listener->on_context(listener->user, &context, is_created);
    } else if (is_created && listener->on_unknown_context) {
        struct problem problem;
        (void)problem_set(&problem, GPUFL_E_UNSUPPORTED, "CUPTI does not report the context's ids: %s",
                          cupti_first_failure(cupti));
        listener->on_unknown_context(listener->user, &problem);
    }
}

/* Stack walks are timed separately and take much longer: callbacks with a stack walk are not sampled. */
static void on_timed_api_call(uint32_t domain, uint32_t cbid, const struct cupti_abi_callback_data *call)
{
    static _Thread_local uint32_t count;
    if (count++ % USER_TIME_SAMPLED_ONE_IN) {
        on_api_call(domain, cbid, call);
        return;
    }
    uint64_t slow_before = user_time_slow_ticks(), start_ticks = clock_ticks();
    on_api_call(domain, cbid, call);
    uint64_t ticks = clock_ticks() - start_ticks, slow = user_time_slow_ticks() - slow_before;
    user_time_add(USER_TIME_CALLBACKS, (ticks > slow ? ticks - slow : 0) * USER_TIME_SAMPLED_ONE_IN);
}

static void on_callback(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
    (void)user;
    if (!data)
        return;
    cuda_note_use();
    if (domain == CUPTI_ABI_DOMAIN_RUNTIME || domain == CUPTI_ABI_DOMAIN_DRIVER) {
        on_timed_api_call(domain, cbid, data);
    } else if (domain == CUPTI_ABI_DOMAIN_RESOURCE && gate_enter(&events.gate)) {
        uint64_t start_ticks = clock_ticks();
        on_resource(cbid, data);
        user_time_since(USER_TIME_SWITCHES, start_ticks);
        gate_leave(&events.gate);
    }
}

bool cupti_context_describe(struct cupti *cupti, void *handle, struct gpu_context *context)
{
    *context = (struct gpu_context){.handle = handle};
    return handle && cupti->call.get_context_id && cupti->call.get_device_id &&
           cupti_note(cupti, "cuptiGetContextId", cupti->call.get_context_id(handle, &context->id)) ==
               CUPTI_ABI_SUCCESS &&
           cupti_note(cupti, "cuptiGetDeviceId", cupti->call.get_device_id(handle, &context->device_id)) ==
               CUPTI_ABI_SUCCESS;
}

static void groups_fill(void)
{
    for (size_t i = 0; i < cupti_call_count; i++)
        if (cupti_calls[i].cbid < id_end)
            events.groups[cupti_calls[i].is_runtime][cupti_calls[i].cbid] |= (uint8_t)cupti_calls[i].group;
}

bool cupti_stream_id(void *context, void *stream, uint32_t *id)
{
    struct cupti *cupti = atomic_load(&events.cupti);
    return cupti && context && cupti->call.get_stream_id &&
           cupti->call.get_stream_id(context, stream, 0, id) == CUPTI_ABI_SUCCESS;
}

gpufl_status cupti_claim(struct cupti *cupti, char *other_profiler, size_t size, struct problem *problem)
{
    char other[CUPTI_ABI_OTHER_NAME_BYTES] = "";
    struct cupti_abi_subscriber_params params = {sizeof params, "gpufl", other, sizeof other};
    const char *function = "cuptiSubscribe_v2";
    static pthread_once_t is_filled = PTHREAD_ONCE_INIT;
    int result = -1;
    (void)pthread_once(&is_filled, groups_fill); /* once: threads may still be in a callback of the previous session */
    if (cupti->call.subscribe_v2)
        result = cupti->call.subscribe_v2(&events.subscriber, on_callback, NULL, &params);
    if (result != CUPTI_ABI_SUCCESS && result != CUPTI_ABI_MULTIPLE_SUBSCRIBERS && result != CUPTI_ABI_UNKNOWN) {
        function = "cuptiSubscribe";
        result = cupti->call.subscribe(&events.subscriber, on_callback, NULL);
    }
    if (result == CUPTI_ABI_SUCCESS) {
        captures_clear();
        atomic_store(&events.cupti, cupti);
        if (atomic_fetch_add(&events.generation, 1) + 1 == 0)
            atomic_store(&events.generation, 1); /* 0 means "not in a runtime call" */
        gate_open(&events.gate);
        return GPUFL_OK;
    }
    events.subscriber = NULL;
    cupti_note(cupti, function, result);
    other[sizeof other - 1] = '\0';
    if (result != CUPTI_ABI_MULTIPLE_SUBSCRIBERS || !other[0])
        return cupti_refusal(cupti, function, result, problem);
    snprintf(other_profiler, size, "%s", other);
    return problem_set(problem, GPUFL_E_BUSY,
                       "another profiler ('%s') already uses CUPTI in this process; remove it or run without gpufl",
                       other);
}

/* Returns the groups whose calls were all accepted. Ids differ between versions; a call refused for another reason
 * would be missing from its group. */
static unsigned set_callbacks(struct cupti *cupti, unsigned groups, uint32_t is_on)
{
    unsigned accepted = 0, refused = 0;
    int refusal = CUPTI_ABI_SUCCESS;
    for (size_t i = 0; i < cupti_call_count; i++) {
        const struct cupti_call *call = &cupti_calls[i];
        if (!(call->group & groups))
            continue;
        uint32_t domain = call->is_runtime ? CUPTI_ABI_DOMAIN_RUNTIME : CUPTI_ABI_DOMAIN_DRIVER;
        int result = cupti->call.enable_callback(is_on, events.subscriber, domain, call->cbid);
        if (result == CUPTI_ABI_SUCCESS)
            accepted |= call->group;
        else if (result != CUPTI_ABI_INVALID_PARAMETER)
            refused |= call->group;
        if (result != CUPTI_ABI_SUCCESS)
            refusal = result;
    }
    accepted &= ~refused;
    if (is_on && accepted != groups)
        cupti_note(cupti, "cuptiEnableCallback", refusal);
    return accepted;
}

/* A destroyed stream may end its capture. */
static void set_streams(struct cupti *cupti, uint32_t is_on)
{
    if (events.has_streams == (is_on != 0))
        return;
    events.has_streams = is_on != 0;
    static const uint32_t ids[] = {CUPTI_ABI_RESOURCE_STREAM_DESTROYING, CUPTI_ABI_RESOURCE_CONTEXT_DESTROYING};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (is_on || !events.has_resources || ids[i] == CUPTI_ABI_RESOURCE_STREAM_DESTROYING)
            (void)cupti_note(cupti, "cuptiEnableCallback",
                             cupti->call.enable_callback(is_on, events.subscriber, CUPTI_ABI_DOMAIN_RESOURCE, ids[i]));
}

void cupti_look_for_users(void)
{
    if (atomic_load(&events.has_external) && !atomic_load(&events.has_linked_users))
        atomic_store(&events.has_linked_users, cupti_has_linked_users());
}

bool cupti_listen_calls(struct cupti *cupti, unsigned groups, bool with_external,
                        void (*on_call)(const struct user_call *call, bool is_enter))
{
    if (!cupti->call.enable_callback)
        return false;
    atomic_store(&events.on_call, on_call);
    atomic_store(&events.has_external, with_external && cupti->call.pop_external && cupti->call.push_external);
    cupti_look_for_users();
    atomic_store(&events.call_groups, groups);
    if (set_callbacks(cupti, groups, 1) == groups) {
        (void)set_callbacks(cupti, CUPTI_CALL_CAPTURE | CUPTI_CALL_CAPTURE_END, 1); /* if this CUPTI supports graphs */
        set_streams(cupti, 1);
        return true;
    }
    (void)set_callbacks(cupti, groups, 0);
    atomic_store(&events.call_groups, 0);
    return false;
}

static bool set_resources(struct cupti *cupti, uint32_t is_on)
{
    static const uint32_t ids[] = {CUPTI_ABI_RESOURCE_CONTEXT_CREATED, CUPTI_ABI_RESOURCE_CONTEXT_DESTROYING,
                                   CUPTI_ABI_RESOURCE_MODULE_LOADED};
    bool is_done = true;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        is_done &= cupti_note(cupti, "cuptiEnableCallback",
                              cupti->call.enable_callback(is_on, events.subscriber, CUPTI_ABI_DOMAIN_RESOURCE,
                                                          ids[i])) == CUPTI_ABI_SUCCESS;
    return is_done;
}

gpufl_status cupti_listen(struct cupti *cupti, const struct cupti_listener *listener, struct problem *problem)
{
    if (!events.subscriber || !cupti->call.enable_callback || !cupti->call.get_context_id || !cupti->call.get_device_id)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "this CUPTI (%s) does not report contexts",
                           cupti->library.path);
    atomic_store(&events.listener, listener);
    events.has_resources = true;
    if (set_resources(cupti, 1))
        return GPUFL_OK;
    set_resources(cupti, 0);
    events.has_resources = false;
    atomic_store(&events.listener, NULL);
    return problem_set(problem, GPUFL_E_UNSUPPORTED, "CUPTI does not report contexts: %s", cupti_first_failure(cupti));
}

void cupti_listen_no_more(void)
{
    atomic_store(&events.listener, NULL);
}

/* An older CUPTI does not support all of these callbacks; sizes of graphs are then unknown. */
static void set_graphs(struct cupti *cupti, uint32_t is_on)
{
    for (size_t i = 0; i < graph_sizes_id_count; i++)
        (void)cupti->call.enable_callback(is_on, events.subscriber, CUPTI_ABI_DOMAIN_RESOURCE, graph_sizes_ids[i]);
}

bool cupti_listen_launches(struct cupti *cupti, bool is_on)
{
    const unsigned all = CUPTI_CALL_LAUNCH | CUPTI_CALL_GRAPH, captures = CUPTI_CALL_CAPTURE | CUPTI_CALL_CAPTURE_END;
    unsigned groups = all & ~events.call_groups;
    if (!events.call_groups) /* otherwise captures are already enabled */
        groups |= captures;
    if (is_on == (events.launch_groups != 0) || !cupti->call.enable_callback)
        return is_on == (events.launch_groups != 0);
    unsigned wanted = groups & CUPTI_CALL_LAUNCH;
    events.launch_groups = is_on ? all : 0;
    bool is_done = (set_callbacks(cupti, groups, is_on) & wanted) == wanted;
    if ((is_on && is_done) || !(is_on || events.call_groups))
        set_streams(cupti, is_on);
    if (!is_on || is_done)
        set_graphs(cupti, is_on);
    if (is_on && !is_done) {
        (void)set_callbacks(cupti, groups, 0);
        events.launch_groups = 0;
    }
    return is_done;
}

void cupti_silence(struct cupti *cupti)
{
    if (events.has_resources)
        set_resources(cupti, 0);
    unsigned groups = events.call_groups | atomic_load(&events.launch_groups);
    if (atomic_load(&events.launch_groups))
        set_graphs(cupti, 0);
    if (groups)
        set_callbacks(cupti, groups | CUPTI_CALL_CAPTURE | CUPTI_CALL_CAPTURE_END, 0);
    events.has_resources = false;
    set_streams(cupti, 0);
    atomic_store(&events.call_groups, 0);
    atomic_store(&events.launch_groups, 0);
    atomic_store(&events.on_call, NULL);
}

bool cupti_release(struct cupti *cupti)
{
    const int64_t wait_ns = 1000000000; /* callbacks take microseconds, context callbacks up to a second */
    if (events.subscriber)
        cupti_note(cupti, "cuptiUnsubscribe", cupti->call.unsubscribe(events.subscriber));
    events.subscriber = NULL;
    bool is_empty = gate_close_until(&events.gate, stages_until_ns(wait_ns));
    atomic_store(&events.listener, NULL);
    return is_empty;
}

void cupti_subscription_abandon(void)
{
    gate_abandon(&events.gate);
    events.subscriber = NULL;
    events.has_resources = events.has_streams = false;
    captures_clear();
    atomic_store(&events.call_groups, 0);
    atomic_store(&events.launch_groups, 0);
    atomic_store(&events.on_call, NULL);
    atomic_store(&events.listener, NULL);
}

uint64_t cupti_cubin_crc(const struct cupti *cupti, const void *cubin, size_t cubin_bytes)
{
    struct cupti_abi_cubin_crc_params params = {.size = sizeof params, .cubin_bytes = cubin_bytes, .cubin = cubin};
    if (!cupti->call.get_cubin_crc || cupti->call.get_cubin_crc(&params) != CUPTI_ABI_SUCCESS)
        return 0;
    return params.crc;
}
