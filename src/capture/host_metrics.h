/* SPDX-License-Identifier: Apache-2.0 */
/* CPU and memory of the host and of this process, from /proc. Missing or malformed values are unknown. One owner;
 * not thread-safe. */
#ifndef GPUFL_CAPTURE_HOST_METRICS_H
#define GPUFL_CAPTURE_HOST_METRICS_H

#include <stdint.h>

#include "format/batch.h"

/* CELL_UNKNOWN where not known. */
struct host_sample {
    int64_t cpu_pct_x100; /* all cores together = 10000 */
    int64_t ram_used_mib, ram_total_mib;
    int64_t process_cpu_pct_x100; /* one full core = 10000 */
    int64_t process_rss_mib;
};

/* CPU shares are differences to the sample before. */
struct host_metrics {
    const char *root; /* directory that contains proc; borrowed. "" on a real system */
    uint64_t busy_ticks, total_ticks;
    uint64_t process_ticks;
    int64_t process_time_ns;
    bool has_cpu, has_process;
    int64_t ticks_per_second, page_bytes;
};

void host_metrics_init(struct host_metrics *metrics, const char *root);
/* Discards the last counters, so that the next sample's CPU shares are unknown rather than an average over an
 * unsampled period. */
void host_metrics_reset(struct host_metrics *metrics);
/* mono_ns: the time of the sample on CLOCK_MONOTONIC. */
struct host_sample host_metrics_sample(struct host_metrics *metrics, int64_t mono_ns);
struct host_sample host_sample_unknown(void);

/* The machine as job_start and host_metric_batch name it; "" unknown. */
struct host_identity {
    char hostname[256];
    char ip_addr[64]; /* of the first interface that is up and not loopback, IPv4 before IPv6 */
};
void host_identity_read(struct host_identity *identity);

#endif
