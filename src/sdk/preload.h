/* SPDX-License-Identifier: Apache-2.0 */
/* Between libgpufl and the library that `gpufl trace` preloads
 * (src/preload): the one records, the other sees who else uses CUPTI. Both are of
 * one build. */
#ifndef GPUFL_SDK_PRELOAD_H
#define GPUFL_SDK_PRELOAD_H

#include <stdbool.h>

struct preload_listener {
    /* On a thread of the program, inside its call of CUPTI: another profiler is about to use CUPTI. Returns when CUPTI is
     * free, or after a bounded time. */
    void (*on_begin)(const char *profiler);
    void (*on_end)(void); /* it does no longer */
    /* The process is about to end with _exit, perhaps in a signal handler. Returns in bounded time. */
    void (*on_exit)(void);
};

/* Exported by the preloaded library; found by name. Calls on_begin at once where somebody uses CUPTI already. */
#define PRELOAD_LISTEN "gpufl_preload_listen"
typedef void preload_listen_fn(const struct preload_listener *listener);
/* Likewise: true when a use has ended without a call that showed it; on_end is then not called. */
#define PRELOAD_POLL "gpufl_preload_poll"
typedef bool preload_poll_fn(void);

#endif
