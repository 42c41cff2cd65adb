/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/stack_speller.h"

#include "base/clock.h"
#include "base/intern_cache.h"
#include "base/own_thread.h"
#include "base/stack_frame.h"
#include "capture/code_store.h"
#include "capture/python_frames.h"
#include "capture/symbols.h"
#include "capture/thread_log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct spelling_list {
    struct stack_spelling *first, **end;
};

enum { file_bytes_max = 1 << 20 };

struct stack_speller {
    struct symbols *symbols;    /* the thread's, as are the next three */
    struct code_store *sources; /* may be NULL */
    struct intern_cache files;  /* already passed to sources */
    struct bytes path;          /* scratch */
    pthread_t thread;
    pthread_mutex_t mutex;   /* guards everything below except the last two */
    pthread_cond_t is_given; /* or is_stopping */
    pthread_cond_t is_spelled;
    struct spelling_list given, spelled;
    uint64_t outstanding; /* submitted and not taken yet */
    bool is_stopping;
    _Atomic int64_t cpu_ns;
    _Atomic size_t bytes;
};

/* A stack being resolved: C frames, then Python frames; both innermost first. */
struct frame_lists {
    const uint64_t *native, *python;
    uint32_t native_count, python_count;
};

static void list_append(struct spelling_list *list, struct stack_spelling *spelling)
{
    spelling->next = NULL;
    *list->end = spelling;
    list->end = &spelling->next;
}

static struct stack_spelling *list_pop(struct spelling_list *list)
{
    struct stack_spelling *first = list->first;
    if (first && !(list->first = first->next))
        list->end = &list->first;
    return first;
}

static void list_clear(struct spelling_list *list)
{
    for (struct stack_spelling *spelling; (spelling = list_pop(list));)
        stack_spelling_free(spelling);
}

static struct frame_lists lists_of(struct symbols *symbols, const struct stack_spelling *spelling)
{
    struct frame_lists lists = {.native = spelling->frames};
    while (lists.native_count < spelling->frame_count && !(spelling->frames[lists.native_count] & PYTHON_FRAME_MARK))
        lists.native_count++;
    lists.python = spelling->frames + lists.native_count;
    lists.python_count = spelling->frame_count - lists.native_count;
    /* Innermost frames in gpufl, CUPTI and the CUDA driver are not the user's code. */
    while (lists.native_count && symbols_is_profiler(symbols, *lists.native - 1)) {
        lists.native++;
        lists.native_count--;
    }
    return lists;
}

/* Merges both lists, innermost first. Each run of the interpreter's loop on the C stack is replaced by the Python
 * functions that it runs. Python functions without a loop, because the C stack was truncated, are appended as outer
 * frames. */
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

static void tell_file(struct stack_speller *speller, const char *text, size_t size, bool is_python)
{
    bool is_new = false;
    struct stack_frame frame = stack_frame_split(text, size);
    /* A relative name refers to where the program was compiled, except for a script, which is relative to the
     * working directory. */
    if (!frame.line || (!is_python && *frame.file != '/'))
        return;
    uint32_t id = intern_cache_id(&speller->files, frame.file, frame.file_size, &is_new);
    bytes_clear(&speller->path);
    bytes_append(&speller->path, frame.file, frame.file_size);
    const char *path = bytes_text(&speller->path);
    if (!id || speller->path.failed)
        code_store_lose_source(speller->sources);
    else if (is_new)
        code_store_add_source(speller->sources, path);
}

static void spell(struct stack_speller *speller, struct stack_spelling *spelling)
{
    uint64_t frames[STACK_FRAMES_MAX];
    uint32_t count = merge(lists_of(speller->symbols, spelling), frames);
    for (uint32_t i = count; i-- > 0;) {
        if (spelling->text.size)
            bytes_append_char(&spelling->text, '|');
        size_t start = spelling->text.size;
        if (!(frames[i] & PYTHON_FRAME_MARK))
            /* A return address is the next instruction: step back into the call. */
            symbols_describe(speller->symbols, frames[i] - 1, &spelling->text);
        else if (!python_frame_describe(frames[i], &spelling->text))
            spelling->nameless++;
        if (speller->sources && !spelling->text.failed && spelling->text.size > start)
            tell_file(speller, spelling->text.data + start, spelling->text.size - start, frames[i] & PYTHON_FRAME_MARK);
    }
}

static void *run(void *argument)
{
    struct stack_speller *speller = argument;
    pthread_mutex_lock(&speller->mutex);
    for (;;) {
        while (!speller->given.first && !speller->is_stopping)
            pthread_cond_wait(&speller->is_given, &speller->mutex);
        if (speller->is_stopping)
            break;
        struct stack_spelling *spelling = list_pop(&speller->given);
        pthread_mutex_unlock(&speller->mutex);
        spell(speller, spelling);
        atomic_store(&speller->cpu_ns, clock_thread_cpu_ns());
        atomic_store(&speller->bytes, symbols_bytes(speller->symbols) + intern_cache_bytes(&speller->files));
        pthread_mutex_lock(&speller->mutex);
        list_append(&speller->spelled, spelling);
        pthread_cond_signal(&speller->is_spelled);
    }
    pthread_mutex_unlock(&speller->mutex);
    return NULL;
}

gpufl_status stack_speller_make(struct stack_speller **out, struct code_store *sources)
{
    struct stack_speller *speller = calloc(1, sizeof *speller);
    if (!speller)
        return GPUFL_E_NO_MEMORY;
    speller->sources = sources;
    speller->files.bytes_max = file_bytes_max;
    gpufl_status status = symbols_make(&speller->symbols);
    if (status != GPUFL_OK)
        goto no_symbols;
    pthread_mutex_init(&speller->mutex, NULL);
    pthread_cond_init(&speller->is_given, NULL);
    pthread_cond_init(&speller->is_spelled, NULL);
    speller->given.end = &speller->given.first;
    speller->spelled.end = &speller->spelled.first;
    if (own_thread_start(&speller->thread, "gpufl-stacks", OWN_THREAD_STACK_LARGE, run, speller)) {
        *out = speller;
        return GPUFL_OK;
    }
    status = GPUFL_E_NO_MEMORY;
    symbols_free(speller->symbols);
no_symbols:
    free(speller);
    return status;
}

void stack_speller_free(struct stack_speller *speller)
{
    if (!speller)
        return;
    pthread_mutex_lock(&speller->mutex);
    speller->is_stopping = true;
    pthread_cond_signal(&speller->is_given);
    pthread_mutex_unlock(&speller->mutex);
    pthread_join(speller->thread, NULL);
    list_clear(&speller->given);
    list_clear(&speller->spelled);
    pthread_cond_destroy(&speller->is_given);
    pthread_cond_destroy(&speller->is_spelled);
    pthread_mutex_destroy(&speller->mutex);
    symbols_free(speller->symbols);
    intern_cache_free(&speller->files);
    bytes_free(&speller->path);
    free(speller);
}

struct stack_spelling *stack_spelling_make(const uint64_t *frames, uint32_t frame_count)
{
    struct stack_spelling *spelling = malloc(sizeof *spelling + frame_count * sizeof *frames);
    if (!spelling)
        return NULL;
    *spelling = (struct stack_spelling){.frame_count = frame_count};
    memcpy(spelling->frames, frames, frame_count * sizeof *frames);
    return spelling;
}

void stack_spelling_free(struct stack_spelling *spelling)
{
    if (!spelling)
        return;
    bytes_free(&spelling->text);
    free(spelling);
}

void stack_speller_give(struct stack_speller *speller, struct stack_spelling *spelling)
{
    pthread_mutex_lock(&speller->mutex);
    list_append(&speller->given, spelling);
    speller->outstanding++;
    pthread_cond_signal(&speller->is_given);
    pthread_mutex_unlock(&speller->mutex);
}

struct stack_spelling *stack_speller_take(struct stack_speller *speller, bool is_waiting)
{
    pthread_mutex_lock(&speller->mutex);
    while (is_waiting && speller->outstanding && !speller->spelled.first)
        pthread_cond_wait(&speller->is_spelled, &speller->mutex);
    struct stack_spelling *spelling = list_pop(&speller->spelled);
    speller->outstanding -= spelling != NULL;
    pthread_mutex_unlock(&speller->mutex);
    return spelling;
}

int64_t stack_speller_cpu_ns(const struct stack_speller *speller)
{
    return atomic_load(&speller->cpu_ns);
}

size_t stack_speller_bytes(const struct stack_speller *speller)
{
    return atomic_load(&speller->bytes);
}
