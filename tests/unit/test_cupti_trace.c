/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and stops a trace with test functions in CUPTI's table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/cupti_calls.h"
#include "driver/cupti_table.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct cupti cupti;

/* What the stand-in library received, and what it returns. */
static struct {
    uint64_t kinds; /* enabled now */
    int callbacks, subscribers, flushes;
    bool is_silent[2][1024]; /* driver and runtime calls whose records are off though the kind is on */
    int subscribe_result, register_result;
    uint32_t refused_kind;
    int refused_result;
    size_t dropped;
    cupti_abi_buffer_request_fn *request;
    cupti_abi_buffer_complete_fn *complete;
    cupti_abi_callback_fn *callback;
} vendor;

static int get_result_string(uint32_t result, const char **text)
{
    *text = result == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR_UNKNOWN";
    return 0;
}
static int subscribe(void **subscriber, cupti_abi_callback_fn *callback, void *user)
{
    (void)user;
    if (vendor.subscribe_result)
        return vendor.subscribe_result;
    *subscriber = &vendor;
    vendor.callback = callback;
    vendor.subscribers++;
    return 0;
}
static int subscribe_v2(void **subscriber, cupti_abi_callback_fn *callback, void *user,
                        struct cupti_abi_subscriber_params *params)
{
    assert_int_equal(params->struct_size, 32);
    assert_true(params->old_name_size >= 64);
    if (vendor.subscribe_result == CUPTI_ABI_MULTIPLE_SUBSCRIBERS)
        snprintf(params->old_name, params->old_name_size, "Kineto");
    return subscribe(subscriber, callback, user);
}
static int unsubscribe(void *subscriber)
{
    assert_ptr_equal(subscriber, &vendor);
    vendor.subscribers--;
    return 0;
}
static int enable_callback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid)
{
    (void)domain, (void)cbid;
    assert_ptr_equal(subscriber, &vendor);
    vendor.callbacks += enable ? 1 : -1;
    return 0;
}
static int set_thread_id_type(uint32_t type)
{
    return type == 1 && !vendor.kinds ? 0 : 1;
}
static int register_callbacks(cupti_abi_buffer_request_fn *request, cupti_abi_buffer_complete_fn *complete)
{
    vendor.request = request;
    vendor.complete = complete;
    return vendor.register_result;
}
static int enable(uint32_t kind)
{
    if (kind == vendor.refused_kind)
        return vendor.refused_result;
    vendor.kinds |= 1ull << kind;
    if (kind == CUPTI_ABI_KIND_RUNTIME || kind == CUPTI_ABI_KIND_DRIVER) /* overrides what was set before */
        memset(vendor.is_silent[kind == CUPTI_ABI_KIND_RUNTIME], 0, sizeof vendor.is_silent[0]);
    return 0;
}
static int disable(uint32_t kind)
{
    vendor.kinds &= ~(1ull << kind);
    return 0;
}
static int set_record(int is_runtime, uint32_t cbid, uint8_t is_on)
{
    /* An id inside the range that this version lacks, and the end of the range. */
    if (cbid == 100 || cbid >= 1000)
        return 1;
    vendor.is_silent[is_runtime][cbid] = !is_on;
    return 0;
}
static int enable_runtime_api(uint32_t cbid, uint8_t is_on)
{
    return set_record(1, cbid, is_on);
}
static int enable_driver_api(uint32_t cbid, uint8_t is_on)
{
    return set_record(0, cbid, is_on);
}
static int flush_all(uint32_t flag)
{
    (void)flag;
    vendor.flushes++;
    return 0;
}
static int get_next_record(uint8_t *buffer, size_t valid, void **record)
{
    size_t next = *record ? (size_t)((uint8_t *)*record - buffer) + 40 : 0;
    if (next + 40 > valid)
        return CUPTI_ABI_MAX_LIMIT_REACHED;
    *record = buffer + next;
    return 0;
}
static int get_dropped(void *context, uint32_t stream_id, size_t *dropped)
{
    assert_null(context);
    assert_int_equal(stream_id, 0);
    *dropped = vendor.dropped;
    vendor.dropped = 0;
    return 0;
}

static int requests, completions, calls;
static uint32_t last_call;
static bool has_no_buffer;
static _Alignas(8) uint8_t pool[4096];

static uint8_t *pool_request(size_t *size)
{
    requests++;
    *size = sizeof pool;
    return has_no_buffer ? NULL : pool;
}
static void pool_complete(uint8_t *buffer, size_t size, size_t valid)
{
    completions++;
    assert_ptr_equal(buffer, pool);
    assert_true(valid <= size);
}
static void count_call(const struct user_call *call, bool is_enter)
{
    calls += is_enter;
    last_call = call->correlation_id;
}

static int reset(void **state)
{
    (void)state;
    memset(&cupti, 0, sizeof cupti);
    memset(&vendor, 0, sizeof vendor);
    requests = completions = calls = 0;
    has_no_buffer = false;
    cupti.call = (struct cupti_table){
        .get_result_string = get_result_string,
        .subscribe = subscribe,
        .subscribe_v2 = subscribe_v2,
        .unsubscribe = unsubscribe,
        .enable_callback = enable_callback,
        .set_thread_id_type = set_thread_id_type,
        .register_callbacks = register_callbacks,
        .enable = enable,
        .disable = disable,
        .enable_runtime_api = enable_runtime_api,
        .enable_driver_api = enable_driver_api,
        .flush_all = flush_all,
        .get_next_record = get_next_record,
        .get_dropped = get_dropped,
    };
    cupti_set_version(&cupti, 130001);
    return 0;
}

static struct cupti_trace_options options(unsigned features)
{
    return (struct cupti_trace_options){
        .features = features, .buffer_request = pool_request, .buffer_complete = pool_complete};
}

static void assert_nothing_left(void)
{
    assert_int_equal(vendor.kinds, 0);
    assert_int_equal(vendor.callbacks, 0);
    assert_int_equal(vendor.subscribers, 0);
}

static void a_trace_enables_what_was_asked_and_stop_undoes_it(void **state)
{
    (void)state;
    struct cupti_trace_options asked = options(CUPTI_TRACE_SYNC | CUPTI_TRACE_OVERHEAD);
    struct cupti_trace_result result;
    struct problem problem = {""};
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, &problem), GPUFL_OK);
    assert_int_equal(vendor.kinds,
                     1ull << 10 | 1ull << 1 | 1ull << 22 | 1ull << 2 | 1ull << 38 | 1ull << 17 | 1ull << 4 | 1ull << 5);
    assert_int_equal(result.granted, CUPTI_GRANTED_KERNELS | CUPTI_GRANTED_COPIES | CUPTI_GRANTED_MEMSETS |
                                         CUPTI_GRANTED_API | CUPTI_TRACE_SYNC | CUPTI_TRACE_OVERHEAD);
    assert_true(result.has_system_thread_id);
    assert_int_equal(vendor.callbacks, 0);
    assert_string_equal(cupti_first_failure(&cupti), "");
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, &problem), GPUFL_E_INVALID);
    cupti_trace_stop(&cupti);
    assert_int_equal(vendor.flushes, 1);
    assert_nothing_left();
    cupti_trace_stop(&cupti); /* harmless */
    assert_int_equal(vendor.flushes, 1);
}

static void buffers_pass_through_until_the_trace_stops(void **state)
{
    (void)state;
    struct cupti_trace_options asked = options(0);
    struct cupti_trace_result result;
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, NULL), GPUFL_OK);
    uint8_t *buffer;
    size_t size, records = 1;
    vendor.request(&buffer, &size, &records);
    assert_ptr_equal(buffer, pool);
    assert_int_equal(size, sizeof pool);
    assert_int_equal(records, 0);
    vendor.complete(NULL, 0, buffer, size, size + 1000); /* more than it can hold */
    assert_int_equal(completions, 1);
    cupti_trace_stop(&cupti);
    vendor.request(&buffer, &size, &records);
    assert_null(buffer);
    assert_int_equal(size, 0);
    vendor.complete(NULL, 0, pool, sizeof pool, 80);
    assert_int_equal(requests, 1);
    assert_int_equal(completions, 1);
}

static void another_profiler_is_named(void **state)
{
    (void)state;
    struct cupti_trace_options asked = options(0);
    struct cupti_trace_result result;
    struct problem problem = {""};
    vendor.subscribe_result = CUPTI_ABI_MULTIPLE_SUBSCRIBERS;
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, &problem), GPUFL_E_BUSY);
    assert_string_equal(result.other_profiler, "Kineto");
    assert_non_null(strstr(problem.text, "'Kineto'"));
    cupti.call.subscribe_v2 = NULL; /* before 13.0 the name cannot be determined */
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, &problem), GPUFL_E_BUSY);
    assert_string_equal(result.other_profiler, "");
    assert_non_null(strstr(problem.text, "another profiler already"));
    assert_nothing_left();
}

static void a_missing_driver_has_a_separate_status(void **state)
{
    (void)state;
    struct cupti_trace_options asked = options(0);
    struct cupti_trace_result result;
    struct problem problem = {""};
    vendor.subscribe_result = CUPTI_ABI_UNKNOWN;
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, &problem), GPUFL_E_NO_DRIVER);
    assert_non_null(strstr(problem.text, "(999)"));
    assert_string_equal(cupti_first_failure(&cupti), "cuptiSubscribe_v2: CUPTI_ERROR_UNKNOWN (999)");
    assert_nothing_left();
}

static void a_failed_required_step_undoes_the_earlier_ones(void **state)
{
    (void)state;
    struct cupti_trace_options asked = options(CUPTI_TRACE_SYNC);
    struct cupti_trace_result result;
    struct problem problem = {""};
    vendor.register_result = 7;
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, &problem), GPUFL_E_UNSUPPORTED);
    assert_non_null(strstr(problem.text, "cuptiActivityRegisterCallbacks"));
    assert_nothing_left();
    vendor.register_result = 0;
    vendor.refused_kind = CUPTI_ABI_KIND_CONCURRENT_KERNEL;
    vendor.refused_result = CUPTI_ABI_INSUFFICIENT_PRIVILEGES;
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, &problem), GPUFL_E_PERMISSION);
    assert_nothing_left();
    vendor.refused_kind = 0;
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, &problem), GPUFL_OK);
    cupti_trace_stop(&cupti);
    assert_nothing_left();
}

static void a_refused_feature_only_lacks_its_bit(void **state)
{
    (void)state;
    struct cupti_trace_options asked = options(CUPTI_TRACE_SYNC | CUPTI_TRACE_MEMORY);
    struct cupti_trace_result result;
    vendor.refused_kind = CUPTI_ABI_KIND_MEMORY2;
    vendor.refused_result = CUPTI_ABI_INSUFFICIENT_PRIVILEGES;
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, NULL), GPUFL_OK);
    assert_true(result.granted & CUPTI_TRACE_SYNC);
    assert_false(result.granted & CUPTI_TRACE_MEMORY);
    assert_string_equal(cupti_first_failure(&cupti), "cuptiActivityEnable: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)");
    cupti_trace_stop(&cupti);
    assert_nothing_left();
}

static void only_the_calls_we_use_are_recorded(void **state)
{
    (void)state;
    struct cupti_trace_options asked = options(CUPTI_TRACE_SYNC);
    struct cupti_trace_result result;
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, NULL), GPUFL_OK);
    bool is_wanted[2][1000] = {{false}};
    for (size_t i = 0; i < cupti_call_count; i++)
        is_wanted[cupti_calls[i].is_runtime][cupti_calls[i].cbid] =
            (cupti_calls[i].group & (CUPTI_CALL_LAUNCH | CUPTI_CALL_COPY | CUPTI_CALL_SYNC)) != 0;
    for (int is_runtime = 0; is_runtime < 2; is_runtime++) {
        for (int cbid = 1; cbid < 1000; cbid++) {
            if (cbid != 100)
                assert_int_equal(vendor.is_silent[is_runtime][cbid], !is_wanted[is_runtime][cbid]);
        }
    }
    assert_true(is_wanted[1][211] && is_wanted[0][307] && !is_wanted[1][311]);
    assert_string_equal(cupti_first_failure(&cupti), ""); /* the end of the range is no failure */
    cupti_trace_stop(&cupti);
    assert_nothing_left();
}

/* The way to get API records is chosen once per process, so the early way is tried in a separate process. */
static int early_attach(void)
{
    memset(vendor.is_silent, 1, sizeof vendor.is_silent);
    struct cupti_trace_options asked = options(CUPTI_TRACE_SYNC);
    asked.is_before_cuda = true;
    struct cupti_trace_result result;
    if (cupti_trace_start(&cupti, &asked, &result, NULL) != GPUFL_OK || !(result.granted & CUPTI_GRANTED_API))
        return 1;
    if (vendor.kinds >> CUPTI_ABI_KIND_RUNTIME & 1 || vendor.kinds >> CUPTI_ABI_KIND_DRIVER & 1)
        return 2; /* the whole kinds hook every call */
    if (vendor.is_silent[1][211] || vendor.is_silent[0][307] || !vendor.is_silent[1][17])
        return 3;
    cupti_trace_stop(&cupti);
    if (!vendor.is_silent[1][211] || !vendor.is_silent[0][307])
        return 4;
    asked.is_before_cuda = false; /* CUDA is running by now, but the choice stays */
    if (cupti_trace_start(&cupti, &asked, &result, NULL) != GPUFL_OK || vendor.kinds >> CUPTI_ABI_KIND_RUNTIME & 1 ||
        vendor.is_silent[1][211])
        return 5;
    cupti_trace_stop(&cupti);
    return 0;
}

static void before_cuda_starts_calls_are_recorded_one_by_one(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(early_attach());
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void without_single_calls_whole_kinds_are_recorded(void **state)
{
    (void)state;
    cupti.call.enable_runtime_api = cupti.call.enable_driver_api = NULL;
    struct cupti_trace_options asked = options(CUPTI_TRACE_GRAPHS);
    struct cupti_trace_result result;
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, NULL), GPUFL_OK);
    assert_true(vendor.kinds >> CUPTI_ABI_KIND_RUNTIME & 1);
    assert_true(vendor.kinds >> CUPTI_ABI_KIND_DRIVER & 1);
    assert_true(result.granted & CUPTI_GRANTED_API);
    assert_true(result.granted & CUPTI_TRACE_GRAPHS);
    cupti_trace_stop(&cupti);
    assert_nothing_left();
}

static void one_call_of_the_user_is_reported_once(void **state)
{
    (void)state;
    struct cupti_trace_options asked = options(0);
    asked.on_call = count_call;
    struct cupti_trace_result result;
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, NULL), GPUFL_OK);
    assert_true(result.granted & CUPTI_GRANTED_CALLBACKS);
    assert_true(vendor.callbacks > 20);
    struct cupti_abi_callback_data outer = {.site = CUPTI_ABI_API_ENTER, .correlation_id = 5};
    struct cupti_abi_callback_data inner = {.site = CUPTI_ABI_API_ENTER, .correlation_id = 6};
    vendor.callback(NULL, CUPTI_ABI_DOMAIN_RUNTIME, 211, &outer);
    vendor.callback(NULL, CUPTI_ABI_DOMAIN_DRIVER, 307, &inner);
    inner.site = outer.site = CUPTI_ABI_API_EXIT;
    vendor.callback(NULL, CUPTI_ABI_DOMAIN_DRIVER, 307, &inner);
    vendor.callback(NULL, CUPTI_ABI_DOMAIN_RUNTIME, 211, &outer);
    assert_int_equal(calls, 1);
    assert_int_equal(last_call, 5);
    inner.site = CUPTI_ABI_API_ENTER; /* without an outer call it is the user's */
    vendor.callback(NULL, CUPTI_ABI_DOMAIN_DRIVER, 307, &inner);
    assert_int_equal(calls, 2);
    assert_int_equal(last_call, 6);
    outer.site = CUPTI_ABI_API_ENTER; /* the trace stops inside a runtime call */
    vendor.callback(NULL, CUPTI_ABI_DOMAIN_RUNTIME, 211, &outer);
    cupti_trace_stop(&cupti);
    assert_nothing_left();
    vendor.callback(NULL, CUPTI_ABI_DOMAIN_RUNTIME, 211, &outer);
    assert_int_equal(calls, 3);
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, NULL), GPUFL_OK);
    vendor.callback(NULL, CUPTI_ABI_DOMAIN_DRIVER, 307, &inner);
    assert_int_equal(calls, 4);
    cupti_trace_stop(&cupti);
}

static void what_cupti_dropped_is_counted_once(void **state)
{
    (void)state;
    struct cupti_trace_options asked = options(0);
    struct cupti_trace_result result;
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, NULL), GPUFL_OK);
    assert_int_equal(cupti_take_dropped(&cupti), 0);
    vendor.dropped = 7;
    assert_int_equal(cupti_take_dropped(&cupti), 7);
    assert_int_equal(cupti_take_dropped(&cupti), 0);
    vendor.dropped = 3;
    cupti_trace_stop(&cupti);
    assert_int_equal(cupti_take_dropped(&cupti), 3);
}

static void an_old_cupti_never_goes_without_a_buffer(void **state)
{
    (void)state;
    cupti_set_version(&cupti, 26);
    struct cupti_trace_options asked = options(0);
    struct cupti_trace_result result;
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, NULL), GPUFL_OK);
    has_no_buffer = true;
    uint8_t *buffer, *second;
    size_t size, records;
    vendor.request(&buffer, &size, &records);
    assert_non_null(buffer);
    assert_ptr_not_equal(buffer, pool);
    vendor.request(&second, &size, &records);
    assert_ptr_not_equal(second, buffer);
    memset(buffer, 0, size);
    for (int i = 0; i < 5; i++)
        memcpy(buffer + 40 * i, &(struct cupti_abi_api){.kind = CUPTI_ABI_KIND_RUNTIME}, 40);
    vendor.complete(NULL, 0, buffer, size, 200);
    vendor.complete(NULL, 0, second, size, 0);
    assert_int_equal(completions, 0);
    assert_int_equal(cupti_take_dropped(&cupti), 5);
    cupti_trace_stop(&cupti);

    cupti_set_version(&cupti, 27);
    assert_int_equal(cupti_trace_start(&cupti, &asked, &result, NULL), GPUFL_OK);
    vendor.request(&buffer, &size, &records);
    assert_null(buffer);
    cupti_trace_stop(&cupti);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, reset)
    const struct CMUnitTest tests[] = {
        CASE(before_cuda_starts_calls_are_recorded_one_by_one), /* first: nothing is decided yet */
        CASE(a_trace_enables_what_was_asked_and_stop_undoes_it),
        CASE(buffers_pass_through_until_the_trace_stops),
        CASE(another_profiler_is_named),
        CASE(a_missing_driver_has_a_separate_status),
        CASE(a_failed_required_step_undoes_the_earlier_ones),
        CASE(a_refused_feature_only_lacks_its_bit),
        CASE(only_the_calls_we_use_are_recorded),
        CASE(without_single_calls_whole_kinds_are_recorded),
        CASE(one_call_of_the_user_is_reported_once),
        CASE(what_cupti_dropped_is_counted_once),
        CASE(an_old_cupti_never_goes_without_a_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
