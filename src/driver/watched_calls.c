/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/watched_calls.h"

#include "base/watch.h"
#include "driver/checkpoint_abi.h"
#include "driver/cuda_abi.h"
#include "driver/cupti_abi.h"
#include "driver/nvml_abi.h"
#include "driver/pc_sampling_abi.h"
#include "driver/pm_sampling_abi.h"
#include "driver/profiler_host_abi.h"
#include "driver/range_profiler_abi.h"
#include "driver/rocm_smi_abi.h"
#include "driver/rocprofiler_abi.h"
#include "driver/sass_metrics_abi.h"

#include <stdatomic.h>
#include <string.h>

#define REAL(symbol, type) (__extension__(type) atomic_load_explicit(&real_##symbol, memory_order_relaxed))

#define WATCHED_CALL(symbol, parameters, names)                         \
    static _Atomic(void *) real_##symbol;                               \
    static int watched_##symbol parameters                              \
    {                                                                   \
        return WATCHED(#symbol, REAL(symbol, int(*) parameters) names); \
    }
#include "driver/watched_calls.inc"
#undef WATCHED_CALL

/* These return the text of a status. */
#define WATCHED_TEXTS(X) \
    X(nvmlErrorString)   \
    X(rocprofiler_get_status_name)
#define WATCHED_TEXT(symbol)                                                  \
    static _Atomic(void *) real_##symbol;                                     \
    static const char *watched_##symbol(int status)                           \
    {                                                                         \
        watch_enter(#symbol);                                                 \
        const char *text = REAL(symbol, const char *(*)(int status))(status); \
        watch_leave(0);                                                       \
        return text;                                                          \
    }
WATCHED_TEXTS(WATCHED_TEXT)
#undef WATCHED_TEXT

static const struct {
    const char *symbol;
    _Atomic(void *) *real;
    void (*wrapper)(void);
} calls[] = {
#define ENTRY(symbol) {#symbol, &real_##symbol, (void (*)(void))watched_##symbol},
#define WATCHED_CALL(symbol, parameters, names) ENTRY(symbol)
#include "driver/watched_calls.inc"
#undef WATCHED_CALL
    WATCHED_TEXTS(ENTRY)
#undef ENTRY
};
enum { call_count = sizeof calls / sizeof *calls };

const char *watched_call_name(size_t index)
{
    return index < call_count ? calls[index].symbol : NULL;
}

void *watched_call(const char *symbol, void *function)
{
    for (size_t i = 0; function && i < call_count; i++) {
        void *before = NULL;
        if (strcmp(calls[i].symbol, symbol))
            continue;
        if (!atomic_compare_exchange_strong(calls[i].real, &before, function) && before != function)
            return function;
        return __extension__(void *) calls[i].wrapper;
    }
    return function;
}
