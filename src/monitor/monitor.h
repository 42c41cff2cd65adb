/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU monitor, which needs no program: it samples GPUs, their processes and the host, and writes sessions of kind
 * monitor, one per day. When a driver disappears, it is closed and reopened, and the gap is recorded in the log. One
 * thread calls open, tick and close; other threads may read the view. */
#ifndef GPUFL_MONITOR_MONITOR_H
#define GPUFL_MONITOR_MONITOR_H

#include "monitor/roll.h"
#include "monitor/view.h"

struct monitor; /* opaque */

struct monitor_options {
    const char *dir;      /* base directory; created if missing */
    const char *app_name; /* as recorded in the log */
    enum roll_period roll;
    unsigned vendors;               /* bit per enum gpu_vendor: the vendors to watch */
    const char *root;               /* directory that contains proc; "" by default */
    int64_t min_free_bytes;         /* as log_writer_options.min_free_bytes */
    int64_t (*wall_ns)(void *user); /* clock for session ends; NULL: the system's clock */
    /* called when a session is closed, before it is sealed; may be NULL */
    void (*session_ended)(void *user, const char *dir);
    void *user;
};

/* Takes the directory's lock (GPUFL_E_BUSY: another monitor writes there) and starts a session. Strings are copied,
 * except root. gpu_problem: why there is no GPU data, or "". */
NODISCARD gpufl_status monitor_open(struct monitor **out, const struct monitor_options *options,
                                    struct problem *problem, struct problem *gpu_problem);
/* Takes one sample of everything and does what is due: starts a new session, retries the driver. */
void monitor_tick(struct monitor *monitor);
/* Starts a new session immediately, and retries the driver without delay. */
void monitor_reopen(struct monitor *monitor);
/* Ends the session; only monitor_close may follow. The view stays valid. NULL is a no-op. */
void monitor_end(struct monitor *monitor);
/* Ends the session, releases the lock and frees. NULL is a no-op. */
void monitor_close(struct monitor *monitor);
struct monitor_view *monitor_get_view(struct monitor *monitor);
/* The driver was replaced by another version, whose NVML only a new process can load. */
bool monitor_needs_restart(const struct monitor *monitor);
const char *monitor_session_dir(const struct monitor *monitor);

/* Terminates sessions of this app whose writer was killed, and passes them to `found` (which may seal them). Sessions
 * that are still being written are not touched. */
void monitor_recover(const char *dir, const char *app_name, void (*found)(void *user, const char *dir), void *user);

#endif
