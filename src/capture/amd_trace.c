/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/amd_trace.h"

#include "base/log.h"
#include "capture/amd_counters.h"
#include "capture/buffer_pool.h"
#include "format/json.h"

#include <stdlib.h>
#include <string.h>

enum { code_deadline_ms = 5000 };

struct lane { /* owned by the thread that fills it */
    uint8_t *buffer;
    size_t size, used;
};

struct amd_trace {
    struct amd_settings settings;
    struct recorder *recorder;
    struct rocprofiler *rocprofiler;
    _Atomic bool is_tracing, was_tracing;
    struct lane lanes[ROCPROFILER_LANES];
    struct code_store *code, *own_code;
    struct amd_counters *counters; /* NULL: none are collected */
    bool are_limits_written;
    bool is_left; /* one of rocprofiler's threads may never return from it */
};

/* rocprofiler's callbacks have no user pointer: they find the single trace here while the driver's gate is open. */
static struct amd_trace *_Atomic current;

/* ---- called by rocprofiler's threads ---- */

static void lane_complete(struct lane *lane)
{
    if (lane->buffer)
        buffer_pool_complete_decoded(lane->buffer, lane->used);
    *lane = (struct lane){0};
}

static void on_activities(unsigned index, const struct activity *activities, size_t count)
{
    struct amd_trace *trace = atomic_load(&current);
    if (!trace)
        return;
    struct lane *lane = &trace->lanes[index];
    if (!count)
        lane_complete(lane);
    for (size_t i = 0; i < count; i++) {
        if (lane->buffer && lane->size - lane->used < sizeof *activities)
            lane_complete(lane);
        if (!lane->buffer)
            lane->buffer = buffer_pool_request(&lane->size);
        if (!lane->buffer) {
            recorder_lose(trace->recorder, LOSS_ROCPROFILER_DROPPED, count - i);
            return;
        }
        memcpy(lane->buffer + lane->used, &activities[i], sizeof *activities);
        lane->used += sizeof *activities;
    }
}

static void on_code(const void *bytes, size_t size)
{
    const struct amd_trace *trace = atomic_load(&current);
    if (trace && trace->code)
        code_store_add(trace->code, bytes, size);
}

/* ---- creation, start and stop ---- */

bool amd_trace_is_due(const struct amd_settings *settings)
{
    return settings->is_wanted && (settings->is_asked || rocprofiler_is_registering() || rocprofiler_is_in_use());
}

/* If memory is exhausted for one of them, kernels are still traced. */
static void make_parts(struct amd_trace *trace)
{
    const struct code_store_options options = {
        .writer = trace->recorder->writer,
        .recorder = trace->recorder,
        .session_id = trace->recorder->session_id,
        .with_source = trace->settings.with_source,
        .bytes_max = trace->settings.code_bytes_max,
    };
    struct problem problem = {""};
    if (!trace->code && code_store_make(&trace->own_code, &options, &problem) == GPUFL_OK)
        trace->code = trace->own_code;
    if (amd_counters_make(&trace->counters, trace->recorder, trace->rocprofiler) != GPUFL_OK)
        trace->counters = NULL;
}

gpufl_status amd_trace_make(struct amd_trace **out, const struct amd_settings *settings, struct recorder *recorder,
                            struct code_store *code, struct amd_grant *grant)
{
    struct rocprofiler *rocprofiler = NULL;
    *grant = (struct amd_grant){.is_tried = true};
    grant->status = rocprofiler_load(&rocprofiler, &grant->problem);
    if (grant->status != GPUFL_OK)
        return grant->status;
    struct amd_trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return grant->status = problem_set(&grant->problem, GPUFL_E_NO_MEMORY, "not enough memory for tracing");
    trace->settings = *settings;
    trace->recorder = recorder;
    trace->rocprofiler = rocprofiler;
    trace->code = code;
    if (settings->engine > GPUFL_ENGINE_TRACE)
        make_parts(trace);
    *out = trace;
    return GPUFL_OK;
}

void amd_trace_start(struct amd_trace *trace, struct amd_grant *grant)
{
    const struct amd_settings *settings = &trace->settings;
    const struct rocprofiler_trace_options options = {
        .features = (settings->with_sync ? ROCPROFILER_SYNC : 0) | (settings->with_memory ? ROCPROFILER_MEMORY : 0) |
                    (trace->counters ? ROCPROFILER_COUNTERS : 0),
        .counters = settings->counters,
        .sink = {on_activities, trace->code ? on_code : NULL, settings->on_range, settings->device_of,
                 settings->device_user},
    };
    *grant = (struct amd_grant){.is_tried = true, .version = rocprofiler_version(trace->rocprofiler)};
    atomic_store(&current, trace);
    grant->status = rocprofiler_trace_start(trace->rocprofiler, &options, &grant->trace, &grant->problem);
    if (grant->status == GPUFL_OK) {
        atomic_store(&trace->is_tracing, true);
        atomic_store(&trace->was_tracing, true);
    } else {
        atomic_store(&current, NULL);
    }
    grant->has_code = grant->status == GPUFL_OK && trace->code && (grant->trace.granted & ROCPROFILER_CODE);
}

void amd_trace_flush(struct amd_trace *trace)
{
    if (!atomic_load(&trace->is_tracing))
        return;
    rocprofiler_flush(trace->rocprofiler);
    recorder_lose(trace->recorder, LOSS_ROCPROFILER_DROPPED, rocprofiler_take_dropped(trace->rocprofiler));
    recorder_lose(trace->recorder, LOSS_AMD_KERNEL_NAMES, rocprofiler_take_nameless(trace->rocprofiler));
}

void amd_trace_stop(struct amd_trace *trace)
{
    if (!atomic_exchange(&trace->is_tracing, false))
        return;
    trace->is_left = !rocprofiler_trace_stop(trace->rocprofiler);
    atomic_store(&current, NULL);
    if (trace->is_left)
        return;
    for (int i = 0; i < ROCPROFILER_LANES; i++)
        lane_complete(&trace->lanes[i]);
    recorder_lose(trace->recorder, LOSS_ROCPROFILER_DROPPED, rocprofiler_take_dropped(trace->rocprofiler));
    recorder_lose(trace->recorder, LOSS_AMD_KERNEL_NAMES, rocprofiler_take_nameless(trace->rocprofiler));
    static const enum loss_reason late[ROCPROFILER_AWAITED_KINDS] = {
        LOSS_ROCPROFILER_KERNELS_LATE, LOSS_ROCPROFILER_COPIES_LATE, LOSS_ROCPROFILER_COUNTERS_LATE};
    for (int kind = 0; kind < ROCPROFILER_AWAITED_KINDS; kind++)
        recorder_lose(trace->recorder, late[kind],
                      rocprofiler_late(trace->rocprofiler, (enum rocprofiler_awaited_kind)kind));
    uint64_t unknown = rocprofiler_take_unknown(trace->rocprofiler);
    if (unknown)
        log_message(GPUFL_LOG_DEBUG, "rocprofiler sent %llu records of kinds that gpufl does not know",
                    (unsigned long long)unknown);
}

/* ---- called by the collector's thread ---- */

static void write_limits(struct amd_trace *trace, const struct rocprofiler_agent *agent)
{
    struct bytes *line = recorder_begin(trace->recorder, RECORD_DEVICE_LIMITS);
    bytes_append_format(line, ",\"device_id\":%u,\"name\":", agent->device_id);
    json_text(line, agent->product[0] ? agent->product : agent->name);
    const struct {
        const char *key;
        uint64_t value;
    } members[] = {
        {"multiprocessors", agent->compute_units},
        {"warp_size", agent->wave_size},
        {"warps_per_sm_max", (uint64_t)agent->waves_per_simd_max * agent->simds_per_unit},
        {"shared_per_sm", agent->lds_bytes},
        {"memory_bytes", agent->memory_bytes},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!members[i].value)
            continue; /* unknown */
        json_key(line, members[i].key);
        json_uint(line, members[i].value);
    }
    json_key(line, "architecture");
    json_text(line, agent->name);
    recorder_end(trace->recorder, RECORD_DEVICE_LIMITS);
}

static void write_all_limits(struct amd_trace *trace)
{
    if (trace->are_limits_written)
        return;
    trace->are_limits_written = true;
    for (uint32_t i = 0; i < rocprofiler_agent_count(trace->rocprofiler); i++)
        write_limits(trace, rocprofiler_agent_at(trace->rocprofiler, i));
}

void amd_trace_accept(struct amd_trace *trace, struct activity_joiner *joiner, const struct activity *activities,
                      size_t count)
{
    write_all_limits(trace);
    for (size_t i = 0; i < count; i++) {
        if (activities[i].kind == ACTIVITY_COUNTERS && trace->counters)
            amd_counters_add(trace->counters, &activities[i].u.counters);
        else /* an invalid object does not affect the ones after it */
            (void)activity_joiner_accept(joiner, ACTIVITY_FROM_ROCPROFILER, &activities[i]);
    }
}

void amd_trace_settle(struct amd_trace *trace, const struct activity_joiner *joiner)
{
    if (trace->counters)
        amd_counters_settle(trace->counters, joiner);
}

void amd_trace_tick(struct amd_trace *trace, const struct activity_joiner *joiner)
{
    if (trace->counters)
        amd_counters_tick(trace->counters, joiner);
}

void amd_trace_finish(struct amd_trace *trace, const struct activity_joiner *joiner)
{
    if (trace->counters)
        amd_counters_finish(trace->counters, joiner);
    if (trace->own_code)
        code_store_stop(trace->own_code, code_deadline_ms);
}

int64_t amd_trace_now_ns(const struct amd_trace *trace)
{
    return atomic_load(&trace->was_tracing) ? rocprofiler_now_ns(trace->rocprofiler) : 0;
}

size_t amd_trace_bytes(const struct amd_trace *trace)
{
    size_t used = atomic_load(&trace->was_tracing) ? rocprofiler_bytes(trace->rocprofiler) : 0;
    return sizeof *trace + used + (trace->counters ? amd_counters_bytes(trace->counters) : 0);
}

void amd_trace_free(struct amd_trace *trace)
{
    if (!trace || trace->is_left)
        return;
    if (trace->own_code)
        code_store_stop(trace->own_code, 0);
    code_store_free(trace->own_code);
    amd_counters_free(trace->counters);
    free(trace);
}

void amd_trace_abandon(struct amd_trace *trace)
{
    atomic_store(&current, NULL);
    if (trace && trace->own_code)
        code_store_abandon(trace->own_code);
}
