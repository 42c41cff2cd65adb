/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks of sessions that are not loaded. */
#ifndef GPUFL_SERVER_QUERY_TRACK_H
#define GPUFL_SERVER_QUERY_TRACK_H

#include "server/query_work.h"

/* GPU work from the store's sums; the caller frees the timeline. False: already answered. query_sums.c */
bool query_sums_read(struct query_call *call, int64_t from_ns, int64_t to_ns, int64_t width_ns,
                     struct timeline *timeline);
struct track_key query_sums_key(const struct timeline_track *track);

#endif
