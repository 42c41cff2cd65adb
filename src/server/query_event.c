/* SPDX-License-Identifier: Apache-2.0 */
/* One event of the timeline with all its details, and the times of a kernel's executions. Events are identified by
 * their track and start, because row numbers change when the session is reloaded. */
#include "analysis/code_lookup.h"
#include "base/stack_frame.h"
#include "server/query_track.h"

#include <stdlib.h>
#include <string.h>

enum { events_max = 4096, marks_default = 1024 };

/* ---- one event ---- */

static const char *scope_path(const struct session_model *model, uint32_t scope)
{
    return scope < model->scope_count ? session_text(model, DICTIONARY_SCOPE_NAME, model->scopes[scope].path_id) : NULL;
}

static void span_write(struct bytes *out, const struct session_model *model, const struct gpu_span *span)
{
    member_int(out, "start_ns", span->start_ns);
    member_int(out, "duration_ns", span->duration_ns);
    member_int(out, "api_start_ns", span->api_start_ns);
    member_id(out, "api_duration_ns", span->api_duration_ns);
    member_device(out, span->device);
    member_id(out, "stream_id", span->stream_id);
    member_id(out, "thread_id", span->thread_id);
    member_uint(out, "correlation_id", span->corr_id);
    member_int(out, "graph_id", span->graph_id ? span->graph_id : CELL_UNKNOWN);
    member_text(out, "scope", scope_path(model, span->scope));
}

static void copy_write(struct bytes *out, const struct session_model *model, const struct gpu_copy *copy)
{
    span_write(out, model, &copy->span);
    member_uint(out, "bytes", copy->bytes);
    member_text(out, "copy_kind", schema_word("copy_kind", copy->copy_kind));
    member_text(out, "src_kind", copy->src_kind ? schema_word("memory_kind", copy->src_kind) : NULL);
    member_text(out, "dst_kind", copy->dst_kind ? schema_word("memory_kind", copy->dst_kind) : NULL);
    json_key(out, "is_async");
    if (copy->is_async < 0)
        json_text(out, NULL);
    else
        json_bool(out, copy->is_async);
}

static void scope_write(struct bytes *out, const struct session_model *model, const struct scope_instance *scope)
{
    member_int(out, "start_ns", scope->begin_ns);
    member_int(out, "duration_ns", scope->end_ns == TIME_UNKNOWN ? CELL_UNKNOWN : scope->end_ns - scope->begin_ns);
    member_id(out, "thread_id", scope->thread_id);
    member_text(out, "scope", session_text(model, DICTIONARY_SCOPE_NAME, scope->path_id));
    member_text(out, "source", schema_word("scope_source", scope->source));
    member_text(out, "tag", session_text(model, DICTIONARY_TAG, scope->tag_id));
    member_uint(out, "depth", scope->depth);
    member_int(out, "repeat", scope->repeat ? scope->repeat : CELL_UNKNOWN);
}

static void sync_write(struct bytes *out, const struct session_model *model, const struct sync_wait *wait)
{
    member_int(out, "start_ns", wait->start_ns);
    member_int(out, "duration_ns", wait->duration_ns);
    member_id(out, "thread_id", wait->thread_id);
    member_id(out, "stream_id", wait->stream_id);
    member_uint(out, "correlation_id", wait->corr_id);
    member_text(out, "sync_type", schema_word("sync_type", wait->sync_type));
    member_text(out, "stack", session_text(model, DICTIONARY_FUNCTION, wait->function_id));
    member_text(out, "scope", scope_path(model, wait->scope));
}

static void event_write(struct bytes *out, const struct session_model *model, enum track_kind kind, uint32_t row)
{
    json_key(out, "event");
    if (kind == TRACK_KERNELS || kind == TRACK_LAUNCHES) {
        work_kernel_write(out, model, row);
        return;
    }
    bytes_append_char(out, '{');
    if (kind == TRACK_COPIES) {
        copy_write(out, model, &model->copies[row]);
    } else if (kind == TRACK_MEMSETS) {
        span_write(out, model, &model->memsets[row].span);
        member_uint(out, "bytes", model->memsets[row].bytes);
    } else if (kind == TRACK_GRAPHS) {
        span_write(out, model, &model->graphs[row].span);
        member_id(out, "node_count", model->graphs[row].node_count);
        member_int(out, "busy_ns", model->graphs[row].busy_ns);
    } else if (kind == TRACK_SCOPES) {
        scope_write(out, model, &model->scopes[row]);
    } else {
        sync_write(out, model, &model->syncs[row]);
    }
    bytes_append_char(out, '}');
}

static const char *stack_of(const struct session_model *model, enum track_kind kind, uint32_t row)
{
    const uint32_t *stacks = model->kernels.stack_id;
    if (kind == TRACK_SYNCS)
        return session_text(model, DICTIONARY_FUNCTION, model->syncs[row].function_id);
    bool is_kernel = kind == TRACK_KERNELS || kind == TRACK_LAUNCHES;
    return is_kernel && stacks ? session_text(model, DICTIONARY_FUNCTION, stacks[row]) : NULL;
}

/* A line of generated code may be as long as its file. */
static void source_line_write(struct bytes *out, const char *line)
{
    enum { shown_bytes = 1024 };
    size_t size = line ? strnlen(line, shown_bytes + 1) : 0;
    if (size > shown_bytes)
        for (size = shown_bytes; size && ((unsigned char)line[size] & 0xc0) == 0x80;)
            size--; /* not inside a character */
    if (line)
        json_string(out, line, size);
    else
        json_text(out, NULL);
}

/* Writes the source line of each frame; null if its file was not recorded. */
static void stack_source_write(struct bytes *out, const struct session_model *model, const char *stack)
{
    enum { frames_max = 256 };
    struct bytes file = {0};
    const char *frame = stack;
    json_key(out, "stack_source");
    bytes_append_char(out, '[');
    for (unsigned i = 0; frame && i < frames_max; i++) {
        size_t size = strcspn(frame, "|");
        struct stack_frame parts = stack_frame_split(frame, size);
        bytes_clear(&file);
        bytes_append(&file, parts.file ? parts.file : "", parts.file_size);
        if (i)
            bytes_append_char(out, ',');
        source_line_write(out, parts.line ? code_source_line(model, bytes_text(&file), 0, parts.line) : NULL);
        frame = frame[size] ? frame + size + 1 : NULL;
    }
    bytes_append_char(out, ']');
    out->failed |= file.failed;
    bytes_free(&file);
}

/* False: not found. */
static bool event_find(const struct track_set *set, const char *id, int64_t start_ns, struct track_event *events,
                       const struct track **track, struct track_event *found)
{
    char known[TRACK_ID_SIZE];
    for (size_t i = 0; i < set->track_count; i++) {
        track_id(&set->tracks[i].key, known);
        if (strcmp(known, id) != 0)
            continue;
        *track = &set->tracks[i];
        size_t count = track_events(set, *track, start_ns, start_ns + 1, events, events_max);
        for (size_t k = 0; count != SIZE_MAX && k < count; k++) {
            if (events[k].start_ns == start_ns) {
                *found = events[k];
                return true;
            }
        }
    }
    return false;
}

static void answer_event(struct query_call *call, const struct track_set *set, const char *id, int64_t start_ns)
{
    const struct track *track;
    struct track_event found, *events = malloc(events_max * sizeof *events);
    if (!events) {
        query_fail(call, 503, "no_memory", "no memory to answer");
    } else if (!event_find(set, id, start_ns, events, &track, &found)) {
        query_fail(call, 404, "event_unknown", "track %s has no event that starts at start_ns", id);
    } else {
        bytes_append_char(&call->out, '{');
        json_key(&call->out, "track");
        bytes_append_char(&call->out, '{');
        json_track(&track->key, &call->out);
        bytes_append_char(&call->out, '}');
        member_text(&call->out, "name", track_event_name(set, track->key.kind, found.name));
        member_uint(&call->out, "name_id", found.name);
        event_write(&call->out, set->model, track->key.kind, found.row);
        stack_source_write(&call->out, set->model, stack_of(set->model, track->key.kind, found.row));
        bytes_append_char(&call->out, '}');
    }
    free(events);
}

/* The session is not loaded: loads only that moment. Its scopes began earlier and are therefore unknown. */
static void answer_stored_event(struct query_call *call, const char *id, int64_t start_ns)
{
    const struct store_range range = {
        .session_id = http_exchange_path_value(call->exchange, "id"), .from_ns = start_ns, .to_ns = start_ns + 1};
    struct session_model *model;
    struct track_set set;
    struct problem problem = {"no memory to answer"};
    gpufl_status status = query_load(call->query->store, &range, 0, &model, &problem);
    if (status == GPUFL_OK) {
        status = track_set_make(&set, model);
        if (status == GPUFL_OK) {
            answer_event(call, &set, id, start_ns);
            track_set_free(&set);
        }
        session_free(model);
    }
    if (status != GPUFL_OK)
        query_fail_status(call, status, "session", &problem);
}

void query_timeline_event(struct query_call *call)
{
    bool is_too_large;
    int64_t start_ns = CELL_UNKNOWN;
    const char *id = query_text(call, "track");
    if (!query_int(call, "start_ns", 0, INT64_MAX / 2, &start_ns))
        return;
    if (!id || start_ns == CELL_UNKNOWN) {
        query_fail(call, 400, "parameter_missing", "the parameters track and start_ns are missing");
        return;
    }
    struct query_session *session = query_whole(call, &is_too_large);
    if (is_too_large)
        answer_stored_event(call, id, start_ns);
    if (!session || query_is_known(call, session))
        return;
    const struct track_set *tracks = query_tracks_of(call, session);
    if (tracks)
        answer_event(call, tracks, id, start_ns);
}

/* ---- a kernel's executions over time ---- */

struct marks {
    int64_t from_ns, to_ns;
    uint64_t *counts; /* owned; by pixel */
    int64_t pixels;
};

static void marks_add(struct marks *marks, int64_t start_ns, uint64_t count)
{
    if (start_ns < marks->from_ns || start_ns >= marks->to_ns)
        return;
    int64_t width_ns = (marks->to_ns - marks->from_ns - 1) / marks->pixels + 1;
    marks->counts[(start_ns - marks->from_ns) / width_ns] += count;
}

/* False: already answered. For each time span the store's sums only have the kernel that took most of it. */
static bool marks_stored(struct query_call *call, struct marks *marks, uint32_t kernel)
{
    struct timeline timeline;
    struct problem problem = {""};
    gpufl_status status =
        store_timeline(call->query->store, http_exchange_path_value(call->exchange, "id"), marks->from_ns, marks->to_ns,
                       (marks->to_ns - marks->from_ns) / marks->pixels + 1, &timeline, &problem);
    if (status != GPUFL_OK)
        return query_fail_status(call, status, "session", &problem);
    for (size_t i = 0; i < timeline.track_count; i++) {
        const struct timeline_track *track = &timeline.tracks[i];
        for (size_t k = 0; track->type == RECORD_KERNEL_EVENT_BATCH && k < track->count; k++) {
            const struct timeline_bucket *bucket = &timeline.buckets[track->first + k];
            if (bucket->key == kernel)
                marks_add(marks, bucket->start_ns > marks->from_ns ? bucket->start_ns : marks->from_ns, bucket->count);
        }
    }
    timeline_free(&timeline);
    return true;
}

static void marks_write(struct query_call *call, const struct marks *marks, bool is_exact)
{
    struct bytes *out = &call->out;
    bytes_append_char(out, '{');
    member_bool(out, "is_exact", is_exact);
    member_int(out, "from_ns", marks->from_ns);
    member_int(out, "to_ns", marks->to_ns);
    member_int(out, "step_ns", (marks->to_ns - marks->from_ns - 1) / marks->pixels + 1);
    list_open(out, "counts");
    for (int64_t i = 0; i < marks->pixels; i++) {
        if (i)
            bytes_append_char(out, ',');
        json_uint(out, marks->counts[i]);
    }
    bytes_append_text(out, "]}");
}

void query_timeline_marks(struct query_call *call)
{
    bool is_too_large;
    int64_t kernel = CELL_UNKNOWN;
    struct marks marks = {.from_ns = CELL_UNKNOWN, .pixels = marks_default};
    if (!query_int(call, "kernel", 0, ID_UNKNOWN - 1, &kernel) ||
        !query_int(call, "pixels", 1, TRACK_PIXELS_MAX, &marks.pixels) ||
        !query_range(call, &marks.from_ns, &marks.to_ns))
        return;
    if (kernel == CELL_UNKNOWN || marks.from_ns == CELL_UNKNOWN) {
        query_fail(call, 400, "parameter_missing", "the parameter kernel, from_ns or to_ns is missing");
        return;
    }
    const struct query_session *session = query_whole(call, &is_too_large);
    if ((!session && !is_too_large) || (session && query_is_known(call, session)))
        return;
    marks.counts = calloc((size_t)marks.pixels, sizeof *marks.counts);
    bool is_done = marks.counts != NULL;
    if (!is_done)
        query_fail(call, 503, "no_memory", "no memory to answer");
    if (is_done && session) {
        const struct kernel_columns *kernels = &session->model->kernels;
        for (size_t i = 0; i < kernels->count; i++)
            if (kernels->kernel_id[i] == kernel)
                marks_add(&marks, kernels->start_ns[i], 1);
    } else if (is_done) {
        is_done = marks_stored(call, &marks, (uint32_t)kernel);
    }
    if (is_done)
        marks_write(call, &marks, session != NULL);
    free(marks.counts);
}
