/* SPDX-License-Identifier: Apache-2.0 */
/* The events of contexts, modules and launches that a listener receives, with test functions in CUPTI's table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/captures.h"
#include "driver/cupti_calls.h"
#include "driver/cupti_events.h"
#include "driver/cupti_subscription.h"
#include "driver/cupti_users.h"
#include "driver/cupti_table.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { RUNTIME_LAUNCH = 211, DRIVER_LAUNCH = 307, RUNTIME_GRAPH = 311, IDS = 1024 };
enum { RUNTIME_CAPTURE = 315, RUNTIME_CAPTURE_END = 319, DRIVER_CAPTURE_END = 497 };

static struct cupti cupti;

/* What the stand-in library received, and what it returns. */
static struct {
    cupti_abi_callback_fn *callback;
    bool is_on[4][IDS];
    int enabled;
    uint32_t refused_cbid;
    int refused_result, context_result;
    int call_result;
    void *stream;         /* first parameter of calls */
    uint64_t external_id; /* of kind 3; 0: none */
    uint32_t external_tries;
} vendor;

/* What the listener received, in a word or two each. */
static char heard[512];

static int subscribe(void **subscriber, cupti_abi_callback_fn *callback, void *user)
{
    (void)user;
    *subscriber = &vendor;
    vendor.callback = callback;
    return 0;
}
static int unsubscribe(void *subscriber)
{
    (void)subscriber;
    return 0;
}
static int enable_callback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid)
{
    assert_ptr_equal(subscriber, &vendor);
    assert_true(domain < 4 && cbid < IDS);
    if (cbid == vendor.refused_cbid && domain != CUPTI_ABI_DOMAIN_RESOURCE)
        return vendor.refused_result;
    vendor.enabled += (int)enable - vendor.is_on[domain][cbid];
    vendor.is_on[domain][cbid] = enable;
    return 0;
}
static int get_context_id(void *context, uint32_t *id)
{
    (void)context;
    *id = 7;
    return vendor.context_result;
}
static int get_device_id(void *context, uint32_t *device)
{
    (void)context;
    *device = 1;
    return 0;
}
static int get_result_string(uint32_t result, const char **text)
{
    (void)result;
    *text = "CUPTI_ERROR_UNKNOWN";
    return 0;
}
static int pop_external(uint32_t kind, uint64_t *id)
{
    vendor.external_tries++;
    if (kind != 3 || !vendor.external_id)
        return CUPTI_ABI_UNKNOWN;
    *id = vendor.external_id;
    vendor.external_id = 0;
    return 0;
}
static int push_external(uint32_t kind, uint64_t id)
{
    assert_int_equal(kind, 3);
    vendor.external_id = id;
    return 0;
}

static void PRINTF_LIKE(1, 2) tell(const char *format, ...)
{
    size_t used = strlen(heard);
    va_list args;
    va_start(args, format);
    vsnprintf(heard + used, sizeof heard - used, format, args);
    va_end(args);
}

static void on_context(void *user, const struct gpu_context *context, bool is_created)
{
    assert_ptr_equal(user, &vendor);
    tell("%s %u on %u;", is_created ? "context" : "gone", context->id, context->device_id);
}
static void on_unknown_context(void *user, const struct problem *problem)
{
    (void)user;
    tell("unknown: %s;", problem->text);
}
static void on_module(void *user, uint32_t module_id, const void *cubin, size_t cubin_bytes)
{
    (void)user;
    tell("module %u %.*s;", module_id, (int)cubin_bytes, (const char *)cubin);
}
static void on_launch(void *user, const struct launch_call *call, bool is_enter)
{
    (void)user;
    tell("%s%u %s;", is_enter ? "+" : "-", call->correlation_id, call->is_graph ? "graph" : call->symbol);
    assert_int_equal(call->context_id, 9);
}

static void on_capture(void *user, int change, bool is_enter)
{
    (void)user;
    tell("%scapture%+d;", is_enter ? "+" : "-", change);
}

static const struct cupti_listener listener = {.user = &vendor,
                                               .on_context = on_context,
                                               .on_unknown_context = on_unknown_context,
                                               .on_module = on_module,
                                               .on_launch = on_launch,
                                               .on_capture = on_capture};

static int set_up(void **state)
{
    (void)state;
    char other[64];
    memset(&vendor, 0, sizeof vendor);
    memset(&cupti, 0, sizeof cupti);
    heard[0] = '\0';
    cupti.call = (struct cupti_table){.subscribe = subscribe,
                                      .unsubscribe = unsubscribe,
                                      .enable_callback = enable_callback,
                                      .get_context_id = get_context_id,
                                      .get_device_id = get_device_id,
                                      .pop_external = pop_external,
                                      .push_external = push_external,
                                      .get_result_string = get_result_string};
    assert_int_equal(cupti_claim(&cupti, other, sizeof other, NULL), GPUFL_OK);
    assert_int_equal(cupti_listen(&cupti, &listener, NULL), GPUFL_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cupti_silence(&cupti);
    cupti_release(&cupti);
    assert_int_equal(vendor.enabled, 0);
    return 0;
}

/* As CUPTI calls back: only what is enabled. */
static void call(bool is_runtime, uint32_t cbid, bool is_enter, uint32_t correlation_id)
{
    uint32_t domain = is_runtime ? CUPTI_ABI_DOMAIN_RUNTIME : CUPTI_ABI_DOMAIN_DRIVER;
    const struct cupti_abi_callback_data data = {.site = is_enter ? CUPTI_ABI_API_ENTER : CUPTI_ABI_API_ENTER + 1,
                                                 .function_params = &vendor.stream,
                                                 .function_return_value = &vendor.call_result,
                                                 .symbol_name = "k",
                                                 .context = &vendor,
                                                 .context_uid = 9,
                                                 .correlation_id = correlation_id};
    if (vendor.is_on[domain][cbid])
        vendor.callback(NULL, domain, cbid, &data);
}

static void runtime_launch(uint32_t correlation_id)
{
    call(true, RUNTIME_LAUNCH, true, correlation_id);
    call(false, DRIVER_LAUNCH, true, correlation_id + 1); /* what the runtime does inside */
    call(false, DRIVER_LAUNCH, false, correlation_id + 1);
    call(true, RUNTIME_LAUNCH, false, correlation_id);
}

static void resource(uint32_t cbid, void *descriptor)
{
    const struct cupti_abi_resource_data data = {.context = &vendor, .descriptor = descriptor};
    assert_true(vendor.is_on[CUPTI_ABI_DOMAIN_RESOURCE][cbid]);
    vendor.callback(NULL, CUPTI_ABI_DOMAIN_RESOURCE, cbid, &data);
}

static void stream_goes(void *stream)
{
    const struct cupti_abi_resource_data data = {.context = &vendor, .stream = stream};
    assert_true(vendor.is_on[CUPTI_ABI_DOMAIN_RESOURCE][CUPTI_ABI_RESOURCE_STREAM_DESTROYING]);
    vendor.callback(NULL, CUPTI_ABI_DOMAIN_RESOURCE, CUPTI_ABI_RESOURCE_STREAM_DESTROYING, &data);
}

static void contexts_and_modules_are_reported(void **state)
{
    (void)state;
    struct cupti_abi_module_data module = {5, 4, "code"}, empty = {6, 4, NULL};
    resource(CUPTI_ABI_RESOURCE_CONTEXT_CREATED, NULL);
    resource(CUPTI_ABI_RESOURCE_MODULE_LOADED, &module);
    resource(CUPTI_ABI_RESOURCE_MODULE_LOADED, &empty);
    resource(CUPTI_ABI_RESOURCE_MODULE_LOADED, NULL);
    resource(CUPTI_ABI_RESOURCE_CONTEXT_DESTROYING, NULL);
    assert_string_equal(heard, "context 7 on 1;module 5 code;gone 7 on 1;");
}

static void a_context_without_ids_is_reported_with_the_reason(void **state)
{
    (void)state;
    vendor.context_result = 999;
    resource(CUPTI_ABI_RESOURCE_CONTEXT_CREATED, NULL);
    resource(CUPTI_ABI_RESOURCE_CONTEXT_DESTROYING, NULL);
    assert_non_null(strstr(heard, "unknown: "));
    assert_non_null(strstr(heard, "cuptiGetContextId"));
    assert_null(strstr(heard, "gone"));
}

static void launches_are_reported_in_pairs_and_driver_calls_inside_them_are_not(void **state)
{
    (void)state;
    runtime_launch(10);
    assert_string_equal(heard, "");
    assert_true(cupti_listen_launches(&cupti, true));
    assert_true(cupti_listen_launches(&cupti, true));
    runtime_launch(20);
    call(false, DRIVER_LAUNCH, true, 30);
    call(false, DRIVER_LAUNCH, false, 30);
    call(true, RUNTIME_GRAPH, true, 40);
    call(true, RUNTIME_GRAPH, false, 40);
    assert_string_equal(heard, "+20 k;-20 k;+30 k;-30 k;+40 graph;-40 graph;");
    assert_true(cupti_listen_launches(&cupti, false));
    runtime_launch(50);
    assert_non_null(strstr(heard, "-40 graph;"));
    assert_null(strstr(heard, "50"));
}

static void capture_call(uint32_t cbid, int result)
{
    vendor.call_result = result;
    call(true, cbid, true, 10);
    call(false, DRIVER_CAPTURE_END, true, 11); /* what the runtime does inside */
    call(false, DRIVER_CAPTURE_END, false, 11);
    call(true, cbid, false, 10);
}

static void a_capture_ends_with_its_stream_or_its_context(void **state)
{
    (void)state;
    void *other = &heard;
    assert_true(cupti_listen_launches(&cupti, true));
    vendor.call_result = 0;
    vendor.stream = &vendor;
    call(true, RUNTIME_CAPTURE, true, 10);
    call(true, RUNTIME_CAPTURE, false, 10);
    heard[0] = '\0';
    stream_goes(other);
    assert_string_equal(heard, "");
    assert_true(captures_any() && captures_here());
    stream_goes(&vendor);
    assert_string_equal(heard, "-capture-1;");
    assert_false(captures_any() || captures_here());
    vendor.stream = other;
    call(true, RUNTIME_CAPTURE, true, 11);
    call(true, RUNTIME_CAPTURE, false, 11);
    heard[0] = '\0';
    resource(CUPTI_ABI_RESOURCE_CONTEXT_DESTROYING, NULL);
    assert_non_null(strstr(heard, "-capture-1;"));
    assert_false(captures_any());
}

static void a_capture_that_a_session_left_open_means_nothing_to_the_next(void **state)
{
    assert_true(cupti_listen_launches(&cupti, true));
    vendor.stream = &vendor;
    call(true, RUNTIME_CAPTURE, true, 10);
    call(true, RUNTIME_CAPTURE, false, 10);
    assert_true(captures_any());
    tear_down(state);
    set_up(state);
    assert_false(captures_any());
}

static void captures_are_counted_from_the_beginning_that_is_entered_to_the_end_that_succeeds(void **state)
{
    (void)state;
    enum { invalidated = 901, wrong_thread = 908 };
    vendor.stream = &vendor;
    capture_call(RUNTIME_CAPTURE, 0);
    assert_true(cupti_listen_launches(&cupti, true));
    capture_call(RUNTIME_CAPTURE, 0);
    capture_call(RUNTIME_CAPTURE_END, wrong_thread);
    capture_call(RUNTIME_CAPTURE_END, 0);
    assert_string_equal(heard, "+capture+1;-capture+0;+capture+0;-capture+0;+capture+0;-capture-1;");
    heard[0] = '\0';
    capture_call(RUNTIME_CAPTURE, wrong_thread);
    capture_call(RUNTIME_CAPTURE, 0);
    capture_call(RUNTIME_CAPTURE_END, invalidated);
    assert_string_equal(heard, "+capture+1;-capture-1;+capture+1;-capture+0;+capture+0;-capture-1;");
    assert_true(cupti_listen_launches(&cupti, false));
    heard[0] = '\0';
    capture_call(RUNTIME_CAPTURE, 0);
    assert_string_equal(heard, "");
}

/* A context is created inside the first runtime call, and launches are reported from then on. */
static void what_began_before_it_was_listened_to_ends_without_a_beginning(void **state)
{
    (void)state;
    call(true, RUNTIME_LAUNCH, true, 10);
    assert_true(cupti_listen_launches(&cupti, true));
    call(false, DRIVER_LAUNCH, true, 11);
    call(false, DRIVER_LAUNCH, false, 11);
    call(true, RUNTIME_LAUNCH, false, 10);
    assert_string_equal(heard, "+11 k;-11 k;-10 k;");
    heard[0] = '\0';
    runtime_launch(20);
    assert_string_equal(heard, "+20 k;-20 k;");
}

static void a_call_that_a_subscription_left_open_means_nothing_to_the_next(void **state)
{
    assert_true(cupti_listen_launches(&cupti, true));
    call(true, RUNTIME_LAUNCH, true, 10);
    tear_down(state);
    set_up(state);
    assert_true(cupti_listen_launches(&cupti, true));
    call(false, DRIVER_LAUNCH, true, 20);
    call(false, DRIVER_LAUNCH, false, 20);
    assert_string_equal(heard, "+20 k;-20 k;");
}

static void an_id_that_this_version_does_not_know_is_no_refusal(void **state)
{
    (void)state;
    vendor.refused_cbid = RUNTIME_GRAPH;
    vendor.refused_result = CUPTI_ABI_INVALID_PARAMETER;
    assert_true(cupti_listen_launches(&cupti, true));
    runtime_launch(10);
    assert_string_equal(heard, "+10 k;-10 k;");
}

/* A launch that is not reported would be missing silently, and pass a closed gate. */
static void one_launch_that_cannot_be_listened_to_refuses_all(void **state)
{
    (void)state;
    int before = vendor.enabled;
    vendor.refused_cbid = RUNTIME_LAUNCH;
    vendor.refused_result = 999;
    assert_false(cupti_listen_launches(&cupti, true));
    assert_int_equal(vendor.enabled, before);
    call(false, DRIVER_LAUNCH, true, 10);
    assert_string_equal(heard, "");
    assert_non_null(strstr(cupti_first_failure(&cupti), "cuptiEnableCallback"));
}

static void nothing_is_reported_after_the_release(void **state)
{
    (void)state;
    assert_true(cupti_listen_launches(&cupti, true));
    cupti_silence(&cupti);
    cupti_release(&cupti);
    vendor.is_on[CUPTI_ABI_DOMAIN_RESOURCE][CUPTI_ABI_RESOURCE_CONTEXT_CREATED] =
        true; /* CUPTI was already on its way */
    resource(CUPTI_ABI_RESOURCE_CONTEXT_CREATED, NULL);
    assert_string_equal(heard, "");
    vendor.enabled = 0;
    memset(vendor.is_on, 0, sizeof vendor.is_on);
}

static uint64_t last_external;
static void on_call(const struct user_call *call, bool is_enter)
{
    if (!is_enter)
        last_external = call->external_id;
}

static void hear_of_external_ids(void)
{
    last_external = 0;
    assert_true(cupti_listen_calls(&cupti, CUPTI_CALL_LAUNCH, true, on_call));
}

static void *program_without_external_ids(void *unused)
{
    (void)unused;
    hear_of_external_ids();
    for (uint32_t i = 0; i < 10000; i++)
        runtime_launch(10 + 2 * i);
    return NULL;
}

static void a_program_without_external_ids_is_hardly_ever_asked_for_one(void **state)
{
    (void)state;
    pthread_t thread; /* each thread tracks separately which kinds it tried, and when */
    assert_int_equal(pthread_create(&thread, NULL, program_without_external_ids, NULL), 0);
    pthread_join(thread, NULL);
    assert_in_range(vendor.external_tries, 5, 10000 / 10);
}

static void *program_with_external_ids(void *unused)
{
    (void)unused;
    hear_of_external_ids();
    vendor.external_id = 77;
    runtime_launch(10);
    assert_int_equal(last_external, 77);
    assert_int_equal(vendor.external_id, 77); /* was put back */
    vendor.external_id = 0;
    runtime_launch(20);
    assert_int_equal(last_external, 0);
    vendor.external_id = 78;
    runtime_launch(30);
    assert_int_equal(last_external, 78);
    return NULL;
}

static void an_external_id_is_known_from_the_first_call_and_left_where_it_was(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, program_with_external_ids, NULL), 0);
    pthread_join(thread, NULL);
}

static void *program_that_pushes_rarely(void *unused)
{
    (void)unused;
    hear_of_external_ids();
    for (uint32_t i = 0; i < 1000; i++) {
        bool is_pushed = i % 97 == 96;
        vendor.external_id = is_pushed ? 1000 + i : 0;
        runtime_launch(10 + 2 * i);
        assert_int_equal(last_external, vendor.external_id);
    }
    return NULL;
}

/* The last test: a library stays linked with CUPTI. */
static void a_program_that_is_linked_with_cupti_may_push_ids_as_rarely_as_it_likes(void **state)
{
    (void)state;
    assert_false(cupti_has_linked_users());
    assert_non_null(dlopen(FAKES_DIR "/libcupti_user.so", RTLD_NOW));
    assert_true(cupti_has_linked_users());
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, program_that_pushes_rarely, NULL), 0);
    pthread_join(thread, NULL);
}

#define test_of(body) cmocka_unit_test_setup_teardown(body, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_of(contexts_and_modules_are_reported),
        test_of(a_context_without_ids_is_reported_with_the_reason),
        test_of(launches_are_reported_in_pairs_and_driver_calls_inside_them_are_not),
        test_of(a_capture_ends_with_its_stream_or_its_context),
        test_of(a_capture_that_a_session_left_open_means_nothing_to_the_next),
        test_of(captures_are_counted_from_the_beginning_that_is_entered_to_the_end_that_succeeds),
        test_of(what_began_before_it_was_listened_to_ends_without_a_beginning),
        test_of(a_call_that_a_subscription_left_open_means_nothing_to_the_next),
        test_of(an_id_that_this_version_does_not_know_is_no_refusal),
        test_of(one_launch_that_cannot_be_listened_to_refuses_all),
        test_of(a_program_without_external_ids_is_hardly_ever_asked_for_one),
        test_of(an_external_id_is_known_from_the_first_call_and_left_where_it_was),
        test_of(nothing_is_reported_after_the_release),
        test_of(a_program_that_is_linked_with_cupti_may_push_ids_as_rarely_as_it_likes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
