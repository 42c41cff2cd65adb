/* SPDX-License-Identifier: Apache-2.0 */
/* A profile for pprof: GPU time and executions, by scopes or by call stack. Field numbers are those of pprof's
 * profile.proto. The sink compresses. */
#include "export/protobuf.h"

#include "base/stack_frame.h"
#include "export/stacks.h"
#include "export/writers.h"

#include <stdio.h>
#include <stdlib.h>

enum profile_field {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME = 9,
    PROFILE_DURATION = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14
};
enum { MAPPING_ID = 1, MAPPING_FILE = 5, MAPPING_HAS_FUNCTIONS = 7 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };

struct pprof {
    struct export_sink *sink;
    struct intern strings; /* id = index in the profile's string table, whose first entry is "" */
    struct intern frames;  /* id = id of its location and function */
    uint32_t *locations;   /* of the sample, outermost first */
    size_t location_count, location_capacity;
    bool is_out_of_memory;
};

static uint64_t string_id(struct pprof *pprof, const char *text, size_t size)
{
    uint32_t id = size ? intern_id(&pprof->strings, text, size, NULL) : 0;
    if (size && !id)
        pprof->is_out_of_memory = true;
    return id;
}

static uint64_t text_id(struct pprof *pprof, const char *text)
{
    return string_id(pprof, text, strlen(text));
}

static bool location_add(void *user, const char *text, size_t size)
{
    struct pprof *pprof = user;
    uint32_t id = intern_id(&pprof->frames, text, size, NULL);
    if (pprof->location_count == pprof->location_capacity) {
        size_t capacity = pprof->location_capacity ? pprof->location_capacity * 2 : 64;
        uint32_t *grown = realloc(pprof->locations, capacity * sizeof *grown);
        if (!grown)
            return false;
        pprof->locations = grown;
        pprof->location_capacity = capacity;
    }
    pprof->locations[pprof->location_count++] = id;
    return id != 0;
}

static void value_type_write(struct pprof *pprof, unsigned field, const char *type, const char *unit)
{
    struct bytes *out = &pprof->sink->buffer;
    size_t begin = protobuf_begin(out, field);
    protobuf_uint(out, 1, text_id(pprof, type));
    protobuf_uint(out, 2, text_id(pprof, unit));
    protobuf_end(out, begin);
}

static void label_write(struct pprof *pprof, const char *key, const char *text)
{
    struct bytes *out = &pprof->sink->buffer;
    if (!text)
        return;
    size_t begin = protobuf_begin(out, SAMPLE_LABEL);
    protobuf_uint(out, 1, text_id(pprof, key));
    protobuf_uint(out, 2, text_id(pprof, text));
    protobuf_end(out, begin);
}

static bool sample_write(struct pprof *pprof, const struct stack_set *set, const struct stack_sample *sample)
{
    struct bytes *out = &pprof->sink->buffer;
    pprof->location_count = 0;
    if (!stack_frames(set, sample, location_add, pprof)) {
        pprof->is_out_of_memory = true;
        return false;
    }
    size_t begin = protobuf_begin(out, PROFILE_SAMPLE);
    size_t part = protobuf_begin(out, SAMPLE_LOCATION);
    for (size_t i = pprof->location_count; i-- > 0;) /* innermost first */
        protobuf_varint(out, pprof->locations[i]);
    protobuf_end(out, part);
    part = protobuf_begin(out, SAMPLE_VALUE);
    protobuf_varint(out, (uint64_t)sample->total_ns);
    protobuf_varint(out, sample->count);
    protobuf_end(out, part);
    if (set->is_by_stack)
        label_write(pprof, "scope", session_text(set->model, DICTIONARY_SCOPE_NAME, sample->path_id));
    protobuf_end(out, begin);
    return sink_step(pprof->sink);
}

static void frames_write(struct pprof *pprof, bool has_places)
{
    struct bytes *out = &pprof->sink->buffer;
    for (uint32_t id = 1; id <= pprof->frames.count; id++) {
        const struct intern_entry *frame = &pprof->frames.entries[id - 1];
        struct stack_frame parts = {.function_size = frame->size}; /* scopes and kernels have only a name */
        if (has_places)
            parts = stack_frame_split(frame->text, frame->size);
        size_t begin = protobuf_begin(out, PROFILE_LOCATION);
        protobuf_uint(out, 1, id);
        protobuf_uint(out, 2, MAPPING_ID);
        size_t line = protobuf_begin(out, 4);
        protobuf_uint(out, 1, id);
        if (parts.line)
            protobuf_int(out, 2, parts.line);
        protobuf_end(out, line);
        protobuf_end(out, begin);
        begin = protobuf_begin(out, PROFILE_FUNCTION);
        protobuf_uint(out, 1, id);
        uint64_t name = string_id(pprof, frame->text, parts.function_size);
        protobuf_uint(out, 2, name);
        protobuf_uint(out, 3, name);
        if (parts.file_size)
            protobuf_uint(out, 4, string_id(pprof, parts.file, parts.file_size));
        protobuf_end(out, begin);
        if (!sink_step(pprof->sink))
            return;
    }
}

/* The program's mapping, with has_functions set so that pprof does not look for symbols. */
static void mapping_write(struct pprof *pprof, const char *app)
{
    struct bytes *out = &pprof->sink->buffer;
    size_t begin = protobuf_begin(out, PROFILE_MAPPING);
    protobuf_uint(out, 1, MAPPING_ID);
    protobuf_uint(out, MAPPING_FILE, text_id(pprof, *app ? app : "program"));
    protobuf_uint(out, MAPPING_HAS_FUNCTIONS, 1);
    protobuf_end(out, begin);
}

static void comments_write(struct pprof *pprof, const struct export_filter *filter)
{
    const struct session_model *model = filter->model;
    char text[400];
    snprintf(text, sizeof text, "session %.100s, %.200s", model->job.session_id, model->job.app);
    protobuf_uint(&pprof->sink->buffer, PROFILE_COMMENT, text_id(pprof, text));
    for (size_t i = 0; i < model->loss_count; i++) {
        const struct session_loss *loss = &model->losses[i];
        snprintf(text, sizeof text, "lost: %.100s %.100s, %s%llu", loss->record_type, loss->reason,
                 loss->has_unknown_count ? "at least " : "", (unsigned long long)loss->count);
        protobuf_uint(&pprof->sink->buffer, PROFILE_COMMENT, text_id(pprof, text));
    }
}

static void strings_write(struct pprof *pprof)
{
    protobuf_text(&pprof->sink->buffer, PROFILE_STRING, "");
    for (uint32_t id = 1; id <= pprof->strings.count; id++) {
        protobuf_text(&pprof->sink->buffer, PROFILE_STRING, intern_text(&pprof->strings, id));
        if (!sink_step(pprof->sink))
            return;
    }
}

gpufl_status pprof_write(struct export_sink *sink, const struct export_filter *filter, enum export_grouping group)
{
    struct stack_set set;
    gpufl_status status = stack_set_make(&set, filter, group);
    if (status != GPUFL_OK)
        return status;
    struct pprof pprof = {.sink = sink};
    const struct session_model *model = filter->model;
    value_type_write(&pprof, PROFILE_SAMPLE_TYPE, "gpu_time", "nanoseconds");
    value_type_write(&pprof, PROFILE_SAMPLE_TYPE, "executions", "count");
    value_type_write(&pprof, PROFILE_PERIOD_TYPE, "gpu_time", "nanoseconds");
    protobuf_int(&sink->buffer, PROFILE_PERIOD, 1);
    protobuf_uint(&sink->buffer, PROFILE_DEFAULT_TYPE, text_id(&pprof, "gpu_time"));
    if (filter->start_ns != TIME_UNKNOWN) {
        protobuf_int(&sink->buffer, PROFILE_TIME, filter->start_ns);
        if (model->last_ns > filter->start_ns)
            protobuf_int(&sink->buffer, PROFILE_DURATION, model->last_ns - filter->start_ns);
    }
    mapping_write(&pprof, model->job.app);
    comments_write(&pprof, filter);
    for (size_t i = 0; i < set.count && sample_write(&pprof, &set, &set.samples[i]); i++)
        continue;
    frames_write(&pprof, set.is_by_stack);
    strings_write(&pprof);
    free(pprof.locations);
    intern_free(&pprof.frames);
    intern_free(&pprof.strings);
    stack_set_free(&set);
    return pprof.is_out_of_memory ? GPUFL_E_NO_MEMORY : GPUFL_OK;
}
