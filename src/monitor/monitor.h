/* SPDX-License-Identifier: Apache-2.0 */
/* The zero-code monitor: samples GPUs, their processes and the host, and writes
 * sessions of kind monitor, one per day. Survives a driver that goes away and
 * comes back: it is closed and opened again, and the gap is in the log. One
 * thread calls open, beat and close; the view may be read by others. */
#ifndef GPUFL_MONITOR_MONITOR_H
#define GPUFL_MONITOR_MONITOR_H

#include "monitor/roll.h"
#include "monitor/view.h"

struct monitor; /* opaque */

struct monitor_options {
    const char *dir;      /* base directory; made when missing */
    const char *app_name; /* in the log */
    enum roll_period roll;
    unsigned vendors;                                   /* bit per enum gpu_vendor: whose GPUs are watched */
    const char *root;                                   /* directory in which proc lies: "" */
    int64_t min_free_bytes;                             /* as log_writer_options.min_free_bytes */
    int64_t (*wall_ns)(void *user);                     /* decides when to roll; NULL: the system's clock */
    void (*session_ended)(void *user, const char *dir); /* closed, not yet sealed; may be NULL */
    void *user;
};

/* Takes the directory's lock (GPUFL_E_BUSY: another monitor writes there) and starts a session. Strings are copied,
 * except root. gpu_problem: why there is no GPU data, else "". */
NODISCARD gpufl_status monitor_open(struct monitor **out, const struct monitor_options *options,
                                    struct problem *problem, struct problem *gpu_problem);
/* One sample of everything, and whatever else is due: a new session, another try to reach the driver. */
void monitor_beat(struct monitor *monitor);
/* Starts a new session now, and looks for the driver again without waiting. */
void monitor_reopen(struct monitor *monitor);
/* Ends the session; only monitor_close may follow. The view stays. NULL is a no-op. */
void monitor_end(struct monitor *monitor);
/* Ends the session, gives the lock back and frees. NULL is a no-op. */
void monitor_close(struct monitor *monitor);
struct monitor_view *monitor_get_view(struct monitor *monitor);
/* The driver was replaced by another version, whose NVML only a new process can load. */
bool monitor_needs_restart(const struct monitor *monitor);
const char *monitor_session_dir(const struct monitor *monitor);

/* Sessions of this app in the directory whose writer was killed get their end, and are told to `found` (which may seal
 * them). Nothing that still lives is touched. */
void monitor_recover(const char *dir, const char *app_name, void (*found)(void *user, const char *dir), void *user);

#endif
