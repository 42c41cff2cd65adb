/* SPDX-License-Identifier: Apache-2.0 */
#include "export/timeline.h"
#include "export/work_span.h"

#include "base/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *timeline_kind_name(enum event_kind kind)
{
    static const char *const names[] = {
        [EVENT_SCOPE] = "scope",   [EVENT_CALL] = "call", [EVENT_WAIT] = "wait",     [EVENT_WINDOW] = "window",
        [EVENT_KERNEL] = "kernel", [EVENT_COPY] = "copy", [EVENT_MEMSET] = "memset", [EVENT_GRAPH] = "graph"};
    return names[kind];
}

void timeline_lane_name(const struct timeline_lane *lane, char *out, size_t size)
{
    static const char *const of_thread[] = {[LANE_SCOPES] = "scopes", [LANE_CALLS] = "calls", [LANE_WAITS] = "waits"};
    char name[64];
    if (lane->group == LANE_WINDOWS)
        snprintf(name, sizeof name, "measuring windows");
    else if (lane->group == LANE_GRAPHS)
        snprintf(name, sizeof name, "graphs");
    else if (lane->group == LANE_STREAM && lane->owner == ID_UNKNOWN)
        snprintf(name, sizeof name, "stream unknown");
    else if (lane->group == LANE_STREAM)
        snprintf(name, sizeof name, "stream %" PRIu32, lane->owner);
    else if (lane->owner == ID_UNKNOWN)
        snprintf(name, sizeof name, "thread unknown, %s", of_thread[lane->group]);
    else
        snprintf(name, sizeof name, "thread %" PRIu32 ", %s", lane->owner, of_thread[lane->group]);
    if (lane->number)
        snprintf(out, size, "%s (%" PRIu32 ")", name, lane->number + 1);
    else
        snprintf(out, size, "%s", name);
}

void timeline_gpu_name(const struct session_model *model, uint16_t device, char *out, size_t size)
{
    const struct device_info *info = session_device(model, device);
    bool has_name = info && info->name && *info->name;
    if (device == DEVICE_UNKNOWN)
        snprintf(out, size, "GPU unknown");
    else
        snprintf(out, size, "GPU %u%s%.200s", device, has_name ? " " : "", has_name ? info->name : "");
}

/* The next value to fill; one that stays empty is overwritten by the next. */
static struct table_value *argument_next(struct event_arguments *out, const char *key)
{
    if (out->count && out->items[out->count - 1].value.kind == VALUE_NONE)
        out->count--;
    struct event_argument *argument = &out->items[out->count++];
    *argument = (struct event_argument){.key = key};
    return &argument->value;
}

static void argument_size(struct event_arguments *out, unsigned place, const char *key, const uint32_t size[3])
{
    if (!size[0])
        return;
    char *text = out->texts[place];
    char *end = text;
    for (unsigned i = 0; i < 3; i++) { /* for every kernel: printf would take a fifth of the export's time */
        if (i)
            end = mempcpy(end, " x ", 3);
        end = digits_u64(end, size[i]);
    }
    *end = '\0';
    value_text(argument_next(out, key), text);
}

static void launch_arguments(const struct session_model *model, uint32_t launch_id, struct event_arguments *out)
{
    if (!launch_id)
        return;
    const struct launch_config *launch = &model->launches[launch_id - 1];
    argument_size(out, 0, "grid", launch->grid);
    argument_size(out, 1, "block", launch->block);
    argument_size(out, 2, "cluster", launch->cluster);
    value_id(argument_next(out, "registers"), launch->num_regs);
    value_id(argument_next(out, "static_shared_bytes"), launch->static_shared);
    value_id(argument_next(out, "dynamic_shared_bytes"), launch->dyn_shared);
    value_id(argument_next(out, "local_bytes_per_thread"), launch->local_per_thread);
    if (launch->occupancy_bp != ID_UNKNOWN)
        value_real(argument_next(out, "occupancy_pct"), launch->occupancy_bp / 100.0);
    value_word(argument_next(out, "occupancy_limiter"), "limiter", launch->limiter);
}

static void span_arguments(const struct session_model *model, const struct gpu_span *span, struct event_arguments *out)
{
    value_id(argument_next(out, "correlation_id"), span->corr_id);
    if (span->graph_id && span->graph_id != ID_UNKNOWN)
        value_integer(argument_next(out, "graph_id"), span->graph_id);
    value_scope(argument_next(out, "scope"), NULL, model, span->scope);
}

static void scope_arguments(const struct session_model *model, const struct scope_instance *scope,
                            struct event_arguments *out)
{
    value_name(argument_next(out, "path"), model, DICTIONARY_SCOPE_NAME, scope->path_id);
    value_name(argument_next(out, "tag"), model, DICTIONARY_TAG, scope->tag_id);
    if (scope->repeat) {
        value_integer(argument_next(out, "repeat"), scope->repeat);
        value_integer(argument_next(out, "warmup"), scope->warmup);
    }
    value_text(argument_next(out, "source"), schema_word("scope_source", scope->source));
}

static void kernel_arguments(const struct session_model *model, size_t row, struct event_arguments *out)
{
    const struct kernel_columns *kernels = &model->kernels;
    struct gpu_span span = kernel_span(kernels, row);
    span_arguments(model, &span, out);
    launch_arguments(model, kernels->launch_id[row], out);
    value_name(argument_next(out, "stack"), model, DICTIONARY_FUNCTION, kernels->stack_id ? kernels->stack_id[row] : 0);
}

static void copy_arguments(const struct session_model *model, const struct gpu_copy *copy, struct event_arguments *out)
{
    span_arguments(model, &copy->span, out);
    value_unsigned(argument_next(out, "bytes"), copy->bytes);
    value_word(argument_next(out, "source"), "memory_kind", copy->src_kind);
    value_word(argument_next(out, "target"), "memory_kind", copy->dst_kind);
    if (copy->is_async >= 0)
        value_integer(argument_next(out, "is_async"), copy->is_async);
}

static void wait_arguments(const struct session_model *model, const struct sync_wait *wait, struct event_arguments *out)
{
    value_id(argument_next(out, "correlation_id"), wait->corr_id);
    value_id(argument_next(out, "stream_id"), wait->stream_id);
    value_id(argument_next(out, "event_id"), wait->event_id);
    value_scope(argument_next(out, "scope"), NULL, model, wait->scope);
    value_name(argument_next(out, "stack"), model, DICTIONARY_FUNCTION, wait->function_id);
}

static void call_arguments(const struct session_model *model, const struct timeline_event *event,
                           struct event_arguments *out)
{
    if (event->work == EVENT_KERNEL) {
        value_id(argument_next(out, "correlation_id"), model->kernels.corr_id[event->row]);
    } else if (event->work == EVENT_COPY) {
        value_id(argument_next(out, "correlation_id"), model->copies[event->row].span.corr_id);
        value_unsigned(argument_next(out, "bytes"), model->copies[event->row].bytes);
    } else if (event->work == EVENT_MEMSET) {
        value_id(argument_next(out, "correlation_id"), model->memsets[event->row].span.corr_id);
    } else {
        value_id(argument_next(out, "correlation_id"), model->graphs[event->row].span.corr_id);
    }
}

void timeline_arguments(const struct session_model *model, const struct timeline_event *event,
                        struct event_arguments *out)
{
    out->count = 0;
    switch (event->kind) {
    case EVENT_SCOPE:
        scope_arguments(model, &model->scopes[event->row], out);
        break;
    case EVENT_CALL:
        call_arguments(model, event, out);
        break;
    case EVENT_WAIT:
        wait_arguments(model, &model->syncs[event->row], out);
        break;
    case EVENT_KERNEL:
        kernel_arguments(model, event->row, out);
        break;
    case EVENT_COPY:
        copy_arguments(model, &model->copies[event->row], out);
        break;
    case EVENT_MEMSET:
        span_arguments(model, &model->memsets[event->row].span, out);
        value_unsigned(argument_next(out, "bytes"), model->memsets[event->row].bytes);
        value_word(argument_next(out, "memory"), "memory_kind", model->memsets[event->row].memory_kind);
        break;
    case EVENT_GRAPH:
        span_arguments(model, &model->graphs[event->row].span, out);
        value_id(argument_next(out, "nodes"), model->graphs[event->row].node_count);
        value_time(argument_next(out, "busy_ns"), model->graphs[event->row].busy_ns);
        break;
    case EVENT_WINDOW:
        value_text(argument_next(out, "name"), model->deep.windows[event->row].name);
        value_time(argument_next(out, "launches"), model->deep.windows[event->row].launches);
        value_text(argument_next(out, "close_reason"), model->deep.windows[event->row].close_reason);
        break;
    }
    if (out->count && out->items[out->count - 1].value.kind == VALUE_NONE)
        out->count--;
}
