/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/user_calls.h"

#include "base/clock.h"
#include "capture/stacks.h"

void user_call_note(const struct user_call *call, bool is_enter)
{
    static _Thread_local uint64_t start_ticks; /* calls do not nest: inner calls are not reported */
    if (is_enter)
        start_ticks = clock_ticks();
    else if (start_ticks)
        thread_log_call(call, start_ticks);
    if (!is_enter)
        start_ticks = 0;
}

void user_call_note_with_stack(const struct user_call *call, bool is_enter)
{
    if (is_enter && (call->is_launch || call->wait_type))
        stacks_capture(call->correlation_id);
    user_call_note(call, is_enter);
}
