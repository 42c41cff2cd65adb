/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline. Tracks and tiles come from the loaded session. If it is too large to load on its own, or to wait for,
 * GPU work comes from the store's sums, and from its rows if the time span has few enough.
 *
 * A tile is one block of little-endian columns: 8 bytes "GFLCOLS1", the size of a JSON text (u32) and 4 zero bytes,
 * that text, padded with blanks to a multiple of 8, then the columns, each padded with zeros to a multiple of 8. The
 * text describes the columns, with their offsets from its end. */
#include "server/query_track.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { pixels_default = 1024, events_per_pixel = 4, events_min = 2000 };

struct session_span {
    int64_t start_ns, end_ns;
};

static bool take_span(void *user, const struct store_session *session)
{
    *(struct session_span *)user = (struct session_span){session->start_ns, session->end_ns};
    return false;
}

static bool span_of(struct query_call *call, struct session_span *span)
{
    struct problem problem = {""};
    gpufl_status status =
        store_session(call->query->store, http_exchange_path_value(call->exchange, "id"), take_span, span, &problem);
    if (status != GPUFL_OK)
        return query_fail_status(call, status, "session", &problem);
    if (span->start_ns == CELL_UNKNOWN || span->end_ns == CELL_UNKNOWN || span->end_ns < span->start_ns)
        *span = (struct session_span){0, 0};
    return true;
}

/* ---- the list of tracks ---- */

static void stored_tracks_write(struct query_call *call)
{
    struct session_span span;
    struct timeline timeline;
    if (!span_of(call, &span) || !query_sums_read(call, span.start_ns, span.end_ns + 1, 1, &timeline))
        return;
    bytes_append_char(&call->out, '{');
    member_bool(&call->out, "is_exact", false);
    member_int(&call->out, "start_ns", span.start_ns);
    member_int(&call->out, "end_ns", span.end_ns);
    list_open(&call->out, "tracks");
    for (size_t i = 0; i < timeline.track_count; i++) {
        const struct timeline_track *track = &timeline.tracks[i];
        const struct track_key key = query_sums_key(track);
        uint64_t count = 0;
        int64_t busy_ns = 0;
        for (size_t k = 0; k < track->count; k++) {
            count += timeline.buckets[track->first + k].count;
            busy_ns = sum_saturated(busy_ns, timeline.buckets[track->first + k].busy_ns);
        }
        element(&call->out, '{');
        json_track(&key, &call->out);
        member_uint(&call->out, "count", count);
        member_int(&call->out, "busy_ns", busy_ns);
        bytes_append_char(&call->out, '}');
    }
    bytes_append_char(&call->out, ']');
    member_uint(&call->out, "left_out", 0);
    bytes_append_char(&call->out, '}');
    timeline_free(&timeline);
}

void query_tracks(struct query_call *call)
{
    bool is_too_large;
    const struct query_session *session;
    /* Must be explicit: most clients that list tracks need all of them. */
    const bool is_prompt = query_text(call, "exact") != NULL;
    const struct track_set *tracks = query_whole_tracks(call, is_prompt, &session, &is_too_large);
    if (is_too_large)
        stored_tracks_write(call);
    if (!tracks || query_is_known(call, session))
        return;
    bytes_append_char(&call->out, '{');
    member_bool(&call->out, "is_exact", true);
    member_int(&call->out, "start_ns", session->analysis.start_ns);
    member_int(&call->out, "end_ns", session->analysis.end_ns);
    list_open(&call->out, "tracks");
    for (size_t i = 0; i < tracks->track_count; i++) {
        const struct track *track = &tracks->tracks[i];
        element(&call->out, '{');
        json_track(&track->key, &call->out);
        member_uint(&call->out, "count", track->count);
        member_int(&call->out, "busy_ns", track->busy_ns);
        bytes_append_char(&call->out, '}');
    }
    bytes_append_char(&call->out, ']');
    member_uint(&call->out, "left_out", tracks->left_out);
    bytes_append_char(&call->out, '}');
}

/* ---- tiles ---- */

struct tile {
    struct query_call *call;
    int64_t from_ns, to_ns;
    uint32_t pixels;
    const char *wanted;                    /* track ids, separated by commas; NULL: all */
    struct bytes text, data;               /* of the answer; owned */
    struct bytes names;                    /* members of "names" */
    struct intern known[TRACK_KIND_COUNT]; /* names that were written to it */
    struct intern unnamed;                 /* kernels whose names are still unknown */
    struct track_event *events;            /* capacity events_max; owned */
    struct track_pixel *columns;           /* one per pixel; owned */
    size_t events_max;
};

static void data_pad(struct bytes *data)
{
    static const char zeros[8] = {0};
    bytes_append(data, zeros, (8 - data->size % 8) % 8);
}

static void put_u32(struct bytes *data, uint32_t value)
{
    const unsigned char raw[4] = {(unsigned char)value, (unsigned char)(value >> 8), (unsigned char)(value >> 16),
                                  (unsigned char)(value >> 24)};
    bytes_append(data, raw, sizeof raw);
}

static void put_i64(struct bytes *data, int64_t value)
{
    put_u32(data, (uint32_t)(uint64_t)value);
    put_u32(data, (uint32_t)((uint64_t)value >> 32));
}

static void column_open(struct tile *tile, const char *name, const char *type)
{
    data_pad(&tile->data);
    element(&tile->text, '{');
    member_text(&tile->text, "name", name);
    member_text(&tile->text, "type", type);
    member_uint(&tile->text, "offset", tile->data.size);
    bytes_append_char(&tile->text, '}');
}

/* Notes that the name is used, once; text: from the model that the id belongs to. */
static void name_note(struct tile *tile, enum track_kind kind, uint32_t name, const char *text)
{
    bool is_new = false;
    if (kind == TRACK_MEMSETS || kind == TRACK_GRAPHS || !intern_id(&tile->known[kind], &name, sizeof name, &is_new) ||
        !is_new)
        return;
    element(&tile->names, '{');
    member_text(&tile->names, "kind", track_kind_name(kind));
    member_uint(&tile->names, "name", name);
    member_text(&tile->names, "text", text);
    bytes_append_char(&tile->names, '}');
}

static bool is_wanted(const struct tile *tile, const struct track_key *key)
{
    char id[TRACK_ID_SIZE];
    if (!tile->wanted)
        return true;
    track_id(key, id);
    size_t size = strlen(id);
    for (const char *at = tile->wanted; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, id, size) && (!at[size] || at[size] == ','))
            return true;
    }
    return false;
}

static void track_open(struct tile *tile, const struct track_key *key, bool is_exact, size_t rows)
{
    element(&tile->text, '{');
    json_track(key, &tile->text);
    member_bool(&tile->text, "is_exact", is_exact);
    member_uint(&tile->text, "rows", rows);
    list_open(&tile->text, "columns");
}

static void events_write(struct tile *tile, const struct track_set *set, const struct track *track, size_t count)
{
    const struct track_event *events = tile->events;
    track_open(tile, &track->key, true, count);
    column_open(tile, "start_ns", "i64");
    for (size_t i = 0; i < count; i++)
        put_i64(&tile->data, events[i].start_ns);
    column_open(tile, "duration_ns", "i64");
    for (size_t i = 0; i < count; i++)
        put_i64(&tile->data, events[i].duration_ns);
    column_open(tile, "name", "u32");
    for (size_t i = 0; i < count; i++) {
        put_u32(&tile->data, events[i].name);
        name_note(tile, track->key.kind, events[i].name, track_event_name(set, track->key.kind, events[i].name));
    }
    column_open(tile, "row", "u32");
    for (size_t i = 0; i < count; i++)
        put_u32(&tile->data, events[i].row);
    if (track->key.kind == TRACK_COPIES) {
        column_open(tile, "host_memory", "u32");
        for (size_t i = 0; i < count; i++)
            put_u32(&tile->data, copy_host_memory(&set->model->copies[events[i].row]));
    }
    bytes_append_text(&tile->text, "]}");
}

/* Sums of time spans; start and width: how the caller divides time. */
struct stretch {
    int64_t start_ns, width_ns, busy_ns;
    uint32_t count, name;
};

static void stretches_write(struct tile *tile, const struct track_key *key, size_t count,
                            struct stretch (*at)(const struct tile *tile, const void *source, size_t index),
                            const void *source)
{
    track_open(tile, key, false, count);
    column_open(tile, "start_ns", "i64");
    for (size_t i = 0; i < count; i++)
        put_i64(&tile->data, at(tile, source, i).start_ns);
    column_open(tile, "width_ns", "i64");
    for (size_t i = 0; i < count; i++)
        put_i64(&tile->data, at(tile, source, i).width_ns);
    column_open(tile, "busy_ns", "i64");
    for (size_t i = 0; i < count; i++)
        put_i64(&tile->data, at(tile, source, i).busy_ns);
    column_open(tile, "count", "u32");
    for (size_t i = 0; i < count; i++)
        put_u32(&tile->data, at(tile, source, i).count);
    column_open(tile, "name", "u32");
    for (size_t i = 0; i < count; i++)
        put_u32(&tile->data, at(tile, source, i).name);
    bytes_append_text(&tile->text, "]}");
}

static struct stretch pixel_at(const struct tile *tile, const void *source, size_t index)
{
    const struct track_pixel *pixel = &((const struct track_pixel *)source)[index];
    int64_t start_ns = track_pixel_start(tile->from_ns, tile->to_ns, tile->pixels, pixel->pixel);
    int64_t end_ns = track_pixel_start(tile->from_ns, tile->to_ns, tile->pixels, pixel->pixel + 1);
    return (struct stretch){start_ns, end_ns - start_ns, pixel->busy_ns, pixel->count, pixel->name};
}

static void set_write(struct tile *tile, const struct track_set *set)
{
    for (size_t i = 0; i < set->track_count; i++) {
        const struct track *track = &set->tracks[i];
        if (!is_wanted(tile, &track->key))
            continue;
        size_t count = track_events(set, track, tile->from_ns, tile->to_ns, tile->events, tile->events_max);
        if (count != SIZE_MAX) {
            events_write(tile, set, track, count);
            continue;
        }
        count = track_pixels(set, track, tile->from_ns, tile->to_ns, tile->pixels, tile->columns);
        for (size_t k = 0; k < count; k++)
            name_note(tile, track->key.kind, tile->columns[k].name,
                      track_event_name(set, track->key.kind, tile->columns[k].name));
        stretches_write(tile, &track->key, count, pixel_at, tile->columns);
    }
}

struct stored_buckets {
    const struct timeline *timeline;
    const struct timeline_track *track;
};

static struct stretch bucket_at(const struct tile *tile, const void *source, size_t index)
{
    (void)tile;
    const struct stored_buckets *stored = source;
    const struct timeline_bucket *bucket = &stored->timeline->buckets[stored->track->first + index];
    return (struct stretch){bucket->start_ns, stored->timeline->width_ns, bucket->busy_ns,
                            bucket->count < UINT32_MAX ? (uint32_t)bucket->count : UINT32_MAX, bucket->key};
}

static bool take_name(void *user, const struct store_kernel *kernel)
{
    struct tile *tile = user;
    uint32_t name = kernel->kernel_id;
    if (intern_find(&tile->unnamed, &name, sizeof name))
        name_note(tile, TRACK_KERNELS, name, kernel->name);
    return true;
}

static gpufl_status buckets_write(struct tile *tile, const struct timeline *timeline, struct problem *problem)
{
    for (size_t i = 0; i < timeline->track_count; i++) {
        const struct stored_buckets stored = {timeline, &timeline->tracks[i]};
        const struct track_key key = query_sums_key(stored.track);
        if (!is_wanted(tile, &key))
            continue;
        for (size_t k = 0; k < stored.track->count; k++) {
            uint32_t name = timeline->buckets[stored.track->first + k].key;
            if (key.kind == TRACK_COPIES)
                name_note(tile, key.kind, name, schema_word("copy_kind", name));
            else if (key.kind == TRACK_KERNELS)
                intern_id(&tile->unnamed, &name, sizeof name, NULL);
        }
        stretches_write(tile, &key, stored.track->count, bucket_at, &stored);
    }
    return store_kernels(tile->call->query->store, http_exchange_path_value(tile->call->exchange, "id"), take_name,
                         tile, problem);
}

/* Loads only the rows of the time span. */
static gpufl_status rows_write(struct tile *tile, struct problem *problem)
{
    struct store_range range = {.session_id = http_exchange_path_value(tile->call->exchange, "id"),
                                .from_ns = tile->from_ns,
                                .to_ns = tile->to_ns};
    record_set_add(&range.types, RECORD_KERNEL_EVENT_BATCH);
    record_set_add(&range.types, RECORD_MEMCPY_EVENT_BATCH);
    record_set_add(&range.types, RECORD_MEMSET_EVENT_BATCH);
    record_set_add(&range.types, RECORD_DICTIONARY_UPDATE);
    record_set_add(&range.types, RECORD_JOB_START);
    struct session_model *model;
    struct track_set set;
    gpufl_status status = query_load(tile->call->query->store, &range, 0, &model, problem);
    if (status != GPUFL_OK)
        return status;
    status = track_set_make(&set, model);
    if (status == GPUFL_OK) {
        set_write(tile, &set);
        track_set_free(&set);
    }
    session_free(model);
    return status;
}

static bool stored_write(struct tile *tile)
{
    struct timeline timeline;
    struct problem problem = {"no memory to answer"};
    if (!query_sums_read(tile->call, tile->from_ns, tile->to_ns, (tile->to_ns - tile->from_ns) / tile->pixels,
                         &timeline))
        return false;
    gpufl_status status =
        timeline.rows <= tile->events_max ? rows_write(tile, &problem) : buckets_write(tile, &timeline, &problem);
    timeline_free(&timeline);
    return status == GPUFL_OK || query_fail_status(tile->call, status, "session", &problem);
}

static void tile_answer(struct tile *tile)
{
    struct bytes *out = &tile->call->out;
    bytes_append_char(&tile->text, ']');
    list_open(&tile->text, "names");
    bytes_append(&tile->text, tile->names.data, tile->names.size);
    bytes_append_text(&tile->text, "]}");
    while (tile->text.size % 8 && !tile->text.failed)
        bytes_append_char(&tile->text, ' ');
    data_pad(&tile->data);
    bytes_append(out, "GFLCOLS1", 8);
    put_u32(out, (uint32_t)tile->text.size);
    put_u32(out, 0);
    bytes_append(out, tile->text.data, tile->text.size);
    bytes_append(out, tile->data.data, tile->data.size);
    out->failed |= tile->text.failed || tile->data.failed || tile->names.failed;
    http_respond_bytes(tile->call->exchange, 200, QUERY_COLUMNS_TYPE, out);
}

void query_timeline(struct query_call *call)
{
    bool is_too_large;
    int64_t pixels = pixels_default;
    struct session_span span;
    const struct query_session *session;
    const struct track_set *tracks = query_whole_tracks(call, true, &session, &is_too_large);
    if ((!session && !is_too_large) || (session && query_is_known(call, session)) || !span_of(call, &span) ||
        !query_int(call, "pixels", 1, TRACK_PIXELS_MAX, &pixels))
        return;
    struct tile tile = {.call = call,
                        .from_ns = session ? session->analysis.start_ns : span.start_ns,
                        .to_ns = (session ? session->analysis.end_ns : span.end_ns) + 1,
                        .pixels = (uint32_t)pixels,
                        .wanted = query_text(call, "tracks")};
    if (session && session->analysis.start_ns == TIME_UNKNOWN) {
        tile.from_ns = 0;
        tile.to_ns = 1;
    }
    if (!query_range(call, &tile.from_ns, &tile.to_ns))
        return;
    tile.events_max = (size_t)pixels * events_per_pixel > events_min ? (size_t)pixels * events_per_pixel : events_min;
    tile.events = malloc(tile.events_max * sizeof *tile.events);
    tile.columns = malloc((size_t)pixels * sizeof *tile.columns);
    bytes_append_char(&tile.text, '{');
    member_int(&tile.text, "from_ns", tile.from_ns);
    member_int(&tile.text, "to_ns", tile.to_ns);
    member_uint(&tile.text, "pixels", tile.pixels);
    list_open(&tile.text, "tracks");
    bool is_done = tile.events && tile.columns;
    if (!is_done)
        query_fail(call, 503, "no_memory", "no memory to answer");
    else if (session)
        set_write(&tile, tracks);
    else
        is_done = stored_write(&tile);
    if (is_done)
        tile_answer(&tile);
    for (int kind = 0; kind < TRACK_KIND_COUNT; kind++)
        intern_free(&tile.known[kind]);
    intern_free(&tile.unnamed);
    bytes_free(&tile.text);
    bytes_free(&tile.data);
    bytes_free(&tile.names);
    free(tile.events);
    free(tile.columns);
}
