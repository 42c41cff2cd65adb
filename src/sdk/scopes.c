/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes of the public API: from the caller's thread into its ring. */
#include "capture/thread_log.h"
#include "sdk/scope_listeners.h"
#include "sdk/session.h"

#include <string.h>

void scope_begin(const struct scope_text *text)
{
    if (!gpufl_is_recording())
        return;
    if (thread_log_scope_begin(text))
        scope_listeners_hold(true);
    scope_listeners_tell(true, text->name, text->name_size);
}

void scope_end(void)
{
    if (!gpufl_is_recording())
        return;
    scope_listeners_tell(false, NULL, 0);
    if (thread_log_scope_end())
        scope_listeners_hold(false);
}

void gpufl_scope_push(const char *name, const gpufl_scope_meta *meta)
{
    struct scope_text text = {.name = name ? name : "", .name_size = name ? strlen(name) : 0};
    if (meta && meta->struct_size >= sizeof *meta) {
        text.tag = meta->tag;
        text.tag_size = meta->tag ? strlen(meta->tag) : 0;
        text.repeat = meta->repeat;
        text.warmup = meta->warmup;
    }
    scope_begin(&text);
}

void gpufl_scope_pop(void)
{
    scope_end();
}

void gpufl_scope_pop_counted(uint32_t iterations)
{
    if (!gpufl_is_recording())
        return;
    scope_listeners_tell(false, NULL, 0);
    if (thread_log_scope_end_counted(iterations))
        scope_listeners_hold(false);
}
