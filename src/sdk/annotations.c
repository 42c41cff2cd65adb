/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges, marks, counters and thread names of the public API. */
#include "base/current_thread.h"
#include "capture/given_names.h"
#include "capture/thread_log.h"
#include "sdk/session.h"

#include <string.h>
#include <unistd.h>

/* schema enum scope_source and payload_type */
enum { source_range = 7, source_mark = 8, source_counter = 9, payload_double = 3 };

static struct scope_text text_of(const char *name, uint32_t source)
{
    return (struct scope_text){.name = name ? name : "", .name_size = name ? strlen(name) : 0, .source = source};
}

uint64_t gpufl_range_start(const char *name)
{
    /* NVTX counts its ranges from 1, and ROCTX's have bit 63. */
    static const uint64_t api_range_bit = UINT64_C(1) << 62;
    static _Atomic uint64_t count;
    if (!gpufl_is_recording())
        return 0;
    uint64_t range = api_range_bit | atomic_fetch_add(&count, 1);
    struct scope_text text = text_of(name, source_range);
    thread_log_range_start(&text, range);
    return range;
}

void gpufl_range_end(uint64_t range)
{
    if (range && gpufl_is_recording())
        thread_log_range_end(range);
}

void gpufl_mark(const char *name)
{
    if (!gpufl_is_recording())
        return;
    struct scope_text text = text_of(name, source_mark);
    thread_log_mark(&text);
}

void gpufl_counter(const char *name, double value)
{
    if (!gpufl_is_recording())
        return;
    struct scope_text text = text_of(name, source_counter);
    text.details.payload_type = payload_double;
    memcpy(&text.details.payload, &value, sizeof value);
    thread_log_mark(&text);
}

void gpufl_thread_name(const char *name)
{
    if (name && !session_is_disabled())
        given_names_set(&(struct given_name){GIVEN_THREAD, current_thread_id(), "", name});
}
