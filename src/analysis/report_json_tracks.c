/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/report_json.h"

#include <inttypes.h>
#include <stdio.h>

void track_id(const struct track_key *key, char out[TRACK_ID_SIZE])
{
    char parts[3][16] = {"x", "x", "x"};
    if (key->device != DEVICE_UNKNOWN)
        snprintf(parts[0], sizeof parts[0], "%u", key->device);
    if (key->stream_id != ID_UNKNOWN)
        snprintf(parts[1], sizeof parts[1], "%" PRIu32, key->stream_id);
    if (key->thread_id != ID_UNKNOWN)
        snprintf(parts[2], sizeof parts[2], "%" PRIu32, key->thread_id);
    const char *kind = track_kind_name(key->kind);
    if (key->kind == TRACK_SCOPES)
        snprintf(out, TRACK_ID_SIZE, "%s-%s-%" PRIu32, kind, parts[2], key->depth);
    else if (key->kind == TRACK_SYNCS || key->kind == TRACK_LAUNCHES)
        snprintf(out, TRACK_ID_SIZE, "%s-%s", kind, parts[2]);
    else
        snprintf(out, TRACK_ID_SIZE, "%s-%s-%s", kind, parts[0], parts[1]);
}

static bool is_gpu_work(enum track_kind kind)
{
    return kind != TRACK_SCOPES && kind != TRACK_SYNCS && kind != TRACK_LAUNCHES;
}

void json_track(const struct track_key *key, struct bytes *out)
{
    char id[TRACK_ID_SIZE];
    track_id(key, id);
    member_text(out, "id", id);
    member_text(out, "kind", track_kind_name(key->kind));
    if (is_gpu_work(key->kind)) {
        member_device(out, key->device);
        member_id(out, "stream_id", key->stream_id);
    } else {
        member_id(out, "thread_id", key->thread_id);
        if (key->kind == TRACK_SCOPES)
            member_uint(out, "depth", key->depth);
    }
}
