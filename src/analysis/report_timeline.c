/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the HTML report's timeline. Tracks share a budget: small tracks have every event, others have blocks of
 * time with the busy share of each and what took most of it. */
#include "analysis/report_html.h"
#include "analysis/report_json.h"
#include "analysis/tracks.h"
#include "base/base64.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ITEMS_MAX = 160000, TRACKS_MAX = 120, NAMES_MAX = 4000, NAME_COLUMNS = 200 };
#define SPAN_MAX_NS (INT64_C(1) << 52) /* JavaScript's numbers are exact up to here: 52 days */

struct chosen_track {
    const struct track *track;
    uint32_t blocks; /* 0: every event */
};

/* What the events of one name took, in all tracks of a kind. */
struct timeline_name {
    uint64_t key; /* kind << 32 | name */
    uint64_t busy_ns;
};

struct timeline {
    const struct analysis *analysis;
    struct track_set set;
    struct chosen_track chosen[TRACKS_MAX];
    size_t chosen_count;
    int64_t from_ns, to_ns;
    struct timeline_name *names; /* owned, by key; at most NAMES_MAX are written: those that took the most time */
    size_t name_count, name_capacity, left_out_names;
    struct track_event *events; /* owned: capacity ITEMS_MAX */
    struct track_pixel *pixels; /* owned: capacity TRACK_PIXELS_MAX */
    uint64_t shown_events, aggregated_events, left_out_events, left_out_tracks;
    int64_t longest_block_ns;
};

static int compare_busy(const void *a, const void *b)
{
    int64_t left = ((const struct chosen_track *)a)->track->busy_ns;
    int64_t right = ((const struct chosen_track *)b)->track->busy_ns;
    return left > right ? -1 : left < right;
}

static int compare_count(const void *a, const void *b)
{
    size_t left = ((const struct chosen_track *)a)->track->count;
    size_t right = ((const struct chosen_track *)b)->track->count;
    return left < right ? -1 : left > right;
}

static int compare_key(const void *a, const void *b)
{
    const struct track *left = ((const struct chosen_track *)a)->track;
    const struct track *right = ((const struct chosen_track *)b)->track;
    return left < right ? -1 : left > right; /* the set is sorted by key */
}

/* Chooses the busiest tracks and divides the budget; what small tracks do not need goes to the others. */
static gpufl_status tracks_choose(struct timeline *timeline)
{
    const struct track_set *set = &timeline->set;
    struct chosen_track *all = calloc(set->track_count + 1, sizeof *all);
    if (!all)
        return GPUFL_E_NO_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < set->track_count; i++)
        if (set->tracks[i].key.kind != TRACK_LAUNCHES && set->tracks[i].count)
            all[count++].track = &set->tracks[i];
    qsort(all, count, sizeof *all, compare_busy);
    for (; count > TRACKS_MAX; count--) {
        timeline->left_out_tracks++;
        timeline->left_out_events += all[count - 1].track->count;
    }
    qsort(all, count, sizeof *all, compare_count);
    size_t budget = ITEMS_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t share = budget / (count - i);
        if (all[i].track->count > share)
            all[i].blocks = share < TRACK_PIXELS_MAX ? (uint32_t)share : TRACK_PIXELS_MAX;
        budget -= all[i].blocks ? all[i].blocks : all[i].track->count;
    }
    qsort(all, count, sizeof *all, compare_key);
    memcpy(timeline->chosen, all, count * sizeof *all);
    timeline->chosen_count = count;
    free(all);
    return GPUFL_OK;
}

/* False: no event has a time, or the times are implausible. */
static bool range_find(struct timeline *timeline)
{
    timeline->from_ns = timeline->analysis->start_ns;
    timeline->to_ns = timeline->analysis->end_ns;
    if (timeline->from_ns == TIME_UNKNOWN || timeline->to_ns == TIME_UNKNOWN)
        return false;
    for (size_t i = 0; i < timeline->chosen_count; i++) {
        const struct track *track = timeline->chosen[i].track;
        timeline->from_ns = track->first_ns < timeline->from_ns ? track->first_ns : timeline->from_ns;
        timeline->to_ns = track->last_ns > timeline->to_ns ? track->last_ns : timeline->to_ns;
    }
    int64_t span_ns;
    return !__builtin_sub_overflow(timeline->to_ns, timeline->from_ns, &span_ns) && span_ns > 0 &&
           span_ns < SPAN_MAX_NS;
}

static void name_add(struct timeline *timeline, enum track_kind kind, uint32_t name, int64_t busy_ns, bool *is_failed)
{
    if (timeline->name_count == timeline->name_capacity) {
        size_t capacity = timeline->name_capacity ? 2 * timeline->name_capacity : 1024;
        struct timeline_name *names = realloc(timeline->names, capacity * sizeof *names);
        *is_failed = *is_failed || !names;
        if (!names)
            return;
        timeline->names = names;
        timeline->name_capacity = capacity;
    }
    timeline->names[timeline->name_count++] =
        (struct timeline_name){(uint64_t)kind << 32 | name, busy_ns > 0 ? (uint64_t)busy_ns : 0};
}

static int compare_names(const void *a, const void *b)
{
    uint64_t left = ((const struct timeline_name *)a)->key, right = ((const struct timeline_name *)b)->key;
    return left < right ? -1 : left > right;
}

static int compare_name_times(const void *a, const void *b)
{
    uint64_t left = ((const struct timeline_name *)a)->busy_ns, right = ((const struct timeline_name *)b)->busy_ns;
    return left > right ? -1 : left < right ? 1 : compare_names(a, b);
}

static void names_sort(struct timeline *timeline, int (*compare)(const void *, const void *))
{
    if (timeline->name_count)
        qsort(timeline->names, timeline->name_count, sizeof *timeline->names, compare);
}

/* Each name once, with its sum. */
static void names_settle(struct timeline *timeline)
{
    size_t kept = 0;
    names_sort(timeline, compare_names);
    for (size_t i = 0; i < timeline->name_count; i++) {
        struct timeline_name *last = kept ? &timeline->names[kept - 1] : NULL;
        uint64_t busy_ns = timeline->names[i].busy_ns;
        if (!last || last->key != timeline->names[i].key)
            timeline->names[kept++] = timeline->names[i];
        else if (__builtin_add_overflow(last->busy_ns, busy_ns, &last->busy_ns))
            last->busy_ns = UINT64_MAX;
    }
    timeline->name_count = kept;
}

static void names_limit(struct timeline *timeline)
{
    if (timeline->name_count <= NAMES_MAX)
        return;
    names_sort(timeline, compare_name_times);
    timeline->left_out_names = timeline->name_count - NAMES_MAX;
    timeline->name_count = NAMES_MAX;
    names_sort(timeline, compare_names);
}

/* name_count: the entry for all names that are not written. */
static size_t name_index(const struct timeline *timeline, enum track_kind kind, uint32_t name)
{
    const struct timeline_name wanted = {(uint64_t)kind << 32 | name, 0};
    const struct timeline_name *found =
        bsearch(&wanted, timeline->names, timeline->name_count, sizeof *timeline->names, compare_names);
    return found ? (size_t)(found - timeline->names) : timeline->name_count;
}

/* Fetches the events or blocks of a track into timeline->events or timeline->pixels. */
static size_t track_fetch(struct timeline *timeline, const struct chosen_track *chosen)
{
    int64_t end_ns = timeline->to_ns < INT64_MAX ? timeline->to_ns + 1 : INT64_MAX; /* events without a duration */
    if (chosen->blocks)
        return track_pixels(&timeline->set, chosen->track, timeline->from_ns, timeline->to_ns, chosen->blocks,
                            timeline->pixels);
    size_t count = track_events(&timeline->set, chosen->track, timeline->from_ns, end_ns, timeline->events, ITEMS_MAX);
    return count == SIZE_MAX ? 0 : count;
}

static gpufl_status names_collect(struct timeline *timeline)
{
    bool is_failed = false;
    for (size_t i = 0; i < timeline->chosen_count && !is_failed; i++) {
        const struct chosen_track *chosen = &timeline->chosen[i];
        size_t count = track_fetch(timeline, chosen);
        for (size_t k = 0; k < count && !is_failed; k++)
            if (chosen->blocks)
                name_add(timeline, chosen->track->key.kind, timeline->pixels[k].name, timeline->pixels[k].busy_ns,
                         &is_failed);
            else
                name_add(timeline, chosen->track->key.kind, timeline->events[k].name, timeline->events[k].duration_ns,
                         &is_failed);
        names_settle(timeline); /* keeps the list no longer than the number of names */
    }
    names_limit(timeline);
    return is_failed ? GPUFL_E_NO_MEMORY : GPUFL_OK;
}

/* The same hue as in the dashboard (web/src/colour.ts): computed with FNV-1a over the UTF-16 units of the name. */
static uint32_t name_hue(const char *name)
{
    const uint32_t prime = 0x01000193;
    uint32_t hash = 0x811c9dc5;
    for (const unsigned char *at = (const unsigned char *)name; *at;) {
        unsigned more = *at < 0xc0 ? 0 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : 3;
        uint32_t code = more ? *at & 0x3fu >> more : *at;
        for (at++; more && (*at & 0xc0) == 0x80; more--)
            code = code << 6 | (*at++ & 0x3fu);
        if (code >= 0x10000) {
            hash = (hash ^ (0xd800 + ((code - 0x10000) >> 10))) * prime;
            code = 0xdc00 + (code & 0x3ff);
        }
        hash = (hash ^ code) * prime;
    }
    hash = (hash ^ hash >> 15) * 0x2c1b3c6d;
    return (hash ^ hash >> 12) % 360;
}

static void name_text(struct bytes *out, enum track_kind kind, const char *name)
{
    struct bytes text = {0};
    if (name && kind == TRACK_SCOPES)
        page_path(&text, name);
    else if (name && kind == TRACK_KERNELS)
        text_kernel_name(&text, name, strlen(name), NAME_COLUMNS);
    else
        bytes_append_text(&text, name ? name : "");
    text_cut(out, bytes_text(&text), text.size, NAME_COLUMNS);
    out->failed = out->failed || text.failed;
    bytes_free(&text);
}

/* Writes hues only for kernels whose name is shortened: the page computes the others. */
static void names_write(const struct timeline *timeline, struct bytes *out)
{
    struct bytes shown = {0}, hues = {0};
    list_open(out, "names");
    for (size_t i = 0; i < timeline->name_count; i++) {
        enum track_kind kind = (enum track_kind)(timeline->names[i].key >> 32);
        const char *name = track_event_name(&timeline->set, kind, (uint32_t)timeline->names[i].key);
        bytes_clear(&shown);
        name_text(&shown, kind, name);
        bytes_append_text(out, i ? "," : "");
        json_string(out, bytes_text(&shown), shown.size);
        if (name && kind == TRACK_KERNELS && strcmp(name, bytes_text(&shown)) != 0)
            bytes_append_format(&hues, "%s\"%zu\":%" PRIu32, hues.size ? "," : "", i, name_hue(name));
        out->failed = out->failed || shown.failed;
    }
    if (timeline->left_out_names)
        bytes_append_text(out, ",\"(name not in this file)\"");
    bytes_append_char(out, ']');
    json_key(out, "hues");
    bytes_append_format(out, "{%s}", bytes_text(&hues));
    out->failed = out->failed || hues.failed;
    bytes_free(&shown);
    bytes_free(&hues);
}

/* LEB128: seven bits per byte, lowest first. */
static void number_append(struct bytes *out, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        bytes_append_char(out, (char)(number | 0x80));
    bytes_append_char(out, (char)number);
}

static void numbers_write(struct bytes *out, const char *name, struct bytes *numbers)
{
    json_key(out, name);
    bytes_append_char(out, '"');
    base64_encode(out, bytes_text(numbers), numbers->size);
    bytes_append_char(out, '"');
    out->failed = out->failed || numbers->failed;
    bytes_free(numbers);
}

/* Three numbers per event: start relative to the previous one, duration, name. */
static void events_write(struct timeline *timeline, const struct chosen_track *chosen, size_t count, struct bytes *out)
{
    struct bytes numbers = {0};
    int64_t before_ns = timeline->from_ns;
    for (size_t i = 0; i < count; i++) {
        const struct track_event *event = &timeline->events[i];
        int64_t start_ns = event->start_ns > before_ns ? event->start_ns : before_ns;
        int64_t room_ns = timeline->to_ns - start_ns;
        int64_t duration_ns = event->duration_ns < 0 ? 0 : event->duration_ns < room_ns ? event->duration_ns : room_ns;
        number_append(&numbers, (uint64_t)(start_ns - before_ns));
        number_append(&numbers, (uint64_t)duration_ns);
        number_append(&numbers, name_index(timeline, chosen->track->key.kind, event->name));
        before_ns = start_ns;
    }
    member_uint(out, "count", count);
    numbers_write(out, "events", &numbers);
    timeline->shown_events += count;
}

/* Four numbers per block: blocks since the previous one, busy parts per thousand, name, events. */
static void blocks_write(struct timeline *timeline, const struct chosen_track *chosen, size_t count, struct bytes *out)
{
    struct bytes numbers = {0};
    uint32_t before = 0;
    double block_ns = (double)(timeline->to_ns - timeline->from_ns) / chosen->blocks;
    for (size_t i = 0; i < count; i++) {
        const struct track_pixel *pixel = &timeline->pixels[i];
        double busy = 1000 * (double)pixel->busy_ns / block_ns;
        number_append(&numbers, pixel->pixel - before);
        number_append(&numbers, busy < 1 ? 1 : busy < 1000 ? (uint64_t)busy : 1000);
        number_append(&numbers, name_index(timeline, chosen->track->key.kind, pixel->name));
        number_append(&numbers, pixel->count);
        before = pixel->pixel;
    }
    member_uint(out, "count", count);
    member_uint(out, "block_count", chosen->blocks);
    numbers_write(out, "blocks", &numbers);
    timeline->aggregated_events += chosen->track->count;
    if (block_ns > (double)timeline->longest_block_ns)
        timeline->longest_block_ns = (int64_t)block_ns;
}

static void tracks_write(struct timeline *timeline, struct bytes *out)
{
    list_open(out, "tracks");
    for (size_t i = 0; i < timeline->chosen_count; i++) {
        const struct chosen_track *chosen = &timeline->chosen[i];
        const struct track_key *key = &chosen->track->key;
        element(out, '{');
        member_text(out, "kind", track_kind_name((enum track_kind)key->kind));
        member_device(out, key->device);
        member_id(out, "stream", key->stream_id);
        member_id(out, "thread", key->thread_id);
        member_id(out, "depth", key->depth);
        size_t count = track_fetch(timeline, chosen);
        if (chosen->blocks)
            blocks_write(timeline, chosen, count, out);
        else
            events_write(timeline, chosen, count, out);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

static void notes_write(const struct timeline *timeline, struct bytes *out)
{
    bytes_append_text(
        out,
        "<p class=\"note\"><span class=\"on-screen\">Wheel or W/S zooms, dragging or A/D pans, F shows everything; "
        "hovering shows an event, a click keeps it shown, Esc ends that. </span>");
    if (timeline->aggregated_events)
        bytes_append_format(
            out,
            "%s of %s events are aggregated into blocks of up to %s, each as high as it was busy and in the "
            "colour of what took most of it; <code>gpufl view</code> shows every event.",
            quantity_count(timeline->aggregated_events).text,
            quantity_count(timeline->aggregated_events + timeline->shown_events).text,
            quantity_time((double)timeline->longest_block_ns).text);
    else
        bytes_append_format(out, "All %s events are shown.", quantity_count(timeline->shown_events).text);
    uint64_t left_out = timeline->left_out_events + timeline->set.left_out;
    if (left_out)
        bytes_append_format(out,
                            " %s events are not shown: their %s tracks were the least busy, or they have no start.",
                            quantity_count(left_out).text, quantity_count(timeline->left_out_tracks).text);
    if (timeline->left_out_names)
        bytes_append_format(out, " The names of %s scopes and kernels that took the least time are not in this file.",
                            quantity_count(timeline->left_out_names).text);
    bytes_append_text(out, "</p>\n<noscript><p class=\"note\">The timeline needs JavaScript.</p></noscript>\n");
}

static void data_write(struct timeline *timeline, struct bytes *out)
{
    bytes_append_char(out, '{');
    member_int(out, "span", timeline->to_ns - timeline->from_ns);
    names_write(timeline, out);
    tracks_write(timeline, out);
    bytes_append_char(out, '}');
}

/* JSON inside a script element: the only character that could end the element occurs in strings only, where it is
 * escaped. */
static void script_data(struct bytes *out, const struct bytes *json)
{
    bytes_append_text(out, "<script type=\"application/json\" id=\"timeline-data\">");
    const char *at = bytes_text((struct bytes *)json), *end = at + json->size;
    while (at < end) {
        const char *sign = memchr(at, '<', (size_t)(end - at));
        bytes_append(out, at, (size_t)((sign ? sign : end) - at));
        bytes_append_text(out, sign ? "\\u003c" : "");
        at = sign ? sign + 1 : end;
    }
    bytes_append_text(out, "</script>\n");
}

gpufl_status html_timeline(const struct analysis *analysis, struct bytes *out)
{
    struct timeline timeline = {.analysis = analysis};
    struct bytes json = {0};
    gpufl_status status = track_set_make(&timeline.set, analysis->model);
    if (status != GPUFL_OK)
        return status;
    status = tracks_choose(&timeline);
    bytes_append_text(out, "<section id=\"timeline\"><h2>TIMELINE</h2>\n");
    if (status == GPUFL_OK && timeline.chosen_count && range_find(&timeline)) {
        timeline.events = malloc(ITEMS_MAX * sizeof *timeline.events);
        timeline.pixels = malloc(TRACK_PIXELS_MAX * sizeof *timeline.pixels);
        status = timeline.events && timeline.pixels ? names_collect(&timeline) : GPUFL_E_NO_MEMORY;
        if (status == GPUFL_OK)
            data_write(&timeline, &json);
        bytes_append_text(out, "<div id=\"timeline-view\"></div>\n");
        notes_write(&timeline, out);
        script_data(out, &json);
    } else {
        bytes_append_text(out, "<p>none: the session has no events with a time</p>\n");
    }
    bytes_append_text(out, "</section>\n");
    out->failed = out->failed || json.failed;
    bytes_free(&json);
    free(timeline.names);
    free(timeline.events);
    free(timeline.pixels);
    track_set_free(&timeline.set);
    return status;
}
