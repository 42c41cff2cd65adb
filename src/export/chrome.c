/* SPDX-License-Identifier: Apache-2.0 */
/* Trace Event JSON for chrome://tracing and Perfetto. Times are microseconds since the session's start, with three
 * decimals; otherData contains the start time. A GPU is a process, its streams are threads. */
#include "export/timeline.h"
#include "export/writers.h"

#include "format/json.h"

#include <stdio.h>

enum { GPU_PID_FIRST = 1 << 30 }; /* beyond every process id of Linux */

struct chrome {
    struct export_sink *sink;
    const struct export_filter *filter;
    bool has_events;
    uint64_t processes_named[(DEVICE_UNKNOWN + 1) / 64]; /* one bit per device, the last one for the host */
};

static int64_t lane_pid(const struct chrome *chrome, uint16_t device)
{
    int64_t pid = chrome->filter->model->job.pid;
    return device == DEVICE_UNKNOWN ? (pid > 0 ? pid : 0) : GPU_PID_FIRST + device;
}

static void time_append(struct bytes *out, int64_t ns)
{
    uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    unsigned rest = (unsigned)(size % 1000);
    if (ns < 0)
        bytes_append_char(out, '-');
    json_uint(out, size / 1000);
    char decimals[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10), (char)('0' + rest % 10)};
    bytes_append(out, decimals, sizeof decimals);
}

/* {"ph":"X","pid":1,"tid":2,"ts":3.000 */
static struct bytes *event_begin(struct chrome *chrome, char phase, int64_t pid, uint32_t tid, int64_t time_ns)
{
    struct bytes *out = &chrome->sink->buffer;
    bytes_append_text(out, chrome->has_events ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    chrome->has_events = true;
    bytes_append_char(out, phase);
    bytes_append(out, "\",\"pid\":", 8);
    json_int(out, pid);
    if (tid) {
        bytes_append(out, ",\"tid\":", 7);
        json_uint(out, tid);
    }
    if (time_ns != TIME_UNKNOWN) {
        bytes_append(out, ",\"ts\":", 6);
        time_append(out, time_ns - chrome->filter->start_ns);
    }
    return out;
}

static void metadata_write(struct chrome *chrome, const char *what, int64_t pid, uint32_t tid, const char *name)
{
    struct bytes *out = event_begin(chrome, 'M', pid, tid, TIME_UNKNOWN);
    json_key(out, "name");
    json_text(out, what);
    bytes_append_text(out, ",\"args\":{\"name\":");
    json_text(out, name);
    bytes_append_text(out, "}}");
}

static void sort_index_write(struct chrome *chrome, const char *what, int64_t pid, uint32_t tid, int64_t index)
{
    struct bytes *out = event_begin(chrome, 'M', pid, tid, TIME_UNKNOWN);
    json_key(out, "name");
    json_text(out, what);
    bytes_append_text(out, ",\"args\":{\"sort_index\":");
    json_int(out, index);
    bytes_append_text(out, "}}");
}

static void process_name(struct chrome *chrome, uint16_t device)
{
    const struct session_model *model = chrome->filter->model;
    char name[300];
    if (device == DEVICE_UNKNOWN) {
        snprintf(name, sizeof name, "%.250s", model->job.app && *model->job.app ? model->job.app : "program");
    } else {
        timeline_gpu_name(model, device, name, sizeof name);
    }
    int64_t pid = lane_pid(chrome, device);
    metadata_write(chrome, "process_name", pid, 0, name);
    sort_index_write(chrome, "process_sort_index", pid, 0, device == DEVICE_UNKNOWN ? 0 : (int64_t)device + 1);
}

static void process_need(struct chrome *chrome, uint16_t device)
{
    uint64_t *word = &chrome->processes_named[device / 64], bit = 1ull << device % 64;
    if (!(*word & bit))
        process_name(chrome, device);
    *word |= bit;
}

static bool lane_write(void *user, const struct timeline_lane *lane)
{
    struct chrome *chrome = user;
    char name[96];
    timeline_lane_name(lane, name, sizeof name);
    process_need(chrome, lane->device);
    int64_t pid = lane_pid(chrome, lane->device);
    metadata_write(chrome, "thread_name", pid, lane->id, name);
    return sink_step(chrome->sink);
}

static void value_append(struct bytes *out, const struct table_value *value)
{
    if (value->text)
        json_text(out, value->text);
    else if (value->kind == VALUE_REAL)
        json_double(out, value->real);
    else
        json_int(out, value->integer);
}

static void arguments_append(struct bytes *out, const struct event_arguments *arguments)
{
    if (!arguments->count)
        return;
    bytes_append(out, ",\"args\":{", 9);
    for (unsigned i = 0; i < arguments->count; i++) {
        bytes_append_text(out, i ? ",\"" : "\"");
        bytes_append_text(out, arguments->items[i].key);
        bytes_append(out, "\":", 2);
        value_append(out, &arguments->items[i].value);
    }
    bytes_append_char(out, '}');
}

static void flow_write(struct chrome *chrome, const struct timeline_event *event)
{
    struct bytes *out = event_begin(chrome, 's', lane_pid(chrome, event->call_lane->device), event->call_lane->id,
                                    event->call_start_ns);
    bytes_append_text(out, ",\"cat\":\"flow\",\"name\":\"launch\",\"id\":");
    json_uint(out, event->flow_id);
    bytes_append_char(out, '}');
    out = event_begin(chrome, 'f', lane_pid(chrome, event->lane->device), event->lane->id, event->start_ns);
    bytes_append_text(out, ",\"cat\":\"flow\",\"name\":\"launch\",\"bp\":\"e\",\"id\":");
    json_uint(out, event->flow_id);
    bytes_append_char(out, '}');
}

static bool event_write(void *user, const struct timeline_event *event)
{
    struct chrome *chrome = user;
    bool has_end = event->end_ns != TIME_UNKNOWN;
    struct bytes *out = event_begin(chrome, has_end ? 'X' : 'B', lane_pid(chrome, event->lane->device), event->lane->id,
                                    event->start_ns);
    if (has_end) {
        bytes_append(out, ",\"dur\":", 7);
        time_append(out, event->end_ns - event->start_ns);
    }
    bytes_append_text(out, ",\"cat\":\"");
    bytes_append_text(out, timeline_kind_name(event->kind));
    bytes_append_text(out, "\",\"name\":");
    json_text(out, event->name);
    struct event_arguments arguments;
    timeline_arguments(chrome->filter->model, event, &arguments);
    arguments_append(out, &arguments);
    bytes_append_char(out, '}');
    if (event->flow_id)
        flow_write(chrome, event);
    return sink_step(chrome->sink);
}

static bool series_write(void *user, const struct counter_series *series)
{
    process_need(user, series->device);
    return true;
}

static bool sample_write(void *user, const struct counter_series *series, const struct counter_sample *sample)
{
    struct chrome *chrome = user;
    struct bytes *out = event_begin(chrome, 'C', lane_pid(chrome, series->device), 0, sample->time_ns);
    bytes_append_text(out, series->is_pm ? ",\"cat\":\"pm\",\"name\":" : ",\"cat\":\"system\",\"name\":");
    json_text(out, series->name);
    bytes_append_text(out, ",\"args\":{\"value\":");
    if (sample->is_real)
        json_double(out, sample->real);
    else
        json_int(out, sample->integer);
    bytes_append_text(out, "}}");
    return sink_step(chrome->sink);
}

/* The session and its losses. */
static void other_data_write(struct export_sink *sink, const struct export_filter *filter)
{
    struct bytes *out = &sink->buffer;
    struct table_source source = {.model = filter->model, .filter = filter};
    bytes_append_text(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{");
    for (size_t row = 0; row < table_of_session.count(filter->model); row++) {
        struct table_value values[2] = {0};
        if (!table_of_session.row(&source, row, values))
            continue;
        json_key(out, values[0].text);
        json_text(out, values[1].text);
    }
    json_key(out, "losses");
    bytes_append_char(out, '[');
    for (size_t row = 0; row < table_of_losses.count(filter->model); row++) {
        struct table_value values[TABLE_COLUMNS_MAX] = {0};
        if (!table_of_losses.row(&source, row, values))
            continue;
        bytes_append_text(out, row ? ",{" : "{");
        for (unsigned i = 0; i < table_column_count(&table_of_losses); i++) {
            if (values[i].kind == VALUE_NONE)
                continue;
            json_key(out, table_column(&table_of_losses, i).name);
            value_append(out, &values[i]);
        }
        bytes_append_char(out, '}');
    }
    bytes_append_text(out, "]},\n\"traceEvents\":[");
}

gpufl_status chrome_write(struct export_sink *sink, const struct export_filter *filter)
{
    struct chrome chrome = {.sink = sink, .filter = filter};
    other_data_write(sink, filter);
    gpufl_status status = GPUFL_OK;
    if (filter->start_ns != TIME_UNKNOWN) {
        process_need(&chrome, DEVICE_UNKNOWN);
        status = timeline_walk(filter,
                               &(struct timeline_visitor){.user = &chrome, .lane = lane_write, .event = event_write});
        if (status == GPUFL_OK)
            status = counters_walk(
                filter, &(struct counter_visitor){.user = &chrome, .series = series_write, .sample = sample_write});
    }
    bytes_append_text(&sink->buffer, "\n]}\n");
    return status;
}
