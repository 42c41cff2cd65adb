/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/stacks.h"

#include "base/intern.h"
#include "capture/python_frames.h"
#include "capture/stack_speller.h"

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
    struct stack_speller *speller;
    struct intern hashes; /* of the distinct stacks; numbers are its ids */
    size_t frame_bytes;   /* of all of them */
    uint32_t *text_ids;   /* [number - 1] */
    uint32_t capacity;
    uint32_t spelled_count; /* numbers up to this have their text */
};

enum { frame_bytes_max = 4 << 20, line_bytes = 1 << 20 /* of texts, about */ };

gpufl_status stacks_make(struct stacks **out, struct names *names, struct code_store *sources)
{
    struct stacks *stacks = calloc(1, sizeof *stacks);
    if (!stacks)
        return GPUFL_E_NO_MEMORY;
    stacks->names = names;
    gpufl_status status = stack_speller_make(&stacks->speller, sources);
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
    stack_speller_free(stacks->speller);
    intern_free(&stacks->hashes);
    free(stacks->text_ids);
    free(stacks);
}

/* 0: no room for one more. */
static uint32_t number_make(struct stacks *stacks, const struct stack_event *event)
{
    size_t bytes = event->frame_count * sizeof *event->frames;
    if (stacks->frame_bytes + bytes > frame_bytes_max)
        return 0;
    if (stacks->hashes.count == stacks->capacity) {
        uint32_t capacity = stacks->capacity ? stacks->capacity * 2 : 256;
        uint32_t *text_ids = realloc(stacks->text_ids, capacity * sizeof *text_ids);
        if (!text_ids)
            return 0;
        stacks->text_ids = text_ids;
        stacks->capacity = capacity;
    }
    struct stack_spelling *spelling = stack_spelling_make(event->frames, event->frame_count);
    uint32_t number = spelling ? intern_id(&stacks->hashes, &event->hash, sizeof event->hash, NULL) : 0;
    if (!number) {
        stack_spelling_free(spelling);
        return 0;
    }
    stacks->frame_bytes += bytes;
    stack_speller_give(stacks->speller, spelling);
    return number;
}

uint32_t stacks_identify(struct stacks *stacks, const struct stack_event *event)
{
    uint32_t number = intern_find(&stacks->hashes, &event->hash, sizeof event->hash);
    if (!number && event->frame_count)
        number = number_make(stacks, event);
    if (!number)
        recorder_lose(stacks->names->recorder, LOSS_NAMES, 1);
    return number;
}

bool stacks_find_text(const struct stacks *stacks, uint32_t number, uint32_t *text_id)
{
    if (number > stacks->spelled_count)
        return false;
    *text_id = number ? stacks->text_ids[number - 1] : 0;
    return true;
}

void stacks_settle(struct stacks *stacks, bool is_end)
{
    struct recorder *recorder = stacks->names->recorder;
    for (struct stack_spelling *spelling; (spelling = stack_speller_take(stacks->speller, is_end));) {
        bool has_text = spelling->text.size && !spelling->text.failed;
        stacks->text_ids[stacks->spelled_count++] =
            has_text ? names_stack(stacks->names, spelling->text.data, spelling->text.size) : 0;
        recorder_lose(recorder, LOSS_NAMES, spelling->nameless + spelling->text.failed);
        stack_spelling_free(spelling);
        if (recorder->entries[DICTIONARY_FUNCTION].size > line_bytes)
            recorder_write_dictionaries(recorder, CHANNEL_DEVICE);
    }
}

int64_t stacks_cpu_ns(const struct stacks *stacks)
{
    return stack_speller_cpu_ns(stacks->speller);
}

size_t stacks_bytes(const struct stacks *stacks)
{
    return sizeof *stacks + intern_bytes(&stacks->hashes) + stacks->capacity * sizeof *stacks->text_ids +
           stack_speller_bytes(stacks->speller);
}
