/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a session in the dashboard, for the commands that offer it. Single-threaded. */
#ifndef GPUFL_CLI_VIEW_H
#define GPUFL_CLI_VIEW_H

#include <stdbool.h>

struct view_request {
    const char *command; /* for messages */
    const char *session; /* a session directory */
    long port;           /* 0: any that is free */
    bool has_no_browser;
};

/* Serves the session on the loopback until SIGINT, SIGTERM or SIGHUP, which stay blocked afterwards. The exit code. */
int view_session(const struct view_request *request);

#endif
