/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/collector_state.h"

#include "base/clock.h"
#include "capture/buffer_pool.h"
#include "driver/cuda.h"
#include "format/json.h"

void collector_write_clock_sync(struct collector *collector, int64_t step_ns)
{
    const struct tick_scale *scale = &collector->scale;
    struct bytes *line = recorder_begin(&collector->recorder, RECORD_CLOCK_SYNC);
    bytes_append_format(line, ",\"ts_ns\":%lld,\"mono_ns\":%lld,\"ticks\":%llu,\"tick_hz\":%.0f,\"cupti_ns\":",
                        (long long)scale->last.log_ns, (long long)scale->last.mono_ns,
                        (unsigned long long)scale->last.ticks, 1e9 / scale->ns_per_tick);
    bool has_cupti = collector->cupti && !yielding_is_yielded(&collector->yielding);
    int64_t cupti_ns = has_cupti ? cupti_now_ns(collector->cupti) : 0;
    if (cupti_ns)
        json_int(line, cupti_ns);
    else
        bytes_append_text(line, "null");
    bytes_append_format(line, ",\"wall_step_ns\":%lld,\"wall_ns\":%lld,\"boot_ns\":%lld", (long long)step_ns,
                        (long long)scale->last.wall_ns, (long long)scale->last.boot_ns);
    const struct amd_trace *amd = atomic_load(&collector->amd);
    int64_t rocprofiler_ns = amd ? amd_trace_now_ns(amd) : 0;
    if (rocprofiler_ns) {
        json_key(line, "rocprofiler_ns");
        json_int(line, rocprofiler_ns);
    }
    recorder_end(&collector->recorder, RECORD_CLOCK_SYNC);
}

static size_t memory_bytes(const struct collector *collector)
{
    const struct amd_trace *amd = atomic_load(&collector->amd);
    size_t batches = 0;
    for (int type = 0; type < RECORD_TYPE_COUNT; type++)
        if (collector->recorder.batches[type].cells)
            batches += (size_t)collector->recorder.batches[type].row_capacity * record_catalogue[type].column_count *
                       sizeof(int64_t);
    struct log_writer_stats stats;
    log_writer_stats(collector->options.writer, &stats);
    return sizeof *collector + stats.queue_bytes + batches + collector->recorder.line.capacity + buffer_pool_bytes() +
           thread_logs_bytes() + scope_tracker_bytes(collector->scopes) +
           (collector->joiner ? activity_joiner_bytes(collector->joiner) : 0) + names_bytes(&collector->names) +
           (collector->stacks ? stacks_bytes(collector->stacks) : 0) +
           (collector->code ? code_store_bytes(collector->code) : 0) +
           (collector->kernels ? kernel_history_bytes(collector->kernels) : 0) +
           (collector->deep ? deep_bytes(collector->deep) : 0) + (amd ? amd_trace_bytes(amd) : 0);
}

/* Not at the start: injection runs inside cuInit, where the driver must not be called. */
static void find_cupti_cost(struct collector *collector)
{
    struct cuda *cuda;
    struct cupti_cost_key key;
    int cuda_version = cuda_load(&cuda, false, NULL) == GPUFL_OK ? cuda_driver_version(cuda) : 0;
    cupti_cost_key_fill(&key, cuda_version, cupti_version(collector->cupti));
    cupti_cost_find(&collector->cupti_cost, &key);
    collector->has_cost = true;
}

/* The cost to the program's threads: measured, plus the known cost of CUPTI's records. */
static void append_user_time(struct collector *collector, struct bytes *line)
{
    bytes_append_text(line, ",\"user_ns\":{");
    for (int i = 0; i < USER_TIME_COUNT; i++) {
        uint64_t ticks = user_time_ticks((enum user_time)i) - collector->user_ticks_before[i];
        json_key(line, user_time_name((enum user_time)i));
        json_int(line, (int64_t)((double)ticks * collector->scale.ns_per_tick));
    }
    bytes_append_char(line, '}');
    if (!collector->cupti)
        return;
    const struct cupti_cost *cost = &collector->cupti_cost;
    if (!collector->has_cost)
        find_cupti_cost(collector);
    bytes_append_text(line, ",\"cupti_cost\":{");
    for (size_t i = 0; i < RECORD_COST_COUNT; i++) {
        json_key(line, record_costs[i].name);
        json_int(line, cost->ns[i]);
    }
    bytes_append_format(line, ",\"is_default\":%s}", cost->is_default ? "true" : "false");
}

/* Only if CUPTI did more than record kernels: otherwise there is nothing to compare. */
static void append_calls(const struct collector *collector, struct bytes *line)
{
    const struct observed_calls *calls = &collector->calls;
    if (!calls->states[CALLS_SAMPLED].launches && !calls->states[CALLS_COUNTED].launches)
        return;
    bytes_append_text(line, ",\"calls\":{");
    for (int i = 0; i < CALL_STATE_COUNT; i++) {
        int64_t typical_ns = observed_calls_typical_ns(calls, (enum call_state)i);
        json_key(line, call_state_name((enum call_state)i));
        bytes_append_format(line, "{\"launches\":%llu,\"calls_ns\":%lld,\"typical_ns\":",
                            (unsigned long long)calls->states[i].launches, (long long)calls->states[i].calls_ns);
        if (typical_ns < 0)
            bytes_append_text(line, "null");
        else
            json_int(line, typical_ns);
        bytes_append_char(line, '}');
    }
    bytes_append_char(line, '}');
}

void collector_write_overhead(struct collector *collector)
{
    static const struct activity_totals none;
    const struct activity_totals *totals = collector->joiner ? activity_joiner_totals(collector->joiner) : &none;
    struct log_writer_stats stats;
    log_writer_stats(collector->options.writer, &stats);
    size_t memory = memory_bytes(collector);
    if (memory > collector->memory_peak_bytes)
        collector->memory_peak_bytes = memory;
    int64_t cupti_ns = 0;
    for (int i = 0; i < 16; i++)
        cupti_ns += totals->cupti_overhead_ns[i];
    struct bytes *line = recorder_begin(&collector->recorder, RECORD_OVERHEAD);
    const struct {
        const char *key;
        int64_t value;
    } members[] = {
        {"ts_ns", clock_log_ns()},
        {"wall_ns", clock_mono_ns() - collector->started_mono_ns},
        {"collector_cpu_ns", collector->cpu_ns + stats.write_cpu_ns +
                                 (collector->stacks ? stacks_cpu_ns(collector->stacks) : 0) +
                                 (collector->code ? code_store_cpu_ns(collector->code) : 0)},
        {"sampler_cpu_ns",
         collector->options.sampler_cpu_ns ? collector->options.sampler_cpu_ns(collector->options.sampler_user) : 0},
        {"seal_cpu_ns", stats.seal_cpu_ns},
        {"flush_ns", collector->flush_ns},
        {"memory_bytes", (int64_t)memory},
        {"memory_peak_bytes", (int64_t)collector->memory_peak_bytes},
        {"scopes", (int64_t)scope_tracker_count(collector->scopes)},
        {"launches", (int64_t)totals->kernels},
        {"buffers_lent", buffer_pool_lent()},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_key(line, members[i].key);
        json_int(line, members[i].value);
    }
    json_key(line, "cupti_ns");
    if (!collector->cupti && atomic_load(&collector->amd)) /* rocprofiler does not report its cost */
        bytes_append_text(line, "null");
    else
        json_int(line, cupti_ns);
    append_user_time(collector, line);
    append_calls(collector, line);
    bytes_append_text(line, ",\"cupti\":{");
    for (int i = 0; i < 16 && totals->cupti_overhead_kind[i]; i++) {
        json_key(line, overhead_kind_name(totals->cupti_overhead_kind[i]));
        json_int(line, totals->cupti_overhead_ns[i]);
    }
    bytes_append_char(line, '}');
    recorder_end(&collector->recorder, RECORD_OVERHEAD);
}
