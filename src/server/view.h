/* SPDX-License-Identifier: Apache-2.0 */
/* `gpufl view`: serves one session directory with the dashboard, on this machine only, until a signal ends it. Runs on
 * the calling thread. */
#ifndef GPUFL_SERVER_VIEW_H
#define GPUFL_SERVER_VIEW_H

#include "base/server_library.h"

/* Returns the exit status: 0 when SIGINT, SIGTERM or SIGHUP ended it. These signals stay blocked, so that the caller
 * can clean up. */
int view_run(const struct server_command *command);

#endif
