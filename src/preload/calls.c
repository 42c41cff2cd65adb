/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the program calls in place of CUPTI's. While gpufl uses CUPTI, calls that would disturb gpufl
 * are recorded or answered here; the first call that needs CUPTI makes gpufl release it. */
#include "preload/users.h"
#include "preload/wrapped.h"

#include <stddef.h>

#define CALLER __builtin_return_address(0)
/* A function that is missing in this CUPTI. */
#define CALL(symbol, ...) (REAL(symbol) ? REAL(symbol)(__VA_ARGS__) : CUPTI_ABI_UNKNOWN)

int cuptiSubscribe(void **subscriber, cupti_abi_callback_fn *callback, void *user)
{
    return subscription_open(subscriber, callback, user);
}

/* Its parameters may request more than one subscriber, which only CUPTI can answer. */
int cuptiSubscribe_v2(void **subscriber, cupti_abi_callback_fn *callback, void *user, void *params)
{
    int result = use_begin(CALLER);
    if (result == CUPTI_ABI_SUCCESS)
        result = CALL(cuptiSubscribe_v2, subscriber, callback, user, params);
    if (result == CUPTI_ABI_SUCCESS)
        use_note_other(1);
    use_end();
    return result;
}

int cuptiUnsubscribe(void *subscriber)
{
    int result;
    if (subscription_is(subscriber)) {
        result = subscription_close();
    } else {
        result = CALL(cuptiUnsubscribe, subscriber);
        use_note_other(-1);
    }
    use_end();
    return result;
}

int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid)
{
    return subscription_is(subscriber) ? subscription_enable(domain, cbid, enable != 0, CALLER)
                                       : CALL(cuptiEnableCallback, enable, subscriber, domain, cbid);
}

int cuptiEnableDomain(uint32_t enable, void *subscriber, uint32_t domain)
{
    return subscription_is(subscriber) ? subscription_enable(domain, SUBSCRIPTION_ALL, enable != 0, CALLER)
                                       : CALL(cuptiEnableDomain, enable, subscriber, domain);
}

int cuptiEnableAllDomains(uint32_t enable, void *subscriber)
{
    enum { domain_end = 8 };
    int result = CUPTI_ABI_SUCCESS;
    if (!subscription_is(subscriber))
        return CALL(cuptiEnableAllDomains, enable, subscriber);
    for (uint32_t domain = 1; domain < domain_end; domain++) {
        int one = subscription_enable(domain, SUBSCRIPTION_ALL, enable != 0, CALLER);
        if (domain <= CUPTI_ABI_DOMAIN_RESOURCE && one != CUPTI_ABI_SUCCESS)
            result = one; /* later attributes do not exist in every version */
    }
    return result;
}

int cuptiGetCallbackState(uint32_t *enable, void *subscriber, uint32_t domain, uint32_t cbid)
{
    if (!subscription_is(subscriber))
        return CALL(cuptiGetCallbackState, enable, subscriber, domain, cbid);
    if (!enable)
        return CUPTI_ABI_INVALID_PARAMETER;
    *enable = subscription_is_enabled(domain, cbid);
    return CUPTI_ABI_SUCCESS;
}

int cuptiActivityRegisterCallbacks(cupti_abi_buffer_request_fn *request, cupti_abi_buffer_complete_fn *complete)
{
    return buffers_register(request, complete);
}

static int kind_enabled(int result, uint32_t kind)
{
    if (result == CUPTI_ABI_SUCCESS)
        use_note_kind(kind, true);
    else
        use_end();
    return result;
}

int cuptiActivityEnable(uint32_t kind)
{
    int result = use_begin(CALLER);
    return kind_enabled(result == CUPTI_ABI_SUCCESS ? CALL(cuptiActivityEnable, kind) : result, kind);
}

int cuptiActivityEnableAndDump(uint32_t kind)
{
    int result = use_begin(CALLER);
    return kind_enabled(result == CUPTI_ABI_SUCCESS ? CALL(cuptiActivityEnableAndDump, kind) : result, kind);
}

int cuptiActivityEnableContext(void *context, uint32_t kind)
{
    int result = use_begin(CALLER);
    if (result == CUPTI_ABI_SUCCESS)
        result = CALL(cuptiActivityEnableContext, context, kind);
    if (result == CUPTI_ABI_SUCCESS)
        use_note_other(1);
    else
        use_end();
    return result;
}

/* While gpufl uses CUPTI these would switch off what gpufl records. */
int cuptiActivityDisable(uint32_t kind)
{
    if (!use_is_on())
        return CUPTI_ABI_SUCCESS;
    int result = CALL(cuptiActivityDisable, kind);
    use_note_kind(kind, false);
    use_end();
    return result;
}

int cuptiActivityDisableContext(void *context, uint32_t kind)
{
    if (!use_is_on())
        return CUPTI_ABI_SUCCESS;
    int result = CALL(cuptiActivityDisableContext, context, kind);
    use_note_other(-1);
    use_end();
    return result;
}

int cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value)
{
    return use_is_on() ? CALL(cuptiActivitySetAttribute, attribute, size, value)
                       : attribute_put_off(attribute, size, value);
}

/* Kineto calls it before it enables anything: CUPTI would stamp gpufl's records with that clock. */
int cuptiActivityRegisterTimestampCallback(cupti_abi_timestamp_fn *now)
{
    clock_put_off(now);
    return use_is_on() ? CALL(cuptiActivityRegisterTimestampCallback, now) : CUPTI_ABI_SUCCESS;
}

int cuptiActivityFlushAll(uint32_t flag)
{
    if (!use_is_on())
        return CUPTI_ABI_SUCCESS;
    int result = CALL(cuptiActivityFlushAll, flag);
    use_note_flush();
    use_end();
    return result;
}

int cuptiFinalize(void)
{
    int result = use_is_on() ? REAL(cuptiFinalize)() : CUPTI_ABI_SUCCESS;
    use_forget();
    use_end();
    return result;
}

#define PAIR(begin, end)                             \
    int begin(void *params)                          \
    {                                                \
        int result = use_begin(CALLER);              \
        if (result == CUPTI_ABI_SUCCESS)             \
            result = CALL(begin, params);            \
        use_note_other(result == CUPTI_ABI_SUCCESS); \
        use_end();                                   \
        return result;                               \
    }                                                \
    int end(void *params)                            \
    {                                                \
        int result = CALL(end, params);              \
        use_note_other(-1);                          \
        use_end();                                   \
        return result;                               \
    }
WRAPPED_PAIRS(PAIR)
