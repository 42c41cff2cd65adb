/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/monitor.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/log.h"
#include "capture/session_frame.h"
#include "capture/system_records.h"
#include "logfile/reader.h"
#include "logfile/recovery.h"
#include "logfile/session_dir.h"
#include "monitor/driver_watch.h"
#include "monitor/monitor_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOCK_NAME ".gpufl-monitor.lock"

enum { SLOW_INTERVAL_MS = 10000, CLOSE_DEADLINE_MS = 2000, EVENTS_PER_TICK_MAX = 64, RETRY_S = 60 };

static const int64_t second_ns = 1000000000, flush_ns = 5000000000;

struct monitor {
    struct monitor_options options; /* dir and app_name are owned copies */
    char *dir, *app_name;
    int lock_fd;
    struct log_writer *writer; /* of the current session */
    char session_id[SESSION_ID_SIZE + 1];
    struct recorder recorder;
    struct system_records records;
    struct process_table processes;
    struct driver_watch watch;
    struct monitor_view view;
    int64_t roll_ns;      /* wall clock; when the session ends */
    int64_t flush_ns;     /* monotonic; when rows are written next */
    const char *roll_why; /* why a new session is due; NULL: none is due */
    bool has_other_gpus;  /* the GPUs differ from the session's; none is sampled until the next session starts */
    int64_t retry_ns;     /* monotonic; earliest retry after a session could not be opened */
    bool has_session;
};

static int64_t wall_ns(const struct monitor *monitor)
{
    return monitor->options.wall_ns ? monitor->options.wall_ns(monitor->options.user) : clock_wall_ns();
}

/* A session's clock ignores changes of the wall clock; a new session is needed for correct times. */
static bool was_clock_set(void)
{
    const int64_t allowed_ns = 1000000000, apart_ns = clock_wall_ns() - clock_log_ns();
    return apart_ns > allowed_ns || apart_ns < -allowed_ns;
}

static gpufl_status lock_take(struct monitor *monitor, struct problem *problem)
{
    gpufl_status status = directory_make(monitor->dir, problem);
    if (status != GPUFL_OK)
        return status;
    char path[4096 + 32];
    snprintf(path, sizeof path, "%.4096s/" LOCK_NAME, monitor->dir);
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return problem_set(problem, errno == EACCES ? GPUFL_E_PERMISSION : GPUFL_E_IO, "cannot open %.300s: %s", path,
                           strerror(errno));
    if (!session_lock_take(fd)) {
        char pid[32] = "";
        ssize_t size = pread(fd, pid, sizeof pid - 1, 0);
        pid[size > 0 ? strcspn(pid, "\n") : 0] = '\0';
        close(fd);
        return problem_set(problem, GPUFL_E_BUSY, "another gpufl monitor (process %.20s) writes to %.300s",
                           *pid ? pid : "unknown", monitor->dir);
    }
    /* For people and for the message above; the lock itself belongs to the descriptor. */
    char text[32];
    int size = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)size, 0) != size)
        log_message(GPUFL_LOG_WARNING, "cannot write %s: %s", path, strerror(errno));
    monitor->lock_fd = fd;
    return GPUFL_OK;
}

static void frame_start(struct monitor *monitor)
{
    const struct gpu_telemetry *gpu = &monitor->records.gpu;
    const bool is_amd_only = gpu->amd && !gpu->nvml;
    const struct session_frame frame = {
        .dir = log_writer_dir(monitor->writer),
        .name = log_writer_session_name(monitor->writer),
        .session_kind = "monitor",
        .profiling_engine = is_amd_only ? "amd.none" : "nvidia.none",
        .driver_version = gpu_telemetry_driver_version(gpu, is_amd_only ? GPU_VENDOR_AMD : GPU_VENDOR_NVIDIA),
        .cuda_driver_version = gpu->nvml ? nvml_cuda_driver_version(gpu->nvml) : 0,
    };
    struct bytes system = {0};
    system_records_describe(&monitor->records, &system);
    session_frame_start(&monitor->recorder, &frame, &system, clock_log_ns());
    bytes_free(&system);
}

static void session_end(struct monitor *monitor)
{
    char dir[4096];
    snprintf(dir, sizeof dir, "%s", log_writer_dir(monitor->writer));
    system_records_flush(&monitor->records, INT64_MAX);
    recorder_flush(&monitor->recorder, 0);
    session_frame_end(&monitor->recorder, clock_log_ns());
    recorder_close(&monitor->recorder);
    log_writer_close(monitor->writer, CLOSE_DEADLINE_MS);
    monitor->writer = NULL;
    monitor->has_session = false;
    if (monitor->options.session_ended)
        monitor->options.session_ended(monitor->options.user, dir);
}

/* Opens the next session before closing the current one, so that on a full disk the current one continues. */
static gpufl_status session_begin(struct monitor *monitor, struct problem *problem)
{
    char session_id[SESSION_ID_SIZE + 1];
    struct log_writer *writer;
    session_id_make(session_id);
    const struct log_writer_options options = {
        .base_dir = monitor->dir,
        .session_id = session_id,
        .app_name = monitor->app_name,
        .seal = true,
        .in_background = true,
        .min_free_bytes = monitor->options.min_free_bytes,
    };
    gpufl_status status = log_writer_open(&writer, &options, problem);
    if (status != GPUFL_OK)
        return status;
    if (monitor->has_session)
        session_end(monitor);
    clock_log_start();
    monitor->writer = writer;
    memcpy(monitor->session_id, session_id, sizeof session_id);
    recorder_open_plain(&monitor->recorder, writer, monitor->session_id, monitor->app_name, 1u << CHANNEL_SYSTEM);
    system_records_move(&monitor->records, writer, monitor->session_id);
    process_table_forget_recorded(&monitor->processes);
    monitor->has_session = true;
    monitor->roll_ns = roll_next_ns(monitor->options.roll, wall_ns(monitor));
    pthread_mutex_lock(&monitor->view.mutex);
    monitor->view.sessions++;
    pthread_mutex_unlock(&monitor->view.mutex);
    frame_start(monitor);
    return GPUFL_OK;
}

/* Starts a new session if one is due. After a failure it stays due. */
static void roll_if_due(struct monitor *monitor)
{
    struct problem problem = {""};
    int64_t now_ns = clock_mono_ns();
    if (!monitor->roll_why || now_ns < monitor->retry_ns)
        return;
    if (session_begin(monitor, &problem) == GPUFL_OK) {
        log_message(GPUFL_LOG_INFO, "%s: session %s", monitor->roll_why, log_writer_dir(monitor->writer));
        monitor->retry_ns = 0;
        monitor->roll_why = NULL;
        monitor->has_other_gpus = false;
        return;
    }
    monitor->retry_ns = now_ns + RETRY_S * second_ns;
    log_message(GPUFL_LOG_ERROR,
                "cannot start a new session: %s; continuing the current one and trying again in a minute",
                problem.text);
}

static void session_roll(struct monitor *monitor, const char *why)
{
    monitor->roll_why = why;
    roll_if_due(monitor);
}

gpufl_status monitor_open(struct monitor **out, const struct monitor_options *options, struct problem *problem,
                          struct problem *gpu_problem)
{
    struct monitor *monitor = calloc(1, sizeof *monitor);
    if (!monitor)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    gpufl_status status = GPUFL_E_NO_MEMORY;
    monitor->options = *options;
    monitor->lock_fd = -1;
    monitor_view_init(&monitor->view);
    process_table_init(&monitor->processes, options->root);
    monitor->dir = strdup(options->dir);
    monitor->app_name = strdup(options->app_name);
    if (!monitor->dir || !monitor->app_name) {
        problem_set(problem, status, "out of memory");
        goto fail;
    }
    if ((status = lock_take(monitor, problem)) != GPUFL_OK)
        goto fail;
    const struct system_records_options records = {
        .session_id = "", /* set by session_begin */
        .app_name = monitor->app_name,
        .root = options->root,
        .gpus = {.vendors = options->vendors, .with_rocm_smi = true},
        .slow_interval_ms = SLOW_INTERVAL_MS,
    };
    if ((status = system_records_open(&monitor->records, &records, gpu_problem)) != GPUFL_OK) {
        problem_set(problem, status, "out of memory");
        goto fail;
    }
    driver_watch_start(&monitor->watch, &monitor->records.gpu, gpu_problem, clock_mono_ns());
    if ((status = session_begin(monitor, problem)) != GPUFL_OK)
        goto fail;
    if (!gpu_telemetry_is_open(&monitor->records.gpu) && options->vendors)
        monitor_log_driver(&monitor->recorder, false, gpu_problem->text);
    *out = monitor;
    return GPUFL_OK;
fail:
    monitor_close(monitor);
    return status;
}

static void events_take(struct monitor *monitor)
{
    struct gpu_event event;
    for (int i = 0; i < EVENTS_PER_TICK_MAX && monitor->records.gpu.nvml; i++) {
        if (!nvml_events_take(monitor->records.gpu.nvml, &event))
            return;
        bool has_device = event.has_device && event.index < monitor->records.gpu.device_count;
        const struct gpu_device_info *info = has_device ? &monitor->records.gpu.devices[event.index].info : NULL;
        monitor_log_event(&monitor->recorder, &event, info);
        if (event.kind == GPU_EVENT_XID &&
            has_device) /* NVIDIA's GPUs come first, so the event's index is also the device's */
            monitor_view_xid(&monitor->view, event.index, event.xid);
        if (event.kind == GPU_EVENT_MIG_CHANGED)
            monitor->records.slow_mono_ns = 0; /* list the instances at the next sample */
    }
}

static void driver_report(struct monitor *monitor, enum gpu_vendor vendor, enum driver_news news)
{
    if (news == DRIVER_GONE) {
        const char *reason = monitor->watch.drivers[vendor].reason.text;
        recorder_lose_because(&monitor->recorder, LOSS_DRIVER_GONE, 1, reason);
        monitor_log_driver(&monitor->recorder, false, reason);
        log_message(GPUFL_LOG_WARNING, "the driver is gone: %s; trying to reopen it", reason);
        pthread_mutex_lock(&monitor->view.mutex);
        monitor->view.driver_losses++;
        pthread_mutex_unlock(&monitor->view.mutex);
    } else if (news == DRIVER_BACK) {
        monitor_log_driver(&monitor->recorder, true, "");
        log_message(GPUFL_LOG_INFO, "the driver is back: %s, GPUs: %u", gpu_vendor_name(vendor),
                    monitor->records.gpu.device_count);
    }
}

static void driver_retry(struct monitor *monitor, enum gpu_vendor vendor)
{
    bool has_other_gpus;
    enum driver_news news =
        driver_watch_retry(&monitor->watch, &monitor->records.gpu, vendor, &has_other_gpus, clock_mono_ns());
    if (has_other_gpus) { /* the GPUs' numbers have changed meaning, so the session must end */
        monitor->has_other_gpus = true;
        session_roll(monitor, "the GPUs of this machine changed");
    }
    driver_report(monitor, vendor, news);
    if (news != DRIVER_NO_NEWS)
        monitor->records.slow_mono_ns = 0;
}

void monitor_tick(struct monitor *monitor)
{
    for (unsigned vendor = 0; vendor < GPU_VENDOR_COUNT; vendor++)
        driver_retry(monitor, vendor);
    if (roll_is_due(monitor->options.roll, wall_ns(monitor), &monitor->roll_ns))
        session_roll(monitor, "a new day or hour");
    else if (was_clock_set())
        session_roll(monitor, "the clock was set");
    roll_if_due(monitor);
    if (monitor->has_other_gpus) { /* in the current session these numbers belong to other GPUs */
        recorder_lose_because(&monitor->recorder, LOSS_DRIVER_GONE, 1,
                              "cannot start a new session for the changed GPUs");
        return;
    }
    int64_t slow_before_ns = monitor->records.slow_mono_ns;
    system_records_sample(&monitor->records);
    bool has_new_processes = monitor->records.slow_mono_ns != slow_before_ns;
    for (unsigned vendor = 0; vendor < GPU_VENDOR_COUNT; vendor++)
        driver_report(
            monitor, vendor,
            driver_watch_sampled(&monitor->watch, &monitor->records.gpu, vendor, &monitor->recorder, clock_mono_ns()));
    events_take(monitor);
    monitor_view_update(&monitor->view, &monitor->records.gpu, &monitor->records.host_sample,
                        has_new_processes ? &monitor->processes : NULL);
    if (has_new_processes)
        monitor_log_processes(&monitor->recorder, &monitor->records.gpu, &monitor->processes);
    int64_t now_ns = clock_mono_ns();
    if (now_ns >= monitor->flush_ns) {
        monitor->flush_ns = now_ns + flush_ns;
        system_records_flush(&monitor->records, INT64_MAX);
        recorder_flush(&monitor->recorder, 1); /* 0 would mark the last flush */
    }
}

void monitor_reopen(struct monitor *monitor)
{
    driver_watch_retry_now(&monitor->watch);
    monitor->retry_ns = 0;
    session_roll(monitor, "reopened");
}

void monitor_end(struct monitor *monitor)
{
    if (monitor && monitor->has_session)
        session_end(monitor);
}

void monitor_close(struct monitor *monitor)
{
    if (!monitor)
        return;
    monitor_end(monitor);
    system_records_close(&monitor->records);
    monitor_view_free(&monitor->view);
    if (monitor->lock_fd >= 0)
        close(monitor->lock_fd);
    free(monitor->dir);
    free(monitor->app_name);
    free(monitor);
}

struct monitor_view *monitor_get_view(struct monitor *monitor)
{
    return &monitor->view;
}

bool monitor_needs_restart(const struct monitor *monitor)
{
    return monitor->watch.needs_restart;
}

const char *monitor_session_dir(const struct monitor *monitor)
{
    return monitor->writer ? log_writer_dir(monitor->writer) : "";
}

void monitor_recover(const char *dir, const char *app_name, void (*found)(void *user, const char *dir), void *user)
{
    struct session_list list;
    if (session_list_find(&list, dir, NULL) != GPUFL_OK)
        return;
    for (size_t i = list.count; i-- > 0;) {
        struct session_identity identity;
        struct session_files files;
        unsigned appended;
        if (session_files_list(&files, list.paths[i], NULL) != GPUFL_OK)
            continue;
        bool has_plain = false;
        for (size_t j = 0; j < files.log_count; j++)
            has_plain |= files.items[j].kind == SESSION_FILE_LIVE || files.items[j].kind == SESSION_FILE_ROTATED;
        bool is_dead = !session_lock_is_held(files.dir_fd);
        session_files_free(&files);
        if (!has_plain || !is_dead || session_identity_read(list.paths[i], &identity, NULL) != GPUFL_OK ||
            strcmp(identity.app, app_name) != 0)
            continue;
        if (session_append_shutdown(list.paths[i], &(struct session_end){.exit_code = -1}, &appended, NULL) == GPUFL_OK)
            found(user, list.paths[i]);
    }
    session_list_free(&list);
}
