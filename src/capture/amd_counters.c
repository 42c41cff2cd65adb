/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/amd_counters.h"

#include "base/demangle.h"
#include "format/counter_members.h"
#include "format/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { waiting_max = 4096, ticks_to_wait = 3 };

struct waiting {
    struct counters_activity activity;
    uint8_t tick;
};

struct amd_counters {
    struct recorder *recorder;
    const struct rocprofiler *rocprofiler;
    struct bytes name;
    struct waiting *waiting;
    uint32_t waiting_count;
    uint64_t ordinal;
    uint8_t tick;
};

gpufl_status amd_counters_make(struct amd_counters **out, struct recorder *recorder,
                               const struct rocprofiler *rocprofiler)
{
    struct amd_counters *counters = calloc(1, sizeof *counters);
    if (counters)
        counters->waiting = malloc(waiting_max * sizeof *counters->waiting);
    if (!counters || !counters->waiting) {
        free(counters);
        return GPUFL_E_NO_MEMORY;
    }
    counters->recorder = recorder;
    counters->rocprofiler = rocprofiler;
    *out = counters;
    return GPUFL_OK;
}

void amd_counters_free(struct amd_counters *counters)
{
    if (!counters)
        return;
    bytes_free(&counters->name);
    free(counters->waiting);
    free(counters);
}

size_t amd_counters_bytes(const struct amd_counters *counters)
{
    return sizeof *counters + waiting_max * sizeof *counters->waiting;
}

/* NaN: not in the record. */
static double value_of(const struct amd_counters *counters, const struct counters_activity *activity, const char *name)
{
    for (uint32_t i = 0; i < rocprofiler_counter_count(counters->rocprofiler); i++)
        if (!strcmp(rocprofiler_counter_name(counters->rocprofiler, i), name) && (activity->known >> i & 1))
            return activity->values[i];
    return __builtin_nan("");
}

/* A counter of the level 2 cache, which is TCC up to gfx9 and GL2C from gfx10 on. */
static double cache_value(const struct amd_counters *counters, const struct counters_activity *activity,
                          const char *older, const char *newer)
{
    double value = value_of(counters, activity, older);
    return value >= 0 ? value : value_of(counters, activity, newer);
}

static double wire_value(const struct amd_counters *counters, const struct counters_activity *activity,
                         const char *member)
{
    double value = __builtin_nan("");
    if (!strcmp(member, "l2_hit_rate_pct")) {
        double hits = cache_value(counters, activity, "TCC_HIT_sum", "GL2C_HIT_sum");
        double all = hits + cache_value(counters, activity, "TCC_MISS_sum", "GL2C_MISS_sum");
        value = all > 0 ? 100 * hits / all : value;
    } else if (!strcmp(member, "dram_read_bytes")) {
        value = 1024 * value_of(counters, activity, "FETCH_SIZE"); /* rocprofiler reports kilobytes */
    } else if (!strcmp(member, "dram_write_bytes")) {
        value = 1024 * value_of(counters, activity, "WRITE_SIZE");
    }
    return value >= 0 ? value : -1;
}

static void write_values(const struct amd_counters *counters, const struct counters_activity *activity,
                         struct bytes *line)
{
    json_key(line, "metrics");
    bytes_append_char(line, '{');
    for (uint32_t i = 0; i < rocprofiler_counter_count(counters->rocprofiler); i++) {
        json_key(line, rocprofiler_counter_name(counters->rocprofiler, i));
        json_double(line, activity->known >> i & 1 ? activity->values[i] : __builtin_nan(""));
    }
    bytes_append_char(line, '}');
}

static void write_one(struct amd_counters *counters, const struct counters_activity *activity, const struct call *call)
{
    struct bytes *line = recorder_begin(counters->recorder, RECORD_KERNEL_PERF_METRIC_EVENT);
    json_key(line, "pid");
    json_int(line, getpid());
    json_key(line, "app");
    json_text(line, counters->recorder->app_name);
    json_key(line, "device_id");
    json_uint(line, activity->device_id);
    json_key(line, "context_id");
    json_uint(line, 0);
    json_key(line, "range_index");
    json_uint(line, counters->ordinal);
    json_key(line, "range_name");
    json_text(line, "");
    bytes_clear(&counters->name);
    if (activity->name)
        demangle(activity->name, &counters->name);
    json_key(line, "kernel_name");
    json_text(line, bytes_text(&counters->name));
    json_key(line, "launch_ordinal");
    json_uint(line, counters->ordinal++);
    json_key(line, "ts_ns");
    json_int(line, call ? call->start_ns : activity->start_ns);
    json_key(line, "corr_id");
    json_uint(line, activity->correlation_id);
    json_key(line, "scope_id");
    if (call && call->scope_id != SCOPE_UNKNOWN)
        json_uint(line, call->scope_id);
    else
        json_text(line, NULL);
    for (size_t i = 0; i < COUNTER_MEMBER_COUNT; i++) {
        json_key(line, counter_members[i]);
        json_double(line, wire_value(counters, activity, counter_members[i]));
    }
    json_key(line, "window_id");
    json_uint(line, 0);
    json_key(line, "passes");
    json_uint(line, 1);
    json_key(line, "metric_set");
    json_text(line, "amd_dispatch");
    write_values(counters, activity, line);
    recorder_end(counters->recorder, RECORD_KERNEL_PERF_METRIC_EVENT);
}

void amd_counters_add(struct amd_counters *counters, const struct counters_activity *activity)
{
    if (counters->waiting_count == waiting_max) {
        recorder_lose(counters->recorder, LOSS_COUNTERS_FULL, 1);
        return;
    }
    counters->waiting[counters->waiting_count++] = (struct waiting){*activity, counters->tick};
}

static void write_ready(struct amd_counters *counters, const struct activity_joiner *joiner, uint8_t ticks)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < counters->waiting_count; i++) {
        const struct waiting *item = &counters->waiting[i];
        const struct call *call =
            activity_joiner_call(joiner, ACTIVITY_FROM_ROCPROFILER, item->activity.correlation_id);
        if (call || (uint8_t)(counters->tick - item->tick) >= ticks)
            write_one(counters, &item->activity, call);
        else
            counters->waiting[kept++] = *item;
    }
    counters->waiting_count = kept;
}

void amd_counters_settle(struct amd_counters *counters, const struct activity_joiner *joiner)
{
    write_ready(counters, joiner, UINT8_MAX);
}

void amd_counters_tick(struct amd_counters *counters, const struct activity_joiner *joiner)
{
    counters->tick++;
    write_ready(counters, joiner, ticks_to_wait);
}

void amd_counters_finish(struct amd_counters *counters, const struct activity_joiner *joiner)
{
    write_ready(counters, joiner, 0);
}
