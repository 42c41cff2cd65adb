/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/stacks.h"

#include "base/intern_cache.h"
#include "base/user_time.h"
#include "capture/python_frames.h"
#include "capture/stack_speller.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef int (*backtrace_fn)(void **frames, int count);

#ifdef __GLIBC__
#include <execinfo.h>
static backtrace_fn unwind = backtrace;
#else
static int unwind_nothing(void **frames, int count)
{
    (void)frames, (void)count;
    return 0;
}
static backtrace_fn unwind = unwind_nothing;
#endif
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_unwinder(void)
{
    /* libunwind's cached walk is 20 times faster than glibc's. Loaded with RTLD_LOCAL: linking it would replace the
     * program's own backtrace(). */
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
    uint64_t frames[STACK_FRAMES_MAX], python[python_frames_max], start_ticks = clock_ticks();
    int native_count = unwind(addresses, native_frames_max);
    uint32_t python_count = python_frames_walk(python, python_frames_max), count = 0;
    for (int i = 0; i < native_count; i++) {
        uint64_t address = (uintptr_t)addresses[i];
        /* Of the interpreter's frames only the loops are needed: they show where Python functions belong in the C
         * stack. */
        if (!python_count || python_place_of(address - 1) != PYTHON_PLACE_INTERPRETER)
            frames[count++] = address;
    }
    memcpy(frames + count, python, python_count * sizeof *python);
    count += python_count;
    if (count)
        thread_log_stack(correlation_id, frames, count);
    user_time_since(USER_TIME_STACKS, start_ticks);
}

struct stacks {
    struct names *names;
    struct stack_speller *speller;
    struct intern_cache hashes; /* of distinct stacks; numbers are its ids, its values the texts' ids */
    size_t waiting_bytes;       /* of frames that are being resolved */
    uint32_t spelled_number;    /* stacks up to this one are resolved */
    uint64_t forgotten_seen;    /* evicted stacks that threads must send again */
};

enum {
    hash_bytes_max = 4 << 20, /* about 80,000 stacks */
    waiting_bytes_max = 4 << 20,
    line_bytes = 1 << 20 /* of texts, approximately */
};

gpufl_status stacks_make(struct stacks **out, struct names *names, struct code_store *sources)
{
    struct stacks *stacks = calloc(1, sizeof *stacks);
    if (!stacks)
        return GPUFL_E_NO_MEMORY;
    stacks->names = names;
    stacks->hashes.bytes_max = hash_bytes_max;
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
    intern_cache_free(&stacks->hashes);
    free(stacks);
}

/* 0: no room for another one. */
static uint32_t number_make(struct stacks *stacks, const struct stack_event *event)
{
    size_t bytes = event->frame_count * sizeof *event->frames;
    if (stacks->waiting_bytes + bytes > waiting_bytes_max)
        return 0;
    struct stack_spelling *spelling = stack_spelling_make(event->frames, event->frame_count);
    uint32_t number = spelling ? intern_cache_id(&stacks->hashes, &event->hash, sizeof event->hash, NULL) : 0;
    if (!number) {
        stack_spelling_free(spelling);
        return 0;
    }
    stacks->waiting_bytes += bytes;
    stack_speller_give(stacks->speller, spelling);
    return number;
}

/* Threads send the frames of a stack once: those of evicted stacks must be sent again. */
static void ask_for_forgotten(struct stacks *stacks)
{
    if (stacks->hashes.forgotten == stacks->forgotten_seen)
        return;
    stacks->forgotten_seen = stacks->hashes.forgotten;
    thread_logs_resend_stacks();
}

uint32_t stacks_identify(struct stacks *stacks, const struct stack_event *event)
{
    uint32_t number = 0;
    if (intern_find(&stacks->hashes.table, &event->hash, sizeof event->hash))
        number = intern_cache_id(&stacks->hashes, &event->hash, sizeof event->hash, NULL);
    else if (event->frame_count)
        number = number_make(stacks, event);
    ask_for_forgotten(stacks);
    if (!number) {
        recorder_lose(stacks->names->recorder, LOSS_STACK_TEXTS, 1);
        thread_logs_resend_stacks(); /* its frames must be sent again, when there is room for them */
    }
    return number;
}

bool stacks_find_text(struct stacks *stacks, uint32_t number, uint32_t *text_id)
{
    if (number > stacks->spelled_number)
        return false;
    const uint32_t *text = number ? intern_cache_value(&stacks->hashes, number) : NULL;
    if (number && !text) /* evicted since the call */
        recorder_lose(stacks->names->recorder, LOSS_STACK_TEXTS, 1);
    *text_id = text ? *text : 0;
    return true;
}

void stacks_settle(struct stacks *stacks, bool is_end)
{
    struct recorder *recorder = stacks->names->recorder;
    int64_t now_ns = clock_mono_ns();
    for (struct stack_spelling *spelling; (spelling = stack_speller_take(stacks->speller, is_end));) {
        bool has_text = spelling->text.size && !spelling->text.failed;
        uint32_t *text_id = intern_cache_value(&stacks->hashes, ++stacks->spelled_number);
        if (text_id && has_text)
            *text_id = names_stack(stacks->names, spelling->text.data, spelling->text.size, now_ns);
        recorder_lose(recorder, LOSS_STACK_TEXTS, spelling->nameless + spelling->text.failed);
        stacks->waiting_bytes -= spelling->frame_count * sizeof *spelling->frames;
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
    return sizeof *stacks + intern_cache_bytes(&stacks->hashes) + stacks->waiting_bytes +
           stack_speller_bytes(stacks->speller);
}
