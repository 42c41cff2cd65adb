/* SPDX-License-Identifier: Apache-2.0 */
/* The subscription, for cupti_trace.c: claimed before anything is enabled, silenced and released when everything is
 * disabled. Call with its lock held. */
#ifndef GPUFL_DRIVER_CUPTI_SUBSCRIPTION_H
#define GPUFL_DRIVER_CUPTI_SUBSCRIPTION_H

#include "driver/cupti.h"

/* other_profiler: who holds CUPTI, when that is the reason for failure. */
NODISCARD gpufl_status cupti_claim(struct cupti *cupti, char *other_profiler, size_t size, struct problem *problem);
/* Has on_call called on entry to and return from each call of the groups (CUPTI_CALL_*); false: some are
 * unavailable, and none is reported. with_external: also reports external ids pushed by the program. */
bool cupti_listen_calls(struct cupti *cupti, unsigned groups, bool with_external,
                        void (*on_call)(const struct user_call *call, bool is_enter));
/* Checks whether a library that can push external ids was loaded; call it on our own threads. */
void cupti_look_for_users(void);
void cupti_silence(struct cupti *cupti); /* no more callbacks */
/* True: nothing is called any more; false: a callback is still in progress, possibly forever. */
bool cupti_release(struct cupti *cupti);
void cupti_subscription_abandon(void); /* in a forked child: the listener is the parent's */
/* The meaning of a failed call and how to resolve it. */
gpufl_status cupti_refusal(struct cupti *cupti, const char *function, int result, struct problem *problem);

#endif
