/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/stacks.h"

#include "base/intern.h"
#include "capture/python_frames.h"
#include "capture/symbols.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef int (*backtrace_fn)(void **frames, int count);

static backtrace_fn unwind = backtrace;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_unwinder(void)
{
    /* libunwind's cached walk is 20 times faster than glibc's. Opened locally: linking it would
     * replace the program's own backtrace(). */
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "unw_backtrace") : NULL;
    if (symbol)
        memcpy(&unwind, &symbol, sizeof symbol);
    void *frames[8];
    unwind(frames, 8);
}

void stacks_setup(void)
{
    pthread_once(&once, find_unwinder);
    python_frames_setup();
}

enum { native_frames_max = STACK_FRAMES_MAX / 2, python_frames_max = STACK_FRAMES_MAX - native_frames_max };

void stacks_capture(uint32_t correlation_id)
{
    void *addresses[native_frames_max];
    uint64_t frames[STACK_FRAMES_MAX], python[python_frames_max];
    int native_count = unwind(addresses, native_frames_max);
    uint32_t python_count = python_frames_walk(python, python_frames_max), count = 0;
    for (int i = 0; i < native_count; i++) {
        uint64_t address = (uintptr_t)addresses[i];
        /* Of the interpreter, what shows where in the C stack the Python functions are is enough. */
        if (!python_count || python_place_of(address - 1) != PYTHON_PLACE_INTERPRETER)
            frames[count++] = address;
    }
    memcpy(frames + count, python, python_count * sizeof *python);
    count += python_count;
    if (count)
        thread_log_stack(correlation_id, frames, count);
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

/* A stack on its way to text: frames of the C stack, then those of Python; both innermost first. */
struct frame_lists {
    const uint64_t *native, *python;
    uint32_t native_count, python_count;
};

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

static struct frame_lists lists_of(const struct stack_event *event)
{
    struct frame_lists lists = {.native = event->frames};
    while (lists.native_count < event->frame_count && !(event->frames[lists.native_count] & PYTHON_FRAME_MARK))
        lists.native_count++;
    lists.python = event->frames + lists.native_count;
    lists.python_count = event->frame_count - lists.native_count;
    /* The frames of gpufl, CUPTI and the CUDA driver at the inner end are ours or theirs, not the user's code. */
    while (lists.native_count && symbols_is_profiler(*lists.native)) {
        lists.native++;
        lists.native_count--;
    }
    return lists;
}

/* One list, innermost first. Each run of the interpreter's loop on the C stack becomes the Python functions that it
 * runs. What finds no loop, because the C stack was longer than its list, lies farther out. */
static uint32_t merge(struct frame_lists lists, uint64_t merged[STACK_FRAMES_MAX])
{
    uint32_t count = 0, python = 0;
    for (uint32_t i = 0; i < lists.native_count; i++) {
        if (!lists.python_count || python_place_of(lists.native[i] - 1) != PYTHON_PLACE_LOOP) {
            merged[count++] = lists.native[i];
            continue;
        }
        for (bool is_entry = false; !is_entry && python < lists.python_count; python++) {
            is_entry = lists.python[python] & PYTHON_FRAME_ENTRY;
            merged[count++] = lists.python[python];
        }
    }
    while (python < lists.python_count)
        merged[count++] = lists.python[python++];
    return count;
}

/* Outermost first, joined by |. */
static void spell(struct stacks *stacks, const struct stack_event *event)
{
    uint64_t frames[STACK_FRAMES_MAX];
    uint32_t count = merge(lists_of(event), frames);
    bytes_clear(&stacks->text);
    for (uint32_t i = count; i-- > 0;) {
        if (stacks->text.size)
            bytes_append_char(&stacks->text, '|');
        if (!(frames[i] & PYTHON_FRAME_MARK))
            /* A return address is the next instruction: step back into the call. */
            symbols_describe(stacks->symbols, frames[i] - 1, &stacks->text);
        else if (!python_frame_describe(frames[i], &stacks->text))
            recorder_lose(stacks->names->recorder, LOSS_NAMES, 1);
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
