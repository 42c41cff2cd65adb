/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies systemd (or whatever set NOTIFY_SOCKET) of a daemon's state: the protocol of sd_notify, without its library.
 * Does nothing without a listener and never fails. errno is preserved. Any thread. */
#ifndef GPUFL_BASE_NOTIFY_H
#define GPUFL_BASE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* state: "READY=1", "WATCHDOG=1", "STOPPING=1", "RELOADING=1", "STATUS=..."; several are separated by LF. False: no
 * listener, or sending failed. */
bool notify_send(const char *state);
/* The maximum interval between WATCHDOG=1 messages before the service manager restarts this process; 0: no watchdog.
 * Send at half of it. */
int64_t notify_watchdog_ns(void);

#endif
