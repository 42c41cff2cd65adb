/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/listing_pool.h"

#include "base/clock.h"
#include "base/own_thread.h"
#include "code/disassembler.h"
#include "code/disassembly.h"
#include "format/json.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { threads_max = 8, tool_limit_ms = 20000 };
#define LISTING_BYTES_MAX ((size_t)8 << 20)
#define SESSION_BYTES_MAX ((uint64_t)64 << 20)

static const char full_reason[] = "the session has 64 MiB of it";

struct listing_pool {
    struct listing_pool_options options;
    struct listing_request *requests; /* borrowed; outcomes guarded by the mutex */
    size_t count;
    pthread_mutex_t mutex;
    size_t next, done;   /* guarded by the mutex; the first request not yet started, and the number of finished ones */
    uint64_t made_bytes; /* guarded by the mutex */
    atomic_bool is_stopped;
    int stop_fd, done_fd; /* owned; signalled when the pool stops, and for every outcome */
    pthread_t threads[threads_max];
    unsigned thread_count;
};

static int printed_compare(const void *left, const void *right)
{
    const struct listing_request *a = *(struct listing_request *const *)left;
    const struct listing_request *b = *(struct listing_request *const *)right;
    if (a->printed != b->printed)
        return a->printed < b->printed ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Links the functions of each print in order, and counts the prints. */
static gpufl_status prints_make(struct listing_request *requests, size_t count, size_t *prints, struct problem *problem)
{
    struct listing_request **sorted = malloc((count ? count : 1) * sizeof *sorted);
    if (!sorted)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %zu functions", count);
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++) {
        if (requests[i].outcome.state != LISTING_WANTED)
            continue;
        requests[i].printed = disassembly_printed(requests[i].image, requests[i].function);
        sorted[wanted++] = &requests[i];
    }
    qsort(sorted, wanted, sizeof(struct listing_request *), printed_compare);
    *prints = wanted ? 1 : 0;
    for (size_t i = 1; i < wanted; i++) {
        sorted[i]->is_follower = sorted[i]->printed == sorted[i - 1]->printed;
        if (sorted[i]->is_follower)
            sorted[i - 1]->follower = sorted[i];
        else
            ++*prints;
    }
    free(sorted);
    return GPUFL_OK;
}

static void record_write(struct bytes *line, const char *session_id, const struct listing_request *request,
                         const struct disassembly *disassembly)
{
    enum image_vendor vendor = request->image->vendor;
    bytes_append_text(line, "{\"version\":1,\"type\":\"cubin_disassembly\"");
    json_key(line, "session_id");
    json_text(line, session_id);
    json_key(line, "cubin_crc");
    json_uint(line, request->cubin_crc);
    json_key(line, "function_name");
    json_text(line, request->symbol);
    json_key(line, "tool");
    json_text(line, disassembler_name(vendor));
    json_key(line, "entries");
    bytes_append_char(line, '[');
    bool is_first = true;
    for (size_t i = 0; i < disassembly->count; i++) {
        const struct instruction *instruction = &disassembly->instructions[i];
        if (!instruction->text)
            continue;
        if (!is_first)
            bytes_append_char(line, ',');
        is_first = false;
        bytes_append_char(line, '{');
        json_key(line, "pc");
        json_uint(line, instruction->pc);
        json_key(line, "sass");
        json_text(line, instruction->text);
        if (vendor == IMAGE_AMD) {
            json_key(line, "bytes");
            json_uint(line, instruction->size);
        }
        bytes_append_char(line, '}');
    }
    bytes_append_char(line, ']');
}

static struct listing_outcome outcome_failed(const struct problem *why)
{
    struct listing_outcome outcome = {.state = LISTING_FAILED};
    bytes_append_text(&outcome.text, why->text);
    outcome.reason = bytes_text(&outcome.text);
    return outcome;
}

static struct listing_outcome outcome_make(const struct listing_pool *pool, const struct listing_request *request,
                                           const struct bytes *print)
{
    struct disassembly disassembly;
    struct problem why = {""};
    gpufl_status status = disassembly_parse(&disassembly, request->image, request->function, print, &why);
    if (status || !disassembly.text_count) {
        if (!status)
            disassembly_free(&disassembly);
        return outcome_failed(&why);
    }
    struct listing_outcome outcome = {.state = LISTING_MADE, .text = {.limit = LISTING_BYTES_MAX}};
    record_write(&outcome.text, pool->options.session_id, request, &disassembly);
    disassembly_free(&disassembly);
    if (outcome.text.failed) {
        bytes_free(&outcome.text);
        outcome = (struct listing_outcome){.state = LISTING_LEFT, .reason = "a function of more than 8 MiB of text"};
    }
    return outcome;
}

/* Why no further tool may run; NULL: it may. */
static const char *end_reason(const struct listing_pool *pool)
{
    if (atomic_load(&pool->is_stopped))
        return "interrupted";
    return clock_mono_ns() >= pool->options.deadline_ns ? "the time was over" : NULL;
}

static bool is_full(struct listing_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    bool is_it = pool->made_bytes >= SESSION_BYTES_MAX;
    pthread_mutex_unlock(&pool->mutex);
    return is_it;
}

static void request_finish(struct listing_pool *pool, struct listing_request *request, struct listing_outcome outcome)
{
    pthread_mutex_lock(&pool->mutex);
    if (outcome.state == LISTING_MADE && pool->made_bytes >= SESSION_BYTES_MAX) {
        bytes_free(&outcome.text);
        outcome = (struct listing_outcome){.state = LISTING_LEFT, .reason = full_reason};
    }
    request->outcome = outcome;
    pool->made_bytes += outcome.state == LISTING_MADE ? outcome.text.size : 0;
    pool->done++;
    pthread_mutex_unlock(&pool->mutex);
    (void)eventfd_write(pool->done_fd, 1);
}

/* Runs the tool, and makes the records of all requests that share this print. */
static void print_run(struct listing_pool *pool, struct listing_request *first)
{
    struct bytes print = {0};
    struct problem why = {""};
    const char *reason = end_reason(pool);
    bool is_printed = false;
    if (!reason && !is_full(pool)) {
        int64_t left_ms = (pool->options.deadline_ns - clock_mono_ns()) / 1000000 + 1;
        const struct disassembly_options options = {
            .tool = first->tool,
            .time_limit_ms = left_ms < tool_limit_ms ? (unsigned)(left_ms > 1 ? left_ms : 1) : tool_limit_ms,
            .stop_fd = &pool->stop_fd,
        };
        is_printed = disassembly_print(&print, first->image, first->printed, &options, &why) == GPUFL_OK;
        reason = is_printed ? NULL : end_reason(pool);
    }
    for (struct listing_request *request = first; request; request = request->follower) {
        struct listing_outcome outcome = {.state = LISTING_LEFT, .reason = reason};
        if (!reason && is_full(pool))
            outcome.reason = full_reason;
        else if (!reason)
            outcome = is_printed ? outcome_make(pool, request, &print) : outcome_failed(&why);
        request_finish(pool, request, outcome);
    }
    bytes_free(&print);
}

/* The first function of the next print; NULL: none left. */
static struct listing_request *print_take(struct listing_pool *pool)
{
    struct listing_request *taken = NULL;
    pthread_mutex_lock(&pool->mutex);
    while (!taken && pool->next < pool->count) {
        struct listing_request *request = &pool->requests[pool->next++];
        if (!request->is_follower && request->outcome.state == LISTING_WANTED)
            taken = request;
    }
    pthread_mutex_unlock(&pool->mutex);
    return taken;
}

static void *thread_run(void *argument)
{
    struct listing_pool *pool = argument;
    for (struct listing_request *first; (first = print_take(pool));)
        print_run(pool, first);
    return NULL;
}

static unsigned threads_wanted(unsigned asked, size_t prints)
{
    cpu_set_t cores;
    unsigned count = asked;
    if (!count)
        count = sched_getaffinity(0, sizeof cores, &cores) ? threads_max : (unsigned)CPU_COUNT(&cores);
    count = count < threads_max ? count : threads_max;
    return count < prints ? count : (unsigned)prints;
}

/* False: no thread could be started. */
static bool threads_start(struct listing_pool *pool, unsigned count)
{
    while (pool->thread_count < count && own_thread_start(&pool->threads[pool->thread_count], "gpufl-listing",
                                                          OWN_THREAD_STACK_LARGE, thread_run, pool))
        pool->thread_count++;
    return pool->thread_count || !count;
}

gpufl_status listing_pool_start(struct listing_pool **out, struct listing_request *requests, size_t count,
                                const struct listing_pool_options *options, struct problem *problem)
{
    size_t prints = 0;
    gpufl_status status = prints_make(requests, count, &prints, problem);
    if (status)
        return status;
    struct listing_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to read code");
    *pool = (struct listing_pool){.options = *options, .requests = requests, .count = count};
    for (size_t i = 0; i < count; i++)
        pool->done += requests[i].outcome.state != LISTING_WANTED;
    pthread_mutex_init(&pool->mutex, NULL);
    pool->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pool->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pool->stop_fd < 0 || pool->done_fd < 0 || !threads_start(pool, threads_wanted(options->threads, prints))) {
        status = problem_set(problem, GPUFL_E_LIMIT, "no thread or file descriptor is left to run disassemblers with");
        listing_pool_end(pool);
        return status;
    }
    *out = pool;
    return GPUFL_OK;
}

static void pool_stop(struct listing_pool *pool)
{
    atomic_store(&pool->is_stopped, true);
    (void)eventfd_write(pool->stop_fd, 1);
}

struct listing_outcome *listing_pool_take(struct listing_pool *pool, size_t index)
{
    struct listing_outcome *outcome = &pool->requests[index].outcome;
    for (;;) {
        pthread_mutex_lock(&pool->mutex);
        bool is_done = outcome->state != LISTING_WANTED;
        size_t done = pool->done;
        pthread_mutex_unlock(&pool->mutex);
        if (pool->options.on_progress)
            pool->options.on_progress(pool->options.user, done, pool->count);
        if (is_done)
            return outcome;
        bool may_stop = pool->options.stop_fd && !atomic_load(&pool->is_stopped);
        struct pollfd ready[] = {{.fd = pool->done_fd, .events = POLLIN},
                                 {.fd = may_stop ? *pool->options.stop_fd : -1, .events = POLLIN}};
        eventfd_t outcomes;
        if (poll(ready, 2, -1) <= 0)
            continue;
        if (ready[0].revents)
            (void)eventfd_read(pool->done_fd, &outcomes);
        if (ready[1].revents)
            pool_stop(pool);
    }
}

void listing_pool_end(struct listing_pool *pool)
{
    if (!pool)
        return;
    pool_stop(pool);
    for (unsigned i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    for (size_t i = 0; i < pool->count; i++)
        bytes_free(&pool->requests[i].outcome.text);
    if (pool->stop_fd >= 0)
        close(pool->stop_fd);
    if (pool->done_fd >= 0)
        close(pool->done_fd);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}
