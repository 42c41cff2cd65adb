/* SPDX-License-Identifier: Apache-2.0 */
/* The store's sums as tracks, with the same names as those of the loaded session. */
#include "server/query_track.h"

struct track_key query_sums_key(const struct timeline_track *track)
{
    static const struct {
        enum record_type type;
        enum track_kind kind;
    } kinds[] = {{RECORD_MEMCPY_EVENT_BATCH, TRACK_COPIES}, {RECORD_MEMSET_EVENT_BATCH, TRACK_MEMSETS}};
    struct track_key key = {.kind = TRACK_KERNELS, .thread_id = ID_UNKNOWN, .depth = ID_UNKNOWN};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == track->type)
            key.kind = (uint8_t)kinds[i].kind;
    key.device =
        track->device_id >= 0 && track->device_id < DEVICE_UNKNOWN ? (uint16_t)track->device_id : DEVICE_UNKNOWN;
    key.stream_id = track->stream_id >= 0 && track->stream_id < ID_UNKNOWN ? (uint32_t)track->stream_id : ID_UNKNOWN;
    return key;
}

/* GPUFlight's rows have no device: in a machine with a single GPU it is that one, as in the loaded session. */
static gpufl_status devices_fill(struct query_call *call, struct timeline *timeline, struct problem *problem)
{
    struct store_range range = {.session_id = http_exchange_path_value(call->exchange, "id")};
    struct session_model *model;
    bool is_whole = true;
    for (size_t i = 0; i < timeline->track_count; i++)
        is_whole = is_whole && timeline->tracks[i].device_id != CELL_UNKNOWN;
    if (is_whole)
        return GPUFL_OK;
    record_set_add(&range.types, RECORD_JOB_START);
    record_set_add(&range.types, RECORD_DEVICE_LIMITS);
    gpufl_status status = query_load(call->query->store, &range, 0, &model, problem);
    if (status != GPUFL_OK)
        return status;
    for (size_t i = 0; model->device_count == 1 && i < timeline->track_count; i++)
        if (timeline->tracks[i].device_id == CELL_UNKNOWN)
            timeline->tracks[i].device_id = model->devices[0].id;
    session_free(model);
    return GPUFL_OK;
}

bool query_sums_read(struct query_call *call, int64_t from_ns, int64_t to_ns, int64_t width_ns,
                     struct timeline *timeline)
{
    struct problem problem = {""};
    int64_t least_ns = (to_ns - from_ns) / (TIMELINE_BUCKETS_MAX / 4) + 1;
    gpufl_status status = store_timeline(call->query->store, http_exchange_path_value(call->exchange, "id"), from_ns,
                                         to_ns, width_ns > least_ns ? width_ns : least_ns, timeline, &problem);
    if (status == GPUFL_OK) {
        status = devices_fill(call, timeline, &problem);
        if (status != GPUFL_OK)
            timeline_free(timeline);
    }
    return status == GPUFL_OK || query_fail_status(call, status, "session", &problem);
}
