/* SPDX-License-Identifier: Apache-2.0 */
/* A session as tracks: one per stream of GPU work and per thread of scopes, waits and launches. A tile of a track
 * contains either every event in a time span, or a summary of each of its pixels. Made once, then read-only and thread-
 * safe; borrows the model, which must outlive it.
 *
 * Busy time counts once where events of a track overlap, so the pixels of any tiling add up to the track's busy
 * time. */
#ifndef GPUFL_ANALYSIS_TRACKS_H
#define GPUFL_ANALYSIS_TRACKS_H

#include "analysis/session.h"

enum track_kind {
    TRACK_KERNELS,
    TRACK_COPIES,
    TRACK_MEMSETS,
    TRACK_GRAPHS,
    TRACK_SCOPES,
    TRACK_SYNCS,
    TRACK_LAUNCHES, /* API calls that launched kernels, but not those that launched graphs */
    TRACK_KIND_COUNT
};

struct track_key {
    uint8_t kind;
    uint8_t unused;
    uint16_t device;           /* of GPU work; DEVICE_UNKNOWN */
    uint32_t stream_id;        /* of GPU work; ID_UNKNOWN */
    uint32_t thread_id, depth; /* of scopes, waits and launches; ID_UNKNOWN */
};

struct track {
    struct track_key key;
    const uint32_t *rows; /* indexes of its events in the model's array, by start */
    size_t count;
    int64_t first_ns, last_ns, busy_ns;
    struct track_chunk *chunks; /* sums over a fixed number of events each */
};

/* The fields common to events of every kind. */
struct track_event {
    int64_t start_ns, duration_ns;
    uint32_t row;  /* in the model's array of the track's kind */
    uint32_t name; /* kernel_dict, scope_name_dict, or the schema's word for the kind of copy or wait; 0 none */
};

/* The events in one pixel. */
struct track_pixel {
    uint32_t pixel;
    uint32_t count; /* events whose first visible part is in it */
    int64_t busy_ns;
    uint32_t name; /* name of what took most of it, as in an event */
};

struct track_set {
    const struct session_model *model;
    struct track *tracks; /* by key */
    size_t track_count;
    uint32_t *rows;             /* owned: of all tracks */
    struct track_chunk *chunks; /* owned: of all tracks */
    size_t chunk_total;
    uint64_t left_out; /* events of tracks over the limit, and scopes without a begin */
};

enum { TRACK_PIXELS_MAX = 16384 };

NODISCARD gpufl_status track_set_make(struct track_set *set, const struct session_model *model);
void track_set_free(struct track_set *set);
size_t track_set_bytes(const struct track_set *set);

/* Events that overlap [from, to), by start. SIZE_MAX: more than max, and events is undefined. */
size_t track_events(const struct track_set *set, const struct track *track, int64_t from_ns, int64_t to_ns,
                    struct track_event *events, size_t max);
/* Non-empty pixels of [from, to); out must have room for pixel_count entries, which is at most TRACK_PIXELS_MAX. */
size_t track_pixels(const struct track_set *set, const struct track *track, int64_t from_ns, int64_t to_ns,
                    uint32_t pixel_count, struct track_pixel *out);
/* The start of a pixel; for pixel_count: the end. */
int64_t track_pixel_start(int64_t from_ns, int64_t to_ns, uint32_t pixel_count, uint32_t pixel);

const char *track_kind_name(enum track_kind kind); /* "kernels", ... */
/* The text of an event's name; NULL unknown. */
const char *track_event_name(const struct track_set *set, enum track_kind kind, uint32_t name);

#endif
