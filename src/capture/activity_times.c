/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/activity_times.h"

#include "base/clock.h"

/* end_ns: NULL if there is none. */
static bool to_log(const struct calls *calls, uint32_t correlation_id, int64_t *start_ns, int64_t *end_ns)
{
    const struct call *call = calls_find(calls, correlation_id);
    bool is_start_certain, is_end_certain = true;
    if (*start_ns <= 0)
        return true;
    *start_ns = clock_log_of_wall_ns(*start_ns, call ? call->start_ns : INT64_MIN, &is_start_certain);
    if (end_ns && *end_ns > 0)
        *end_ns = clock_log_of_wall_ns(*end_ns, *start_ns, &is_end_certain);
    return is_start_certain && is_end_certain;
}

bool activity_times_to_log(struct activity *activity, const struct calls *calls)
{
    struct kernel_activity *kernel = &activity->u.kernel;
    struct copy_activity *copy = &activity->u.copy;
    struct sync_activity *sync = &activity->u.sync;
    struct api_activity *api = &activity->u.api;
    struct memory_activity *memory = &activity->u.memory;
    switch (activity->kind) {
    case ACTIVITY_KERNEL:
        return to_log(calls, kernel->correlation_id, &kernel->start_ns, &kernel->end_ns);
    case ACTIVITY_COPY:
    case ACTIVITY_MEMSET:
        return to_log(calls, copy->correlation_id, &copy->start_ns, &copy->end_ns);
    case ACTIVITY_SYNC:
        return to_log(calls, sync->correlation_id, &sync->start_ns, &sync->end_ns);
    case ACTIVITY_API:
        return to_log(calls, api->correlation_id, &api->start_ns, &api->end_ns);
    case ACTIVITY_MEMORY:
        return to_log(calls, memory->correlation_id, &memory->time_ns, NULL);
    default: /* has no time, or only its length matters */
        return true;
    }
}
