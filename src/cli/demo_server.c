/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/demo_server.h"

#include "base/clock.h"
#include "base/server_library.h"
#include "base/upload_library.h"
#include "cli/background.h"
#include "cli/command.h"
#include "cli/local_http.h"
#include "format/json.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    PORT_DEFAULT = 8080,
    START_TIMEOUT_MS = 30000,   /* of each step; usually a fraction of a second */
    SESSION_TIMEOUT_MS = 10000, /* and of each session that is sent */
    STOP_TIMEOUT_MS = 15000,
    POLL_MS = 50
};

static const char module_mark[] = "an address in this program";

struct demo {
    const struct demo_request *request;
    struct background server, agent, monitor;
    sigset_t signals; /* that end it */
    char notify_path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    int notify_fd;
    int64_t start_wall_ns, start_mono_ns;
    uint16_t port;
    bool is_interrupted;
    struct problem problem;
};

const char *demo_server_missing(void)
{
    static struct problem problem;
    if (server_library_find(module_mark, &problem) && upload_library_find(module_mark, &problem))
        return NULL;
    return problem.text;
}

/* True: asked to end, or one of the commands did by itself and the problem says which. */
static bool is_over(struct demo *demo, int wait_ms)
{
    struct background *const all[] = {&demo->server, &demo->agent, &demo->monitor};
    const struct timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1000000L};
    if (sigtimedwait(&demo->signals, NULL, &wait) > 0)
        demo->is_interrupted = true;
    for (size_t i = 0; i < sizeof all / sizeof *all && !demo->is_interrupted && !demo->problem.text[0]; i++) {
        char words[300];
        if (!all[i]->name || background_is_running(all[i]))
            continue;
        background_last_words(all[i], words, sizeof words);
        problem_set(&demo->problem, GPUFL_E_IO, "gpufl %s ended with status %d: %s", all[i]->name, all[i]->exit_code,
                    words);
    }
    return demo->is_interrupted || demo->problem.text[0];
}

static bool notify_open(struct demo *demo)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int size = snprintf(demo->notify_path, sizeof demo->notify_path, "%s/notify", demo->request->dir);
    if (size < 0 || (size_t)size >= sizeof demo->notify_path) {
        problem_set(&demo->problem, GPUFL_E_LIMIT,
                    "%.200s is too long a name for a socket; set TMPDIR to a shorter one", demo->request->dir);
        return false;
    }
    memcpy(address.sun_path, demo->notify_path, (size_t)size);
    demo->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (demo->notify_fd >= 0 && !bind(demo->notify_fd, (const struct sockaddr *)&address, sizeof address))
        return true;
    problem_set(&demo->problem, GPUFL_E_IO, "%s: %s", demo->notify_path, strerror(errno));
    return false;
}

/* Whether nobody listens there. The server itself finds out in the end; this only chooses. */
static bool port_is_free(uint16_t port)
{
    const int yes = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_free = fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) &&
                   !bind(fd, (const struct sockaddr *)&address, sizeof address) && !listen(fd, 1);
    if (fd >= 0)
        close(fd);
    return is_free;
}

/* The server says where it listens when it is ready. */
static bool server_start(struct demo *demo)
{
    const struct demo_request *request = demo->request;
    long port = request->port >= 0 ? request->port : port_is_free(PORT_DEFAULT) ? PORT_DEFAULT : 0;
    char listen[32], data[PATH_MAX];
    snprintf(listen, sizeof listen, "127.0.0.1:%ld", port);
    snprintf(data, sizeof data, "%s/server", request->dir);
    const char *const argv[] = {"--listen", listen, "--data", data, NULL};
    if (!notify_open(demo) ||
        background_start(&demo->server, "serve", argv, request->dir, demo->notify_path, &demo->problem) != GPUFL_OK)
        return false;
    int64_t until_ns = clock_mono_ns() + (int64_t)START_TIMEOUT_MS * 1000000;
    while (!demo->port && clock_mono_ns() < until_ns && !is_over(demo, POLL_MS)) {
        char message[512];
        ssize_t size = recv(demo->notify_fd, message, sizeof message - 1, 0);
        message[size > 0 ? size : 0] = '\0';
        const char *status = strstr(message, "STATUS=http://127.0.0.1:");
        if (status && strstr(message, "READY=1"))
            sscanf(status, "STATUS=http://127.0.0.1:%hu", &demo->port);
    }
    if (!demo->port && !demo->is_interrupted && !demo->problem.text[0])
        problem_set(&demo->problem, GPUFL_E_IO, "the server was not ready after %d s; its log is %s",
                    START_TIMEOUT_MS / 1000, demo->server.log);
    return demo->port;
}

static bool senders_start(struct demo *demo)
{
    const struct demo_request *request = demo->request;
    char url[64], monitored[PATH_MAX], state[PATH_MAX];
    snprintf(url, sizeof url, "http://127.0.0.1:%u", demo->port);
    snprintf(monitored, sizeof monitored, "%s/monitor", request->dir);
    snprintf(state, sizeof state, "%s/agent", request->dir);
    if (mkdir(monitored, 0700) && errno != EEXIST) {
        problem_set(&demo->problem, GPUFL_E_IO, "%.300s: %s", monitored, strerror(errno));
        return false;
    }
    const char *agent[8 + 2 * DEMO_SESSIONS_MAX + 1] = {"--server",   url,   "--state", state,
                                                        "--interval", "500", "--root",  monitored};
    size_t used = 8;
    for (size_t i = 0; i < request->session_count; i++) {
        agent[used++] = "--root";
        agent[used++] = request->sessions[i];
    }
    const char *const monitor[] = {"--output", monitored, "--listen", "none", NULL};
    return background_start(&demo->agent, "agent", agent, request->dir, NULL, &demo->problem) == GPUFL_OK &&
           background_start(&demo->monitor, "monitor", monitor, request->dir, NULL, &demo->problem) == GPUFL_OK;
}

/* Of one answer of the server. True: it shows what is waited for, and was printed. */
typedef bool answer_check(struct demo *demo, const struct json_value *answer);

static bool sessions_check(struct demo *demo, const struct json_value *answer)
{
    const struct json_value *list = json_member(answer, "sessions");
    size_t count = 0;
    for (const struct json_value *session = list ? list->child : NULL; session; session = session->next)
        count += !strcmp(json_get_text(session, "state", ""), "complete");
    if (!list || count < demo->request->session_count)
        return false;
    for (const struct json_value *session = list->child; session; session = session->next) {
        const struct json_value *gpus = json_member(session, "gpus");
        const char *engine = json_get_text(session, "engine", "");
        int64_t kernels = json_get_int(session, "kernels", 0);
        /* Their counters exclude kernel times. */
        bool is_untimed = !kernels && (strstr(engine, "range_profiler") || strstr(engine, "sass_metrics"));
        char text[48] = "kernels counted, not timed";
        if (!is_untimed)
            snprintf(text, sizeof text, "%" PRId64 " kernels", kernels);
        if (!strcmp(json_get_text(session, "state", ""), "complete"))
            printf("  session  %s on %s: %s\n", json_get_text(session, "app", "?"),
                   gpus && gpus->child ? json_get_text(gpus->child, "name", "a GPU") : "a GPU", text);
    }
    return true;
}

static bool hosts_check(struct demo *demo, const struct json_value *answer)
{
    const struct json_value *list = json_member(answer, "hosts");
    for (const struct json_value *host = list ? list->child : NULL; host; host = host->next) {
        const struct json_value *metrics = json_member(host, "metrics"), *gpus = json_member(host, "gpus");
        if (!metrics || json_get_int(metrics, "sample_ns", 0) < demo->start_wall_ns)
            continue;
        unsigned gpu_count = 0;
        for (const struct json_value *gpu = gpus ? gpus->child : NULL; gpu; gpu = gpu->next) {
            const struct json_value *values = json_member(gpu, "metrics");
            gpu_count += values && json_get_int(values, "sample_ns", 0) >= demo->start_wall_ns;
        }
        printf("  live     %s: CPU, memory and %u GPU%s, sampled every second\n",
               json_get_text(host, "host", "this host"), gpu_count, gpu_count == 1 ? "" : "s");
        return true;
    }
    return false;
}

/* Asks again until the answer is as wanted. */
static bool answer_await(struct demo *demo, const char *path, answer_check *check, const char *what)
{
    int64_t limit_ms = START_TIMEOUT_MS + SESSION_TIMEOUT_MS * (int64_t)demo->request->session_count;
    int64_t until_ns = clock_mono_ns() + limit_ms * 1000000;
    struct bytes body = {0};
    struct problem last = {""};
    bool is_good = false;
    while (!is_good && !is_over(demo, POLL_MS) && clock_mono_ns() < until_ns) {
        struct json_document document;
        int status = local_http_get(demo->port, path, &body, &last);
        if (status == 200 && json_parse(&document, bytes_text(&body), body.size, NULL) == GPUFL_OK) {
            is_good = check(demo, document.root);
            json_free(&document);
        } else if (status) {
            problem_set(&last, GPUFL_E_IO, "%s answered %d", path, status);
        }
    }
    bytes_free(&body);
    if (!is_good && !demo->is_interrupted && !demo->problem.text[0])
        problem_set(&demo->problem, GPUFL_E_IO, "%s: not within %" PRId64 " s. %s", what, limit_ms / 1000, last.text);
    return is_good;
}

static bool health_check(struct demo *demo, const struct json_value *answer)
{
    if (strcmp(json_get_text(answer, "status", ""), "ok") != 0)
        return false;
    printf("\nDashboard: http://127.0.0.1:%u  (answered %.1f s after its start; data in %s, removed at the end)\n",
           demo->port, (double)(clock_mono_ns() - demo->start_mono_ns) / 1e9, demo->request->dir);
    fflush(stdout);
    return true;
}

static bool demo_run(struct demo *demo)
{
    return server_start(demo) && answer_await(demo, "/healthz", health_check, "the server's health") &&
           senders_start(demo) &&
           answer_await(demo, "/api/v1/sessions", sessions_check, "all sessions in the server") &&
           answer_await(demo, "/api/v1/hosts", hosts_check, "this host's metrics in the server");
}

int demo_serve(const struct demo_request *request)
{
    struct demo demo = {.request = request, .notify_fd = -1};
    sigset_t before;
    sigemptyset(&demo.signals);
    sigaddset(&demo.signals, SIGINT);
    sigaddset(&demo.signals, SIGTERM);
    sigaddset(&demo.signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &demo.signals, &before);
    demo.start_wall_ns = clock_wall_ns();
    demo.start_mono_ns = clock_mono_ns();
    bool is_good = demo_run(&demo);
    if (is_good && !request->is_once) {
        printf("Ctrl-C ends it.\n");
        fflush(stdout);
        while (!is_over(&demo, 1000))
            continue;
    }
    /* From the source to the sink, so that each can hand over what it has. */
    bool is_clean = background_stop(&demo.monitor, STOP_TIMEOUT_MS);
    is_clean = background_stop(&demo.agent, STOP_TIMEOUT_MS) && is_clean;
    is_clean = background_stop(&demo.server, STOP_TIMEOUT_MS) && is_clean;
    if (demo.notify_fd >= 0)
        close(demo.notify_fd);
    if (demo.problem.text[0])
        command_error("demo", "%s", demo.problem.text);
    else if (!is_clean)
        command_error("demo", "the server did not end cleanly; its log was %s", demo.server.log);
    else
        printf("Everything was stopped.\n");
    sigprocmask(SIG_SETMASK, &before, NULL);
    return (is_good || demo.is_interrupted) && is_clean && !demo.problem.text[0] ? EXIT_GOOD : EXIT_ENVIRONMENT;
}
