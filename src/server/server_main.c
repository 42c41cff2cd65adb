/* SPDX-License-Identifier: Apache-2.0 */
/* The only function that libgpufl-server.so exports. */
#include "server/server_main.h"

#include "analysis/message.h"
#include "base/clock.h"
#include "base/notify.h"
#include "server/admin.h"
#include "server/server.h"
#include "server/view.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MEMORY_ARENAS = 2 };
enum { EXIT_GOOD = 0, EXIT_ANSWER_NO = 1, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3 };

static int fail(gpufl_status status, const char *text)
{
    message_print(stderr, "gpufl serve: %s", text);
    return status == GPUFL_E_INVALID ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

/* Notifies the service manager, as long as commits make progress. */
static void watchdog_notify(struct server *server, int64_t *next_ns)
{
    int64_t interval_ns = notify_watchdog_ns() / 2, now_ns = clock_mono_ns();
    struct server_health health;
    if (!interval_ns || now_ns < *next_ns)
        return;
    *next_ns = now_ns + interval_ns;
    server_health_read(server, &health);
    if (health.is_serving)
        notify_send("WATCHDOG=1");
}

static int run(const struct server_config *config)
{
    struct server *server = calloc(1, sizeof *server);
    struct problem problem = {""};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    /* Before any thread starts, so that none of them receives a signal. */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    /* Many threads that mostly wait: fewer arenas let them reuse each other's freed memory. */
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, MEMORY_ARENAS);
#endif
    gpufl_status status = server ? server_start(server, config, &problem)
                                 : problem_set(&problem, GPUFL_E_NO_MEMORY, "no memory for the server");
    if (status || !server) {
        free(server);
        return fail(status, problem.text);
    }
    const char *colon = strrchr(config->listen, ':');
    int host_size = colon ? (int)(colon - config->listen) : (int)strlen(config->listen);
    char url[256], state[320];
    snprintf(url, sizeof url, "http%s://%.*s:%u", config->tls_cert ? "s" : "", host_size ? host_size : 1,
             host_size ? config->listen : "*", http_server_port(server->http));
    snprintf(state, sizeof state, "READY=1\nSTATUS=%s", url);
    server_log("%s, data in %s%s", url, config->data,
               atomic_load(&server->is_key_needed) ? "" : "; without an API key, only this machine has access");
    notify_send(state);
    int64_t watchdog_ns = 0;
    const struct timespec tick = {.tv_nsec = LIVE_TICK_MS * 1000000L};
    for (;;) {
        int got = sigtimedwait(&signals, NULL, &tick);
        if (got == SIGTERM || got == SIGINT)
            break;
        server_tick(server);
        watchdog_notify(server, &watchdog_ns);
    }
    notify_send("STOPPING=1");
    server_log("stopping: finishing requests in progress");
    server_stop(server);
    free(server);
    return EXIT_GOOD;
}

/* Sends the request to the server that runs on the directory; if there is none, carries it out here. */
static gpufl_status ask(const struct server_config *config, const struct server_command *command, struct bytes *answer,
                        struct problem *problem)
{
    struct bytes request = {0};
    struct store *store;
    admin_request_write(command, &request);
    gpufl_status status = control_call(config->data, &request, answer, problem);
    if (status == GPUFL_E_NOT_FOUND) {
        const struct store_options options = {.is_read_only = !admin_action_writes(command->action)};
        status = store_open(&store, config->store[0] ? config->store : config->data, &options, problem);
        if (!status) {
            bytes_clear(answer);
            admin_execute(store, request.data, request.size, answer);
            store_close(store);
        }
    }
    bytes_free(&request);
    return status;
}

static const char *time_text(const struct json_value *key, const char *name, char out[24])
{
    int64_t ns = json_get_int(key, name, CELL_UNKNOWN);
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm parts;
    if (ns == CELL_UNKNOWN || !gmtime_r(&seconds, &parts) || !strftime(out, 24, "%Y-%m-%d %H:%M", &parts))
        snprintf(out, 24, "never");
    return out;
}

static void print_keys(const struct json_value *keys)
{
    char created[24], expires[24], used[24];
    int64_t now_ns = clock_wall_ns();
    if (!keys->count)
        printf("no keys. Create one: gpufl serve keys create --scope ingest\n");
    else
        printf("%4s  %-8s  %-6s  %-7s  %-16s  %-16s  %-16s  %s\n", "id", "prefix", "scope", "state", "created",
               "expires", "last used", "name");
    for (const struct json_value *key = keys->child; key; key = key->next) {
        int64_t expires_ns = json_get_int(key, "expires_ns", CELL_UNKNOWN);
        bool is_revoked = json_get_int(key, "revoked_ns", CELL_UNKNOWN) != CELL_UNKNOWN;
        const char *state = is_revoked                                           ? "revoked"
                            : expires_ns != CELL_UNKNOWN && expires_ns <= now_ns ? "expired"
                                                                                 : "active";
        printf("%4" PRId64 "  %-8s  %-6s  %-7s  %-16s  %-16s  %-16s  %s\n", json_get_int(key, "id", 0),
               json_get_text(key, "prefix", ""), json_get_text(key, "scope", ""), state,
               time_text(key, "created_ns", created), time_text(key, "expires_ns", expires),
               time_text(key, "last_used_ns", used), json_get_text(key, "name", ""));
    }
}

static void print_audit(const struct json_value *entries)
{
    char when[24];
    if (!entries->count)
        printf("the audit log is empty\n");
    for (const struct json_value *entry = entries->child; entry; entry = entry->next)
        printf("%-16s  %-24s  %-14s  %s%s%s\n", time_text(entry, "ts_ns", when), json_get_text(entry, "actor", ""),
               json_get_text(entry, "action", ""), json_get_text(entry, "subject", ""),
               *json_get_text(entry, "subject", "") ? ": " : "", json_get_text(entry, "detail", ""));
}

static void print_answer(enum server_action action, const struct json_value *answer)
{
    if (action == SERVER_KEYS_LIST) {
        print_keys(answer);
    } else if (action == SERVER_AUDIT) {
        print_audit(answer);
    } else if (action == SERVER_KEYS_CREATE || action == SERVER_KEYS_ROTATE) {
        /* Standard output has only the key, so that it can be piped into a file. */
        printf("%s\n", json_get_text(answer, "key", ""));
        message_print(stderr,
                      "gpufl serve: key %" PRId64 ", scope %s; it is shown only once: save it in a file or in "
                      "GPUFL_API_KEY",
                      json_get_int(answer, "id", 0), json_get_text(answer, "scope", ""));
    } else if (action == SERVER_KEYS_REVOKE) {
        printf("key %" PRId64 " (%s) is revoked\n", json_get_int(answer, "id", 0), json_get_text(answer, "prefix", ""));
    } else if (action == SERVER_BACKUP) {
        printf("written: %s\n", answer->kind == JSON_STRING ? answer->text : "");
    } else {
        const struct json_value *issues = json_member(answer, "issues");
        for (const struct json_value *issue = issues ? issues->child : NULL; issue; issue = issue->next)
            printf("%s\n", issue->kind == JSON_STRING ? issue->text : "");
        printf("%s: %" PRId64 " sessions, %" PRId64 " rows, %" PRId64 " bytes (%s)\n",
               json_get_int(answer, "issue_count", 0) ? "damaged" : "sound", json_get_int(answer, "sessions", 0),
               json_get_int(answer, "rows", 0), json_get_int(answer, "bytes", 0), json_get_text(answer, "engine", ""));
    }
}

static int administer(const struct server_config *config, const struct server_command *command)
{
    struct bytes text = {0};
    struct problem problem = {""};
    struct json_document document = {0};
    gpufl_status status = ask(config, command, &text, &problem);
    if (!status && json_parse(&document, bytes_text(&text), text.size, NULL))
        status = problem_set(&problem, GPUFL_E_DAMAGED, "the server's answer cannot be read");
    const struct json_value *error = json_member(document.root, "error");
    const struct json_value *answer = json_member(document.root, "answer");
    if (!status && error) {
        int64_t code = json_get_int(error, "status", GPUFL_E_IO);
        status = problem_set(&problem, (gpufl_status)code, "%s", json_get_text(error, "message", ""));
    }
    int code = status ? fail(status, problem.text) : EXIT_GOOD;
    if (!status && answer) {
        static const char prefix[] = "{\"answer\":";
        if (command->is_json)
            printf("%.*s\n", (int)(text.size - sizeof prefix), text.data + sizeof prefix - 1);
        else
            print_answer(command->action, answer);
        code = command->action == SERVER_CHECK && json_get_int(answer, "issue_count", 0) ? EXIT_ANSWER_NO : EXIT_GOOD;
    }
    json_free(&document);
    if (text.data)
        explicit_bzero(text.data, text.capacity);
    bytes_free(&text);
    return code;
}

int gpufl_server_main(const struct server_command *given)
{
    struct server_command command = *given;
    struct server_config config;
    struct problem problem = {""};
    char path[PATH_MAX * 2];
    if (command.action == SERVER_VIEW)
        return view_run(given);
    gpufl_status status = server_config_load(&config, &command, &problem);
    if (status)
        return fail(status, problem.text);
    if (command.action == SERVER_BACKUP && command.operand[0] != '/') {
        /* The server has another working directory. */
        char here[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", getcwd(here, sizeof here) ? here : "", command.operand);
        command.operand = path;
    }
    int code = command.action == SERVER_RUN ? run(&config) : administer(&config, &command);
    server_config_free(&config);
    return code;
}
