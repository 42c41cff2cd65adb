/* SPDX-License-Identifier: Apache-2.0 */
/* Perfetto's own format: TracePackets with TrackEvents. The trace clock is CLOCK_REALTIME, as in the log. Names,
 * argument names and argument texts are interned. Field numbers are those of perfetto/trace/trace_packet.proto and the
 * files it includes. */
#include "export/protobuf.h"
#include "export/timeline.h"
#include "export/writers.h"

#include "base/intern.h"

#include <stdio.h>
#include <stdlib.h>

enum { TRACE_PACKET = 1 };
enum packet_field {
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK_DESCRIPTOR = 60
};
enum { DEFAULTS_CLOCK_ID = 58, CLOCK_REALTIME_ID = 1, CLOCK_MONOTONIC_ID = 3 };
enum { SEQUENCE_ID = 1, STATE_CLEARED = 1, STATE_NEEDED = 2 };
enum event_field {
    EVENT_CATEGORY_IID = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_NAME = 23,
    EVENT_COUNTER = 30,
    EVENT_DOUBLE_COUNTER = 44,
    EVENT_FLOW = 47,
    EVENT_LAST_FLOW = 48
};
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { INTERNED_CATEGORY = 1, INTERNED_NAME = 2, INTERNED_KEY = 3, INTERNED_TEXT = 29 };
enum {
    ANNOTATION_KEY_IID = 1,
    ANNOTATION_INT = 4,
    ANNOTATION_DOUBLE = 5,
    ANNOTATION_TEXT = 6,
    ANNOTATION_TEXT_IID = 17
};
enum descriptor_field {
    DESCRIPTOR_UUID = 1,
    DESCRIPTOR_NAME = 2,
    DESCRIPTOR_PROCESS = 3,
    DESCRIPTOR_THREAD = 4,
    DESCRIPTOR_PARENT = 5,
    DESCRIPTOR_COUNTER = 8
};
enum { INTERNED_BYTES_MAX = 64 << 20, INTERNED_TEXT_MAX = 4096 };

/* The first ids of tracks; 0 is the trace's and 1 the program's. */
#define TRACK_PROGRAM 1ull
#define TRACK_SESSION 2ull
#define TRACK_THREADS (1ull << 33)
#define TRACK_GPUS (2ull << 33)
#define TRACK_LANES (3ull << 33)
#define TRACK_COUNTERS (4ull << 33)

struct perfetto {
    struct export_sink *sink;
    const struct export_filter *filter;
    struct bytes interned;                 /* of the current packet */
    uint32_t *name_iids[DICTIONARY_COUNT]; /* by dictionary id; of kernels and scopes */
    uint32_t name_count;
    struct intern words, keys, texts, parents; /* parents: tracks that were described */
};

static size_t packet_begin(struct perfetto *perfetto, int64_t time_ns)
{
    struct bytes *out = &perfetto->sink->buffer;
    size_t begin = protobuf_begin(out, TRACE_PACKET);
    if (time_ns != TIME_UNKNOWN)
        protobuf_int(out, PACKET_TIMESTAMP, time_ns);
    protobuf_uint(out, PACKET_SEQUENCE_ID, SEQUENCE_ID);
    return begin;
}

static bool packet_end(struct perfetto *perfetto, size_t begin)
{
    struct bytes *out = &perfetto->sink->buffer;
    if (perfetto->interned.size) {
        size_t data = protobuf_begin(out, PACKET_INTERNED_DATA);
        bytes_append(out, perfetto->interned.data, perfetto->interned.size);
        protobuf_end(out, data);
    }
    out->failed = out->failed || perfetto->interned.failed;
    bytes_clear(&perfetto->interned);
    protobuf_end(out, begin);
    return sink_step(perfetto->sink);
}

static void interned_add(struct perfetto *perfetto, unsigned field, uint64_t iid, const char *text)
{
    size_t entry = protobuf_begin(&perfetto->interned, field);
    protobuf_uint(&perfetto->interned, 1, iid);
    protobuf_text(&perfetto->interned, 2, text);
    protobuf_end(&perfetto->interned, entry);
}

/* 0: write the text in place. */
static uint64_t interned_id(struct perfetto *perfetto, struct intern *table, unsigned field, const char *text)
{
    size_t size = strlen(text);
    bool is_new = false;
    uint32_t id = size <= INTERNED_TEXT_MAX ? intern_id(table, text, size, &is_new) : 0;
    if (is_new)
        interned_add(perfetto, field, id, text);
    return id;
}

static void name_append(struct perfetto *perfetto, const struct timeline_event *event)
{
    struct bytes *out = &perfetto->sink->buffer;
    uint32_t *iids = event->name_id ? perfetto->name_iids[event->dictionary] : NULL;
    if (!iids) { /* ids of words are below, ids of dictionary names above */
        uint64_t iid = interned_id(perfetto, &perfetto->words, INTERNED_NAME, event->name);
        if (iid)
            protobuf_uint(out, EVENT_NAME_IID, iid);
        else
            protobuf_text(out, EVENT_NAME, event->name);
        return;
    }
    if (!iids[event->name_id]) {
        iids[event->name_id] = ++perfetto->name_count;
        interned_add(perfetto, INTERNED_NAME, (1ull << 32) + perfetto->name_count, event->name);
    }
    protobuf_uint(out, EVENT_NAME_IID, (1ull << 32) + iids[event->name_id]);
}

static void annotation_append(struct perfetto *perfetto, const char *key, const struct table_value *value)
{
    struct bytes *out = &perfetto->sink->buffer;
    size_t begin = protobuf_begin(out, EVENT_ANNOTATION);
    protobuf_uint(out, ANNOTATION_KEY_IID, interned_id(perfetto, &perfetto->keys, INTERNED_KEY, key));
    if (value->text) {
        uint64_t iid = interned_id(perfetto, &perfetto->texts, INTERNED_TEXT, value->text);
        if (iid)
            protobuf_uint(out, ANNOTATION_TEXT_IID, iid);
        else
            protobuf_text(out, ANNOTATION_TEXT, value->text);
    } else if (value->kind == VALUE_REAL) {
        protobuf_double(out, ANNOTATION_DOUBLE, value->real);
    } else {
        protobuf_int(out, ANNOTATION_INT, value->integer);
    }
    protobuf_end(out, begin);
}

static size_t event_begin(struct perfetto *perfetto, unsigned type, uint64_t track)
{
    struct bytes *out = &perfetto->sink->buffer;
    protobuf_uint(out, PACKET_SEQUENCE_FLAGS, STATE_NEEDED);
    size_t begin = protobuf_begin(out, PACKET_TRACK_EVENT);
    protobuf_uint(out, EVENT_TYPE, type);
    protobuf_uint(out, EVENT_TRACK, track);
    return begin;
}

/* process or thread: the field that determines the kind of track, with pid and, for a thread, tid; 0: a plain track. */
static bool track_write(struct perfetto *perfetto, uint64_t uuid, uint64_t parent, const char *name, unsigned field,
                        uint32_t thread)
{
    struct bytes *out = &perfetto->sink->buffer;
    size_t packet = packet_begin(perfetto, TIME_UNKNOWN);
    size_t begin = protobuf_begin(out, PACKET_TRACK_DESCRIPTOR);
    protobuf_uint(out, DESCRIPTOR_UUID, uuid);
    if (parent)
        protobuf_uint(out, DESCRIPTOR_PARENT, parent);
    if (name)
        protobuf_text(out, DESCRIPTOR_NAME, name);
    if (field) {
        size_t part = protobuf_begin(out, field);
        if (field != DESCRIPTOR_COUNTER)
            protobuf_int(out, 1, perfetto->filter->model->job.pid);
        if (field == DESCRIPTOR_THREAD)
            protobuf_int(out, 2, thread);
        if (field == DESCRIPTOR_PROCESS && name)
            protobuf_text(out, 6, name);
        protobuf_end(out, part);
    }
    protobuf_end(out, begin);
    return packet_end(perfetto, packet);
}

static uint64_t gpu_track(struct perfetto *perfetto, uint16_t device)
{
    uint64_t uuid = TRACK_GPUS + device;
    bool is_new = false;
    (void)intern_id(&perfetto->parents, &uuid, sizeof uuid, &is_new);
    if (is_new) {
        char name[256];
        timeline_gpu_name(perfetto->filter->model, device, name, sizeof name);
        track_write(perfetto, uuid, 0, name, 0, 0);
    }
    return uuid;
}

static uint64_t thread_track(struct perfetto *perfetto, uint32_t thread)
{
    if (thread == ID_UNKNOWN || perfetto->filter->model->job.pid < 0)
        return TRACK_PROGRAM;
    uint64_t uuid = TRACK_THREADS + thread;
    bool is_new = false;
    (void)intern_id(&perfetto->parents, &uuid, sizeof uuid, &is_new);
    if (is_new)
        track_write(perfetto, uuid, 0, NULL, DESCRIPTOR_THREAD, thread);
    return uuid;
}

static bool lane_write(void *user, const struct timeline_lane *lane)
{
    struct perfetto *perfetto = user;
    char name[96];
    timeline_lane_name(lane, name, sizeof name);
    uint64_t parent = TRACK_PROGRAM;
    if (lane->group == LANE_STREAM || lane->group == LANE_GRAPHS)
        parent = gpu_track(perfetto, lane->device);
    else if (lane->group != LANE_WINDOWS)
        parent = thread_track(perfetto, lane->owner);
    return track_write(perfetto, TRACK_LANES + lane->id, parent, name, 0, 0);
}

static bool event_write(void *user, const struct timeline_event *event)
{
    struct perfetto *perfetto = user;
    struct bytes *out = &perfetto->sink->buffer;
    uint64_t track = TRACK_LANES + event->lane->id;
    size_t packet = packet_begin(perfetto, event->start_ns);
    size_t begin = event_begin(perfetto, TYPE_BEGIN, track);
    protobuf_uint(out, EVENT_CATEGORY_IID, (uint64_t)event->kind + 1);
    name_append(perfetto, event);
    struct event_arguments arguments;
    timeline_arguments(perfetto->filter->model, event, &arguments);
    for (unsigned i = 0; i < arguments.count; i++)
        annotation_append(perfetto, arguments.items[i].key, &arguments.items[i].value);
    for (size_t i = 0; i < event->flow_count; i++)
        protobuf_fixed64(out, EVENT_FLOW, event->flow_ids[i]);
    if (event->flow_id)
        protobuf_fixed64(out, EVENT_LAST_FLOW, event->flow_id);
    protobuf_end(out, begin);
    if (!packet_end(perfetto, packet))
        return false;
    if (event->end_ns == TIME_UNKNOWN)
        return true;
    packet = packet_begin(perfetto, event->end_ns);
    begin = event_begin(perfetto, TYPE_END, track);
    protobuf_end(out, begin);
    return packet_end(perfetto, packet);
}

static bool series_write(void *user, const struct counter_series *series)
{
    struct perfetto *perfetto = user;
    uint64_t parent = series->device == DEVICE_UNKNOWN ? TRACK_PROGRAM : gpu_track(perfetto, series->device);
    return track_write(perfetto, TRACK_COUNTERS + series->id, parent, series->name, DESCRIPTOR_COUNTER, 0);
}

static bool sample_write(void *user, const struct counter_series *series, const struct counter_sample *sample)
{
    struct perfetto *perfetto = user;
    struct bytes *out = &perfetto->sink->buffer;
    size_t packet = packet_begin(perfetto, sample->time_ns);
    size_t begin = event_begin(perfetto, TYPE_COUNTER, TRACK_COUNTERS + series->id);
    if (sample->is_real)
        protobuf_double(out, EVENT_DOUBLE_COUNTER, sample->real);
    else
        protobuf_int(out, EVENT_COUNTER, sample->integer);
    protobuf_end(out, begin);
    return packet_end(perfetto, packet);
}

static void clock_append(struct bytes *out, unsigned clock, int64_t time_ns)
{
    size_t begin = protobuf_begin(out, 1);
    protobuf_uint(out, 1, clock);
    protobuf_int(out, 2, time_ns);
    protobuf_end(out, begin);
}

/* Clocks, categories, and the program's track, which later packets refer to. */
static void preamble_write(struct perfetto *perfetto)
{
    const struct session_model *model = perfetto->filter->model;
    struct bytes *out = &perfetto->sink->buffer;
    size_t packet = packet_begin(perfetto, TIME_UNKNOWN);
    size_t begin = protobuf_begin(out, PACKET_CLOCK_SNAPSHOT);
    bool has_reading = model->clock_sync_count > 0 && model->clock_syncs[0].wall_ns > 0;
    clock_append(out, CLOCK_REALTIME_ID, has_reading ? model->clock_syncs[0].wall_ns : perfetto->filter->start_ns);
    if (has_reading && model->clock_syncs[0].mono_ns > 0)
        clock_append(out, CLOCK_MONOTONIC_ID, model->clock_syncs[0].mono_ns);
    protobuf_uint(out, 2, CLOCK_REALTIME_ID);
    protobuf_end(out, begin);
    packet_end(perfetto, packet);

    packet = packet_begin(perfetto, TIME_UNKNOWN);
    protobuf_uint(out, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
    begin = protobuf_begin(out, PACKET_DEFAULTS);
    protobuf_uint(out, DEFAULTS_CLOCK_ID, CLOCK_REALTIME_ID);
    protobuf_end(out, begin);
    for (unsigned kind = 0; kind <= EVENT_GRAPH; kind++)
        interned_add(perfetto, INTERNED_CATEGORY, kind + 1, timeline_kind_name((enum event_kind)kind));
    packet_end(perfetto, packet);
    track_write(perfetto, TRACK_PROGRAM, 0, *model->job.app ? model->job.app : "program",
                model->job.pid < 0 ? 0 : DESCRIPTOR_PROCESS, 0);
    track_write(perfetto, TRACK_SESSION, TRACK_PROGRAM, "gpufl session", 0, 0);
}

/* An instant event at the session's start, whose annotations are the values of the rows or of one row. */
static size_t note_begin(struct perfetto *perfetto, const char *name, size_t *event)
{
    size_t packet = packet_begin(perfetto, perfetto->filter->start_ns);
    *event = event_begin(perfetto, TYPE_INSTANT, TRACK_SESSION);
    protobuf_text(&perfetto->sink->buffer, EVENT_NAME, name);
    return packet;
}

static void notes_write(struct perfetto *perfetto)
{
    const struct session_model *model = perfetto->filter->model;
    struct table_source source = {.model = model, .filter = perfetto->filter};
    size_t event, packet = note_begin(perfetto, "session", &event);
    for (size_t row = 0; row < table_of_session.count(model); row++) {
        struct table_value values[2] = {0};
        if (table_of_session.row(&source, row, values))
            annotation_append(perfetto, values[0].text, &values[1]);
    }
    protobuf_end(&perfetto->sink->buffer, event);
    packet_end(perfetto, packet);
    for (size_t row = 0; row < table_of_losses.count(model); row++) {
        struct table_value values[TABLE_COLUMNS_MAX] = {0};
        if (!table_of_losses.row(&source, row, values))
            continue;
        packet = note_begin(perfetto, "lost records", &event);
        for (unsigned i = 0; i < table_column_count(&table_of_losses); i++)
            if (values[i].kind != VALUE_NONE)
                annotation_append(perfetto, table_column(&table_of_losses, i).name, &values[i]);
        protobuf_end(&perfetto->sink->buffer, event);
        packet_end(perfetto, packet);
    }
}

gpufl_status perfetto_write(struct export_sink *sink, const struct export_filter *filter)
{
    static const enum dictionary named[] = {DICTIONARY_KERNEL, DICTIONARY_SCOPE_NAME};
    struct perfetto perfetto = {.sink = sink, .filter = filter, .texts = {.text_bytes_max = INTERNED_BYTES_MAX}};
    gpufl_status status = GPUFL_OK;
    if (filter->start_ns == TIME_UNKNOWN)
        return GPUFL_OK;
    for (unsigned i = 0; i < sizeof named / sizeof *named; i++) {
        perfetto.name_iids[named[i]] =
            calloc((size_t)filter->model->dictionaries[named[i]].count + 1, sizeof(uint32_t));
        if (!perfetto.name_iids[named[i]])
            status = GPUFL_E_NO_MEMORY;
    }
    if (status == GPUFL_OK) {
        preamble_write(&perfetto);
        notes_write(&perfetto);
        status = timeline_walk(filter,
                               &(struct timeline_visitor){.user = &perfetto, .lane = lane_write, .event = event_write});
    }
    if (status == GPUFL_OK)
        status = counters_walk(
            filter, &(struct counter_visitor){.user = &perfetto, .series = series_write, .sample = sample_write});
    for (unsigned i = 0; i < sizeof named / sizeof *named; i++)
        free(perfetto.name_iids[named[i]]);
    bytes_free(&perfetto.interned);
    intern_free(&perfetto.words);
    intern_free(&perfetto.keys);
    intern_free(&perfetto.texts);
    intern_free(&perfetto.parents);
    return status;
}
