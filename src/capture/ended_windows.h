/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of counting and sampling that have ended and that the collector has yet to write to the log. Any thread. */
#ifndef GPUFL_CAPTURE_ENDED_WINDOWS_H
#define GPUFL_CAPTURE_ENDED_WINDOWS_H

#include "capture/recorder.h"

#include <pthread.h>

enum { ENDED_WINDOWS_MAX = 256 };

enum deep_source { SOURCE_NONE, SOURCE_SASS, SOURCE_PC };

struct deep_window {
    uint32_t id;
    enum deep_source source;
    int64_t start_ns, end_ns;
    uint64_t launches;
    uint32_t requested_ms;
    const char *close_reason;
};

struct ended_windows {
    pthread_mutex_t mutex;
    struct deep_window windows[ENDED_WINDOWS_MAX];
    uint32_t count;
};

void ended_windows_init(struct ended_windows *ended);
void ended_windows_add(struct ended_windows *ended, const struct deep_window *window);
void ended_windows_write(struct ended_windows *ended, struct recorder *recorder); /* collector thread */

#endif
