/* SPDX-License-Identifier: Apache-2.0 */
#include "server/view.h"

#include "server/server.h"
#include "server/session_import.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXIT_GOOD = 0, EXIT_ENVIRONMENT = 3, MEMORY_ARENAS = 2 };

static sigset_t end_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    return signals;
}

/* The signal stays pending and ends the next wait. */
static bool is_ending(void)
{
    const sigset_t ends = end_signals();
    sigset_t pending;
    sigpending(&pending);
    sigandset(&pending, &pending, &ends);
    return !sigisemptyset(&pending);
}

static void import_report(const struct session_import *import, const char *session)
{
    const char *plural_lines = import->rejected_lines == 1 ? "" : "s";
    const char *plural_files = import->unread_files == 1 ? "" : "s";
    if (import->rejected_lines)
        server_log("the session is damaged: %" PRIu64
                   " line%s cannot be read; for what is missing, run 'gpufl verify %s'",
                   import->rejected_lines, plural_lines, session);
    if (import->unread_files)
        server_log("the session is damaged: %" PRIu64
                   " file%s cannot be read; for what is missing, run 'gpufl verify %s'",
                   import->unread_files, plural_files, session);
}

/* Reads the session, reports the URL, and waits for a signal. */
static gpufl_status view_show(struct server *server, const struct server_command *command, struct problem *problem)
{
    const struct timespec tick = {.tv_nsec = LIVE_TICK_MS * 1000000L};
    const sigset_t signals = end_signals();
    struct session_import import = {.ingest = &server->ingest, .is_cancelled = is_ending};
    gpufl_status status = session_import_run(&import, command->operand, problem);
    if (status == GPUFL_E_BUSY && is_ending())
        return GPUFL_OK;
    if (status)
        return status;
    char url[64 + STORE_SESSION_ID_MAX];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/sessions/%s", http_server_port(server->http), import.session_id);
    command->on_ready(command->user, url);
    import_report(&import, command->operand);
    while (sigtimedwait(&signals, NULL, &tick) < 0)
        server_tick(server);
    return GPUFL_OK;
}

int view_run(const struct server_command *command)
{
    const struct server_config config = {
        .listen = command->listen, .data = command->data, .store = "", .is_view = true};
    const sigset_t signals = end_signals();
    struct problem problem = {""};
    server_log_as("view");
    struct server *server = calloc(1, sizeof *server);
    if (!server) {
        server_log("out of memory");
        return EXIT_ENVIRONMENT;
    }
    /* Before any thread starts, so that none of them receives a signal. */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, MEMORY_ARENAS);
#endif
    gpufl_status status = server_start(server, &config, &problem);
    if (!status) {
        status = view_show(server, command, &problem);
        server_stop(server);
    }
    if (status)
        server_log("%s", problem.text);
    free(server);
    return status ? EXIT_ENVIRONMENT : EXIT_GOOD;
}
