/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/stacks.h"

#include "base/intern.h"
#include "capture/symbols.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef int (*backtrace_fn)(void **frames, int count);

static backtrace_fn unwind = backtrace;
static const char *unwinder_name = "glibc backtrace";
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_unwinder(void)
{
    /* libunwind's cached walk is 20 times faster than glibc's. Opened locally: linking it would
     * replace the program's own backtrace(). */
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "unw_backtrace") : NULL;
    if (symbol) {
        memcpy(&unwind, &symbol, sizeof symbol);
        unwinder_name = "libunwind";
    }
    void *frames[8];
    unwind(frames, 8);
}

void stacks_setup(void)
{
    pthread_once(&once, find_unwinder);
}

const char *stacks_unwinder(void)
{
    return unwinder_name;
}

void stacks_capture(uint32_t correlation_id)
{
    void *frames[STACK_FRAMES_MAX];
    int count = unwind(frames, STACK_FRAMES_MAX);
    if (count > 0)
        thread_log_stack(correlation_id, frames, (uint32_t)count);
}

struct stacks {
    struct names *names;
    struct symbols *symbols;
    struct intern addresses;
    uint32_t *text_ids; /* [id in addresses - 1] */
    uint32_t capacity;
    struct bytes text;
};

enum { address_bytes_max = 4 << 20 };

gpufl_status stacks_make(struct stacks **out, struct names *names)
{
    struct stacks *stacks = calloc(1, sizeof *stacks);
    if (!stacks)
        return GPUFL_E_NO_MEMORY;
    stacks->names = names;
    stacks->addresses.text_bytes_max = address_bytes_max;
    gpufl_status status = symbols_make(&stacks->symbols);
    if (status != GPUFL_OK) {
        free(stacks);
        return status;
    }
    *out = stacks;
    return GPUFL_OK;
}

void stacks_free(struct stacks *stacks)
{
    if (!stacks)
        return;
    symbols_free(stacks->symbols);
    intern_free(&stacks->addresses);
    bytes_free(&stacks->text);
    free(stacks->text_ids);
    free(stacks);
}

/* Outermost first, joined by |. The frames of gpufl, CUPTI and the CUDA driver at the inner end are
 * ours or theirs, not the user's code, and are left out. */
static void spell(struct stacks *stacks, const struct stack_event *event)
{
    uint32_t inner = 0;
    while (inner < event->frame_count && symbols_is_profiler(event->frames[inner]))
        inner++;
    bytes_clear(&stacks->text);
    for (uint32_t i = event->frame_count; i-- > inner;) {
        if (stacks->text.size)
            bytes_append_char(&stacks->text, '|');
        /* A return address is the next instruction: step back into the call. */
        symbols_describe(stacks->symbols, event->frames[i] - 1, &stacks->text);
    }
}

uint32_t stacks_identify(struct stacks *stacks, const struct stack_event *event)
{
    bool is_new;
    uint32_t id = intern_id(&stacks->addresses, event->frames, event->frame_count * sizeof event->frames[0], &is_new);
    if (!id)
        goto lost;
    if (!is_new)
        return stacks->text_ids[id - 1];
    if (id > stacks->capacity) {
        uint32_t capacity = stacks->capacity ? stacks->capacity * 2 : 256;
        uint32_t *text_ids = realloc(stacks->text_ids, capacity * sizeof *text_ids);
        if (!text_ids)
            goto lost;
        stacks->text_ids = text_ids;
        stacks->capacity = capacity;
    }
    spell(stacks, event);
    uint32_t text_id = stacks->text.size && !stacks->text.failed
                           ? names_stack(stacks->names, stacks->text.data, stacks->text.size)
                           : 0;
    stacks->text_ids[id - 1] = text_id;
    return text_id;
lost:
    recorder_lose(stacks->names->recorder, LOSS_NAMES, 1);
    return 0;
}
