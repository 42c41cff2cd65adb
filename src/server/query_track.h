/* SPDX-License-Identifier: Apache-2.0 */
/* How the HTTP interface names tracks. query_timeline.c */
#ifndef GPUFL_SERVER_QUERY_TRACK_H
#define GPUFL_SERVER_QUERY_TRACK_H

#include "server/query_work.h"

enum { QUERY_TRACK_ID_SIZE = 64 };

/* "kernels-0-7", "scopes-4711-0", "syncs-4711"; x for what is not known. */
void query_track_id(const struct track_key *key, char out[QUERY_TRACK_ID_SIZE]);
/* Members that say which track it is. */
void query_track_write(struct bytes *out, const struct track_key *key);

/* GPU work from the store's sums; the caller frees the timeline. False: answered. query_sums.c */
bool query_sums_read(struct query_call *call, int64_t from_ns, int64_t to_ns, int64_t width_ns,
                     struct timeline *timeline);
struct track_key query_sums_key(const struct timeline_track *track);

#endif
