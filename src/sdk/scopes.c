/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes of the public API: write to the calling thread's ring. */
#include "capture/task_scopes.h"
#include "capture/thread_log.h"
#include "sdk/public_struct.h"
#include "sdk/scope_listeners.h"
#include "sdk/session.h"

#include <string.h>

int scope_begin(const struct scope_text *text)
{
    if (!gpufl_is_recording())
        return -1;
    task_scopes_check();
    struct scope_edge edge = thread_log_scope_begin(text);
    if (edge.is_outermost)
        scope_listeners_hold(true);
    scope_listeners_tell(true, text->stack, text->name, text->name_size);
    return edge.level;
}

static int end_and_notify(struct scope_edge edge)
{
    if (edge.is_outermost)
        scope_listeners_hold(false);
    return edge.level;
}

int scope_end(uint32_t stack)
{
    if (!gpufl_is_recording())
        return -1;
    scope_listeners_tell(false, stack, NULL, 0);
    return end_and_notify(thread_log_scope_end(stack));
}

gpufl_scope_token gpufl_scope_current(void)
{
    if (!gpufl_is_recording())
        return 0;
    task_scopes_check();
    return thread_log_token();
}

void gpufl_scope_adopt(gpufl_scope_token token)
{
    if (gpufl_is_recording() && thread_log_adopt(SCOPE_STACK_ADOPTED, token).is_outermost)
        scope_listeners_hold(true);
}

void gpufl_scope_release(void)
{
    if (gpufl_is_recording())
        (void)end_and_notify(thread_log_scope_end(SCOPE_STACK_ADOPTED));
}

void gpufl_tasks_follow(int (*current)(void))
{
    task_scopes_follow(current);
}

void gpufl_task_bind(int task, gpufl_scope_token token)
{
    task_scopes_bind(task, token);
}

void gpufl_scope_push_sized(const char *name, size_t name_size, const char *tag, size_t tag_size, uint32_t repeat,
                            uint32_t warmup)
{
    struct scope_text text = {.name = name ? name : "",
                              .name_size = name ? name_size : 0,
                              .tag = tag,
                              .tag_size = tag ? tag_size : 0,
                              .repeat = repeat,
                              .warmup = warmup};
    (void)scope_begin(&text);
}

void gpufl_scope_push(const char *name, const gpufl_scope_meta *meta)
{
    bool has_meta = meta && meta->struct_size >= SIZE_THROUGH(gpufl_scope_meta, tag);
    const char *tag = has_meta ? meta->tag : NULL;
    gpufl_scope_push_sized(name, name ? strlen(name) : 0, tag, tag ? strlen(tag) : 0, has_meta ? meta->repeat : 0,
                           has_meta ? meta->warmup : 0);
}

void gpufl_scope_pop(void)
{
    (void)scope_end(SCOPE_STACK_API);
}

void gpufl_scope_pop_counted(uint32_t iterations)
{
    if (!gpufl_is_recording())
        return;
    scope_listeners_tell(false, SCOPE_STACK_API, NULL, 0);
    (void)end_and_notify(thread_log_scope_end_counted(SCOPE_STACK_API, iterations));
}
