/* SPDX-License-Identifier: Apache-2.0 */
/* What a user's thread records about each call that launches, copies, waits or allocates, for
 * cupti_trace_options.on_call: its start and end and, if wanted, the stack. Does not need a session. */
#ifndef GPUFL_CAPTURE_USER_CALLS_H
#define GPUFL_CAPTURE_USER_CALLS_H

#include "driver/activity.h"

void user_call_note(const struct user_call *call, bool is_enter);
void user_call_note_with_stack(const struct user_call *call, bool is_enter); /* of launches and waits */

#endif
