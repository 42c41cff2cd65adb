/* SPDX-License-Identifier: Apache-2.0 */
/* A trace after one of CUPTI's profilers failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fakes/fake_client.h"
#include "driver/cupti.h"
#include "driver/cupti_events.h"

enum { LAUNCHES = 20 };

static struct cupti *library;
static size_t kernels, requests;

static uint8_t *request(size_t *size)
{
    requests++;
    *size = buffer_bytes;
    return aligned_alloc(8, buffer_bytes);
}

static void complete(uint8_t *buffer, size_t size, size_t valid)
{
    struct activity_cursor cursor = {library, buffer, valid, NULL};
    struct activity activity;
    (void)size;
    while (activity_next(&cursor, &activity))
        kernels += activity.kind == ACTIVITY_KERNEL;
    free(buffer);
}

static gpufl_status start(struct problem *problem)
{
    const struct cupti_trace_options options = {.buffer_request = request, .buffer_complete = complete};
    struct cupti_trace_result result;
    return cupti_trace_start(library, &options, &result, problem);
}

static void traced_until(enum cupti_damage damage)
{
    struct problem problem = {""};
    CHECK(cupti_load(&library, &problem) == GPUFL_OK && start(&problem) == GPUFL_OK);
    launches(LAUNCHES);
    cupti_trace_damaged(damage);
    launches(LAUNCHES);
    CHECK(cupti_trace_pause(library, &problem) == GPUFL_E_UNSUPPORTED && strstr(problem.text, "would crash"));
    cupti_trace_stop(library);
    size_t requests_before = requests;
    launches(LAUNCHES);
    CHECK(requests == requests_before); /* kinds that stay enabled request no buffers any more */
    CHECK(start(&problem) == GPUFL_E_UNSUPPORTED && strstr(problem.text, "an earlier session of this process"));
}

static void failed_body(void)
{
    traced_until(CUPTI_FAILED);
    CHECK(kernels == 2 * LAUNCHES);
}

static void stuck_body(void)
{
    traced_until(CUPTI_STUCK);
    cupti_trace_damaged(CUPTI_FAILED); /* does not improve the state */
    CHECK(start(NULL) == GPUFL_E_UNSUPPORTED);
}

/* A call that would never return must not be made. */
static void after_a_failure_all_records_are_read_and_none_is_disabled(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "fail=cuptiActivityDisable@*:-1; fail=cuptiEnableCallback@*:-1", failed_body);
}

static void a_cupti_that_does_not_return_is_not_called_again(void **state)
{
    (void)state;
    in_child("libcupti.so.13",
             "fail=cuptiActivityDisable@*:-1; fail=cuptiActivityFlushAll@*:-1; fail=cuptiUnsubscribe@*:-1", stuck_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_failure_all_records_are_read_and_none_is_disabled),
        cmocka_unit_test(a_cupti_that_does_not_return_is_not_called_again),
    };
    environment_clear();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
