/* SPDX-License-Identifier: Apache-2.0 */
/* OpenTelemetry's file format: each line is a complete message of spans or metrics in OTLP's JSON. The session is a
 * trace; scopes, calls, waits and GPU work are its spans, nested in their scopes. */
#include "export/timeline.h"
#include "export/writers.h"

#include "format/json.h"

#include <ctype.h>
#include <gpufl/gpufl.h>
#include <inttypes.h>
#include <stdio.h>

enum { LINE_ITEMS = 1000, SPAN_ROW_SHIFT = 56 };

struct otlp {
    struct export_sink *sink;
    const struct export_filter *filter;
    char trace_id[33];
    unsigned items;  /* in the current line */
    uint32_t series; /* series of the current points; 0 none */
    bool has_point;
};

/* A failed buffer has no last byte. */
static bool is_first(const struct bytes *out)
{
    return !out->size || out->data[out->size - 1] == '[';
}

/* protobuf's JSON writes 64-bit integers as strings. */
static void integer_append(struct bytes *out, const char *before, int64_t value)
{
    bytes_append_text(out, before);
    bytes_append_char(out, '"');
    json_int(out, value);
    bytes_append_char(out, '"');
}

static void attribute_write(struct bytes *out, const char *key, const struct table_value *value)
{
    if (!is_first(out))
        bytes_append_char(out, ',');
    bytes_append_text(out, "{\"key\":\"gpufl.");
    bytes_append_text(out, key);
    if (value->text) {
        bytes_append_text(out, "\",\"value\":{\"stringValue\":");
        json_text(out, value->text);
    } else if (value->kind == VALUE_REAL) {
        bytes_append_text(out, "\",\"value\":{\"doubleValue\":");
        json_double(out, value->real);
    } else {
        integer_append(out, "\",\"value\":{\"intValue\":", value->integer);
    }
    bytes_append_text(out, "}}");
}

static void text_attribute(struct bytes *out, const char *key, const char *text)
{
    if (!text || !*text)
        return;
    bytes_append_text(out, is_first(out) ? "{\"key\":\"" : ",{\"key\":\"");
    bytes_append_text(out, key);
    bytes_append_text(out, "\",\"value\":{\"stringValue\":");
    json_text(out, text);
    bytes_append_text(out, "}}");
}

static void resource_write(struct otlp *otlp)
{
    const struct session_model *model = otlp->filter->model;
    struct bytes *out = &otlp->sink->buffer;
    struct table_source source = {.model = model, .filter = otlp->filter};
    bytes_append_text(out, "\"resource\":{\"attributes\":[");
    text_attribute(out, "service.name", *model->job.app ? model->job.app : "unknown_service");
    text_attribute(out, "host.name", model->job.hostname);
    if (model->job.pid >= 0)
        bytes_append_format(out, ",{\"key\":\"process.pid\",\"value\":{\"intValue\":\"%" PRId64 "\"}}", model->job.pid);
    for (size_t row = 0; row < table_of_session.count(model); row++) {
        struct table_value values[2] = {0};
        if (table_of_session.row(&source, row, values))
            attribute_write(out, values[0].text, &values[1]);
    }
    bytes_append_text(out, "]}");
}

/* Opens a line unless one is open: each contains resource and scope. */
static void line_begin(struct otlp *otlp, const char *resource_list, const char *scope_list, const char *list)
{
    if (otlp->items)
        return;
    struct bytes *out = &otlp->sink->buffer;
    bytes_append_format(out, "{\"%s\":[{", resource_list);
    resource_write(otlp);
    bytes_append_format(out,
                        ",\"%s\":[{\"scope\":{\"name\":\"gpufl\",\"version\":\"" GPUFL_VERSION_STRING "\"},\"%s\":[",
                        scope_list, list);
}

static void line_end(struct otlp *otlp)
{
    if (otlp->items)
        bytes_append_text(&otlp->sink->buffer, "]}]}]}\n");
    otlp->items = 0;
}

static void span_id_write(struct bytes *out, unsigned kind, size_t row)
{
    static const char hex[] = "0123456789abcdef";
    uint64_t id = ((uint64_t)kind + 1) << SPAN_ROW_SHIFT | (row + 1);
    char text[18] = {[0] = '"', [17] = '"'};
    for (unsigned i = 0; i < 16; i++)
        text[16 - i] = hex[id >> 4 * i & 15];
    bytes_append(out, text, sizeof text);
}

static uint32_t event_scope(const struct session_model *model, const struct timeline_event *event)
{
    switch (event->work) {
    case EVENT_SCOPE:
        return model->scopes[event->row].parent;
    case EVENT_WAIT:
        return model->syncs[event->row].scope;
    case EVENT_KERNEL:
        return model->kernels.scope[event->row];
    case EVENT_COPY:
        return model->copies[event->row].span.scope;
    case EVENT_MEMSET:
        return model->memsets[event->row].span.scope;
    case EVENT_GRAPH:
        return model->graphs[event->row].span.scope;
    default:
        return ID_UNKNOWN;
    }
}

/* Only a scope that is itself a span can be a parent. */
static bool scope_is_span(const struct otlp *otlp, uint32_t scope)
{
    const struct session_model *model = otlp->filter->model;
    return scope < model->scope_count && !model->scopes[scope].is_attribution_only &&
           model->scopes[scope].begin_ns != TIME_UNKNOWN && filter_takes_entry(otlp->filter, scope);
}

static void span_attributes(struct otlp *otlp, const struct timeline_event *event)
{
    struct bytes *out = &otlp->sink->buffer;
    struct event_arguments arguments;
    timeline_arguments(otlp->filter->model, event, &arguments);
    bytes_append_text(out, ",\"attributes\":[");
    text_attribute(out, "gpufl.kind", timeline_kind_name(event->kind));
    for (unsigned i = 0; i < arguments.count; i++)
        attribute_write(out, arguments.items[i].key, &arguments.items[i].value);
    struct table_value number = {0};
    if (event->lane->group == LANE_STREAM || event->lane->group == LANE_GRAPHS) {
        value_device(&number, event->lane->device);
        if (number.kind != VALUE_NONE)
            attribute_write(out, "device_id", &number);
    }
    if (event->lane->owner != ID_UNKNOWN) {
        value_integer(&number, event->lane->owner);
        attribute_write(out, event->lane->group == LANE_STREAM ? "stream_id" : "thread_id", &number);
    }
    if (event->end_ns == TIME_UNKNOWN)
        bytes_append_text(out, ",{\"key\":\"gpufl.has_no_end\",\"value\":{\"boolValue\":true}}");
    bytes_append_char(out, ']');
}

static bool span_write(void *user, const struct timeline_event *event)
{
    struct otlp *otlp = user;
    const struct session_model *model = otlp->filter->model;
    struct bytes *out = &otlp->sink->buffer;
    line_begin(otlp, "resourceSpans", "scopeSpans", "spans");
    bytes_append_text(out, otlp->items++ ? ",{\"traceId\":\"" : "{\"traceId\":\"");
    bytes_append_text(out, otlp->trace_id);
    bytes_append_text(out, "\",\"spanId\":");
    span_id_write(out, event->kind == EVENT_CALL ? EVENT_GRAPH + 1u + event->work : event->kind, event->row);
    uint32_t parent = event_scope(model, event);
    if (scope_is_span(otlp, parent)) {
        bytes_append_text(out, ",\"parentSpanId\":");
        span_id_write(out, EVENT_SCOPE, parent);
    }
    json_key(out, "name");
    json_text(out, event->name);
    /* The format requires an end: if it is unknown, use the latest time in the session and mark it with an
     * attribute. */
    int64_t end_ns = event->end_ns != TIME_UNKNOWN ? event->end_ns : model->last_ns;
    end_ns = end_ns < event->start_ns ? event->start_ns : end_ns;
    bytes_append_text(out, ",\"kind\":1"); /* internal */
    integer_append(out, ",\"startTimeUnixNano\":", event->start_ns);
    integer_append(out, ",\"endTimeUnixNano\":", end_ns);
    span_attributes(otlp, event);
    bytes_append_char(out, '}');
    if (otlp->items == LINE_ITEMS)
        line_end(otlp);
    return sink_step(otlp->sink);
}

static void metric_end(struct otlp *otlp)
{
    if (otlp->series)
        bytes_append_text(&otlp->sink->buffer, "]}}");
    otlp->series = 0;
}

/* Consecutive points of one series are grouped. */
static bool point_write(void *user, const struct counter_series *series, const struct counter_sample *sample)
{
    struct otlp *otlp = user;
    struct bytes *out = &otlp->sink->buffer;
    if (otlp->items == LINE_ITEMS) {
        metric_end(otlp);
        line_end(otlp);
    }
    line_begin(otlp, "resourceMetrics", "scopeMetrics", "metrics");
    if (otlp->series != series->id) {
        bool has_other = otlp->items > 0;
        metric_end(otlp);
        bytes_append_text(out, has_other ? ",{\"name\":" : "{\"name\":");
        struct bytes name = {0};
        bytes_append_text(&name, series->is_pm                      ? "gpufl.pm."
                                 : series->device == DEVICE_UNKNOWN ? "gpufl.host."
                                                                    : "gpufl.gpu.");
        bytes_append_text(&name, series->name);
        json_string(out, name.data ? name.data : "", name.size);
        bytes_free(&name);
        bytes_append_text(out, ",\"gauge\":{\"dataPoints\":[");
        otlp->series = series->id;
        otlp->has_point = false;
    }
    otlp->items++;
    bytes_append_text(out, otlp->has_point ? ",{" : "{");
    otlp->has_point = true;
    if (series->device != DEVICE_UNKNOWN)
        bytes_append_format(out, "\"attributes\":[{\"key\":\"gpufl.device_id\",\"value\":{\"intValue\":\"%u\"}}],",
                            series->device);
    integer_append(out, "\"timeUnixNano\":", sample->time_ns);
    if (sample->is_real) {
        bytes_append_text(out, ",\"asDouble\":");
        json_double(out, sample->real);
    } else {
        integer_append(out, ",\"asInt\":", sample->integer);
    }
    bytes_append_char(out, '}');
    return sink_step(otlp->sink);
}

/* Each loss is a log record: a warning with its details. */
static void losses_write(struct otlp *otlp)
{
    struct bytes *out = &otlp->sink->buffer;
    struct table_source source = {.model = otlp->filter->model, .filter = otlp->filter};
    for (size_t row = 0; row < table_of_losses.count(otlp->filter->model); row++) {
        struct table_value values[TABLE_COLUMNS_MAX] = {0};
        if (!table_of_losses.row(&source, row, values))
            continue;
        line_begin(otlp, "resourceLogs", "scopeLogs", "logRecords");
        bytes_append_text(out, otlp->items++ ? ",{" : "{");
        bytes_append_format(out,
                            "\"timeUnixNano\":\"%" PRId64 "\",\"severityNumber\":13,\"severityText\":\"WARN\",\"body\":"
                            "{\"stringValue\":\"lost records\"},\"traceId\":\"%s\",\"attributes\":[",
                            otlp->filter->start_ns, otlp->trace_id);
        for (unsigned i = 0; i < table_column_count(&table_of_losses); i++)
            if (values[i].kind != VALUE_NONE)
                attribute_write(out, table_column(&table_of_losses, i).name, &values[i]);
        bytes_append_text(out, "]}");
        if (otlp->items == LINE_ITEMS)
            line_end(otlp);
        if (!sink_step(otlp->sink))
            return;
    }
    line_end(otlp);
}

/* The session's id without dashes has 16 bytes, like a trace id; any other id is hashed. */
static void trace_id_make(struct otlp *otlp)
{
    const char *id = otlp->filter->model->job.session_id;
    size_t size = 0;
    for (const char *at = id; *at && size < 32; at++)
        if (isxdigit((unsigned char)*at))
            otlp->trace_id[size++] = (char)tolower((unsigned char)*at);
    bool is_uuid = size == 32 && strlen(id) == 36;
    uint64_t high = 0xcbf29ce484222325, low = 0x9ae16a3b2f90404f;
    for (const char *at = id; !is_uuid && *at; at++) { /* FNV-1a */
        high = (high ^ (unsigned char)*at) * 0x100000001b3;
        low = (low ^ (unsigned char)*at) * 0x100000001b3;
    }
    if (!is_uuid)
        snprintf(otlp->trace_id, sizeof otlp->trace_id, "%016" PRIx64 "%016" PRIx64, high, low);
}

gpufl_status otlp_write(struct export_sink *sink, const struct export_filter *filter)
{
    struct otlp otlp = {.sink = sink, .filter = filter};
    if (filter->start_ns == TIME_UNKNOWN)
        return GPUFL_OK;
    trace_id_make(&otlp);
    gpufl_status status = timeline_walk(filter, &(struct timeline_visitor){.user = &otlp, .event = span_write});
    line_end(&otlp);
    if (status == GPUFL_OK)
        status = counters_walk(filter, &(struct counter_visitor){.user = &otlp, .sample = point_write});
    metric_end(&otlp);
    line_end(&otlp);
    losses_write(&otlp);
    return status;
}
