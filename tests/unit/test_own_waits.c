/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/current_thread.h"
#include "capture/own_waits.h"

#include <pthread.h>
#include <unistd.h>

static void only_this_threads_calls_during_the_wait_are_ours(void **state)
{
    (void)state;
    uint32_t self = current_thread_id();
    int64_t before_ns = clock_wall_ns() - 1;
    assert_false(own_waits_include(self, before_ns));
    own_wait_begin();
    int64_t during_ns = clock_wall_ns();
    own_wait_end();
    int64_t after_ns = clock_wall_ns() + 1;
    assert_true(own_waits_include(self, during_ns));
    assert_true(own_waits_include((uint32_t)pthread_self(), during_ns));
    assert_false(own_waits_include(self, before_ns));
    assert_false(own_waits_include(self, after_ns));
    assert_false(own_waits_include(self + 1, during_ns));
}

static void the_latest_waits_are_remembered(void **state)
{
    (void)state;
    enum { waits = 200, remembered = 64 };
    int64_t times_ns[waits];
    for (int i = 0; i < waits; i++) {
        own_wait_begin();
        times_ns[i] = clock_wall_ns();
        own_wait_end();
    }
    for (int i = waits - remembered; i < waits; i++)
        assert_true(own_waits_include(current_thread_id(), times_ns[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_this_threads_calls_during_the_wait_are_ours),
        cmocka_unit_test(the_latest_waits_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
