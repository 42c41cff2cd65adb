/* SPDX-License-Identifier: Apache-2.0 */
/* The process's single session: start, join and leave, stop, exit, fork. */
#include "sdk/session.h"

#include "base/log.h"
#include "base/message_socket.h"
#include "base/stages.h"
#include "base/watch.h"
#include "capture/buffer_pool.h"
#include "capture/collector.h"
#include "capture/thread_log.h"
#include "driver/cuda.h"
#include "driver/fork.h"
#include "driver/profiler_host.h"
#include "logfile/session_dir.h"
#include "sdk/amd_session.h"
#include "sdk/bounded_start.h"
#include "sdk/deep_options.h"
#include "sdk/engine_choice.h"
#include "sdk/options.h"
#include "sdk/orders.h"
#include "sdk/other_profilers.h"
#include "sdk/python_exit.h"
#include "sdk/scope_listeners.h"
#include "sdk/session_mutex.h"
#include "sdk/session_end.h"
#include "sdk/session_records.h"
#include "sdk/writer_options.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int gpufl_recording;

/* Members without a comment are guarded by session_mutex (init, shutdown, system windows), which scopes never take. */
static struct {
    bool is_running, is_injected, has_handlers;
    int users;                            /* inits not yet matched by a shutdown */
    _Atomic gpufl_engine engine;          /* the collector may lower it when the GPU refuses */
    _Atomic gpufl_engine reported_engine; /* the last value reported to the user */
    pthread_mutex_t grant_mutex;          /* guards AMD's part of the grant, which may be added later */
    struct trace_grant grant;
    struct problem gpu_problem;
    struct options options;
    char session_id[37];
    char dir[PATH_MAX];
    struct log_writer *writer;
    struct collector *collector;
    struct system_sampler *sampler;
    _Atomic bool is_disabled; /* as decided by the last init */
    /* `gpufl trace` requested the session, or HIP tracing: the holder of the mutex fulfils it, see below. */
    _Atomic bool is_injection_due, is_hip_due;
} session = {.grant_mutex = PTHREAD_MUTEX_INITIALIZER};

bool session_is_disabled(void)
{
    return atomic_load(&session.is_disabled);
}

const char *gpufl_session_dir(void)
{
    return session.dir;
}

static int64_t sampler_cpu_ns(void *user)
{
    return system_sampler_cpu_ns(user);
}

/* Injection runs inside cuInit, where the driver must not be called. */
static bool is_before_cuda(bool is_injected)
{
    struct cuda *cuda;
    return is_injected || cuda_load(&cuda, false, NULL) != GPUFL_OK || cuda_device_count(cuda) == 0;
}

/* On the collector's thread or the calling one: the first to notice a change reports it. */
static void update_engine(struct trace_grant *grant)
{
    pthread_mutex_lock(&session.grant_mutex);
    *grant = session.grant;
    pthread_mutex_unlock(&session.grant_mutex);
    struct problem why = {""};
    session.engine = engine_granted(&session.options, grant, collector_deep(session.collector), &why);
    if (session.engine < atomic_exchange(&session.reported_engine, session.engine))
        engine_warn(session.options.profiling_engine, session.engine, &why);
}

/* On the collector's thread: a context showed what its GPU grants, or HIP started. */
static void on_news(void *user)
{
    (void)user;
    struct trace_grant grant;
    update_engine(&grant);
    write_capabilities(collector_recorder(session.collector), &session.options, session.engine, &grant,
                       collector_deep(session.collector), session.gpu_problem.text);
}

static gpufl_status open_parts(bool is_injected, struct bytes *described, struct problem *problem,
                               struct problem *gpu_problem)
{
    const struct options *options = &session.options;
    const struct log_writer_options writer = writer_options_of(options, session.session_id);
    gpufl_status status = log_writer_open(&session.writer, &writer, problem);
    if (status != GPUFL_OK)
        return status;
    snprintf(session.dir, sizeof session.dir, "%s", log_writer_dir(session.writer));
    const struct system_sampler_options sampler = {
        .writer = session.writer,
        .session_id = session.session_id,
        .app_name = options->app_name,
        .interval_ms = (unsigned)options->system_sample_rate_ms,
        .is_continuous = options->continuous_system_sampling,
        .use_nvidia = options->backend == GPUFL_BACKEND_AUTO || options->backend == GPUFL_BACKEND_NVIDIA,
        .use_amd = options->backend == GPUFL_BACKEND_AUTO || options->backend == GPUFL_BACKEND_AMD,
    };
    status = bounded_start_sampler(&session.sampler, &sampler, (uint32_t)options->start_timeout_ms, is_injected,
                                   described, gpu_problem);
    if (status != GPUFL_OK)
        return problem_set(problem, status, "the system sampler could not start: %s", gpufl_status_string(status));
    unsigned features = CUPTI_TRACE_OVERHEAD | (options->enable_synchronization ? CUPTI_TRACE_SYNC : 0) |
                        (options->enable_memory_tracking ? CUPTI_TRACE_MEMORY : 0) |
                        (options->enable_external_correlation ? CUPTI_TRACE_EXTERNAL : 0);
    const struct collector_options collector = {
        .writer = session.writer,
        .session_id = session.session_id,
        .app_name = options->app_name,
        .trace_features = features,
        .with_trace = options->profiling_engine >= GPUFL_ENGINE_TRACE && sampler.use_nvidia,
        .is_before_cuda = is_before_cuda(is_injected),
        .other_profiler = other_profilers_current(),
        .are_others_over = other_profilers_are_over,
        .with_stacks = options->enable_stack_trace,
        .with_graphs = options->enable_cuda_graphs_tracking,
        .deep = deep_settings_of(options, is_injected),
        .on_round = orders_poll,
        .on_news = on_news,
        .amd = amd_settings_of(options, session.sampler),
        .sampler_cpu_ns = sampler_cpu_ns,
        .sampler_user = session.sampler,
    };
    status = collector_make(&session.collector, &collector);
    return status ? problem_set(problem, status, "not enough memory to start a session") : GPUFL_OK;
}

static void forget_parts(void)
{
    session.sampler = NULL;
    session.collector = NULL;
    session.writer = NULL;
}

/* Closes the parts of a session that did not start. */
static void close_parts(void)
{
    (void)system_sampler_stop(session.sampler);
    collector_free(session.collector);
    log_writer_close(session.writer, (unsigned)session.options.exit_timeout_ms);
    forget_parts();
}

static void end_parts(void)
{
    const struct session_parts parts = {.writer = session.writer,
                                        .collector = session.collector,
                                        .sampler = session.sampler,
                                        .session_id = session.session_id,
                                        .app_name = session.options.app_name,
                                        .timeout_ms = (uint32_t)session.options.exit_timeout_ms};
    session_end(&parts);
    forget_parts();
}

static void offer_scopes(void)
{
    struct deep *deep = collector_deep(session.collector);
    if (deep && deep_wants_scopes(deep))
        scope_listeners_add_engine(deep);
}

/* With the mutex held: one user leaves, and the last one ends the session. */
static void leave_session(void)
{
    /* A session that `gpufl trace` started keeps its single user until the process exits. */
    bool is_last = session.is_running && session.users == 1 && !session.is_injected;
    if (session.users > (session.is_injected ? 1 : 0))
        session.users--;
    if (!is_last)
        return;
    __atomic_store_n(&gpufl_recording, 0, __ATOMIC_RELEASE);
    end_parts();
    log_print_held();
    session.is_running = false;
}

void session_end_with_process(void)
{
    /* Own: a function called by the session is exiting the process. */
    if (session_mutex_is_own() || !session_mutex_lock_in_time())
        return;
    if (session.users > 0)
        session.users = 1;
    session.is_injected = false;
    leave_session();
    session_mutex_unlock();
}

/* Exit handlers and destructors of libraries run in reverse order of registration: ours must run before theirs. */
static void attend_exit(void)
{
    (void)atexit(session_end_with_process);
    (void)at_quick_exit(session_end_with_process); /* full tables: the session ends as unfinished */
}

/* The child forgets the session: it has none of its threads, and the files are the parent's. It may start its own. */
static void after_fork_in_child(void)
{
    bool is_whole = session_mutex_after_fork_in_child(); /* false: the parent was creating or freeing its parts */
    log_abandon();
    watch_after_fork_in_child();
    stages_after_fork_in_child();
    session_end_after_fork_in_child();
    driver_after_fork_in_child(is_whole);
    other_profilers_abandon();
    __atomic_store_n(&gpufl_recording, 0, __ATOMIC_RELEASE);
    scope_listeners_abandon();
    if (is_whole && session.is_running) {
        log_writer_abandon(session.writer);
        system_sampler_abandon(session.sampler);
        collector_abandon(session.collector);
    }
    thread_logs_forget();
    buffer_pool_abandon();
    forget_parts();
    session.is_running = session.is_injected = false;
    session.users = 0;
    atomic_store(&session.is_injection_due, false);
    atomic_store(&session.is_hip_due, false);
    pthread_mutex_init(&session.grant_mutex, NULL);
}

static void install_handlers(void)
{
    if (session.has_handlers)
        return;
    session.has_handlers = true;
    attend_exit();
    python_exit_attend(session_end_with_process);
    profiler_host_on_use(attend_exit);
}

static gpufl_status start_locked(const gpufl_options *given, bool is_injected, struct problem *problem)
{
    gpufl_status status = options_resolve(&session.options, given, problem);
    /* Messages must be delivered even when the options are invalid. */
    log_configure(session.options.log_fn, session.options.log_user,
                  status == GPUFL_OK && session.options.enable_debug_output, message_socket_find());
    if (status != GPUFL_OK)
        return status;
    if (!session.options.enabled)
        return problem_set(problem, GPUFL_E_DISABLED, "gpufl is disabled by its config file");
    options_warn(&session.options);
    other_profilers_attend(session.options.exclusive);
    session_id_make(session.session_id);
    session.gpu_problem = (struct problem){""};
    struct bytes described = {0};
    uint32_t hung_before = watch_hung_count();
    status = open_parts(is_injected, &described, problem, &session.gpu_problem);
    if (status == GPUFL_OK && !session_end_thread_start(hung_before))
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "gpufl's threads could not start");
    if (status != GPUFL_OK) {
        close_parts();
        bytes_free(&described);
        return status;
    }
    struct recorder *recorder = collector_recorder(session.collector);
    write_job_start(recorder, &session.options, session.sampler, &described, session.writer);
    bytes_free(&described);
    memset(&session.grant, 0, sizeof session.grant);
    bounded_start_trace(session.collector, (uint32_t)session.options.start_timeout_ms, is_injected, &session.grant);
    session.engine = session.reported_engine =
        engine_choose(&session.options, &session.grant, collector_deep(session.collector));
    write_capabilities(recorder, &session.options, session.engine, &session.grant, collector_deep(session.collector),
                       session.gpu_problem.text);
    offer_scopes();
    status = collector_start(session.collector);
    if (status != GPUFL_OK || (status = system_sampler_run(session.sampler)) != GPUFL_OK) {
        end_parts();
        return problem_set(problem, status, "gpufl's threads could not start");
    }
    install_handlers();
    if (session.options.system_sample_rate_ms > 0 && !session.options.continuous_system_sampling)
        scope_listeners_add_sampler(session.sampler);
    session.is_running = true;
    orders_attend(session_end_with_process);
    __atomic_store_n(&gpufl_recording, 1, __ATOMIC_RELEASE);
    log_message(GPUFL_LOG_INFO, "session %s: engine %s, log %s", session.session_id, engine_name(session.engine),
                session.dir);
    return GPUFL_OK;
}

/* With the mutex held: starts the session, or becomes another user of it. */
static gpufl_status join_session(const gpufl_options *given, bool is_injected, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    if (!session.is_running)
        status = start_locked(given, is_injected, problem);
    problem_complete(problem, status);
    if (status == GPUFL_OK) {
        session.users++;
        session.is_injected |= is_injected;
    }
    atomic_store(&session.is_disabled, status == GPUFL_E_DISABLED);
    return status;
}

/* With the mutex held and a session running. */
static void add_hip(void)
{
    if (session.grant.amd.is_tried && session.grant.amd.status == GPUFL_OK)
        return;
    struct amd_grant grant = {0};
    collector_trace_amd(session.collector, &grant);
    amd_warn(session.options.profiling_engine, &grant);
    pthread_mutex_lock(&session.grant_mutex);
    session.grant.amd = grant;
    pthread_mutex_unlock(&session.grant_mutex);
    collector_tell_news(session.collector);
}

static bool has_requests(void)
{
    return atomic_load(&session.is_injection_due) || atomic_load(&session.is_hip_due);
}

/* With the mutex held; releases it. */
static gpufl_status fulfil_requests(void)
{
    struct problem problem = {""};
    gpufl_status status = GPUFL_OK;
    if (atomic_exchange(&session.is_injection_due, false))
        status = join_session(NULL, true, &problem);
    bool is_hip = atomic_exchange(&session.is_hip_due, false) && status == GPUFL_OK;
    if (is_hip && session.is_running)
        add_hip();
    else if (is_hip)
        status = join_session(NULL, true, &problem);
    session_mutex_unlock();
    if (problem.text[0] && status != GPUFL_E_DISABLED)
        log_message(GPUFL_LOG_ERROR, "not recording: %s", problem.text);
    log_print_held();
    return status;
}

/* An injected start never waits for the mutex: the driver holds its own lock around it, and the holder of the mutex
 * may be in CUPTI, waiting for the driver. It leaves a request that the holder of the mutex fulfils. */
static gpufl_status settle_requests(void)
{
    gpufl_status status = GPUFL_OK;
    while (has_requests() && session_mutex_trylock())
        status = fulfil_requests();
    return status;
}

static void unlock(void)
{
    session_mutex_unlock();
    (void)settle_requests();
}

static void before_fork(void)
{
    session_mutex_before_fork();
    driver_before_fork();
}

static void after_fork_in_parent(void)
{
    driver_after_fork_in_parent();
    if (session_mutex_after_fork_in_parent())
        (void)settle_requests();
}

static void handle_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void attend_forks(void)
{
    static pthread_once_t is_attended = PTHREAD_ONCE_INIT;
    pthread_once(&is_attended, handle_forks);
}

gpufl_status session_start(const gpufl_options *given, bool is_injected)
{
    /* Starting CUPTI may initialize CUDA, which calls the injection entry point on this very thread. */
    if (session_mutex_is_own())
        return GPUFL_OK;
    struct problem problem = {""};
    (void)session_fail(GPUFL_OK, &problem); /* clears an earlier error */
    atomic_store(&session.is_disabled, options_are_disabled(given));
    if (atomic_load(&session.is_disabled)) {
        options_warn_disabled(given);
        return session_fail(GPUFL_E_DISABLED,
                            &(struct problem){"gpufl is disabled (GPUFL_DISABLED, or enabled = false)"});
    }
    attend_forks();
    if (is_injected) {
        atomic_store(&session.is_injection_due, true);
        return settle_requests();
    }
    session_mutex_lock();
    gpufl_status status = join_session(given, false, &problem);
    unlock();
    if (status != GPUFL_OK) {
        if (status != GPUFL_E_DISABLED)
            log_message(GPUFL_LOG_ERROR, "not recording: %s", problem.text);
        session_fail(status, &problem);
    }
    log_print_held();
    return status;
}

/* rocprofiler must be configured on this thread or not at all, so this waits, but not forever: HIP may hold its own lock,
 * and the holder of the mutex may be waiting for that. The holder then records that it is too late. */
void session_join_hip(void)
{
    if (session_mutex_is_own())
        return;
    attend_forks();
    if (!session_mutex_lock_in_time()) {
        atomic_store(&session.is_hip_due, true);
        (void)settle_requests();
        return;
    }
    bool is_running = session.is_running;
    if (is_running)
        add_hip();
    unlock();
    if (!is_running)
        (void)session_start(NULL, true);
}

gpufl_status gpufl_init(const gpufl_options *options)
{
    return session_start(options, false);
}

bool session_with_collector(void (*function)(struct collector *collector, void *user), void *user)
{
    if (session_mutex_is_own() || !session_mutex_lock_in_time())
        return false;
    if (session.is_running)
        function(session.collector, user);
    unlock();
    return true;
}

void gpufl_shutdown(void)
{
    session_mutex_lock();
    leave_session();
    unlock();
}

gpufl_engine gpufl_active_engine(void)
{
    struct trace_grant grant;
    session_mutex_lock();
    if (session.is_running) /* the collector may not know of a refusal yet */
        update_engine(&grant);
    gpufl_engine engine = session.is_running ? session.engine : GPUFL_ENGINE_DEFAULT;
    unlock();
    return engine;
}

static void system_window(const char *name, bool is_start)
{
    session_mutex_lock();
    if (session.is_running)
        system_sampler_window(session.sampler, name ? name : "", is_start);
    unlock();
}

void gpufl_system_start(const char *name)
{
    if (gpufl_is_recording())
        system_window(name, true);
}

void gpufl_system_stop(const char *name)
{
    if (gpufl_is_recording())
        system_window(name, false);
}
