/* SPDX-License-Identifier: Apache-2.0 */
/* This host as it is now: GPUs, the processes on them, CPU and memory, sampled
 * again whenever asked. For the commands that show it; writes nothing down. Main
 * thread. */
#ifndef GPUFL_CLI_HOST_WATCH_H
#define GPUFL_CLI_HOST_WATCH_H

#include "monitor/view.h"

/* Rates and shares need two samples, so long apart at least. */
enum { HOST_WATCH_PAUSE_MS = 200 };

struct host_watch {
    struct gpu_telemetry gpu;
    struct host_metrics host;
    struct process_table processes;
    struct monitor_view view;
    struct problem problem; /* why there is no GPU data, or "" */
    unsigned vendors;
    int64_t opened_ns; /* when drivers were last looked for */
};

/* vendors: a bit per enum gpu_vendor. NULL: out of memory. Without a GPU there is still the host. */
struct host_watch *host_watch_open(unsigned vendors);
/* Updates the view. A missing driver is looked for again every few seconds. */
void host_watch_tick(struct host_watch *watch);
void host_watch_close(struct host_watch *watch); /* NULL is a no-op */

/* The view as the members of a JSON object, without its braces. */
void host_watch_json(struct bytes *out, const struct host_watch *watch); /* monitor_once.c */

#endif
