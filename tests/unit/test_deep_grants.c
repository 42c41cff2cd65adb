/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/deep_grants.h"

static struct deep_grants grants;
static const struct problem none = {""}, first = {"no permission"}, second = {"no memory"};

static int open_grants(void **state)
{
    (void)state;
    grants = (struct deep_grants){0};
    deep_grants_init(&grants);
    return 0;
}

static int close_grants(void **state)
{
    (void)state;
    deep_grants_destroy(&grants);
    return 0;
}

static void assert_grant(enum deep_part part, enum deep_state state, const char *text)
{
    struct deep_grant grant;
    deep_grants_get(&grants, part, &grant);
    assert_int_equal(grant.state, state);
    assert_string_equal(grant.problem.text, text);
}

static void what_was_not_requested_is_never_answered(void **state)
{
    (void)state;
    deep_grants_answer(&grants, DEEP_PM_SAMPLING, GPUFL_E_PERMISSION, &first);
    deep_grants_revoke(&grants, DEEP_PM_SAMPLING, GPUFL_E_UNSUPPORTED, &first);
    assert_grant(DEEP_PM_SAMPLING, DEEP_NOT_REQUESTED, "");
    assert_false(deep_grants_take_news(&grants));
}

static void the_first_refusal_stays_until_one_context_works(void **state)
{
    (void)state;
    deep_grants_request(&grants, DEEP_PC_SAMPLING);
    assert_grant(DEEP_PC_SAMPLING, DEEP_WAITING, "");
    assert_false(deep_grants_take_news(&grants));
    deep_grants_answer(&grants, DEEP_PC_SAMPLING, GPUFL_E_PERMISSION, &first);
    deep_grants_answer(&grants, DEEP_PC_SAMPLING, GPUFL_E_NO_MEMORY, &second);
    assert_grant(DEEP_PC_SAMPLING, DEEP_REFUSED, "no permission");
    assert_true(deep_grants_take_news(&grants));
    assert_false(deep_grants_take_news(&grants));
    deep_grants_answer(&grants, DEEP_PC_SAMPLING, GPUFL_OK, &none);
    deep_grants_answer(&grants, DEEP_PC_SAMPLING, GPUFL_E_NO_MEMORY, &second);
    assert_grant(DEEP_PC_SAMPLING, DEEP_RUNNING, "");
    assert_true(deep_grants_take_news(&grants));
}

static void what_gave_nothing_is_taken_back(void **state)
{
    (void)state;
    deep_grants_request(&grants, DEEP_RANGE_COUNTERS);
    deep_grants_answer(&grants, DEEP_RANGE_COUNTERS, GPUFL_OK, &none);
    assert_int_equal(deep_grants_engine(&grants, GPUFL_ENGINE_RANGE_PROFILER, NULL), GPUFL_ENGINE_RANGE_PROFILER);
    deep_grants_revoke(&grants, DEEP_RANGE_COUNTERS, GPUFL_E_UNSUPPORTED, &second);
    assert_grant(DEEP_RANGE_COUNTERS, DEEP_REFUSED, "no memory");
    assert_int_equal(deep_grants_engine(&grants, GPUFL_ENGINE_RANGE_PROFILER, NULL), GPUFL_ENGINE_TRACE);
}

static void deep_becomes_pc_sampling_becomes_trace(void **state)
{
    (void)state;
    deep_grants_request(&grants, DEEP_PC_SAMPLING);
    deep_grants_request(&grants, DEEP_SASS_METRICS);
    assert_int_equal(deep_grants_engine(&grants, GPUFL_ENGINE_DEEP, NULL), GPUFL_ENGINE_DEEP);
    deep_grants_answer(&grants, DEEP_SASS_METRICS, GPUFL_E_PERMISSION, &first);
    assert_int_equal(deep_grants_engine(&grants, GPUFL_ENGINE_DEEP, NULL), GPUFL_ENGINE_PC_SAMPLING);
    assert_int_equal(deep_grants_engine(&grants, GPUFL_ENGINE_SASS_METRICS, NULL), GPUFL_ENGINE_TRACE);
    deep_grants_answer(&grants, DEEP_PC_SAMPLING, GPUFL_E_PERMISSION, &first);
    assert_int_equal(deep_grants_engine(&grants, GPUFL_ENGINE_DEEP, NULL), GPUFL_ENGINE_TRACE);
    assert_int_equal(deep_grants_engine(&grants, GPUFL_ENGINE_TRACE, NULL), GPUFL_ENGINE_TRACE);
}

#define test_of(body) cmocka_unit_test_setup_teardown(body, open_grants, close_grants)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_of(what_was_not_requested_is_never_answered),
        test_of(the_first_refusal_stays_until_one_context_works),
        test_of(what_gave_nothing_is_taken_back),
        test_of(deep_becomes_pc_sampling_becomes_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
