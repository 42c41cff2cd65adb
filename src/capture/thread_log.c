/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/thread_log_own.h"

#include "base/current_thread.h"
#include "base/user_time.h"
#include "capture/task_scopes.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Thread_local struct thread_log *thread_log_own __attribute__((tls_model("initial-exec")));
struct thread_log_state thread_log_state;
/* When the thread was refused a ring: the number of rings returned so far, plus one. 0: it was not refused. */
static _Thread_local uint32_t refused_at __attribute__((tls_model("initial-exec")));

static struct {
    pthread_mutex_t mutex; /* registration and recycling only */
    pthread_key_t exit_key;
    bool is_set_up;
    struct thread_log *logs[THREAD_LOG_COUNT_MAX];
    struct log_pile {
        struct thread_log *logs[THREAD_LOG_COUNT_MAX];
        uint32_t count;
    } free_large, free_small;
    uint32_t log_count, made_count;
    _Atomic uint32_t given_back;  /* rings of exited threads so far */
    _Atomic uint32_t stack_epoch; /* stacks that were sent before this epoch are sent again with their frames */
} registry = {.mutex = PTHREAD_MUTEX_INITIALIZER};

enum { sent_bytes = STACK_SENT_SLOTS * sizeof(uint64_t) };

/* Ends the scopes that the thread left open. Space for their ends was reserved, so this record fits. */
static void end_open_scopes(struct thread_log *log)
{
    uint32_t epoch = atomic_load_explicit(&thread_log_state.epoch, memory_order_acquire);
    struct ring_record *record =
        log->depth && log->epoch == epoch ? ring_reserve(&log->ring, sizeof(struct thread_event), 0) : NULL;
    if (!record)
        return;
    record->kind = THREAD_EXIT;
    ((struct thread_event *)record)->ticks = clock_ticks();
    ring_commit(&log->ring, record);
}

static void on_thread_exit(void *argument)
{
    struct thread_log *log = argument;
    thread_log_own = NULL;
    end_open_scopes(log);
    atomic_store_explicit(&log->is_exited, 1, memory_order_release);
}

gpufl_status thread_logs_setup(void (*wake)(void))
{
    pthread_mutex_lock(&registry.mutex);
    atomic_store_explicit(&thread_log_state.wake, wake, memory_order_release);
    if (!registry.is_set_up)
        registry.is_set_up = pthread_key_create(&registry.exit_key, on_thread_exit) == 0;
    bool is_good = registry.is_set_up;
    pthread_mutex_unlock(&registry.mutex);
    return is_good ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

void thread_logs_start(void)
{
    atomic_fetch_add(&thread_log_state.epoch, 1);
    thread_logs_resend_stacks();
}

void thread_logs_resend_stacks(void)
{
    atomic_fetch_add(&registry.stack_epoch, 1);
}

static size_t ring_bytes(uint32_t number)
{
    return number < THREAD_LOG_LARGE_MAX ? THREAD_LOG_BYTES : THREAD_LOG_SMALL_BYTES;
}

static size_t stack_ring_bytes(uint32_t number)
{
    return number < THREAD_LOG_LARGE_MAX ? STACK_LOG_BYTES : STACK_LOG_SMALL_BYTES;
}

static struct thread_log *log_make(uint32_t number)
{
    size_t size = sizeof(struct thread_log) + ring_bytes(number);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    struct thread_log *log = memory;
    log->number = number;
    log->ring.data = (uint8_t *)memory + sizeof *log;
    log->ring.capacity = ring_bytes(number);
    return log;
}

/* Call with the mutex held. Returns a large ring if one is left. */
static struct thread_log *log_take(void)
{
    struct log_pile *large = &registry.free_large, *small = &registry.free_small;
    if (large->count)
        return large->logs[--large->count];
    if (small->count && registry.made_count >= THREAD_LOG_LARGE_MAX)
        return small->logs[--small->count];
    struct thread_log *log = registry.made_count < THREAD_LOG_COUNT_MAX ? log_make(registry.made_count) : NULL;
    registry.made_count += log != NULL;
    return log;
}

/* Call with the mutex held. */
static void log_give_back(struct thread_log *log)
{
    struct log_pile *pile = log->number < THREAD_LOG_LARGE_MAX ? &registry.free_large : &registry.free_small;
    pile->logs[pile->count++] = log;
    atomic_fetch_add_explicit(&registry.given_back, 1, memory_order_release);
}

struct thread_log *thread_log_register(void)
{
    uint32_t given_back = atomic_load_explicit(&registry.given_back, memory_order_acquire);
    if (refused_at == given_back + 1)
        return NULL; /* nothing has changed since */
    pthread_mutex_lock(&registry.mutex);
    struct thread_log *log = registry.is_set_up ? log_take() : NULL;
    if (log) {
        log->thread_id = current_thread_id();
        log->pthread_low = (uint32_t)(uintptr_t)pthread_self();
        log->epoch = 0; /* no session */
        atomic_store(&log->is_exited, 0);
        registry.logs[registry.log_count++] = log;
        pthread_setspecific(registry.exit_key, log);
    }
    pthread_mutex_unlock(&registry.mutex);
    refused_at = log ? 0 : given_back + 1;
    thread_log_own = log;
    return log;
}

/* Never 0, which is a free slot. Each step is reversible, so stacks that differ in one frame never collide. */
static uint64_t hash_of(const uint64_t *frames, uint32_t frame_count)
{
    uint64_t hash = frame_count;
    for (uint32_t i = 0; i < frame_count; i++) {
        hash = (hash ^ frames[i]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 32;
    }
    return hash ? hash : 1;
}

/* For the thread's first stack; stays with the log. */
static bool stacks_map(struct thread_log *log)
{
    size_t ring_size = stack_ring_bytes(log->number);
    void *memory = mmap(NULL, sent_bytes + ring_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    log->sent_hashes = memory;
    log->stacks.data = (uint8_t *)memory + sent_bytes;
    log->stacks.capacity = ring_size;
    return true;
}

/* The slot of a stack in the table of stacks already sent. */
static uint64_t *sent_slot(struct thread_log *log, uint64_t hash)
{
    uint32_t epoch = atomic_load_explicit(&registry.stack_epoch, memory_order_relaxed);
    if (__builtin_expect(log->sent_epoch != epoch, 0)) {
        memset(log->sent_hashes, 0, sent_bytes);
        log->sent_epoch = epoch;
    }
    return &log->sent_hashes[hash & (STACK_SENT_SLOTS - 1)];
}

void thread_log_stack(uint32_t correlation_id, const uint64_t *frames, uint32_t frame_count)
{
    struct thread_log *log = log_of_thread(THREAD_LOSS_STACK);
    if (!log)
        return;
    if (frame_count > STACK_FRAMES_MAX)
        frame_count = STACK_FRAMES_MAX;
    uint64_t hash = hash_of(frames, frame_count), *sent = NULL;
    struct ring_record *record = NULL;
    if (__builtin_expect(log->stacks.data || stacks_map(log), 1)) {
        sent = sent_slot(log, hash);
        if (*sent == hash)
            frame_count = 0;
        record = ring_reserve(&log->stacks, sizeof(struct stack_event) + frame_count * sizeof(uint64_t), 0);
    }
    if (!record) {
        atomic_fetch_add_explicit(&log->lost_stacks, 1, memory_order_relaxed);
        return;
    }
    record->kind = THREAD_CALL_STACK;
    struct stack_event *event = (struct stack_event *)record;
    event->correlation_id = correlation_id;
    event->frame_count = frame_count;
    event->hash = hash;
    memcpy(event->frames, frames, frame_count * sizeof *frames);
    *sent = hash;
    commit(&log->stacks, &log->stack_alarm_tail, record);
}

void thread_log_launch(const char *symbol, uint32_t correlation_id, uint32_t context_id, uint32_t window_id)
{
    task_scopes_check();
    struct thread_log *log = log_of_thread(THREAD_LOSS_LAUNCH);
    if (!log)
        return;
    size_t symbol_size = symbol ? strnlen(symbol, SCOPE_TEXT_BYTES_MAX) : 0;
    struct ring_record *record =
        ring_reserve(&log->ring, sizeof(struct launch_event) + symbol_size, (size_t)(log->depth + 1) * SCOPE_END_BYTES);
    if (!record) {
        atomic_fetch_add_explicit(&log->lost_launches, 1, memory_order_relaxed);
        return;
    }
    record->kind = THREAD_LAUNCH;
    struct launch_event *event = (struct launch_event *)record;
    event->event.ticks = clock_ticks();
    event->correlation_id = correlation_id;
    event->context_id = context_id;
    event->window_id = window_id;
    event->is_scope_lost = log->dropped_depth > 0;
    event->symbol_size = (uint32_t)symbol_size;
    memcpy(event->symbol, symbol_size ? symbol : "", symbol_size);
    log_commit(log, record);
}

void thread_log_call(const struct user_call *call, uint64_t start_ticks)
{
    task_scopes_check();
    struct thread_log *log = log_of_thread(THREAD_LOSS_CALL);
    if (!log)
        return;
    bool is_plain = !call->wait_type && !call->external_kind;
    /* Calls are frequent: a quarter of the ring is reserved for scopes. */
    struct ring_record *record =
        ring_reserve(&log->ring, is_plain ? sizeof(struct call_event) : sizeof(struct wait_event),
                     log->ring.capacity / 4 + (size_t)(log->depth + 1) * SCOPE_END_BYTES);
    if (!record) {
        atomic_fetch_add_explicit(&log->lost_calls, 1, memory_order_relaxed);
        return;
    }
    record->kind = is_plain ? THREAD_CALL : THREAD_WAIT;
    struct call_event *event = (struct call_event *)record;
    event->event.ticks = start_ticks;
    event->end_ticks = clock_ticks();
    event->correlation_id = call->correlation_id;
    event->has_kernel = call->has_kernel;
    event->state = (uint8_t)call_state_now();
    event->is_scope_lost = log->dropped_depth > 0;
    if (!is_plain)
        ((struct wait_event *)record)->user = *call;
    log_commit(log, record);
}

void thread_logs_visit(void (*fn)(void *user, struct thread_log *log), void *user)
{
    struct thread_log *logs[THREAD_LOG_COUNT_MAX];
    pthread_mutex_lock(&registry.mutex);
    uint32_t count = registry.log_count;
    memcpy(logs, registry.logs, count * sizeof *logs);
    pthread_mutex_unlock(&registry.mutex);
    for (uint32_t i = 0; i < count; i++) {
        int is_exited = atomic_load_explicit(&logs[i]->is_exited, memory_order_acquire);
        fn(user, logs[i]);
        if (!is_exited || ring_peek(&logs[i]->ring) || ring_peek(&logs[i]->stacks))
            continue;
        pthread_mutex_lock(&registry.mutex);
        for (uint32_t j = 0; j < registry.log_count; j++)
            if (registry.logs[j] == logs[i]) {
                registry.logs[j] = registry.logs[--registry.log_count];
                log_give_back(logs[i]);
                break;
            }
        pthread_mutex_unlock(&registry.mutex);
    }
}

struct thread_log *thread_logs_find(uint32_t number)
{
    struct thread_log *found = NULL;
    pthread_mutex_lock(&registry.mutex);
    for (uint32_t i = 0; i < registry.log_count && !found; i++)
        if (registry.logs[i]->number == number)
            found = registry.logs[i];
    pthread_mutex_unlock(&registry.mutex);
    return found;
}

bool thread_logs_is_token(uint64_t token)
{
    return token && token_epoch(token) == token_epoch_now();
}

uint64_t thread_logs_refused(enum thread_loss loss)
{
    return atomic_load(&thread_log_state.refused[loss]);
}

void thread_logs_forget(void)
{
    /* The parent's rings stay mapped in the child: other threads' memory is not ours to unmap, and exec usually
     * follows. */
    pthread_mutex_init(&registry.mutex, NULL);
    registry.log_count = registry.free_large.count = registry.free_small.count = registry.made_count = 0;
    thread_log_own = NULL;
    refused_at = 0;
    if (registry.is_set_up)
        pthread_setspecific(registry.exit_key, NULL);
}

static size_t stack_memory_bytes(struct thread_log *const *logs, uint32_t count)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load_explicit(&logs[i]->stacks.head, memory_order_relaxed))
            bytes += sent_bytes + stack_ring_bytes(logs[i]->number);
    return bytes;
}

size_t thread_logs_bytes(void)
{
    pthread_mutex_lock(&registry.mutex);
    size_t bytes = stack_memory_bytes(registry.logs, registry.log_count) +
                   stack_memory_bytes(registry.free_large.logs, registry.free_large.count) +
                   stack_memory_bytes(registry.free_small.logs, registry.free_small.count);
    for (uint32_t number = 0; number < registry.made_count; number++)
        bytes += sizeof(struct thread_log) + ring_bytes(number);
    pthread_mutex_unlock(&registry.mutex);
    return bytes;
}
