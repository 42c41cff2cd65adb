/* SPDX-License-Identifier: Apache-2.0 */
/* What a monitor does beside sampling, on a thread of its own: seals sessions
 * that have ended, sends finished ones to a server, and values to an OTLP
 * collector. A slow or absent network costs the samples nothing. */
#ifndef GPUFL_MONITOR_SHIPPING_H
#define GPUFL_MONITOR_SHIPPING_H

#include "base/upload_library.h"
#include "monitor/view.h"

struct shipping; /* opaque */

/* Strings are borrowed until the stop. */
struct shipping_options {
    const char *dir;                             /* where the sessions are */
    const char *app_name;                        /* whose dead sessions are ended and sealed */
    upload_run_fn upload;                        /* NULL: sessions stay where they are */
    const char *upload_url, *api_key, *api_path; /* the last two may be NULL */
    upload_post_fn post;                         /* NULL: no OTLP */
    const char *otlp_server, *otlp_path;
    unsigned otlp_interval_ms;
    struct monitor_view *view;
};

NODISCARD gpufl_status shipping_start(struct shipping **out, const struct shipping_options *options,
                                      struct problem *problem);
/* A session has ended. Never blocks; when too many wait, the directory is searched instead. */
void shipping_add(struct shipping *shipping, const char *dir);
/* Finishes what waits, an upload at most for deadline_ms, and frees. NULL is a no-op. False: an upload or a large
 * session took longer; its thread goes on, and with it everything that it was given, until the process ends. What it
 * leaves unfinished the next monitor does. */
NODISCARD bool shipping_stop(struct shipping *shipping, unsigned deadline_ms);

#endif
