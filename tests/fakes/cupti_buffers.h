/* SPDX-License-Identifier: Apache-2.0 */
/* Activity buffers of the look-alike CUPTI: asked for from the client, filled
 * by the application's threads and the worker, handed back by the worker or by
 * whoever flushes. A channel is one buffer being filled: one per thread, one
 * shared by the GPUs. Lock order: channel list, channel, queue. */
#ifndef FAKES_CUPTI_BUFFERS_H
#define FAKES_CUPTI_BUFFERS_H

#include "cupti_fake.h"

struct channel;

void buffers_register(cupti_abi_buffer_request_fn *request, cupti_abi_buffer_complete_fn *complete);
struct channel *channel_of_thread(void); /* NULL: out of memory, or nothing registered */
struct channel *channel_of_devices(void);
/* Copies a record in; without a buffer it is dropped and counted. Unless it is late (its kind may
 * have been disabled since it began) it is kept only while its kind is enabled. */
void channel_write(struct channel *channel, const void *record, size_t size, bool is_late);
/* Hands the channel's buffer over although it is not full. */
void channel_complete(struct channel *channel);
/* Hands all buffers over and returns when the client has them; with_empty also unused ones. */
void buffers_flush(bool with_empty);
size_t buffers_take_dropped(void);
/* cuptiFinalize: no client any more. Buffers that are not full are never handed back, as on an H200 (CUPTI 13.0). */
void buffers_forget(void);
void buffers_after_fork(void); /* in the child: locks of the parent's threads */
void buffers_wake_worker(uint32_t period_ms);

#endif
