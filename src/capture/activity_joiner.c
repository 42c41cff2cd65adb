/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/activity_joiner.h"

#include "base/clock.h"
#include "capture/activity_times.h"
#include "capture/own_waits.h"
#include "capture/stacked_rows.h"
#include "driver/cupti.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
    pending_max = 96 * 1024, /* 8.6 MiB, touched only as needed */
    graph_slots = 4096,
    ticks_to_wait = 3
};

struct activity_joiner {
    struct activity_joiner_options options;
    struct calls calls[ACTIVITY_SOURCE_COUNT]; /* each numbers its calls by itself */
    struct launches *launches;
    struct work *pending;
    uint32_t pending_count;
    struct missing_calls missing;
    bool has_new_calls;
    uint8_t tick;
    struct graph_launch *graphs;  /* direct-mapped by correlation id */
    struct stacked_rows *stacked; /* NULL: no stacks */
    struct bytes symbol;          /* of a launch, NUL-terminated */
    struct activity_totals totals;
};

gpufl_status activity_joiner_make(struct activity_joiner **out, const struct activity_joiner_options *options)
{
    struct activity_joiner *joiner = calloc(1, sizeof *joiner);
    if (!joiner)
        return GPUFL_E_NO_MEMORY;
    joiner->options = *options;
    joiner->pending =
        mmap(NULL, pending_max * sizeof(struct work), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (joiner->pending == MAP_FAILED)
        joiner->pending = NULL;
    if (options->with_graphs)
        joiner->graphs = calloc(graph_slots, sizeof *joiner->graphs);
    if (!joiner->pending || (options->with_graphs && !joiner->graphs) ||
        calls_open(&joiner->calls[ACTIVITY_FROM_CUPTI]) != GPUFL_OK ||
        launches_make(&joiner->launches, options->recorder) != GPUFL_OK) {
        activity_joiner_free(joiner);
        return GPUFL_E_NO_MEMORY;
    }
    *out = joiner;
    return GPUFL_OK;
}

gpufl_status activity_joiner_open(struct activity_joiner *joiner, enum activity_source source)
{
    return joiner->calls[source].slots ? GPUFL_OK : calls_open(&joiner->calls[source]);
}

gpufl_status activity_joiner_take_stacks(struct activity_joiner *joiner, struct stacks *stacks)
{
    return stacked_rows_make(&joiner->stacked, joiner->options.recorder, stacks);
}

void activity_joiner_free(struct activity_joiner *joiner)
{
    if (!joiner)
        return;
    stacked_rows_free(joiner->stacked);
    launches_free(joiner->launches);
    bytes_free(&joiner->symbol);
    for (int source = 0; source < ACTIVITY_SOURCE_COUNT; source++)
        calls_close(&joiner->calls[source]);
    if (joiner->pending)
        munmap(joiner->pending, pending_max * sizeof(struct work));
    free(joiner->graphs);
    free(joiner);
}

const struct activity_totals *activity_joiner_totals(const struct activity_joiner *joiner)
{
    return &joiner->totals;
}

uint32_t activity_joiner_highest_id(const struct activity_joiner *joiner)
{
    return joiner->calls[ACTIVITY_FROM_CUPTI].highest_id;
}

size_t activity_joiner_bytes(const struct activity_joiner *joiner)
{
    size_t calls = 0;
    for (int source = 0; source < ACTIVITY_SOURCE_COUNT; source++)
        calls += joiner->calls[source].slots != NULL;
    return sizeof *joiner + pending_max * sizeof(struct work) + calls * CALL_SLOTS * sizeof(struct call) +
           launches_bytes(joiner->launches) + (joiner->stacked ? stacked_rows_bytes(joiner->stacked) : 0);
}

static void miss_call(struct activity_joiner *joiner, uint8_t source, uint32_t correlation_id, bool is_gpu_work)
{
    missing_calls_add(&joiner->missing, joiner->options.recorder, &joiner->calls[source], correlation_id, is_gpu_work);
}

static void graph_write_and_clear(struct activity_joiner *joiner, struct graph_launch *graph)
{
    if (!graph->node_count)
        return;
    const struct call *call = calls_find(&joiner->calls[ACTIVITY_FROM_CUPTI], graph->correlation_id);
    if (!call)
        miss_call(joiner, ACTIVITY_FROM_CUPTI, graph->correlation_id, true);
    graph_row_write(joiner->options.recorder, graph, call);
    graph->node_count = 0;
}

static void graph_add_node(struct activity_joiner *joiner, const struct work *work)
{
    struct graph_launch *graph = &joiner->graphs[work->correlation_id & (graph_slots - 1)];
    int64_t end_ns = work->start_ns + work->duration_ns;
    if (graph->node_count && graph->correlation_id != work->correlation_id)
        graph_write_and_clear(joiner, graph);
    if (!graph->node_count)
        *graph = (struct graph_launch){
            work->start_ns,   end_ns,          0, work->correlation_id, work->graph_id, work->device_id,
            work->context_id, work->stream_id, 0, joiner->tick};
    if (work->start_ns < graph->start_ns) {
        graph->start_ns = work->start_ns;
        graph->stream_id = work->stream_id;
    }
    if (end_ns > graph->end_ns)
        graph->end_ns = end_ns;
    graph->busy_ns += work->duration_ns;
    graph->node_count++;
    graph->tick = joiner->tick;
}

static void write_work(struct activity_joiner *joiner, const struct work *work, const struct call *call)
{
    if (work->record == RECORD_SYNCHRONIZATION_EVENT_BATCH && call &&
        own_waits_include(call->thread_id, call->start_ns)) {
        joiner->totals.syncs--;
        return;
    }
    if (joiner->stacked && call && call->stack_id)
        stacked_rows_add(joiner->stacked, work, call);
    else
        work_row_write(joiner->options.recorder, work, call);
    struct kernel_history *kernels = joiner->options.kernels;
    if (!kernels || work->record != RECORD_KERNEL_EVENT_BATCH || work->source != ACTIVITY_FROM_CUPTI)
        return; /* PC samples are NVIDIA's */
    const struct kernel_execution execution = {
        .start_ns = work->start_ns,
        .end_ns = work->start_ns + work->duration_ns,
        .scope_id = call ? call->scope_id : SCOPE_UNKNOWN,
        .symbol_id = kernel_history_symbol(kernels, launches_symbol(joiner->launches, work->kernel_id)),
        .context_id = work->context_id,
        .correlation_id = work->correlation_id,
        .path_id = call ? scope_history_path(joiner->options.history, call->scope_id) : 0,
    };
    kernel_history_add(kernels, &execution);
}

/* Writes the work now if its call is known, else keeps it until the call arrives. */
static void submit(struct activity_joiner *joiner, struct work *work)
{
    if (work->graph_id && joiner->graphs)
        graph_add_node(joiner, work);
    const struct call *call = calls_find(&joiner->calls[work->source], work->correlation_id);
    bool can_wait = work->source == ACTIVITY_FROM_ROCPROFILER || joiner->options.has_calls;
    if (call || !can_wait) {
        write_work(joiner, work, call);
    } else if (joiner->pending_count < pending_max) {
        work->tick = joiner->tick;
        joiner->pending[joiner->pending_count++] = *work;
    } else {
        recorder_lose(joiner->options.recorder, LOSS_PENDING, 1);
        write_work(joiner, work, NULL);
    }
}

static void write_waiting(struct activity_joiner *joiner, uint8_t ticks)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < joiner->pending_count; i++) {
        const struct work *work = &joiner->pending[i];
        const struct call *call = calls_find(&joiner->calls[work->source], work->correlation_id);
        if (!call && (uint8_t)(joiner->tick - work->tick) < ticks) {
            joiner->pending[kept++] = *work;
            continue;
        }
        if (!call)
            miss_call(joiner, work->source, work->correlation_id,
                      work->record != RECORD_SYNCHRONIZATION_EVENT_BATCH &&
                          work->record != RECORD_MEMORY_ALLOC_EVENT_BATCH);
        write_work(joiner, work, call);
    }
    joiner->pending_count = kept;
}

bool activity_joiner_has_limits(struct activity_joiner *joiner)
{
    return launches_have_limits(joiner->launches);
}

void activity_joiner_settle(struct activity_joiner *joiner)
{
    if (joiner->has_new_calls && joiner->pending_count)
        write_waiting(joiner, UINT8_MAX);
    joiner->has_new_calls = false;
    if (joiner->stacked)
        stacked_rows_settle(joiner->stacked);
}

static void write_old_graphs(struct activity_joiner *joiner, uint8_t ticks)
{
    for (int i = 0; joiner->graphs && i < graph_slots; i++)
        if ((uint8_t)(joiner->tick - joiner->graphs[i].tick) >= ticks)
            graph_write_and_clear(joiner, &joiner->graphs[i]);
}

void activity_joiner_tick(struct activity_joiner *joiner)
{
    joiner->tick++;
    write_waiting(joiner, ticks_to_wait);
    write_old_graphs(joiner, ticks_to_wait);
}

uint64_t activity_joiner_missing(const struct activity_joiner *joiner)
{
    const struct activity_totals *totals = &joiner->totals;
    uint64_t known =
        totals->launched_kernels + totals->launches + atomic_load(&joiner->options.recorder->lost[LOSS_CUPTI_DROPPED]);
    return totals->launched > known ? totals->launched - known : 0;
}

void activity_joiner_finish(struct activity_joiner *joiner)
{
    recorder_lose(joiner->options.recorder, LOSS_KERNELS_MISSING, activity_joiner_missing(joiner));
    write_waiting(joiner, 0);
    write_old_graphs(joiner, 0);
    if (joiner->stacked)
        stacked_rows_settle(joiner->stacked);
}

void activity_joiner_stack(struct activity_joiner *joiner, uint32_t correlation_id, uint32_t stack_id)
{
    calls_slot(&joiner->calls[ACTIVITY_FROM_CUPTI], correlation_id)->stack_id = stack_id;
}

void activity_joiner_user_call(struct activity_joiner *joiner, const struct user_call *user,
                               const struct call_time *time)
{
    struct call *call = calls_slot(&joiner->calls[ACTIVITY_FROM_CUPTI], user->correlation_id);
    joiner->calls[ACTIVITY_FROM_CUPTI].is_reported = true;
    joiner->totals.calls++;
    joiner->totals.launched += user->has_kernel;
    joiner->has_new_calls = true;
    call->start_ns = time->start_ns;
    call->duration_ns = time->end_ns > time->start_ns ? time->end_ns - time->start_ns : 0;
    call->thread_id = time->thread_id;
    call->scope_id = time->scope_id;
    call->external_kind = (uint8_t)user->external_kind;
    call->external_id = user->external_id;
    call->has_times = true;
    if (!user->wait_type)
        return;
    const struct work wait = {
        .start_ns = call->start_ns,
        .duration_ns = call->duration_ns,
        .correlation_id = user->correlation_id,
        .context_id = user->context_id,
        .stream_id = user->stream_id,
        .record = RECORD_SYNCHRONIZATION_EVENT_BATCH,
        .kind = (uint8_t)user->wait_type,
        .has_stream = user->has_stream,
        .source = ACTIVITY_FROM_CUPTI,
    };
    joiner->totals.syncs++;
    write_work(joiner, &wait, call);
}

void activity_joiner_launch(struct activity_joiner *joiner, const struct launch_event *event, int64_t time_ns,
                            uint32_t thread_id, uint64_t scope_id)
{
    if (!event->symbol_size) {
        recorder_lose(joiner->options.recorder, LOSS_GRAPH_UNTIMED, 1);
        return;
    }
    bytes_clear(&joiner->symbol);
    bytes_append(&joiner->symbol, event->symbol, event->symbol_size);
    bytes_append_char(&joiner->symbol, '\0');
    recorder_lose(joiner->options.recorder, LOSS_KERNEL_NAMES, joiner->symbol.failed);
    uint32_t kernel_id = joiner->symbol.failed ? 0 : launches_name(joiner->launches, joiner->symbol.data);
    int64_t *row = recorder_row(joiner->options.recorder, RECORD_LAUNCH_EVENT_BATCH, time_ns);
    row[LAUNCH_KERNEL_ID] = kernel_id;
    row[LAUNCH_CORR_ID] = event->correlation_id;
    row[LAUNCH_CONTEXT_ID] = event->context_id;
    row[LAUNCH_THREAD_ID] = thread_id;
    row[LAUNCH_SCOPE_ID] = scope_id == SCOPE_UNKNOWN ? CELL_UNKNOWN : (int64_t)scope_id;
    row[LAUNCH_WINDOW_ID] = event->window_id;
    joiner->totals.launches++;
}

/* False (and counted) when the record has no usable times. */
static bool has_times(struct activity_joiner *joiner, int64_t start_ns, int64_t end_ns, enum loss_reason untimed)
{
    if (start_ns > 0 && end_ns >= start_ns)
        return true;
    recorder_lose(joiner->options.recorder, start_ns > 0 && end_ns == 0 ? LOSS_STILL_RUNNING : untimed, 1);
    return false;
}

static void on_kernel(struct activity_joiner *joiner, enum activity_source source, const struct kernel_activity *kernel)
{
    joiner->totals.launched_kernels += source == ACTIVITY_FROM_CUPTI && !kernel->graph_id;
    joiner->totals.graph_kernels += source == ACTIVITY_FROM_CUPTI && kernel->graph_id;
    if (!has_times(joiner, kernel->start_ns, kernel->end_ns, LOSS_NO_TIMESTAMP))
        return;
    joiner->totals.kernels++;
    struct work work = {
        .start_ns = kernel->start_ns,
        .duration_ns = kernel->end_ns - kernel->start_ns,
        .graph_node_id = kernel->graph_node_id,
        .correlation_id = kernel->correlation_id,
        .device_id = kernel->device_id,
        .context_id = kernel->context_id,
        .stream_id = kernel->stream_id,
        .graph_id = kernel->graph_id,
        .dyn_shared = kernel->dyn_shared,
        .regs = (uint16_t)kernel->regs,
        .record = RECORD_KERNEL_EVENT_BATCH,
        .source = source,
    };
    launches_identify(joiner->launches, source, kernel, &work.kernel_id, &work.launch_id);
    submit(joiner, &work);
}

static void on_copy(struct activity_joiner *joiner, enum activity_source source, const struct copy_activity *copy,
                    bool is_memset)
{
    if (!has_times(joiner, copy->start_ns, copy->end_ns, LOSS_COPY_NO_TIMESTAMP))
        return;
    if (is_memset)
        joiner->totals.memsets++;
    else
        joiner->totals.copies++;
    struct work work = {
        .start_ns = copy->start_ns,
        .duration_ns = copy->end_ns - copy->start_ns,
        .bytes = copy->bytes,
        .graph_node_id = copy->graph_node_id,
        .correlation_id = copy->correlation_id,
        .device_id = copy->device_id,
        .context_id = copy->context_id,
        .stream_id = copy->stream_id,
        .graph_id = copy->graph_id,
        .detail = is_memset ? copy->value : (copy->src_device_id << 16 | (copy->dst_device_id & 0xffff)),
        .record = is_memset ? RECORD_MEMSET_EVENT_BATCH : RECORD_MEMCPY_EVENT_BATCH,
        .kind = copy->copy_kind,
        .src_kind = copy->src_kind,
        .dst_kind = is_memset ? copy->memory_kind : copy->dst_kind,
        .is_async = copy->is_async & 1,
        .is_peer = copy->is_peer & 1,
        .source = source,
    };
    submit(joiner, &work);
}

static void on_sync(struct activity_joiner *joiner, enum activity_source source, const struct sync_activity *sync)
{
    if (!has_times(joiner, sync->start_ns, sync->end_ns, LOSS_NO_TIMESTAMP))
        return;
    joiner->totals.syncs++;
    struct work work = {
        .start_ns = sync->start_ns,
        .duration_ns = sync->end_ns - sync->start_ns,
        .correlation_id = sync->correlation_id,
        .context_id = sync->context_id,
        .stream_id = sync->stream_id,
        .detail = sync->event_id,
        .record = RECORD_SYNCHRONIZATION_EVENT_BATCH,
        .kind = (uint8_t)sync->type,
        .has_stream = sync->has_stream,
        .has_event = sync->has_event,
        .source = source,
    };
    submit(joiner, &work);
}

static void on_memory(struct activity_joiner *joiner, enum activity_source source, const struct memory_activity *memory)
{
    struct work work = {
        .start_ns = memory->time_ns,
        .bytes = memory->bytes,
        .address = memory->address,
        .correlation_id = memory->correlation_id,
        .device_id = memory->device_id,
        .context_id = memory->context_id,
        .stream_id = memory->stream_id,
        .record = RECORD_MEMORY_ALLOC_EVENT_BATCH,
        .kind = (uint8_t)memory->op,
        .dst_kind = (uint8_t)memory->memory_kind,
        .is_async = memory->is_async,
        .has_stream = memory->has_stream,
        .source = source,
    };
    submit(joiner, &work);
}

static void on_call(struct activity_joiner *joiner, enum activity_source source, const struct api_activity *api)
{
    struct call *call = calls_slot(&joiner->calls[source], api->correlation_id);
    if (call->has_times && call->start_ns <= api->start_ns)
        return; /* a driver call inside a runtime call: the outer one is the user's */
    joiner->calls[source].is_reported = true;
    joiner->totals.calls++;
    joiner->has_new_calls = true;
    call->start_ns = api->start_ns;
    call->duration_ns = api->end_ns >= api->start_ns ? api->end_ns - api->start_ns : 0;
    bool has_thread_id = source == ACTIVITY_FROM_ROCPROFILER || joiner->options.has_system_thread_id;
    call->thread_id = has_thread_id ? api->thread_id : 0;
    call->is_async = api->is_async;
    call->has_times = true;
    /* The middle of the call is well inside its scope even if the two clocks differ a little. */
    if (scope_history_find(joiner->options.history, api->thread_id, api->start_ns + call->duration_ns / 2,
                           &call->scope_id))
        return;
    call->scope_id = SCOPE_UNKNOWN;
    recorder_lose(joiner->options.recorder, LOSS_ATTRIBUTION, 1);
}

const struct call *activity_joiner_call(const struct activity_joiner *joiner, enum activity_source source,
                                        uint32_t correlation_id)
{
    return joiner->calls[source].slots ? calls_find(&joiner->calls[source], correlation_id) : NULL;
}

static void on_external(struct activity_joiner *joiner, enum activity_source source,
                        const struct external_activity *external)
{
    struct call *call = calls_slot(&joiner->calls[source], external->correlation_id);
    call->external_kind = (uint8_t)external->external_kind;
    call->external_id = external->external_id;
}

bool activity_joiner_accept(struct activity_joiner *joiner, enum activity_source source,
                            const struct activity *activity)
{
    struct activity converted;
    if (source == ACTIVITY_FROM_CUPTI && clock_has_steps()) {
        converted = *activity;
        activity = &converted;
        if (!activity_times_to_log(&converted, &joiner->calls[source]))
            recorder_lose(joiner->options.recorder, LOSS_CLOCK_STEP, 1);
    }
    switch (activity->kind) {
    case ACTIVITY_KERNEL:
        on_kernel(joiner, source, &activity->u.kernel);
        break;
    case ACTIVITY_COPY:
        on_copy(joiner, source, &activity->u.copy, false);
        break;
    case ACTIVITY_MEMSET:
        on_copy(joiner, source, &activity->u.copy, true);
        break;
    case ACTIVITY_SYNC:
        on_sync(joiner, source, &activity->u.sync);
        break;
    case ACTIVITY_API:
        on_call(joiner, source, &activity->u.api);
        break;
    case ACTIVITY_EXTERNAL:
        on_external(joiner, source, &activity->u.external);
        break;
    case ACTIVITY_MEMORY:
        on_memory(joiner, source, &activity->u.memory);
        break;
    case ACTIVITY_OVERHEAD:
        activity_totals_add_overhead(&joiner->totals, &activity->u.overhead);
        break;
    case ACTIVITY_BAD:
        recorder_lose(joiner->options.recorder, LOSS_BAD_RECORD, 1);
        return false;
    case ACTIVITY_UNKNOWN:
        joiner->totals.unknown_records++;
        break;
    case ACTIVITY_COUNTERS: /* handled by amd_counters */
    case ACTIVITY_IGNORED:
        break;
    }
    return true;
}

void activity_joiner_read(struct activity_joiner *joiner, uint8_t *buffer, size_t valid_bytes)
{
    struct activity_cursor cursor = {joiner->options.cupti, buffer, valid_bytes, NULL};
    struct activity activity;
    while (activity_next(&cursor, &activity) && activity_joiner_accept(joiner, ACTIVITY_FROM_CUPTI, &activity)) {
    }
}
