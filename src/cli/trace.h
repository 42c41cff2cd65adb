/* SPDX-License-Identifier: Apache-2.0 */
/* A traced run of a program, for the commands that make one. Single-threaded. */
#ifndef GPUFL_CLI_TRACE_H
#define GPUFL_CLI_TRACE_H

#include "cli/arguments.h"
#include "cli/child.h"

struct trace_request {
    const char *command;              /* name of the gpufl command, for messages */
    char **argv;                      /* the program, NULL-terminated */
    const char *engine;               /* NULL: the environment's, else Trace */
    const char *name;                 /* NULL: from argv */
    const char *dir;                  /* NULL: the environment's, else ./<name> */
    long sample_ms;                   /* -1: the environment's, else 100 */
    int64_t max_bytes;                /* of the session; 0: the environment's, else no limit */
    const char *upload_url;           /* NULL: no upload */
    const struct arguments *settings; /* with those of the deep engines, see engine_settings.h; NULL: none */
    struct child_result *result;      /* of the program, when it has ended; NULL: nobody asks */
    bool has_stacks, has_memory, has_graphs, has_no_sync, has_no_disassembly, is_quiet, is_exclusive;
};

/* Runs the program and prints what there is to say; returns the exit code for gpufl. session_dir (may be NULL, else
 * PATH_MAX bytes): the program's own session, "" when there is none. */
int trace_run(const struct trace_request *request, char *session_dir);

#endif
