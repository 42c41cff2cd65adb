/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/tracks.h"

#include "analysis/name_weights.h"
#include "analysis/statistics.h"

#include <stdlib.h>

enum { chunk_events = 64, tracks_max = 4096 };

struct track_chunk {
    int64_t start_ns;      /* of its first event */
    int64_t end_before_ns; /* latest end of all events before it */
    int64_t end_ns;        /* latest end of all events up to its last */
    int64_t busy_ns;       /* time that its events add to the time covered before */
    uint32_t name;         /* the name with the most of that */
    uint32_t count;
};

const char *track_kind_name(enum track_kind kind)
{
    static const char *const names[TRACK_KIND_COUNT] = {"kernels", "copies", "memsets", "graphs",
                                                        "scopes",  "syncs",  "launches"};
    return names[kind];
}

const char *track_event_name(const struct track_set *set, enum track_kind kind, uint32_t name)
{
    switch (kind) {
    case TRACK_KERNELS:
    case TRACK_LAUNCHES:
        return session_text(set->model, DICTIONARY_KERNEL, name);
    case TRACK_SCOPES:
        return session_text(set->model, DICTIONARY_SCOPE_NAME, name);
    case TRACK_COPIES:
        return schema_word("copy_kind", name);
    case TRACK_SYNCS:
        return schema_word("sync_type", name);
    default:
        return NULL;
    }
}

static size_t rows_of(const struct session_model *model, enum track_kind kind)
{
    switch (kind) {
    case TRACK_KERNELS:
        return model->kernels.count;
    case TRACK_COPIES:
        return model->copy_count;
    case TRACK_MEMSETS:
        return model->memset_count;
    case TRACK_GRAPHS:
        return model->graph_count;
    case TRACK_SCOPES:
        return model->scope_count;
    case TRACK_LAUNCHES:
        return model->kernels.api_start_ns ? model->kernels.count : 0;
    default:
        return model->sync_count;
    }
}

static struct track_event event_at(const struct session_model *model, enum track_kind kind, uint32_t row)
{
    struct track_event event = {.row = row};
    const struct gpu_span *span = NULL;
    switch (kind) {
    case TRACK_KERNELS:
        event.start_ns = model->kernels.start_ns[row];
        event.duration_ns = model->kernels.duration_ns[row];
        event.name = model->kernels.kernel_id[row];
        break;
    case TRACK_LAUNCHES:
        event.start_ns = model->kernels.api_start_ns[row];
        event.duration_ns = model->kernels.api_duration_ns[row];
        event.name = model->kernels.kernel_id[row];
        break;
    case TRACK_COPIES:
        span = &model->copies[row].span;
        event.name = model->copies[row].copy_kind;
        break;
    case TRACK_MEMSETS:
        span = &model->memsets[row].span;
        break;
    case TRACK_GRAPHS:
        span = &model->graphs[row].span;
        event.name = span->graph_id;
        break;
    case TRACK_SCOPES: {
        const struct scope_instance *scope = &model->scopes[row];
        /* A scope that was never closed lasted at least until the end of the log. */
        int64_t end_ns = scope->end_ns != TIME_UNKNOWN ? scope->end_ns : model->last_ns;
        event.start_ns = scope->begin_ns;
        event.duration_ns = end_ns > scope->begin_ns ? end_ns - scope->begin_ns : 0;
        event.name = scope->path_id;
        break;
    }
    default:
        event.start_ns = model->syncs[row].start_ns;
        event.duration_ns = model->syncs[row].duration_ns;
        event.name = model->syncs[row].sync_type;
    }
    if (span) {
        event.start_ns = span->start_ns;
        event.duration_ns = span->duration_ns;
    }
    return event;
}

/* False: the event has no time. */
static bool key_of(const struct session_model *model, enum track_kind kind, uint32_t row, struct track_key *key)
{
    *key = (struct track_key){.kind = (uint8_t)kind,
                              .device = DEVICE_UNKNOWN,
                              .stream_id = ID_UNKNOWN,
                              .thread_id = ID_UNKNOWN,
                              .depth = ID_UNKNOWN};
    const struct gpu_span *span = kind == TRACK_COPIES    ? &model->copies[row].span
                                  : kind == TRACK_MEMSETS ? &model->memsets[row].span
                                  : kind == TRACK_GRAPHS  ? &model->graphs[row].span
                                                          : NULL;
    if (span) {
        key->device = span->device;
        key->stream_id = span->stream_id;
    } else if (kind == TRACK_KERNELS) {
        key->device = model->kernels.device[row];
        key->stream_id = model->kernels.stream_id[row];
    } else if (kind == TRACK_SCOPES) {
        key->thread_id = model->scopes[row].thread_id;
        key->depth = model->scopes[row].depth;
        return model->scopes[row].begin_ns != TIME_UNKNOWN && !model->scopes[row].is_attribution_only;
    } else if (kind == TRACK_LAUNCHES) {
        const struct kernel_columns *kernels = &model->kernels;
        key->thread_id = kernels->thread_id[row];
        return kernels->api_start_ns[row] != TIME_UNKNOWN && kernels->api_duration_ns[row] != API_DURATION_UNKNOWN &&
               !(kernels->graph_id && kernels->graph_id[row]);
    } else {
        key->thread_id = model->syncs[row].thread_id;
    }
    return true;
}

static int track_compare(const void *left, const void *right)
{
    const struct track_key *a = &((const struct track *)left)->key;
    const struct track_key *b = &((const struct track *)right)->key;
    const uint32_t parts[][2] = {{a->kind, b->kind},
                                 {a->device, b->device},
                                 {a->stream_id, b->stream_id},
                                 {a->thread_id, b->thread_id},
                                 {a->depth, b->depth}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i][0] != parts[i][1])
            return parts[i][0] < parts[i][1] ? -1 : 1;
    return 0;
}

/* State while rows are assigned to tracks, which are numbered in order of first appearance. */
struct dealer {
    struct track_set *set;
    struct intern keys;
    struct track_key last_key; /* events come in runs of one track */
    uint32_t last_id;
    size_t capacity;
    uint16_t *ids; /* owned; of every row, kind after kind */
    bool has_failed;
};
_Static_assert(tracks_max <= UINT16_MAX, "ids of tracks are kept in 16 bits");

/* From 1; 0: no track for it. */
static uint32_t track_of(struct dealer *dealer, enum track_kind kind, uint32_t row)
{
    struct track_set *set = dealer->set;
    struct track_key key;
    if (!key_of(set->model, kind, row, &key))
        return 0;
    if (dealer->last_id && !memcmp(&key, &dealer->last_key, sizeof key))
        return dealer->last_id;
    uint32_t id = intern_find(&dealer->keys, &key, sizeof key);
    if (!id && set->track_count < tracks_max) {
        if (set->track_count == dealer->capacity) {
            size_t capacity = dealer->capacity * 2 + 16;
            struct track *grown = realloc(set->tracks, capacity * sizeof *grown);
            if (grown)
                set->tracks = grown;
            dealer->capacity = grown ? capacity : dealer->capacity;
        }
        id = set->track_count < dealer->capacity ? intern_id(&dealer->keys, &key, sizeof key, NULL) : 0;
        dealer->has_failed = !id;
        if (id)
            set->tracks[set->track_count++] = (struct track){.key = key};
    }
    if (id) {
        dealer->last_key = key;
        dealer->last_id = id;
    }
    return id;
}

static bool tracks_count(struct dealer *dealer)
{
    struct track_set *set = dealer->set;
    size_t total = 0;
    for (int kind = 0; kind < TRACK_KIND_COUNT; kind++)
        total += rows_of(set->model, kind);
    uint16_t *next = dealer->ids = malloc((total + 1) * sizeof *dealer->ids);
    dealer->has_failed = !next;
    for (int kind = 0; kind < TRACK_KIND_COUNT && !dealer->has_failed; kind++) {
        for (size_t row = 0; row < rows_of(set->model, kind) && !dealer->has_failed; row++) {
            uint32_t id = track_of(dealer, kind, (uint32_t)row);
            *next++ = (uint16_t)id;
            if (id)
                set->tracks[id - 1].count++;
            else if (kind != TRACK_LAUNCHES) /* their kernels are in the set */
                set->left_out++;
        }
    }
    return !dealer->has_failed;
}

/* The model stores scopes in the order of their rows and launches in that of their kernels; everything else is already
 * in order of start. */
static bool track_sort(const struct track_set *set, struct track *track, uint32_t *rows)
{
    if ((track->key.kind != TRACK_SCOPES && track->key.kind != TRACK_LAUNCHES) || track->count < 2)
        return true;
    int64_t *starts = malloc(track->count * sizeof *starts);
    uint32_t *order = malloc(3 * track->count * sizeof *order);
    bool is_done = starts && order;
    for (size_t i = 0; is_done && i < track->count; i++)
        starts[i] = event_at(set->model, track->key.kind, rows[i]).start_ns;
    if (is_done && !keys_are_ordered(starts, track->count)) {
        uint32_t *sorted = order + 2 * track->count;
        keys_order(starts, track->count, order, order + track->count);
        for (size_t i = 0; i < track->count; i++)
            sorted[i] = rows[order[i]];
        memcpy(rows, sorted, track->count * sizeof *rows);
    }
    free(starts);
    free(order);
    return is_done;
}

static size_t chunk_count(const struct track *track)
{
    return (track->count + chunk_events - 1) / chunk_events;
}

static void track_sum(const struct track_set *set, struct track *track)
{
    int64_t end_ns = INT64_MIN;
    for (size_t chunk = 0; chunk < chunk_count(track); chunk++) {
        struct track_chunk *sum = &track->chunks[chunk];
        struct name_weights weights = {0};
        size_t first = chunk * chunk_events, last = first + chunk_events;
        *sum = (struct track_chunk){.end_before_ns = end_ns};
        for (size_t i = first; i < last && i < track->count; i++, sum->count++) {
            struct track_event event = event_at(set->model, track->key.kind, track->rows[i]);
            int64_t event_end_ns = event.start_ns + event.duration_ns;
            int64_t seen_ns = event.start_ns > end_ns ? event.start_ns : end_ns;
            if (i == first)
                sum->start_ns = event.start_ns;
            if (event_end_ns > seen_ns) {
                sum->busy_ns += event_end_ns - seen_ns;
                name_weights_add(&weights, event.name, event_end_ns - seen_ns);
            }
            end_ns = event_end_ns > end_ns ? event_end_ns : end_ns;
        }
        sum->end_ns = end_ns;
        sum->name = name_weights_top(&weights);
        track->busy_ns = sum_saturated(track->busy_ns, sum->busy_ns);
    }
    track->first_ns = track->chunks[0].start_ns;
    track->last_ns = end_ns;
}

static bool tracks_fill(struct dealer *dealer)
{
    struct track_set *set = dealer->set;
    size_t total = 0;
    for (size_t i = 0; i < set->track_count; i++) {
        total += set->tracks[i].count;
        set->chunk_total += chunk_count(&set->tracks[i]);
    }
    set->rows = malloc((total + 1) * sizeof *set->rows);
    set->chunks = malloc((set->chunk_total + 1) * sizeof *set->chunks);
    uint32_t **next = malloc((set->track_count + 1) * sizeof *next);
    bool is_done = set->rows && set->chunks && next;
    struct track_chunk *chunks = set->chunks;
    uint32_t *rows = set->rows;
    for (size_t i = 0; is_done && i < set->track_count; i++) {
        set->tracks[i].rows = next[i] = rows;
        set->tracks[i].chunks = chunks;
        rows += set->tracks[i].count;
        chunks += chunk_count(&set->tracks[i]);
    }
    const uint16_t *ids = dealer->ids;
    for (int kind = 0; is_done && kind < TRACK_KIND_COUNT; kind++) {
        for (size_t row = 0; row < rows_of(set->model, kind); row++, ids++)
            if (*ids)
                *next[*ids - 1]++ = (uint32_t)row;
    }
    rows = set->rows;
    for (size_t i = 0; is_done && i < set->track_count; i++) {
        is_done = track_sort(set, &set->tracks[i], rows);
        rows += set->tracks[i].count;
        if (is_done)
            track_sum(set, &set->tracks[i]);
    }
    free(next);
    return is_done;
}

gpufl_status track_set_make(struct track_set *set, const struct session_model *model)
{
    memset(set, 0, sizeof *set);
    set->model = model;
    struct dealer dealer = {.set = set};
    bool is_done = tracks_count(&dealer) && tracks_fill(&dealer);
    intern_free(&dealer.keys);
    free(dealer.ids);
    if (!is_done) {
        track_set_free(set);
        return GPUFL_E_NO_MEMORY;
    }
    if (set->track_count)
        qsort(set->tracks, set->track_count, sizeof *set->tracks, track_compare);
    return GPUFL_OK;
}

void track_set_free(struct track_set *set)
{
    free(set->tracks);
    free(set->rows);
    free(set->chunks);
    memset(set, 0, sizeof *set);
}

size_t track_set_bytes(const struct track_set *set)
{
    size_t rows = 0;
    for (size_t i = 0; i < set->track_count; i++)
        rows += set->tracks[i].count;
    return rows * sizeof *set->rows + set->chunk_total * sizeof *set->chunks + set->track_count * sizeof *set->tracks;
}

/* The first chunk with an event that ends after the time, or at it if it has no duration. */
static size_t chunk_at(const struct track *track, int64_t time_ns)
{
    size_t low = 0, high = chunk_count(track);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (track->chunks[middle].end_ns < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t track_events(const struct track_set *set, const struct track *track, int64_t from_ns, int64_t to_ns,
                    struct track_event *events, size_t max)
{
    size_t found = 0;
    for (size_t i = chunk_at(track, from_ns) * chunk_events; i < track->count; i++) {
        struct track_event event = event_at(set->model, track->key.kind, track->rows[i]);
        if (event.start_ns >= to_ns)
            break;
        if (event.start_ns + event.duration_ns <= from_ns && event.start_ns < from_ns)
            continue;
        if (found == max)
            return SIZE_MAX;
        events[found++] = event;
    }
    return found;
}

int64_t track_pixel_start(int64_t from_ns, int64_t to_ns, uint32_t pixel_count, uint32_t pixel)
{
    int64_t span = to_ns - from_ns, whole = span / pixel_count, rest = span % pixel_count;
    return from_ns + whole * pixel + rest * pixel / pixel_count;
}

/* The pixel being filled; time advances from call to call. */
struct brush {
    int64_t from_ns, to_ns, pixel_end_ns;
    uint32_t pixel_count, pixel;
    struct track_pixel current;
    struct name_weights weights;
    struct track_pixel *out;
    size_t count;
};

static void brush_flush(struct brush *brush)
{
    if (brush->current.count || brush->current.busy_ns) {
        brush->current.pixel = brush->pixel;
        brush->current.name = name_weights_top(&brush->weights);
        brush->out[brush->count++] = brush->current;
    }
    brush->current = (struct track_pixel){0};
    brush->weights = (struct name_weights){0};
}

/* Moves to the pixel that contains the time, which is inside the tile. */
static void brush_move(struct brush *brush, int64_t time_ns)
{
    if (time_ns < brush->pixel_end_ns)
        return;
    brush_flush(brush);
    while (time_ns >= brush->pixel_end_ns)
        brush->pixel_end_ns = track_pixel_start(brush->from_ns, brush->to_ns, brush->pixel_count, ++brush->pixel + 1);
}

static void brush_add(struct brush *brush, uint32_t count, int64_t busy_ns, uint32_t name)
{
    brush->current.count += count;
    brush->current.busy_ns += busy_ns;
    name_weights_add(&brush->weights, name, busy_ns);
}

static void brush_event(struct brush *brush, int64_t start_ns, int64_t end_ns, uint32_t name)
{
    bool is_beginning = start_ns >= brush->from_ns && start_ns < brush->to_ns;
    start_ns = start_ns > brush->from_ns ? start_ns : brush->from_ns;
    end_ns = end_ns < brush->to_ns ? end_ns : brush->to_ns;
    if (start_ns >= brush->to_ns || (start_ns >= end_ns && !is_beginning))
        return;
    brush_move(brush, start_ns);
    brush->current.count += is_beginning;
    while (start_ns < end_ns) {
        brush_move(brush, start_ns);
        int64_t part_end_ns = end_ns < brush->pixel_end_ns ? end_ns : brush->pixel_end_ns;
        brush_add(brush, 0, part_end_ns - start_ns, name);
        start_ns = part_end_ns;
    }
}

size_t track_pixels(const struct track_set *set, const struct track *track, int64_t from_ns, int64_t to_ns,
                    uint32_t pixel_count, struct track_pixel *out)
{
    if (to_ns <= from_ns || !pixel_count)
        return 0;
    struct brush brush = {.from_ns = from_ns, .to_ns = to_ns, .pixel_count = pixel_count, .out = out};
    brush.pixel_end_ns = track_pixel_start(from_ns, to_ns, pixel_count, 1);
    for (size_t chunk = chunk_at(track, from_ns); chunk < chunk_count(track); chunk++) {
        const struct track_chunk *sum = &track->chunks[chunk];
        int64_t seen_ns = sum->end_before_ns > sum->start_ns ? sum->end_before_ns : sum->start_ns;
        if (seen_ns >= to_ns)
            break;
        if (seen_ns >= from_ns) {
            brush_move(&brush, seen_ns);
            if (sum->end_ns < brush.pixel_end_ns) {
                brush_add(&brush, sum->count, sum->busy_ns, sum->name);
                continue;
            }
        }
        int64_t end_ns = sum->end_before_ns;
        for (size_t i = chunk * chunk_events; i < chunk * chunk_events + sum->count; i++) {
            struct track_event event = event_at(set->model, track->key.kind, track->rows[i]);
            int64_t event_end_ns = event.start_ns + event.duration_ns;
            int64_t start_ns = event.start_ns > end_ns ? event.start_ns : end_ns;
            if (start_ns >= to_ns)
                break;
            end_ns = event_end_ns > end_ns ? event_end_ns : end_ns;
            brush_event(&brush, start_ns, end_ns, event.name);
        }
    }
    brush_flush(&brush);
    return brush.count;
}
