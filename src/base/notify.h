/* SPDX-License-Identifier: Apache-2.0 */
/* Tells systemd (or whoever set NOTIFY_SOCKET) how a daemon is doing: the
 * protocol of sd_notify, without its library. Does nothing when nobody listens;
 * never fails its caller. errno is preserved. Any thread. */
#ifndef GPUFL_BASE_NOTIFY_H
#define GPUFL_BASE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* state: "READY=1", "WATCHDOG=1", "STOPPING=1", "RELOADING=1", "STATUS=..."; several are separated by LF. False: nobody
 * listens, or it could not be said. */
bool notify_send(const char *state);
/* How often WATCHDOG=1 must come for the service manager not to restart this process; 0: it does not watch. Half of
 * this is a good interval. */
int64_t notify_watchdog_ns(void);

#endif
