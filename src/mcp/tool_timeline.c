/* SPDX-License-Identifier: Apache-2.0 */
/* A slice of the timeline: sums of the slice, and each track's events, or their sums where there are many. */
#include "mcp/tool.h"

#include <stdlib.h>

enum { rows_max = 200 }; /* as the parameter's maximum */

struct slice {
    struct tool_call *call;
    const struct track_set *set;
    int64_t start_ns, from_ns, to_ns; /* start: of the session, which the answer's times count from */
    size_t rows;
    const char *track;
    int kind; /* enum track_kind, -1 all */
};

static bool is_wanted(const struct slice *slice, const struct track *track)
{
    char id[TRACK_ID_SIZE];
    if (slice->track) {
        track_id(&track->key, id);
        return !strcmp(id, slice->track);
    }
    return slice->kind < 0 || track->key.kind == slice->kind;
}

/* The busiest first. */
static int compare_tracks(const void *left, const void *right)
{
    const struct track *const *a = left, *const *b = right;
    if ((*a)->busy_ns != (*b)->busy_ns)
        return (*a)->busy_ns > (*b)->busy_ns ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

static void events_write(const struct slice *slice, const struct track *track, const struct track_event *events,
                         size_t count)
{
    struct bytes *out = slice->call->out;
    for (size_t i = 0; i < count; i++) {
        element(out, '{');
        member_int(out, "start_ns", events[i].start_ns - slice->start_ns);
        member_int(out, "duration_ns", events[i].duration_ns);
        member_text(out, "name", track_event_name(slice->set, track->key.kind, events[i].name));
        bytes_append_char(out, '}');
    }
}

static void pixels_write(const struct slice *slice, const struct track *track, const struct track_pixel *pixels,
                         size_t count)
{
    struct bytes *out = slice->call->out;
    uint32_t parts = (uint32_t)slice->rows;
    for (size_t i = 0; i < count; i++) {
        int64_t start_ns = track_pixel_start(slice->from_ns, slice->to_ns, parts, pixels[i].pixel);
        int64_t end_ns = track_pixel_start(slice->from_ns, slice->to_ns, parts, pixels[i].pixel + 1);
        element(out, '{');
        member_int(out, "start_ns", start_ns - slice->start_ns);
        member_int(out, "duration_ns", end_ns - start_ns);
        member_int(out, "busy_ns", pixels[i].busy_ns);
        member_uint(out, "events", pixels[i].count);
        member_text(out, "name", track_event_name(slice->set, track->key.kind, pixels[i].name));
        bytes_append_char(out, '}');
    }
}

static void track_write(const struct slice *slice, const struct track *track)
{
    struct track_event events[rows_max];
    struct track_pixel pixels[rows_max], whole;
    struct bytes *out = slice->call->out;
    size_t count = track_events(slice->set, track, slice->from_ns, slice->to_ns, events, slice->rows);
    bool is_exact = count != SIZE_MAX;
    bool has_any = track_pixels(slice->set, track, slice->from_ns, slice->to_ns, 1, &whole) > 0;
    element(out, '{');
    json_track(&track->key, out);
    member_int(out, "busy_ns", has_any ? whole.busy_ns : 0);
    member_bool(out, "is_exact", is_exact);
    list_open(out, "rows");
    if (is_exact) {
        events_write(slice, track, events, count);
    } else {
        count = track_pixels(slice->set, track, slice->from_ns, slice->to_ns, (uint32_t)slice->rows, pixels);
        pixels_write(slice, track, pixels, count);
    }
    bytes_append_text(out, "]}");
}

static bool tracks_write(const struct slice *slice, struct answer_page *page)
{
    struct bytes *out = slice->call->out;
    const struct track **tracks = malloc((slice->set->track_count + 1) * sizeof *tracks);
    size_t count = 0;
    if (!tracks)
        return tool_fail(slice->call, "no memory to answer");
    for (size_t i = 0; i < slice->set->track_count; i++)
        if (is_wanted(slice, &slice->set->tracks[i]))
            tracks[count++] = &slice->set->tracks[i];
    if (count)
        qsort(tracks, count, sizeof *tracks, compare_tracks);
    list_open(out, "tracks");
    for (size_t i = 0; i < count; i++)
        if (answer_page_takes(page, out))
            track_write(slice, tracks[i]);
    bytes_append_char(out, ']');
    free(tracks);
    if (slice->track && !count)
        return tool_fail(slice->call, "no track '%.100s' in this session; an answer without the argument lists them",
                         slice->track);
    return true;
}

/* The slice that was asked for, within the session. */
static bool slice_read(struct tool_call *call, struct slice *slice)
{
    const struct analysis *analysis = &call->session->analysis;
    if (analysis->start_ns == TIME_UNKNOWN) {
        tool_fail(call, "nothing in session '%.200s' has a time", call->session_name);
        return false; /* where the analyzer sees it */
    }
    int64_t from_ns = argument_int(call, "from_ns"), to_ns = argument_int(call, "to_ns");
    int64_t end_ns = analysis->end_ns - analysis->start_ns + 1;
    if (to_ns == CELL_UNKNOWN || to_ns > end_ns)
        to_ns = end_ns;
    if (from_ns >= to_ns) {
        tool_fail(call,
                  "the slice is empty: from_ns must be before to_ns, and the session ends %lld ns after its start",
                  (long long)end_ns);
        return false;
    }
    *slice = (struct slice){.call = call,
                            .set = open_session_tracks(call->session),
                            .start_ns = analysis->start_ns,
                            .from_ns = analysis->start_ns + from_ns,
                            .to_ns = analysis->start_ns + to_ns,
                            .rows = (size_t)argument_int(call, "rows"),
                            .track = argument_text(call, "track"),
                            .kind = argument_choice(call, "kind") - 1};
    return slice->set || tool_fail(call, "no memory to answer");
}

bool tool_timeline(struct tool_call *call)
{
    struct slice slice;
    struct answer_page page;
    if (!answer_session(call) || !slice_read(call, &slice) || !answer_page_open(call, &page))
        return false;
    member_int(call->out, "from_ns", slice.from_ns - slice.start_ns);
    member_int(call->out, "to_ns", slice.to_ns - slice.start_ns);
    if (json_range(&call->session->analysis, slice.from_ns, slice.to_ns, call->out) != GPUFL_OK)
        return tool_fail(call, "no memory to answer");
    if (!tracks_write(&slice, &page))
        return false;
    answer_page_close(call, &page);
    answer_evidence(call,
                    "start and end of each event; rows of a track that is not exact are sums, named after what took "
                    "most of the time");
    more_open(call);
    more_next_page(call, &page, "tracks");
    more_add(call, "kernels", "the kernels' durations and occupancy", NULL, NULL);
    more_close(call);
    return true;
}
