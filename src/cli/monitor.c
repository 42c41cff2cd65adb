/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/monitor.h"

#include "analysis/message.h"
#include "base/clock.h"
#include "base/endpoint.h"
#include "base/log.h"
#include "base/notify.h"
#include "cli/command.h"
#include "cli/upload.h"
#include "logfile/disk_space.h"
#include "monitor/monitor.h"
#include "monitor/otlp.h"
#include "monitor/prometheus.h"
#include "monitor/shipping.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define LISTEN_DEFAULT "127.0.0.1:9400"

enum { INTERVAL_DEFAULT_MS = 1000, OTLP_INTERVAL_MIN_MS = 10000, STOP_DEADLINE_MS = 10000, PATIENCE_MS = 5000 };

static const char module_mark[] = "an address in this program";

struct daemon {
    struct monitor *monitor;
    struct endpoint *endpoint; /* NULL: no page */
    struct shipping *shipping;
    unsigned interval_ms;
    unsigned vendors; /* bit per enum gpu_vendor */
    int64_t min_free_bytes;
    bool with_dcgm_names;
    int signal_fd;
    int64_t watchdog_ns; /* how often the service manager wants to hear of us; 0: never */
    char otlp_server[512], otlp_path[160];
};

enum request { REQUEST_NONE, REQUEST_STOP, REQUEST_REOPEN };

static const char *environment_text(const char *name, const char *fallback)
{
    const char *text = getenv(name);
    return text && *text ? text : fallback;
}

static void on_message(void *user, gpufl_log_level level, const char *text)
{
    (void)user;
    if (level <= GPUFL_LOG_INFO)
        message_print(stderr, "gpufl monitor: %s", text);
}

static void metrics_render(void *user, const char *accept, struct endpoint_answer *answer)
{
    struct daemon *daemon = user;
    const struct prometheus_options options = {exposition_choose(accept), daemon->with_dcgm_names};
    answer->content_type = exposition_content_type(options.format);
    prometheus_page(answer->body, monitor_get_view(daemon->monitor), &options);
}

/* Healthy is who makes progress, not who answers. */
static void health_render(void *user, const char *accept, struct endpoint_answer *answer)
{
    (void)accept;
    struct daemon *daemon = user;
    struct monitor_view *view = monitor_get_view(daemon->monitor);
    pthread_mutex_lock(&view->mutex);
    int64_t sampled_ns = view->sampled_mono_ns;
    bool has_driver = view->has_driver;
    pthread_mutex_unlock(&view->mutex);
    int64_t age_ms = (clock_mono_ns() - sampled_ns) / 1000000;
    bool is_late = sampled_ns && age_ms > 3 * (int64_t)daemon->interval_ms + PATIENCE_MS;
    answer->status = is_late ? 503 : 200;
    bytes_append_format(answer->body, "%s: last sample %" PRId64 " ms ago, driver %s\n", is_late ? "late" : "ok",
                        sampled_ns ? age_ms : 0, has_driver ? "up" : "absent");
}

static const struct endpoint_page pages[] = {{"/metrics", metrics_render}, {"/healthz", health_render}, {NULL, NULL}};

static void on_session_end(void *user, const char *dir)
{
    struct daemon *daemon = user;
    if (daemon->shipping)
        shipping_add(daemon->shipping, dir);
}

static int exit_code_of(gpufl_status status)
{
    return status == GPUFL_E_INVALID ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

static gpufl_status shipping_open(struct daemon *daemon, const struct arguments *arguments, const char *dir,
                                  const char *name, struct problem *problem)
{
    struct shipping_options options = {
        .dir = dir,
        .app_name = name,
        .upload_url = arguments_text(arguments, "upload", NULL),
        .api_key = getenv("GPUFL_API_KEY"),
        .api_path = getenv("GPUFL_API_PATH"),
        .otlp_server = daemon->otlp_server,
        .otlp_path = daemon->otlp_path,
        .otlp_interval_ms = daemon->interval_ms > OTLP_INTERVAL_MIN_MS ? daemon->interval_ms : OTLP_INTERVAL_MIN_MS,
        .view = monitor_get_view(daemon->monitor),
    };
    if (daemon->otlp_server[0] && !(options.post = upload_library_find_post(module_mark, problem)))
        return GPUFL_E_UNSUPPORTED;
    if (options.upload_url && !(options.upload = upload_library_find(module_mark, problem)))
        return GPUFL_E_UNSUPPORTED;
    return shipping_start(&daemon->shipping, &options, problem);
}

/* A given address must work. The default one may be in use by another monitor, which is reported in usual_problem. */
static gpufl_status page_open(struct daemon *daemon, const char *address, struct problem *usual_problem,
                              struct problem *problem)
{
    if (address && !strcmp(address, "none"))
        return GPUFL_OK;
    if (address)
        return endpoint_open(&daemon->endpoint, address, pages, daemon, problem);
    (void)!endpoint_open(&daemon->endpoint, LISTEN_DEFAULT, pages, daemon, usual_problem);
    return GPUFL_OK;
}

static int signals_open(void)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGHUP);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

static enum request signals_read(const struct daemon *daemon)
{
    struct signalfd_siginfo info;
    enum request request = REQUEST_NONE;
    while (read(daemon->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (request != REQUEST_STOP)
            request = info.ssi_signo == SIGHUP ? REQUEST_REOPEN : REQUEST_STOP;
    return request;
}

/* Waits for the monotonic time or a signal. */
static enum request wait_until(const struct daemon *daemon, int64_t until_ns)
{
    for (;;) {
        int64_t left_ns = until_ns - clock_mono_ns();
        struct timespec left = {left_ns > 0 ? left_ns / 1000000000 : 0, left_ns > 0 ? left_ns % 1000000000 : 0};
        struct pollfd fd = {daemon->signal_fd, POLLIN, 0};
        enum request request = ppoll(&fd, 1, &left, NULL) > 0 ? signals_read(daemon) : REQUEST_NONE;
        if (request != REQUEST_NONE || clock_mono_ns() >= until_ns)
            return request;
    }
}

/* Samples until a signal asks to stop or a restart is needed; the first sample was taken at the start. */
static void sample_until_stopped(struct daemon *daemon)
{
    int64_t interval_ns = (int64_t)daemon->interval_ms * 1000000;
    int64_t tick_ns = clock_mono_ns() + interval_ns, watchdog_ns = daemon->watchdog_ns ? 0 : INT64_MAX;
    enum request request = REQUEST_NONE;
    while (request != REQUEST_STOP && !monitor_needs_restart(daemon->monitor)) {
        int64_t now_ns = clock_mono_ns();
        if (request == REQUEST_REOPEN) {
            notify_send("RELOADING=1");
            monitor_reopen(daemon->monitor);
            notify_send("READY=1");
        }
        if (now_ns >= tick_ns) {
            monitor_tick(daemon->monitor);
            /* Ticks missed because of a slow driver are skipped. */
            tick_ns += ((clock_mono_ns() - tick_ns) / interval_ns + 1) * interval_ns;
        }
        if (now_ns >= watchdog_ns) {
            notify_send("WATCHDOG=1");
            watchdog_ns = now_ns + daemon->watchdog_ns / 2;
        }
        request = wait_until(daemon, tick_ns < watchdog_ns ? tick_ns : watchdog_ns);
    }
}

static gpufl_status daemon_start(struct daemon *daemon, const struct arguments *arguments, struct problem *problem)
{
    const char *name = arguments_text(arguments, "name", environment_text("GPUFL_MONITOR_APP", "gpufl-monitor"));
    const char *dir = arguments_text(arguments, "output", environment_text("GPUFL_MONITOR_LOG_DIR", name));
    struct problem gpu_problem = {""}, page_problem = {""};
    struct monitor_options options = {.dir = dir,
                                      .app_name = name,
                                      .root = "",
                                      .min_free_bytes = daemon->min_free_bytes,
                                      .vendors = daemon->vendors,
                                      .session_ended = on_session_end,
                                      .user = daemon};
    /* The table of options has only words that it knows. */
    (void)roll_period_parse(&options.roll, arguments_text(arguments, "roll", "daily"));
    /* Before the session begins, which would be left behind where the address is taken. */
    gpufl_status status = page_open(daemon, arguments_text(arguments, "listen", NULL), &page_problem, problem);
    if (status == GPUFL_OK)
        status = monitor_open(&daemon->monitor, &options, problem, &gpu_problem);
    if (status == GPUFL_OK)
        status = shipping_open(daemon, arguments, dir, name, problem);
    if (status == GPUFL_OK) {
        monitor_tick(daemon->monitor); /* whoever can read the page finds values there */
        status = daemon->endpoint ? endpoint_run(daemon->endpoint, problem) : GPUFL_OK;
    }
    if (status != GPUFL_OK)
        return status;
    if (page_problem.text[0])
        log_message(GPUFL_LOG_WARNING, "%s; there is no /metrics page (--listen ADDR chooses another address)",
                    page_problem.text);
    log_message(GPUFL_LOG_INFO, "every %u ms into %s", daemon->interval_ms, monitor_session_dir(daemon->monitor));
    if (daemon->endpoint)
        log_message(GPUFL_LOG_INFO, "metrics on http://%s/metrics", endpoint_address(daemon->endpoint));
    if (gpu_problem.text[0])
        log_message(GPUFL_LOG_WARNING, "no GPUs yet: %s", gpu_problem.text);
    return GPUFL_OK;
}

/* The environment's interval is checked like the option's. */
static bool interval_take(struct daemon *daemon, const struct arguments *arguments)
{
    const char *text = environment_text("GPUFL_MONITOR_INTERVAL_MS", "");
    char *end;
    long given = *text ? strtol(text, &end, 10) : INTERVAL_DEFAULT_MS;
    if (arguments_has(arguments, "interval"))
        given = arguments_number(arguments, "interval", INTERVAL_DEFAULT_MS);
    else if (*text && (*end || given < 50 || given > 3600000)) {
        command_error("monitor", "GPUFL_MONITOR_INTERVAL_MS takes a whole number from 50 to 3600000, not '%s'", text);
        return false;
    }
    daemon->interval_ms = (unsigned)given;
    return true;
}

static bool floor_take(struct daemon *daemon)
{
    const char *text = environment_text("GPUFL_MIN_FREE_BYTES", "");
    char *end;
    long long given = *text ? strtoll(text, &end, 10) : DISK_SPACE_DEFAULT;
    if (*text && (*end || given < 0)) {
        command_error("monitor", "GPUFL_MIN_FREE_BYTES takes a whole number of bytes, not '%s'", text);
        return false;
    }
    daemon->min_free_bytes = given;
    return true;
}

/* The environment's word is the one that programs get; it is checked like the option's. */
static bool vendors_take(struct daemon *daemon, const struct arguments *arguments)
{
    static const struct {
        const char *name;
        unsigned vendors;
    } backends[] = {
        {"Auto", GPU_VENDORS_ALL}, {"Nvidia", 1u << GPU_VENDOR_NVIDIA}, {"Amd", 1u << GPU_VENDOR_AMD}, {"None", 0}};
    const char *text = arguments_text(arguments, "backend", environment_text("GPUFL_BACKEND", "Auto"));
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (!strcasecmp(text, backends[i].name)) {
            daemon->vendors = backends[i].vendors;
            return true;
        }
    command_error("monitor", "GPUFL_BACKEND takes Auto, Nvidia, Amd or None, not '%s'", text);
    return false;
}

/* Checks where metrics and sessions are sent: an invalid address is refused at the start, since retrying cannot help. */
static bool addresses_take(struct daemon *daemon, const struct arguments *arguments)
{
    struct problem problem = {""};
    const char *otlp = arguments_text(arguments, "otlp", NULL), *url = arguments_text(arguments, "upload", NULL);
    if (otlp && otlp_url_split(otlp, daemon->otlp_server, sizeof daemon->otlp_server, daemon->otlp_path,
                               sizeof daemon->otlp_path, &problem) != GPUFL_OK) {
        command_error("monitor", "--otlp: %s", problem.text);
        return false;
    }
    return (!otlp || upload_address_check("monitor", "otlp", daemon->otlp_server, "/")) &&
           (!url || upload_address_check("monitor", "upload", url, getenv("GPUFL_API_PATH")));
}

int command_monitor(int argc, char **argv)
{
    struct arguments arguments;
    struct daemon daemon = {0};
    struct problem problem = {""};
    int code = command_parse("monitor", argc, argv, &arguments);
    if (code >= 0)
        return code;
    if (!vendors_take(&daemon, &arguments))
        return EXIT_USAGE;
    if (arguments_has(&arguments, "once"))
        return monitor_once(arguments_has(&arguments, "json"), daemon.vendors);
    if (arguments_has(&arguments, "json")) {
        command_error("monitor", "--json requires --once");
        return EXIT_USAGE;
    }
    if (!interval_take(&daemon, &arguments) || !floor_take(&daemon) || !addresses_take(&daemon, &arguments))
        return EXIT_USAGE;
    log_configure(on_message, NULL, false, -1);
    daemon.signal_fd = signals_open();
    daemon.with_dcgm_names = arguments_has(&arguments, "dcgm-names");
    daemon.watchdog_ns = notify_watchdog_ns();
    gpufl_status status = daemon_start(&daemon, &arguments, &problem);
    bool needs_restart = false;
    if (status == GPUFL_OK) {
        notify_send("READY=1");
        sample_until_stopped(&daemon);
        needs_restart = monitor_needs_restart(daemon.monitor);
        notify_send(needs_restart ? "RELOADING=1" : "STOPPING=1");
    } else {
        command_error("monitor", "%s", problem.text);
    }
    endpoint_stop(daemon.endpoint);
    /* The end of the last session still goes to the shipping. */
    monitor_end(daemon.monitor);
    code = status == GPUFL_OK ? EXIT_GOOD : exit_code_of(status);
    bool has_ended = shipping_stop(daemon.shipping, STOP_DEADLINE_MS);
    if (has_ended)
        monitor_close(daemon.monitor);
    else
        log_message(GPUFL_LOG_WARNING, "not waiting for the upload any longer; the next monitor goes on with it");
    if (daemon.signal_fd >= 0)
        close(daemon.signal_fd);
    if (!has_ended && !needs_restart)
        _exit(code); /* a thread is still in the libraries that exit() would take down */
    if (needs_restart) {
        argv[0] = (char *)"gpufl-monitor";
        execv("/proc/self/exe", argv);
        command_error("monitor", "cannot start anew for the new driver: %s", strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    return code;
}
