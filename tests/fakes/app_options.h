/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of fake_app. */
#ifndef FAKES_APP_OPTIONS_H
#define FAKES_APP_OPTIONS_H

#include <stdbool.h>

struct app_options {
    int threads, streams, launches, kernel_us, sync_every, contexts, gpus, scopes_per_thread;
    int exit_code, crash_signal, run_ms, pause_us, churn, capture_ms, graph_nodes;
    bool has_scopes, has_nvtx, has_copies, has_graphs, uses_driver;
    bool has_fork, has_fork_first, has_exec, has_no_sync, has_take_over, until_input_ends;
    const char *library; /* to dlopen first */
};

/* Prints what is wrong or the help to stderr and returns false. */
bool app_options_parse(struct app_options *options, int argc, char **argv);

#endif
