/* SPDX-License-Identifier: Apache-2.0 */
/* The CUPTI functions that the preloaded library replaces, and how it finds CUPTI's own. */
#ifndef GPUFL_PRELOAD_WRAPPED_H
#define GPUFL_PRELOAD_WRAPPED_H

#include "driver/cupti_abi.h"

#include <stdbool.h>

/* X(symbol, parameters): those that begin or end the use of CUPTI; all return a CUptiResult. */
#define WRAPPED_USES(X)                                                                                  \
    X(cuptiSubscribe, (void **subscriber, cupti_abi_callback_fn *callback, void *user))                  \
    X(cuptiSubscribe_v2, (void **subscriber, cupti_abi_callback_fn *callback, void *user, void *params)) \
    X(cuptiUnsubscribe, (void *subscriber))                                                              \
    X(cuptiEnableCallback, (uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid))          \
    X(cuptiEnableDomain, (uint32_t enable, void *subscriber, uint32_t domain))                           \
    X(cuptiEnableAllDomains, (uint32_t enable, void *subscriber))                                        \
    X(cuptiGetCallbackState, (uint32_t * enable, void *subscriber, uint32_t domain, uint32_t cbid))      \
    X(cuptiActivityRegisterCallbacks,                                                                    \
      (cupti_abi_buffer_request_fn * request, cupti_abi_buffer_complete_fn * complete))                  \
    X(cuptiActivityEnable, (uint32_t kind))                                                              \
    X(cuptiActivityEnableAndDump, (uint32_t kind))                                                       \
    X(cuptiActivityEnableContext, (void *context, uint32_t kind))                                        \
    X(cuptiActivityDisable, (uint32_t kind))                                                             \
    X(cuptiActivityDisableContext, (void *context, uint32_t kind))                                       \
    X(cuptiActivitySetAttribute, (uint32_t attribute, size_t * size, void *value))                       \
    X(cuptiActivityRegisterTimestampCallback, (cupti_abi_timestamp_fn * now))                            \
    X(cuptiActivityFlushAll, (uint32_t flag))                                                            \
    X(cuptiFinalize, (void))

/* X(begin, end): profilers of counters and samples, whose functions take one struct. */
#define WRAPPED_PAIRS(X)                                   \
    X(cuptiPCSamplingEnable, cuptiPCSamplingDisable)       \
    X(cuptiProfilerBeginSession, cuptiProfilerEndSession)  \
    X(cuptiRangeProfilerEnable, cuptiRangeProfilerDisable) \
    X(cuptiPmSamplingEnable, cuptiPmSamplingDisable)       \
    X(cuptiSassMetricsEnable, cuptiSassMetricsDisable)

enum wrapped {
#define WRAPPED_ID(symbol, parameters) WRAPPED_##symbol,
#define WRAPPED_PAIR_IDS(begin, end) WRAPPED_##begin, WRAPPED_##end,
    WRAPPED_USES(WRAPPED_ID) WRAPPED_PAIRS(WRAPPED_PAIR_IDS)
#undef WRAPPED_ID
#undef WRAPPED_PAIR_IDS
        WRAPPED_COUNT
};

/* The functions that the program calls, exported. */
#define WRAPPED_PROTOTYPE(symbol, parameters) GPUFL_PRELOAD_API int symbol parameters;
#define WRAPPED_PAIR_PROTOTYPES(begin, end)    \
    GPUFL_PRELOAD_API int begin(void *params); \
    GPUFL_PRELOAD_API int end(void *params);
#define GPUFL_PRELOAD_API __attribute__((visibility("default")))
WRAPPED_USES(WRAPPED_PROTOTYPE)
WRAPPED_PAIRS(WRAPPED_PAIR_PROTOTYPES)

/* CUPTI's own function; NULL: this CUPTI lacks it, or none is loaded. */
void *real_function(enum wrapped function);
/* As real_function(id), with the type of the function. */
#define REAL(symbol) (__extension__(__typeof__(&symbol)) real_function(WRAPPED_##symbol))

#endif
