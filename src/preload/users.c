/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/users.h"

#include "base/timed_lock.h"
#include "preload/wrapped.h"
#include "sdk/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    attributes_max = 32,
    turn_wait_s = 4,
    quiet_s = 5,
    resource_context_created = 1,
    resource_context_destroying = 2
};

struct attribute {
    size_t size; /* 0: not set */
    uint64_t value;
};

struct callback_id {
    uint32_t domain, cbid;
};

/* Held while the use begins or ends, which calls CUPTI and gpufl; never while the program's functions are called. */
static pthread_mutex_t turn_mutex = PTHREAD_MUTEX_INITIALIZER;
/* Guards what follows; nothing is called with it held. */
static pthread_mutex_t state_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool is_on;
    const struct preload_listener *listener;
    char profiler[64];
    struct attribute attributes[attributes_max]; /* as set by the program while gpufl used CUPTI */
    cupti_abi_timestamp_fn *now;                 /* NULL: CUPTI's own clock */
    uint64_t kinds;
    int others;
    /* Records that CUPTI holds of kinds that were disabled since arrive with the next flush: Kineto disables, does
     * other work, and flushes. */
    bool needs_flush;
    int64_t last_call_s; /* when the program last called CUPTI */
    bool has_subscription;
    cupti_abi_callback_fn *callback;
    void *user, *real; /* real: CUPTI's handle, NULL while it is deferred */
    struct callback_id enabled[SUBSCRIPTION_CALLBACKS_MAX];
    unsigned enabled_count, quiet_count; /* quiet: callbacks among them that do not count as a use */
} users;
/* The listener for the process's exit, and the id of its process; 0: none. */
static _Atomic(void (*)(void)) exit_listener;
static atomic_int listening_pid;
static _Atomic(cupti_abi_buffer_request_fn *) client_request;
static _Atomic(cupti_abi_buffer_complete_fn *) client_complete;
static atomic_int buffers_out; /* the program's buffers that CUPTI holds */

static void on_fork_in_child(void)
{
    pthread_mutex_init(&turn_mutex, NULL);
    pthread_mutex_init(&state_mutex, NULL);
    users.is_on = false; /* CUPTI must be finalized first here, which ends all of it */
    users.kinds = 0;
    users.others = 0;
    users.real = NULL;
    atomic_store(&buffers_out, 0);
}

static void attend_forks(void)
{
    pthread_atfork(NULL, NULL, on_fork_in_child);
}

static int64_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static bool turn_lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, attend_forks);
    return mutex_lock_in_time(&turn_mutex, turn_wait_s * INT64_C(1000000000));
}

static bool is_kineto(const char *file)
{
    return strstr(file, "libtorch") || strstr(file, "kineto");
}

static const char *caller_file(const void *caller)
{
    Dl_info info;
    const char *path = dladdr(caller, &info) && info.dli_fname ? info.dli_fname : "another profiler";
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Identified by the library that calls CUPTI. */
static const char *profiler_name(const void *caller)
{
    const char *file = caller_file(caller);
    if (is_kineto(file))
        return "torch.profiler";
    if (strstr(file, "xla") || strstr(file, "jax"))
        return "JAX's profiler";
    if (strstr(file, "proton"))
        return "Proton";
    return file;
}

static void on_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    cupti_abi_buffer_request_fn *request = atomic_load(&client_request);
    *buffer = NULL;
    *size = 0;
    if (request)
        request(buffer, size, max_records);
    if (*buffer)
        atomic_fetch_add(&buffers_out, 1);
}

static void on_complete(void *context, uint32_t stream_id, uint8_t *buffer, size_t size, size_t valid)
{
    cupti_abi_buffer_complete_fn *complete = atomic_load(&client_complete);
    if (complete)
        complete(context, stream_id, buffer, size, valid);
    if (buffer)
        atomic_fetch_sub(&buffers_out, 1);
}

static int enable_real(void *real, const struct callback_id *id, uint32_t is_on)
{
    return id->cbid == SUBSCRIPTION_ALL ? REAL(cuptiEnableDomain)(is_on, real, id->domain)
                                        : REAL(cuptiEnableCallback)(is_on, real, id->domain, id->cbid);
}

/* Repeats what the program requested before CUPTI was available. */
static int catch_up(void)
{
    int result = CUPTI_ABI_SUCCESS;
    void *real = NULL;
    if (users.has_subscription && !users.real) {
        result = REAL(cuptiSubscribe)(&real, users.callback, users.user);
        if (result != CUPTI_ABI_SUCCESS)
            return result;
        users.real = real;
        for (unsigned i = 0; i < users.enabled_count; i++)
            (void)enable_real(real, &users.enabled[i], 1);
    }
    for (uint32_t i = 0; i < attributes_max; i++)
        if (users.attributes[i].size)
            (void)REAL(cuptiActivitySetAttribute)(i, &users.attributes[i].size, &users.attributes[i].value);
    if (users.now && REAL(cuptiActivityRegisterTimestampCallback))
        (void)REAL(cuptiActivityRegisterTimestampCallback)(users.now);
    if (atomic_load(&client_request))
        result = REAL(cuptiActivityRegisterCallbacks)(on_request, on_complete);
    return result;
}

bool use_is_on(void)
{
    pthread_mutex_lock(&state_mutex);
    bool is_on = users.is_on;
    pthread_mutex_unlock(&state_mutex);
    return is_on;
}

int use_begin(const void *caller)
{
    if (use_is_on() || !turn_lock())
        return CUPTI_ABI_SUCCESS;
    int result = CUPTI_ABI_SUCCESS;
    if (!use_is_on()) {
        pthread_mutex_lock(&state_mutex);
        snprintf(users.profiler, sizeof users.profiler, "%s", profiler_name(caller));
        const struct preload_listener *listener = users.listener;
        pthread_mutex_unlock(&state_mutex);
        if (listener)
            listener->on_begin(users.profiler);
        result = catch_up();
        pthread_mutex_lock(&state_mutex);
        users.is_on = true;
        pthread_mutex_unlock(&state_mutex);
    }
    pthread_mutex_unlock(&turn_mutex);
    return result;
}

/* Nothing is enabled, and the program has its records or does not need them. */
static bool is_idle(void)
{
    pthread_mutex_lock(&state_mutex);
    bool is_off = users.is_on && !users.kinds && users.others <= 0 && users.enabled_count == users.quiet_count;
    bool has_records = !users.needs_flush && atomic_load(&buffers_out) <= 0;
    bool is_idle = is_off && (has_records || now_s() - users.last_call_s >= quiet_s);
    pthread_mutex_unlock(&state_mutex);
    return is_idle;
}

/* Call with turn_mutex held. */
static void drop_use(void)
{
    pthread_mutex_lock(&state_mutex);
    void *real = users.real;
    users.real = NULL;
    users.is_on = users.needs_flush = false;
    pthread_mutex_unlock(&state_mutex);
    if (real)
        (void)REAL(cuptiUnsubscribe)(real);
}

void use_end(void)
{
    pthread_mutex_lock(&state_mutex);
    users.last_call_s = now_s();
    pthread_mutex_unlock(&state_mutex);
    if (!is_idle() || pthread_mutex_trylock(&turn_mutex) != 0)
        return; /* the holder of the mutex checks again */
    const struct preload_listener *listener = NULL;
    if (is_idle()) {
        drop_use();
        listener = users.listener;
    }
    if (listener)
        listener->on_end();
    pthread_mutex_unlock(&turn_mutex);
}

void use_note_flush(void)
{
    pthread_mutex_lock(&state_mutex);
    if (!users.kinds)
        users.needs_flush = false;
    pthread_mutex_unlock(&state_mutex);
}

GPUFL_PRELOAD_API preload_poll_fn gpufl_preload_poll;
bool gpufl_preload_poll(void)
{
    if (!is_idle() || pthread_mutex_trylock(&turn_mutex) != 0)
        return false;
    bool is_over = is_idle();
    if (is_over)
        drop_use();
    pthread_mutex_unlock(&turn_mutex);
    return is_over;
}

void use_note_kind(uint32_t kind, bool is_on)
{
    pthread_mutex_lock(&state_mutex);
    if (is_on)
        users.needs_flush = true;
    if (kind < 64 && is_on)
        users.kinds |= 1ull << kind;
    else if (kind < 64)
        users.kinds &= ~(1ull << kind);
    pthread_mutex_unlock(&state_mutex);
}

void use_note_other(int change)
{
    pthread_mutex_lock(&state_mutex);
    users.others += change;
    if (users.others < 0)
        users.others = 0;
    pthread_mutex_unlock(&state_mutex);
}

void use_forget(void)
{
    pthread_mutex_lock(&state_mutex);
    users.kinds = 0;
    users.others = 0;
    users.needs_flush = false;
    users.real = NULL;
    users.has_subscription = false;
    users.enabled_count = users.quiet_count = 0;
    atomic_store(&client_request, NULL);
    atomic_store(&buffers_out, 0);
    pthread_mutex_unlock(&state_mutex);
}

int buffers_register(cupti_abi_buffer_request_fn *request, cupti_abi_buffer_complete_fn *complete)
{
    if (!request || !complete)
        return CUPTI_ABI_INVALID_PARAMETER;
    atomic_store(&client_complete, complete);
    atomic_store(&client_request, request);
    return use_is_on() ? REAL(cuptiActivityRegisterCallbacks)(on_request, on_complete) : CUPTI_ABI_SUCCESS;
}

int attribute_put_off(uint32_t attribute, const size_t *size, const void *value)
{
    if (attribute >= attributes_max || !size || !value || !*size || *size > sizeof(uint64_t))
        return CUPTI_ABI_INVALID_PARAMETER;
    pthread_mutex_lock(&state_mutex);
    users.attributes[attribute] = (struct attribute){.size = *size};
    memcpy(&users.attributes[attribute].value, value, *size);
    pthread_mutex_unlock(&state_mutex);
    return CUPTI_ABI_SUCCESS;
}

void clock_put_off(cupti_abi_timestamp_fn *now)
{
    pthread_mutex_lock(&state_mutex);
    users.now = now;
    pthread_mutex_unlock(&state_mutex);
}

bool subscription_is(const void *handle)
{
    return handle == &users;
}

int subscription_open(void **handle, cupti_abi_callback_fn *callback, void *user)
{
    if (!handle || !callback)
        return CUPTI_ABI_INVALID_PARAMETER;
    pthread_mutex_lock(&state_mutex);
    bool is_taken = users.has_subscription;
    if (!is_taken) {
        users.has_subscription = true;
        users.callback = callback;
        users.user = user;
        *handle = &users;
    }
    bool is_on = users.is_on;
    pthread_mutex_unlock(&state_mutex);
    if (is_taken)
        return CUPTI_ABI_MULTIPLE_SUBSCRIBERS;
    return is_on ? catch_up() : CUPTI_ABI_SUCCESS;
}

int subscription_close(void)
{
    pthread_mutex_lock(&state_mutex);
    void *real = users.real;
    users.real = NULL;
    users.has_subscription = false;
    users.enabled_count = users.quiet_count = 0;
    if (!users.kinds) { /* records it left in CUPTI are not awaited */
        atomic_store(&buffers_out, 0);
        users.needs_flush = false;
    }
    pthread_mutex_unlock(&state_mutex);
    return real ? REAL(cuptiUnsubscribe)(real) : CUPTI_ABI_SUCCESS;
}

/* Call with state_mutex held; enabled_count: not found. */
static unsigned find(uint32_t domain, uint32_t cbid)
{
    unsigned i = 0;
    while (i < users.enabled_count && (users.enabled[i].domain != domain || users.enabled[i].cbid != cbid))
        i++;
    return i;
}

/* Kineto subscribes to context creation and destruction as soon as it is loaded, and only uses it while it profiles. */
static bool is_quiet(const struct callback_id *id)
{
    return id->domain == CUPTI_ABI_DOMAIN_RESOURCE &&
           (id->cbid == resource_context_created || id->cbid == resource_context_destroying);
}

static void remember(const struct callback_id *id, bool is_on, bool is_of_kineto)
{
    pthread_mutex_lock(&state_mutex);
    unsigned at = find(id->domain, id->cbid);
    bool is_known = at < users.enabled_count;
    int quiet = is_of_kineto && is_quiet(id);
    if (is_on && !is_known && users.enabled_count < SUBSCRIPTION_CALLBACKS_MAX) {
        users.enabled[users.enabled_count++] = *id;
        users.quiet_count += (unsigned)quiet;
    } else if (!is_on && is_known) {
        users.enabled[at] = users.enabled[--users.enabled_count];
        users.quiet_count -= (unsigned)quiet;
    }
    pthread_mutex_unlock(&state_mutex);
}

int subscription_enable(uint32_t domain, uint32_t cbid, bool is_on, const void *caller)
{
    const struct callback_id id = {domain, cbid};
    bool is_of_kineto = is_kineto(caller_file(caller));
    remember(&id, is_on, is_of_kineto);
    int result = CUPTI_ABI_SUCCESS;
    bool is_begin = is_on && !(is_of_kineto && is_quiet(&id)) && !use_is_on();
    if (is_begin)
        return use_begin(caller); /* also enables it */
    pthread_mutex_lock(&state_mutex);
    void *real = users.real;
    pthread_mutex_unlock(&state_mutex);
    if (real)
        result = enable_real(real, &id, is_on);
    if (!is_on)
        use_end();
    return result;
}

bool subscription_is_enabled(uint32_t domain, uint32_t cbid)
{
    pthread_mutex_lock(&state_mutex);
    bool is_enabled = find(domain, cbid) < users.enabled_count || find(domain, SUBSCRIPTION_ALL) < users.enabled_count;
    pthread_mutex_unlock(&state_mutex);
    return is_enabled;
}

void use_exit(void)
{
    int own = getpid();
    if (own && atomic_compare_exchange_strong(&listening_pid, &own, 0))
        atomic_load (&exit_listener)();
}

GPUFL_PRELOAD_API void gpufl_preload_listen(const struct preload_listener *listener);
void gpufl_preload_listen(const struct preload_listener *listener)
{
    if (!turn_lock())
        return;
    pthread_mutex_lock(&state_mutex);
    bool is_new = !users.listener && users.is_on;
    users.listener = listener;
    pthread_mutex_unlock(&state_mutex);
    atomic_store(&exit_listener, listener->on_exit);
    atomic_store(&listening_pid, getpid());
    if (is_new)
        listener->on_begin(users.profiler);
    pthread_mutex_unlock(&turn_mutex);
}
