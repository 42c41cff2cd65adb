/* SPDX-License-Identifier: Apache-2.0 */
/* Prototypes of the look-alike CUPTI. Those the product calls come from the
 * product's own declarations, so that both agree; the rest follows here. */
#ifndef FAKES_CUPTI_FAKE_H
#define FAKES_CUPTI_FAKE_H

#include "driver/cupti_abi.h"
#include "fake_gpu.h"

#define CUPTI_FAKE_PROTOTYPE(member, symbol, params) FAKE_API int symbol params;
CUPTI_ABI_FUNCTIONS(CUPTI_FAKE_PROTOTYPE)

FAKE_API int cuptiEnableDomain(uint32_t enable, void *subscriber, uint32_t domain);
FAKE_API int cuptiActivityFlushPeriod(uint32_t milliseconds);
FAKE_API int cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value);
FAKE_API int cuptiActivityGetAttribute(uint32_t attribute, size_t *size, void *value);
FAKE_API int cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id);
FAKE_API int cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t *last_id);
FAKE_API int cuptiActivityEnableLatencyTimestamps(uint8_t enable);
FAKE_API int cuptiActivityRegisterTimestampCallback(cupti_abi_timestamp_fn *now);
FAKE_API int cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name);

/* CUptiResult, beyond what the product names */
enum { CUPTI_INVALID_PARAMETER = 1, CUPTI_INVALID_OPERATION = 7, CUPTI_NOT_COMPATIBLE = 14, CUPTI_QUEUE_EMPTY = 32 };

uint64_t clock_now_ns(void); /* CLOCK_REALTIME */

/* Of this build of the library: 130001 = CUDA 13.0 Update 1, 22 = 12.4, 19 = 12.0. */
extern const uint32_t cupti_release;

#endif
