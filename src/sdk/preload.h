/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between libgpufl and the library that `gpufl trace` preloads (src/preload): the first records, the
 * second detects who else uses CUPTI. Both come from the same build. */
#ifndef GPUFL_SDK_PRELOAD_H
#define GPUFL_SDK_PRELOAD_H

#include <stdbool.h>

struct preload_listener {
    /* On a thread of the program, inside its CUPTI call: another profiler is about to use CUPTI. Returns when CUPTI
     * is available, or after a bounded time. */
    void (*on_begin)(const char *profiler);
    void (*on_end)(void); /* the use has ended */
    /* The process is about to call _exit, possibly in a signal handler. Returns in bounded time. */
    void (*on_exit)(void);
};

/* Exported by the preloaded library; looked up by name. Calls on_begin at once if CUPTI is already in use. */
#define PRELOAD_LISTEN "gpufl_preload_listen"
typedef void preload_listen_fn(const struct preload_listener *listener);
/* Likewise: true when a use has ended without a call that showed it; on_end is then not called. */
#define PRELOAD_POLL "gpufl_preload_poll"
typedef bool preload_poll_fn(void);

#endif
