/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a profiler of the program uses CUPTI, and its subscription while it does not: CUPTI accepts one
 * subscriber, and profilers such as Kineto stay subscribed for the life of the process. The program gets a handle of
 * ours; CUPTI's own is created when the use begins and destroyed when it ends. */
#ifndef GPUFL_PRELOAD_USERS_H
#define GPUFL_PRELOAD_USERS_H

#include "driver/cupti_abi.h"

#include <stdbool.h>

enum { SUBSCRIPTION_CALLBACKS_MAX = 512 };

/* Begins the use on behalf of the code at `caller`: returns when gpufl has released CUPTI. Returns CUPTI's result if
 * the program's deferred subscription or registration failed. */
int use_begin(const void *caller);
bool use_is_on(void);
/* Call after each call: ends the use when nothing is enabled any more and the program has flushed and has all of its
 * buffers back, or has not called for five seconds. */
void use_end(void);
void use_note_flush(void); /* the program's flush has returned */

/* The process is about to exit without exit handlers. Runs once; a no-op in a process without its own session. */
void use_exit(void);

/* Tracks what is enabled. */
void use_note_kind(uint32_t kind, bool is_on);
void use_note_other(int change); /* contexts, counters, samples, subscriptions that were not deferred */
void use_forget(void);           /* cuptiFinalize */

/* The program's registration for buffers and its subscription. */
int buffers_register(cupti_abi_buffer_request_fn *request, cupti_abi_buffer_complete_fn *complete);
/* An attribute of the activity API that is set while gpufl uses CUPTI: passed to CUPTI when the use begins. */
int attribute_put_off(uint32_t attribute, const size_t *size, const void *value);
/* The clock of the program's records: passed to CUPTI whenever a use begins. */
void clock_put_off(cupti_abi_timestamp_fn *now);
int subscription_open(void **handle, cupti_abi_callback_fn *callback, void *user);
int subscription_close(void);
bool subscription_is(const void *handle);
/* cbid SUBSCRIPTION_ALL: the whole domain. */
#define SUBSCRIPTION_ALL UINT32_MAX
int subscription_enable(uint32_t domain, uint32_t cbid, bool is_on, const void *caller);
bool subscription_is_enabled(uint32_t domain, uint32_t cbid);

#endif
