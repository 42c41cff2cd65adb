/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes of the public API: from the caller's thread into its ring. */
#include "capture/thread_log.h"
#include "sdk/public_struct.h"
#include "sdk/scope_listeners.h"
#include "sdk/session.h"

#include <string.h>

int scope_begin(const struct scope_text *text)
{
    if (!gpufl_is_recording())
        return -1;
    struct scope_edge edge = thread_log_scope_begin(text);
    if (edge.is_outermost)
        scope_listeners_hold(true);
    scope_listeners_tell(true, text->stack, text->name, text->name_size);
    return edge.level;
}

static int end_told(struct scope_edge edge)
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
    return end_told(thread_log_scope_end(stack));
}

void gpufl_scope_push(const char *name, const gpufl_scope_meta *meta)
{
    struct scope_text text = {.name = name ? name : "", .name_size = name ? strlen(name) : 0};
    if (meta && meta->struct_size >= SIZE_THROUGH(gpufl_scope_meta, tag)) {
        text.tag = meta->tag;
        text.tag_size = meta->tag ? strlen(meta->tag) : 0;
        text.repeat = meta->repeat;
        text.warmup = meta->warmup;
    }
    (void)scope_begin(&text);
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
    (void)end_told(thread_log_scope_end_counted(SCOPE_STACK_API, iterations));
}
