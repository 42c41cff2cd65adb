/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the subscription, for cupti_trace.c: claimed before anything is
 * enabled, silenced and released when everything is disabled. Under its lock. */
#ifndef GPUFL_DRIVER_CUPTI_SUBSCRIPTION_H
#define GPUFL_DRIVER_CUPTI_SUBSCRIPTION_H

#include "driver/cupti.h"

/* other_profiler: who holds CUPTI, when that is the reason for failure. */
NODISCARD gpufl_status cupti_claim(struct cupti *cupti, char *other_profiler, size_t size, struct problem *problem);
/* on_call at the entry of and the return from each call of the groups (CUPTI_CALL_*); false: not of all of them, and
 * nothing is told. with_external: with the ids that the program pushed, too. */
bool cupti_listen_calls(struct cupti *cupti, unsigned groups, bool with_external,
                        void (*on_call)(const struct user_call *call, bool is_enter));
/* Looks whether a library that can push external ids was loaded; our own threads. */
void cupti_look_for_users(void);
void cupti_silence(struct cupti *cupti); /* no callback any more */
/* Nothing is called after it returned true; false: a callback is still under way, perhaps for ever. */
bool cupti_release(struct cupti *cupti);
void cupti_subscription_abandon(void); /* in a forked child: the listener is the parent's */
/* What a failed call means and what to do about it. */
gpufl_status cupti_refusal(struct cupti *cupti, const char *function, int result, struct problem *problem);

#endif
