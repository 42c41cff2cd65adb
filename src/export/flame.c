/* SPDX-License-Identifier: Apache-2.0 */
/* GPU time as stacks: collapsed lines (one stack per line, for flamegraph.pl and similar tools) and speedscope's
 * JSON. */
#include "export/stacks.h"
#include "export/writers.h"

#include "analysis/quantity.h"
#include "analysis/statistics.h"
#include "format/json.h"

#include <gpufl/gpufl.h>
#include <stdio.h>

struct collapsed {
    struct bytes *out;
    struct bytes text;
    bool has_frame;
};

static bool collapsed_frame(void *user, const char *text, size_t size)
{
    struct collapsed *collapsed = user;
    bytes_clear(&collapsed->text);
    text_escape(&collapsed->text, text, size);
    if (collapsed->has_frame)
        bytes_append_char(collapsed->out, ';');
    collapsed->has_frame = true;
    for (size_t i = 0; i < collapsed->text.size; i++) {
        if (collapsed->text.data[i] == ';') /* would begin another frame */
            bytes_append_text(collapsed->out, "\\x3b");
        else
            bytes_append_char(collapsed->out, collapsed->text.data[i]);
    }
    return !collapsed->text.failed;
}

gpufl_status collapsed_write(struct export_sink *sink, const struct export_filter *filter, enum export_grouping group)
{
    struct stack_set set;
    gpufl_status status = stack_set_make(&set, filter, group);
    if (status != GPUFL_OK)
        return status;
    struct collapsed collapsed = {.out = &sink->buffer};
    for (size_t i = 0; i < set.count && status == GPUFL_OK; i++) {
        collapsed.has_frame = false;
        if (!stack_frames(&set, &set.samples[i], collapsed_frame, &collapsed))
            status = GPUFL_E_NO_MEMORY;
        bytes_append_char(&sink->buffer, ' ');
        json_int(&sink->buffer, set.samples[i].total_ns);
        bytes_append_char(&sink->buffer, '\n');
        if (!sink_step(sink))
            break;
    }
    bytes_free(&collapsed.text);
    stack_set_free(&set);
    return status;
}

struct speedscope {
    struct export_sink *sink;
    struct intern frames;
    bool has_frame;
};

static bool frame_define(void *user, const char *text, size_t size)
{
    struct speedscope *speedscope = user;
    bool is_new = false;
    if (!intern_id(&speedscope->frames, text, size, &is_new))
        return false;
    if (!is_new)
        return true;
    bytes_append_text(&speedscope->sink->buffer, speedscope->frames.count > 1 ? ",\n{\"name\":" : "\n{\"name\":");
    json_string(&speedscope->sink->buffer, text, size);
    bytes_append_char(&speedscope->sink->buffer, '}');
    return true;
}

static bool frame_use(void *user, const char *text, size_t size)
{
    struct speedscope *speedscope = user;
    if (speedscope->has_frame)
        bytes_append_char(&speedscope->sink->buffer, ',');
    speedscope->has_frame = true;
    json_uint(&speedscope->sink->buffer, intern_find(&speedscope->frames, text, size) - 1);
    return true;
}

static void speedscope_samples(struct speedscope *speedscope, const struct stack_set *set)
{
    struct bytes *out = &speedscope->sink->buffer;
    int64_t total_ns = 0;
    for (size_t i = 0; i < set->count; i++)
        total_ns = sum_saturated(total_ns, set->samples[i].total_ns);
    bytes_append_text(out, "\n]},\"profiles\":[{\"type\":\"sampled\",\"name\":\"GPU time\",\"unit\":\"nanoseconds\","
                           "\"startValue\":0,\"endValue\":");
    json_int(out, total_ns);
    bytes_append_text(out, ",\"samples\":[");
    for (size_t i = 0; i < set->count; i++) {
        bytes_append_text(out, i ? ",\n[" : "\n[");
        speedscope->has_frame = false;
        (void)stack_frames(set, &set->samples[i], frame_use, speedscope);
        bytes_append_char(out, ']');
        if (!sink_step(speedscope->sink))
            return;
    }
    bytes_append_text(out, "\n],\"weights\":[");
    for (size_t i = 0; i < set->count; i++) {
        if (i)
            bytes_append_char(out, ',');
        json_int(out, set->samples[i].total_ns);
    }
    bytes_append_text(out, "]}]}\n");
}

gpufl_status speedscope_write(struct export_sink *sink, const struct export_filter *filter, enum export_grouping group)
{
    struct stack_set set;
    gpufl_status status = stack_set_make(&set, filter, group);
    if (status != GPUFL_OK)
        return status;
    struct speedscope speedscope = {.sink = sink};
    const struct job_info *job = &filter->model->job;
    bytes_append_text(&sink->buffer, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":"
                                     "\"gpufl " GPUFL_VERSION_STRING "\",\"name\":");
    json_text(&sink->buffer, *job->app ? job->app : "session");
    bytes_append_text(&sink->buffer, ",\"activeProfileIndex\":0,\"shared\":{\"frames\":[");
    for (size_t i = 0; i < set.count && status == GPUFL_OK; i++)
        if (!stack_frames(&set, &set.samples[i], frame_define, &speedscope))
            status = GPUFL_E_NO_MEMORY;
    if (status == GPUFL_OK)
        speedscope_samples(&speedscope, &set);
    intern_free(&speedscope.frames);
    stack_set_free(&set);
    return status;
}
