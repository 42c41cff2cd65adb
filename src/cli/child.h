/* SPDX-License-Identifier: Apache-2.0 */
/* Runs another program as if gpufl were not there: it keeps the terminal and the standard streams, signals meant for it
 * reach it, and its status comes back. Single-threaded. */
#ifndef GPUFL_CLI_CHILD_H
#define GPUFL_CLI_CHILD_H

#include "base/status.h"

#include <sys/types.h>

#define CHILD_VARIABLES_MAX 32
#define CHILD_VALUE_BYTES 4096
#define CHILD_CLOSE_MS 4000 /* a little more than exit_timeout_ms */

struct child_variable {
    const char *name;
    char value[CHILD_VALUE_BYTES];
    bool keeps_own; /* a value that is already in the environment wins */
};

/* level: "error", "warning", "info" or "debug". */
typedef void (*child_message_fn)(void *user, const char *level, const char *text);

struct child_options {
    char **argv; /* NULL-terminated; argv[0] is searched in PATH */
    struct child_variable variables[CHILD_VARIABLES_MAX];
    unsigned variable_count;
    child_message_fn on_message; /* NULL: no message socket */
    void *user;
};

struct child_result {
    pid_t pid;
    bool has_session; /* it records, and can be ordered to close its session */
    int exit_code;    /* -1 when a signal ended it */
    int signal;       /* 0: none */
    int64_t wall_ns;  /* from its start to its end */
    bool has_left;    /* a program that it started runs on, and has the message socket */
};

/* Adds NAME=value; values of CHILD_VALUE_BYTES and more do not fit: false. */
bool child_set(struct child_options *options, const char *name, const char *value, bool keeps_own);

/* Before a signal that will end the program is passed on, the program is given CHILD_CLOSE_MS to close its session.
 * Waits for the end. While it waits, Ctrl-C and Ctrl-\ of the terminal are left to the program; SIGTERM, SIGHUP,
 * SIGUSR1, SIGUSR2 and what another process sends are passed on. GPUFL_E_NOT_FOUND, GPUFL_E_PERMISSION: it could not be
 * executed. */
NODISCARD gpufl_status child_run(const struct child_options *options, struct child_result *result,
                                 struct problem *problem);

#endif
