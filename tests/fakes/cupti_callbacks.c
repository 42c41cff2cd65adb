/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti_callbacks.h"

#include "cupti_records.h"
#include "faults.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DOMAIN_COUNT = 4 };
struct resource_data { /* CUpti_ResourceData */
    void *context, *stream, *descriptor;
};
struct subscriber {
    cupti_abi_callback_fn *callback;
    void *user;
    char name[CUPTI_ABI_OTHER_NAME_BYTES];
};
static struct subscriber subscriber; /* its address is the handle */
static pthread_mutex_t subscriber_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool has_subscriber;
static atomic_uint calls_running; /* callbacks under way, which unsubscribing waits for */
static _Thread_local unsigned calls_running_here;
/* In a child forked from a process that is subscribed: the subscription is inherited, so that another is refused (39);
 * after unsubscribing, subscribing hangs; cuptiFinalize makes a fresh start (H200, CUPTI 13.0, 2026-11-16). */
static atomic_int subscriber_pid;
static atomic_bool is_orphaned; /* unsubscribed, in such a child */
static atomic_ullong wanted[DOMAIN_COUNT][CALL_ID_LIMIT / 64];

static bool is_wanted(uint32_t domain, uint32_t cbid)
{
    return domain < DOMAIN_COUNT && cbid < CALL_ID_LIMIT &&
           ((atomic_load_explicit(&wanted[domain][cbid / 64], memory_order_relaxed) >> (cbid % 64)) & 1) != 0;
}

static void subscriber_call(uint32_t domain, uint32_t cbid, const void *data)
{
    atomic_fetch_add(&calls_running, 1);
    calls_running_here++;
    if (atomic_load(&has_subscriber))
        subscriber.callback(subscriber.user, domain, cbid, data);
    calls_running_here--;
    atomic_fetch_sub(&calls_running, 1);
}

bool callbacks_call(struct fake_call *call, uint32_t site)
{
    if (!is_wanted(call->domain, call->cbid))
        return false;
    struct cupti_abi_callback_data data = {.site = site,
                                           .function_name = call->function,
                                           .function_params = &call->stream,
                                           .function_return_value = &call->result,
                                           .symbol_name = call->symbol,
                                           .context = (void *)(uintptr_t)call->context,
                                           .context_uid = call->context_id,
                                           .correlation_data = &call->scratch,
                                           .correlation_id = call->correlation_id};
    subscriber_call(call->domain, call->cbid, &data);
    return true;
}

void callbacks_resource(uint32_t cbid, void *context, void *stream, void *descriptor)
{
    if (!is_wanted(FAKE_DOMAIN_RESOURCE, cbid))
        return;
    struct resource_data data = {.context = context, .stream = stream, .descriptor = descriptor};
    subscriber_call(FAKE_DOMAIN_RESOURCE, cbid, &data);
}

/* Who holds CUPTI: "" nobody. Needs the lock. */
static void holder_name(char name[CUPTI_ABI_OTHER_NAME_BYTES])
{
    fault_text("subscriber", name, CUPTI_ABI_OTHER_NAME_BYTES);
    if (name[0] == '\0' && atomic_load(&has_subscriber))
        memcpy(name, subscriber.name, CUPTI_ABI_OTHER_NAME_BYTES);
}

/* Subscribing may be what initializes CUDA. */
static void cuda_start_after(int64_t delay_ms)
{
    int (*cuda_init)(unsigned flags);
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    usleep((useconds_t)delay_ms * 1000);
    *(void **)&cuda_init = driver != NULL ? dlsym(driver, "cuInit") : NULL;
    if (cuda_init != NULL)
        (void)cuda_init(0);
}

static int subscribe(void **handle, cupti_abi_callback_fn *callback, void *user,
                     struct cupti_abi_subscriber_params *params)
{
    char holder[CUPTI_ABI_OTHER_NAME_BYTES];
    if (handle == NULL || callback == NULL)
        return CUPTI_INVALID_PARAMETER;
    int result = cupti_attach();
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    while (atomic_load(&is_orphaned))
        pause();
    int64_t delay_ms = fault_number("subscribe_starts_cuda_ms", -1);
    if (delay_ms >= 0)
        cuda_start_after(delay_ms);
    pthread_mutex_lock(&subscriber_lock);
    holder_name(holder);
    if (holder[0] != '\0') {
        result = CUPTI_ABI_MULTIPLE_SUBSCRIBERS;
        if (params != NULL && params->old_name != NULL && params->old_name_size >= CUPTI_ABI_OTHER_NAME_BYTES)
            snprintf(params->old_name, params->old_name_size, "%s", holder);
    } else {
        subscriber.callback = callback;
        subscriber.user = user;
        snprintf(subscriber.name, sizeof subscriber.name, "%s",
                 params != NULL && params->name != NULL ? params->name : "unnamed");
        atomic_store(&subscriber_pid, getpid());
        atomic_store(&has_subscriber, true);
        *handle = &subscriber;
    }
    pthread_mutex_unlock(&subscriber_lock);
    return result;
}

int cuptiSubscribe(void **handle, cupti_abi_callback_fn *callback, void *user)
{
    int result = fault_result("cuptiSubscribe");
    return result != CUPTI_ABI_SUCCESS ? result : subscribe(handle, callback, user, NULL);
}

int cuptiSubscribe_v2(void **handle, cupti_abi_callback_fn *callback, void *user,
                      struct cupti_abi_subscriber_params *params)
{
    int result = fault_result("cuptiSubscribe_v2");
    if (result == CUPTI_ABI_SUCCESS && params != NULL &&
        (params->struct_size != sizeof *params || (params->name != NULL && strlen(params->name) > 53)))
        result = CUPTI_INVALID_PARAMETER;
    return result != CUPTI_ABI_SUCCESS ? result : subscribe(handle, callback, user, params);
}

void callbacks_after_fork(void)
{
    pthread_mutex_init(&subscriber_lock, NULL);
    atomic_store(&calls_running, calls_running_here);
    atomic_store(&is_orphaned, false);
}

void callbacks_reset(void)
{
    pthread_mutex_lock(&subscriber_lock);
    for (uint32_t domain = 0; domain < DOMAIN_COUNT; domain++)
        for (uint32_t i = 0; i < CALL_ID_LIMIT / 64; i++)
            atomic_store(&wanted[domain][i], 0);
    atomic_store(&has_subscriber, false);
    while (atomic_load(&calls_running) > calls_running_here)
        sched_yield();
    pthread_mutex_unlock(&subscriber_lock);
}

static int handle_check(const char *function, const void *handle, uint32_t domain)
{
    int result = fault_result(function);
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    return handle == &subscriber && atomic_load(&has_subscriber) && domain < DOMAIN_COUNT ? CUPTI_ABI_SUCCESS
                                                                                          : CUPTI_INVALID_PARAMETER;
}

int cuptiUnsubscribe(void *handle)
{
    int result = handle_check("cuptiUnsubscribe", handle, 0);
    if (result == CUPTI_ABI_SUCCESS) {
        atomic_store(&is_orphaned, atomic_load(&subscriber_pid) != getpid());
        callbacks_reset();
    }
    return result;
}

int cuptiEnableCallback(uint32_t enable, void *handle, uint32_t domain, uint32_t cbid)
{
    int result = handle_check("cuptiEnableCallback", handle, domain);
    if (result == CUPTI_ABI_SUCCESS && (domain == 0 || cbid == 0 || cbid >= CALL_ID_LIMIT))
        result = CUPTI_INVALID_PARAMETER;
    if (result != CUPTI_ABI_SUCCESS)
        return result;
    uint64_t bit = 1ull << (cbid % 64);
    if (enable != 0)
        atomic_fetch_or(&wanted[domain][cbid / 64], bit);
    else
        atomic_fetch_and(&wanted[domain][cbid / 64], ~bit);
    return CUPTI_ABI_SUCCESS;
}

int cuptiEnableDomain(uint32_t enable, void *handle, uint32_t domain)
{
    int result = handle_check("cuptiEnableDomain", handle, domain);
    for (uint32_t i = 0; result == CUPTI_ABI_SUCCESS && i < CALL_ID_LIMIT / 64; i++)
        atomic_store(&wanted[domain][i], enable != 0 ? ~0ull : 0);
    return result;
}

int cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name)
{
    static const struct {
        uint32_t domain, cbid;
        const char *name;
    } known[] = {
#define DRIVER_NAME(function, id, text) {FAKE_DOMAIN_DRIVER, id, text},
#define RUNTIME_NAME(function, id, text) {FAKE_DOMAIN_RUNTIME, id, text},
        FAKE_DRIVER_CALLS(DRIVER_NAME) FAKE_RUNTIME_CALLS(RUNTIME_NAME)};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].domain == domain && known[i].cbid == cbid) {
            *name = known[i].name;
            return CUPTI_ABI_SUCCESS;
        }
    return CUPTI_INVALID_PARAMETER;
}
