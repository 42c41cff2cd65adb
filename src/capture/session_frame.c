/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/session_frame.h"

#include "base/clock.h"
#include "base/stages.h"
#include "capture/host_metrics.h"
#include "format/json.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { settle_ms = 1000 };

static void append_text(struct bytes *line, const char *key, const char *text)
{
    json_key(line, key);
    json_text(line, text);
}

/* The command line, arguments separated by spaces; for display, so its length is limited. */
static void append_command(struct bytes *line)
{
    char text[2048];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (fd >= 0)
        close(fd);
    while (size > 0 && text[size - 1] == '\0')
        size--;
    for (ssize_t i = 0; i < size; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    json_key(line, "command");
    if (size > 0)
        json_string(line, text, (size_t)size);
    else
        bytes_append_text(line, "null");
}

void session_frame_start(struct recorder *recorder, const struct session_frame *frame, const struct bytes *system,
                         int64_t now_ns)
{
    struct host_identity host;
    host_identity_read(&host);
    struct bytes *line = recorder_begin(recorder, RECORD_JOB_START);
    json_key(line, "pid");
    json_int(line, getpid());
    append_text(line, "app", recorder->app_name);
    append_text(line, "log_path", frame->dir);
    append_text(line, "session_name", *frame->name ? frame->name : NULL);
    json_key(line, "ts_ns");
    json_int(line, now_ns);
    append_text(line, "hostname", host.hostname);
    append_text(line, "ip_addr", host.ip_addr);
    if (system->size)
        bytes_append_char(line, ',');
    bytes_append(line, system->data, system->size);
    append_text(line, "session_kind", frame->session_kind);
    append_text(line, "profiling_engine", frame->profiling_engine);
    append_text(line, "gpufl_version", GPUFL_VERSION_STRING);
    append_text(line, "clock", "CLOCK_REALTIME");
    append_command(line);
    append_text(line, "driver_version", *frame->driver_version ? frame->driver_version : NULL);
    json_key(line, "cuda_driver_version");
    if (frame->cuda_driver_version)
        json_int(line, frame->cuda_driver_version);
    else
        bytes_append_text(line, "null");
    recorder_end(recorder, RECORD_JOB_START);
}

static bool settle(struct log_writer *writer)
{
    int64_t wait_ns = stages_until_ns(settle_ms * INT64_C(1000000)) - clock_mono_ns();
    return log_writer_settle(writer, wait_ns > 0 ? (unsigned)(wait_ns / 1000000) : 0);
}

void session_frame_end(struct recorder *recorder, int64_t now_ns)
{
    /* The totals are to be final: a row that is refused after them would be in no loss record. */
    if (!settle(recorder->writer)) {
        log_writer_hurry(recorder->writer);
        (void)settle(recorder->writer);
    }
    recorder_flush(recorder, 0);
    struct bytes totals = {0};
    recorder_append_totals(recorder, &totals);
    struct bytes *line = recorder_begin(recorder, RECORD_SHUTDOWN);
    json_key(line, "pid");
    json_int(line, getpid());
    append_text(line, "app", recorder->app_name);
    json_key(line, "ts_ns");
    json_int(line, now_ns);
    json_key(line, "cupti_dropped");
    json_uint(line, atomic_load(&recorder->lost[LOSS_CUPTI_DROPPED]));
    bytes_append(line, totals.data, totals.size);
    bytes_free(&totals);
    recorder_end(recorder, RECORD_SHUTDOWN);
}
