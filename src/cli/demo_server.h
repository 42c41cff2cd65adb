/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's second half: a server with sessions in it and this host's live metrics, each by its own command as anybody
 * would start it: serve, agent, monitor. Single-threaded. */
#ifndef GPUFL_CLI_DEMO_SERVER_H
#define GPUFL_CLI_DEMO_SERVER_H

#include <stdbool.h>
#include <stddef.h>

enum { DEMO_SESSIONS_MAX = 12 };

struct demo_request {
    const char *dir;                         /* empty; what is written goes here, and the caller removes it */
    const char *sessions[DEMO_SESSIONS_MAX]; /* finished session directories to send */
    size_t session_count;
    long port;    /* -1: 8080, or any other where that is taken; 0: any */
    bool is_once; /* end when everything was seen to work, instead of waiting for Ctrl-C */
};

/* NULL: there is a server in this installation; else why not. */
const char *demo_server_missing(void);
/* Prints where the server is and what it has; returns the exit code. */
int demo_serve(const struct demo_request *request);

#endif
