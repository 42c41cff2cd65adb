/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the look-alike GPU with a timeout. Each test runs in a separate process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fakes/fake_client.h"

#include "base/clock.h"
#include "capture/gpu_waiter.h"
#include "session_fixture.h"

enum { SOON_MS = 20, DEADLINE_MS = 400000 };

static struct gpu_waiter *waiter;
static bool has_refused;
static const char *calls_dir;

static bool await(int ms)
{
    return gpu_waiter_await(waiter, clock_mono_ns() + ms * INT64_C(1000000), &has_refused);
}

/* The context of a GPU that runs the kernel. */
static void *context_with(int device, const struct fake_kernel *kernel)
{
    void *context = NULL;
    CHECK(rt.cudaSetDevice(device) == FAKE_SUCCESS && launch(kernel, NULL) == FAKE_SUCCESS);
    CHECK(cu.current(&context) == FAKE_SUCCESS && context);
    return context;
}

static void begin(void)
{
    CHECK(cu.init(0) == FAKE_SUCCESS);
    waiter = gpu_waiter_make();
    CHECK(waiter && !gpu_waiter_is_busy(waiter));
}

static void wait_for_seconds(void)
{
    begin();
    void *context = context_with(0, SECONDS_KERNEL);
    gpu_waiter_ask(waiter, &context, 1);
    CHECK(!await(SOON_MS) && gpu_waiter_is_busy(waiter));
    CHECK(await(DEADLINE_MS) && !gpu_waiter_is_busy(waiter) && !has_refused);
    gpu_waiter_ask(waiter, &context, 1); /* idle now */
    CHECK(await(DEADLINE_MS) && !has_refused);
    gpu_waiter_free(waiter);
}

static void a_wait_that_timed_out_continues_and_can_be_waited_for_again(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", wait_for_seconds);
}

static void free_it_in_cuda(void)
{
    begin();
    void *context = context_with(0, SECONDS_KERNEL);
    gpu_waiter_ask(waiter, &context, 1);
    CHECK(!await(SOON_MS));
    gpu_waiter_free(waiter); /* returns later and frees itself, which a sanitizer checks */
    CHECK(rt.cudaDeviceSynchronize() == FAKE_SUCCESS);
    usleep(SOON_MS * 1000);
    begin();
    context = context_with(0, LONG_KERNEL);
    gpu_waiter_ask(waiter, &context, 1);
    CHECK(!await(SOON_MS));
    gpu_waiter_free(waiter);
}

static void one_that_is_in_cuda_is_left_there(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", free_it_in_cuda);
}

static void forget_one(void)
{
    begin();
    void *contexts[] = {context_with(1, LONG_KERNEL), context_with(0, SECONDS_KERNEL)}; /* the last one comes first */
    gpu_waiter_ask(waiter, contexts, 2);
    CHECK(!await(SOON_MS));
    gpu_waiter_forget(waiter, contexts[0]);
    CHECK(await(DEADLINE_MS) && !has_refused);
    gpu_waiter_free(waiter);
}

static void a_context_that_goes_before_its_turn_is_not_waited_for(void **state)
{
    (void)state;
    setenv("FAKE_GPU_COUNT", "2", 1);
    in_child("libcupti.so.13", "", forget_one);
    unsetenv("FAKE_GPU_COUNT");
}

/* The look-alike writes down each call as it begins. */
static void wait_until_it_is_in_cuda(int calls)
{
    size_t size;
    for (int begun = 0; begun < calls;) {
        char *text = fixture_read(calls_dir, "calls", &size);
        begun = 0;
        for (const char *call = text; (call = strstr(call, "cuCtxSynchronize")); call++)
            begun++;
        free(text);
    }
}

static void forget_the_one_that_is_waited_for(void)
{
    const int64_t kernel_ns = (int64_t)HALF_KERNEL->duration_ns;
    begin();
    int64_t start_ns = clock_mono_ns();
    void *context = context_with(0, HALF_KERNEL);
    gpu_waiter_ask(waiter, &context, 1);
    wait_until_it_is_in_cuda(1);
    gpu_waiter_forget(waiter, context);
    CHECK(clock_mono_ns() - start_ns >= kernel_ns); /* CUDA does not return before */
    CHECK(await(DEADLINE_MS) && !has_refused);
    context = context_with(0, LONG_KERNEL);
    gpu_waiter_ask(waiter, &context, 1);
    wait_until_it_is_in_cuda(2);
    gpu_waiter_forget(waiter, context); /* does not wait forever */
    CHECK(gpu_waiter_is_busy(waiter));
    gpu_waiter_free(waiter);
}

static void a_context_does_not_go_while_it_is_waited_for(void **state)
{
    (void)state;
    char path[512];
    calls_dir = fixture_dir();
    fixture_path(path, calls_dir, "calls");
    setenv("FAKE_CALLS", path, 1);
    in_child("libcupti.so.13", "", forget_the_one_that_is_waited_for);
    unsetenv("FAKE_CALLS");
    fixture_remove(calls_dir);
}

static void wait_in_vain(void)
{
    begin();
    void *context = context_with(0, SHORT_KERNEL);
    gpu_waiter_ask(waiter, &context, 1);
    CHECK(await(DEADLINE_MS) && has_refused);
    gpu_waiter_free(waiter);
}

static void a_refusal_by_cuda_is_reported(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "fail=cuCtxSynchronize@*:999", wait_in_vain);
}

int main(void)
{
    environment_clear();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_that_timed_out_continues_and_can_be_waited_for_again),
        cmocka_unit_test(one_that_is_in_cuda_is_left_there),
        cmocka_unit_test(a_context_that_goes_before_its_turn_is_not_waited_for),
        cmocka_unit_test(a_context_does_not_go_while_it_is_waited_for),
        cmocka_unit_test(a_refusal_by_cuda_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
