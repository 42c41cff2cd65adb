/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/ended_windows.h"

#include "format/json.h"

#include <string.h>
#include <unistd.h>

void ended_windows_init(struct ended_windows *ended)
{
    pthread_mutex_init(&ended->mutex, NULL);
}

void ended_windows_add(struct ended_windows *ended, const struct deep_window *window)
{
    pthread_mutex_lock(&ended->mutex);
    if (ended->count < ENDED_WINDOWS_MAX)
        ended->windows[ended->count++] = *window;
    pthread_mutex_unlock(&ended->mutex);
}

static void window_write(const struct deep_window *window, struct recorder *recorder)
{
    const char *source = window->source == SOURCE_SASS ? "sass_metrics" : "pc_sampling";
    struct bytes *line = recorder_begin(recorder, RECORD_DEEP_WINDOW_EVENT);
    json_key(line, "pid");
    json_int(line, getpid());
    json_key(line, "app");
    json_text(line, recorder->app_name);
    bytes_append_format(line,
                        ",\"name\":\"window_%u\",\"close_reason\":\"%s\",\"engines\":[\"nvidia.%s\"],\"start_ns\":%lld,"
                        "\"end_ns\":%lld,\"duration_ns\":%lld,\"launches_covered\":%llu,"
                        "\"requested_duration_ms\":%u,\"requested_max_launches\":0,\"window_id\":%u,"
                        "\"source\":\"%s\",\"scope_id\":0",
                        window->id, window->close_reason, source, (long long)window->start_ns,
                        (long long)window->end_ns, (long long)(window->end_ns - window->start_ns),
                        (unsigned long long)window->launches, window->requested_ms, window->id, source);
    recorder_end(recorder, RECORD_DEEP_WINDOW_EVENT);
}

void ended_windows_write(struct ended_windows *ended, struct recorder *recorder)
{
    struct deep_window windows[ENDED_WINDOWS_MAX];
    pthread_mutex_lock(&ended->mutex);
    uint32_t count = ended->count;
    memcpy(windows, ended->windows, count * sizeof *windows);
    ended->count = 0;
    pthread_mutex_unlock(&ended->mutex);
    for (uint32_t i = 0; i < count; i++)
        window_write(&windows[i], recorder);
}
