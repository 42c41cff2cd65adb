/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor's background thread: seals sessions that have ended, uploads finished sessions, and sends values to an
 * OTLP collector, so that a slow or unreachable network does not delay sampling. */
#ifndef GPUFL_MONITOR_SHIPPING_H
#define GPUFL_MONITOR_SHIPPING_H

#include "base/upload_library.h"
#include "monitor/view.h"

struct shipping; /* opaque */

/* Strings are borrowed until shipping_stop. */
struct shipping_options {
    const char *dir; /* contains the sessions */
    /* app whose sessions are ended and sealed if their writer was killed */
    const char *app_name;
    upload_run_fn upload;                        /* NULL: sessions are not uploaded */
    const char *upload_url, *api_key, *api_path; /* the last two may be NULL */
    upload_post_fn post;                         /* NULL: no OTLP */
    const char *otlp_server, *otlp_path;
    unsigned otlp_interval_ms;
    struct monitor_view *view;
};

NODISCARD gpufl_status shipping_start(struct shipping **out, const struct shipping_options *options,
                                      struct problem *problem);
/* Call when a session has ended. Never blocks; if too many are waiting, the directory is searched instead. */
void shipping_add(struct shipping *shipping, const char *dir);
/* Finishes pending work and frees. An upload is given deadline_ms at most. NULL is a no-op. False: an upload or a large
 * session took longer. Its thread then continues until the process ends and keeps using everything it was given; the
 * next monitor does what remains. */
NODISCARD bool shipping_stop(struct shipping *shipping, unsigned deadline_ms);

#endif
