/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI in a forked child. There CUPTI keeps the parent's subscription: another one is refused, and unsubscribing
 * makes the next call hang. cuptiFinalize allows a fresh start (measured on an H200 with CUPTI 13.0), unless a
 * thread of the parent was inside CUPTI at the fork, whose locks then stay locked. */
#ifndef GPUFL_DRIVER_CUPTI_FORK_H
#define GPUFL_DRIVER_CUPTI_FORK_H

#include "driver/cupti.h"

/* Call around CUPTI calls that gpufl's own threads make outside of start and stop, so that a fork can wait for them. */
void cupti_use_begin(void);
void cupti_use_end(void);
/* From now on CUPTI has state that a child inherits. */
void cupti_use_noted(void);

/* The fork handlers. Before: waits until no thread of ours is inside CUPTI, at most 100 ms. */
void cupti_before_fork(void);
void cupti_after_fork_in_parent(void);
void cupti_after_fork_in_child(bool is_whole); /* is_whole: no thread was starting or stopping the session */

/* Call before CUPTI is started: in a child it resets the parent's state, or reports why that is impossible. */
NODISCARD gpufl_status cupti_start_afresh(struct cupti *cupti, struct problem *problem);

#endif
