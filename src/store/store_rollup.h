/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that the store keeps beside the rows, so that a question over millions of rows, or over all sessions, is
 * answered without reading them. Kernels, metrics and timeline buckets are up to date with every commit; scope sums
 * are made from the columns when a session is complete, and on demand (sessions of GPUFlight name the scopes of kernels
 * in records: those kernels count as outside of every scope). Rows that the analysis would leave out as impossible
 * (negative durations, times outside of 1970 ... 2116) are left out here too. */
#ifndef GPUFL_STORE_STORE_ROLLUP_H
#define GPUFL_STORE_STORE_ROLLUP_H

#include "store/store.h"

enum { STORE_HISTOGRAM_BINS = 64 };

/* One kernel of one session. */
struct store_kernel {
    const char *session_id;
    uint32_t kernel_id;
    const char *name; /* "": not recorded */
    uint64_t count;
    int64_t total_ns, min_ns, max_ns;
    double sum_squares;                       /* of durations, ns^2 */
    uint64_t histogram[STORE_HISTOGRAM_BINS]; /* [0]: 0 ns; [b]: 2^(b-1) <= duration < 2^b */
    const char *app, *host;                   /* of its session; store_kernel_search only, else NULL */
    int64_t start_ns;
};
typedef bool (*store_kernel_fn)(void *user, const struct store_kernel *kernel);
/* Most time first. */
NODISCARD gpufl_status store_kernels(struct store *store, const char *session_id, store_kernel_fn on_kernel, void *user,
                                     struct problem *problem);
/* Kernels whose name contains text (case-insensitive in ASCII), newest session first, over all sessions. */
NODISCARD gpufl_status store_kernel_search(struct store *store, const char *text, unsigned limit,
                                           store_kernel_fn on_kernel, void *user, struct problem *problem);

/* One scope path of one session; sums of the path itself, without its children. */
struct store_scope {
    uint32_t path_id;
    const char *path; /* parts joined by |; "": outside of every scope, or the name was not recorded */
    uint64_t calls, open_calls;
    int64_t wall_ns; /* of closed calls */
    uint64_t kernels;
    int64_t kernel_ns;
};
typedef bool (*store_scope_fn)(void *user, const struct store_scope *scope);
NODISCARD gpufl_status store_scopes(struct store *store, const char *session_id, store_scope_fn on_scope, void *user,
                                    struct problem *problem);

/* One metric of one GPU (or host) in one minute. */
struct store_metric {
    int64_t minute_ns; /* start of the minute */
    enum record_type type;
    unsigned column; /* of the type's catalogue entry */
    int64_t min, max;
    double mean;
    uint64_t count;
};
typedef bool (*store_metric_fn)(void *user, const struct store_metric *metric);
/* gpu_uuid "": the host's own metrics. By minute, then column; minutes without samples do not come. */
NODISCARD gpufl_status store_metrics(struct store *store, const char *host, const char *gpu_uuid, int64_t from_ns,
                                     int64_t to_ns, store_metric_fn on_metric, void *user, struct problem *problem);

/* GPU work over time: tracks (kernels, copies or memsets of one device and stream) cut into buckets of one width. */
struct timeline_track {
    enum record_type type; /* RECORD_KERNEL_EVENT_BATCH, RECORD_MEMCPY_EVENT_BATCH or RECORD_MEMSET_EVENT_BATCH */
    int64_t device_id, stream_id; /* CELL_UNKNOWN: not recorded */
    size_t first, count;          /* its buckets */
};
struct timeline_bucket {
    int64_t start_ns; /* a multiple of the width */
    int64_t busy_ns;  /* time of the work inside the bucket; more than the width where work overlaps */
    int64_t key_ns;   /* the part of it that is key's */
    uint64_t count;   /* pieces of work that started inside */
    uint32_t key;     /* what took most of the time: kernel_id, or copy_kind; 0 for memsets */
};
struct timeline {
    int64_t width_ns; /* a power of two */
    struct timeline_track *tracks;
    size_t track_count;
    struct timeline_bucket *buckets; /* only those with work, by track and start */
    size_t bucket_count;
    uint64_t rows; /* pieces of work that started in the range: few enough to be read one by one? */
};
enum { TIMELINE_BUCKETS_MAX = 16384 }; /* of a range: ranges of more than that many widths are refused */
/* The widest power of two that is at most width_ns is used. Work of [from, to), whole buckets at both ends: busy times
 * of adjacent ranges add up when their borders are multiples of the width. busy_ns and count are exact. key is exact
 * within a stored level; where several segments or finer buckets meet in one bucket, the largest part decides. The
 * caller frees with timeline_free. */
NODISCARD gpufl_status store_timeline(struct store *store, const char *session_id, int64_t from_ns, int64_t to_ns,
                                      int64_t width_ns, struct timeline *timeline, struct problem *problem);
void timeline_free(struct timeline *timeline);

#endif
