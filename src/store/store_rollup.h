/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that the store keeps beside the rows, so that queries over millions of rows or over all sessions need not read
 * the rows. Kernels, metrics and timeline buckets are up to date with every commit. Scope sums are computed from the
 * columns when a session is complete, and on request. (GPUFlight sessions name the scopes of kernels in records: those
 * kernels count as outside all scopes.) Rows that the analysis ignores as impossible (negative durations, times outside
 * 1970 to 2116) are ignored here too. */
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
/* Longest total time first. */
NODISCARD gpufl_status store_kernels(struct store *store, const char *session_id, store_kernel_fn on_kernel, void *user,
                                     struct problem *problem);
/* Kernels of all sessions whose name contains text (case-insensitive in ASCII), newest session first. */
NODISCARD gpufl_status store_kernel_search(struct store *store, const char *text, unsigned limit,
                                           store_kernel_fn on_kernel, void *user, struct problem *problem);

/* One scope path of one session; sums of the path itself, without its children. */
struct store_scope {
    uint32_t path_id;
    const char *path; /* parts joined by |; "": outside all scopes, or the name was not recorded */
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
    unsigned column; /* index in the type's catalogue entry */
    int64_t min, max;
    double mean;
    uint64_t count;
};
typedef bool (*store_metric_fn)(void *user, const struct store_metric *metric);
/* gpu_uuid "": the host's own metrics. By minute, then column; minutes without samples are left out. */
NODISCARD gpufl_status store_metrics(struct store *store, const char *host, const char *gpu_uuid, int64_t from_ns,
                                     int64_t to_ns, store_metric_fn on_metric, void *user, struct problem *problem);

/* GPU work over time: tracks (kernels, copies or memsets of one device and stream) divided into buckets of one
 * width. */
struct timeline_track {
    enum record_type type; /* RECORD_KERNEL_EVENT_BATCH, RECORD_MEMCPY_EVENT_BATCH or RECORD_MEMSET_EVENT_BATCH */
    int64_t device_id, stream_id; /* CELL_UNKNOWN: not recorded */
    size_t first, count;          /* its buckets */
};
struct timeline_bucket {
    int64_t start_ns; /* a multiple of the width */
    int64_t busy_ns;  /* time of work inside the bucket; exceeds the width where work overlaps */
    int64_t key_ns;   /* key's part of it */
    uint64_t count;   /* number of pieces of work that started inside */
    uint32_t key;     /* what took most of the time: kernel_id, or copy_kind; 0 for memsets */
};
struct timeline {
    int64_t width_ns; /* a power of two */
    struct timeline_track *tracks;
    size_t track_count;
    struct timeline_bucket *buckets; /* only those with work, by track and start */
    size_t bucket_count;
    uint64_t rows; /* pieces of work that started in the range; a small number can be read row by row */
};
enum { TIMELINE_BUCKETS_MAX = 16384 }; /* per range: longer ranges are rejected */
/* Uses the widest power of two that is at most width_ns. Covers work in [from, to), rounded out to whole buckets: busy
 * times of adjacent ranges add up when their borders are multiples of the width. busy_ns and count are exact. key is
 * exact within a stored level; where several segments or finer buckets fall into one bucket, the largest part decides.
 * The caller frees with timeline_free. */
NODISCARD gpufl_status store_timeline(struct store *store, const char *session_id, int64_t from_ns, int64_t to_ns,
                                      int64_t width_ns, struct timeline *timeline, struct problem *problem);
void timeline_free(struct timeline *timeline);

#endif
