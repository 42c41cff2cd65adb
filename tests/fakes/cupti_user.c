/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is linked with CUPTI, as one that pushes external ids around its calls is. */
#include "driver/cupti_abi.h"

#define EXPORT __attribute__((visibility("default")))

int cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id);
EXPORT int cupti_user_push(uint64_t id);

EXPORT int cupti_user_push(uint64_t id)
{
    return cuptiActivityPushExternalCorrelationId(3, id);
}
