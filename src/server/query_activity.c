/* SPDX-License-Identifier: Apache-2.0 */
/* A session's activity for lists of sessions, from the store's sums, without loading the session. */
#include "server/query_call.h"

#include <stdlib.h>

enum { bins_default = 60, bins_max = 400, buckets_per_bin = 4, gpus_max = 64 };

static bool take_session(void *user, const struct store_session *session)
{
    struct store_session *out = user;
    out->start_ns = session->start_ns;
    out->end_ns = session->end_ns;
    return false;
}

static unsigned gpu_count(const struct timeline *timeline)
{
    int64_t seen[gpus_max];
    unsigned count = 0;
    for (size_t i = 0; i < timeline->track_count; i++) {
        unsigned at = 0;
        while (at < count && seen[at] != timeline->tracks[i].device_id)
            at++;
        if (at == count && count < gpus_max)
            seen[count++] = timeline->tracks[i].device_id;
    }
    return count;
}

/* Distributes a bucket's time evenly over the bins that it overlaps. */
static void bucket_add(double *bins, int64_t count, int64_t from_ns, int64_t to_ns,
                       const struct timeline_bucket *bucket, int64_t width_ns)
{
    double bin_ns = (double)(to_ns - from_ns) / (double)count;
    double start = (double)(bucket->start_ns - from_ns) / bin_ns, end = start + (double)width_ns / bin_ns;
    double share = (double)bucket->busy_ns / (end - start);
    start = start < 0 ? 0 : start;
    end = end > (double)count ? (double)count : end;
    for (int64_t bin = (int64_t)start; bin < count && (double)bin < end; bin++) {
        double low = start > (double)bin ? start : (double)bin;
        double high = end < (double)(bin + 1) ? end : (double)(bin + 1);
        bins[bin] += share * (high - low);
    }
}

void query_activity(struct query_call *call)
{
    const char *id = http_exchange_path_value(call->exchange, "id");
    struct store_session session = {0};
    struct timeline timeline = {0};
    struct problem problem = {""};
    int64_t count = bins_default;
    if (!query_int(call, "bins", 1, bins_max, &count))
        return;
    gpufl_status status = store_session(call->query->store, id, take_session, &session, &problem);
    bool has_time =
        session.start_ns != CELL_UNKNOWN && session.end_ns != CELL_UNKNOWN && session.end_ns >= session.start_ns;
    int64_t from_ns = has_time ? session.start_ns : 0, to_ns = has_time ? session.end_ns + 1 : 1;
    if (status == GPUFL_OK)
        status = store_timeline(call->query->store, id, from_ns, to_ns,
                                (to_ns - from_ns) / (count * buckets_per_bin) + 1, &timeline, &problem);
    if (status != GPUFL_OK) {
        query_fail_status(call, status, "session", &problem);
        return;
    }
    double *bins = calloc((size_t)count, sizeof *bins);
    unsigned gpus = gpu_count(&timeline);
    for (size_t i = 0; bins && i < timeline.bucket_count; i++)
        bucket_add(bins, count, from_ns, to_ns, &timeline.buckets[i], timeline.width_ns);
    bytes_append_char(&call->out, '{');
    member_int(&call->out, "from_ns", from_ns);
    member_int(&call->out, "to_ns", to_ns);
    member_uint(&call->out, "gpus", gpus);
    list_open(&call->out, "busy");
    double bin_ns = (double)(to_ns - from_ns) / (double)count * (gpus ? gpus : 1);
    for (int64_t i = 0; bins && i < count; i++) {
        if (i)
            bytes_append_char(&call->out, ',');
        json_double(&call->out, bins[i] < bin_ns ? bins[i] / bin_ns : 1);
    }
    bytes_append_text(&call->out, "]}");
    call->out.failed |= !bins;
    free(bins);
    timeline_free(&timeline);
}
