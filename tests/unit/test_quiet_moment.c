/* SPDX-License-Identifier: Apache-2.0 */
/* When a quiet moment is due, what keeps it from beginning, and what is held back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/quiet_moment.h"
#include "driver/captures.h"

enum { ms = 1000000, hour_ms = 3600000 };

static struct quiet_moment moment;

static int set_up(void **state)
{
    (void)state;
    moment = (struct quiet_moment){0};
    quiet_moment_init(&moment, QUIET_WAIT_MS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    quiet_moment_destroy(&moment);
    return 0;
}

static void launch_once(void)
{
    quiet_moment_launch(&moment, true);
    quiet_moment_launch(&moment, false);
}

static void a_program_that_launches_nothing_is_left_alone(void **state)
{
    (void)state;
    assert_false(quiet_moment_is_due(&moment, 0));
    launch_once();
    assert_true(quiet_moment_is_due(&moment, 0));
    assert_false(quiet_moment_is_due(&moment, hour_ms));
    quiet_moment_reset(&moment);
    assert_false(quiet_moment_is_due(&moment, 0));
}

static void *launch_later(void *begun_ns)
{
    quiet_moment_launch(&moment, true);
    *(int64_t *)begun_ns = clock_mono_ns();
    quiet_moment_launch(&moment, false);
    return NULL;
}

static void launches_wait_for_its_end(void **state)
{
    (void)state;
    pthread_t thread;
    int64_t begun_ns = 0;
    launch_once();
    assert_true(quiet_moment_begin(&moment, 1));
    assert_int_equal(pthread_create(&thread, NULL, launch_later, &begun_ns), 0);
    usleep(20000);
    int64_t ended_ns = clock_mono_ns();
    quiet_moment_end(&moment);
    pthread_join(thread, NULL);
    assert_true(begun_ns >= ended_ns);
}

static void *begin(void *is_quiet)
{
    *(bool *)is_quiet = quiet_moment_begin(&moment, hour_ms);
    return NULL;
}

static void a_launch_that_does_not_return_puts_it_off_and_the_next_tries_become_rare(void **state)
{
    (void)state;
    pthread_t thread;
    bool is_quiet = true;
    for (int64_t tries = 1; tries <= 2; tries++) {
        int64_t before_ns = clock_mono_ns();
        quiet_moment_launch(&moment, true);
        assert_int_equal(pthread_create(&thread, NULL, begin, &is_quiet), 0);
        pthread_join(thread, NULL);
        assert_false(is_quiet);
        assert_int_equal(moment.tries, tries);
        const int64_t rest_ns = (tries - 1) * 2000 * ms; /* however long the window is */
        assert_in_range(moment.rest_until_ns, before_ns + rest_ns, clock_mono_ns() + rest_ns);
        quiet_moment_launch(&moment, false);
        launch_once(); /* is not held back */
    }
    assert_false(quiet_moment_is_due(&moment, 0));
    quiet_moment_reset(&moment);
    launch_once();
    assert_true(quiet_moment_is_due(&moment, 0));
}

static void a_launch_that_began_before_the_first_report_does_not_leave(void **state)
{
    (void)state;
    quiet_moment_launch(&moment, false);
    assert_true(quiet_moment_begin(&moment, 1));
    quiet_moment_end(&moment);
    quiet_moment_end(&moment); /* none has begun */
    launch_once();
}

static char streams[2];

static void *end_a_capture(void *nothing)
{
    quiet_moment_capture(&moment, true);
    if (!captures_end(&streams[0], false))
        (void)captures_end(&streams[1], false);
    quiet_moment_capture(&moment, false);
    return nothing;
}

static void begin_a_capture(void)
{
    if (!captures_begin(NULL, &streams[0], false))
        (void)captures_begin(NULL, &streams[1], false);
    quiet_moment_capture(&moment, true);
    quiet_moment_capture(&moment, false);
}

static void there_is_none_while_a_graph_is_captured(void **state)
{
    (void)state;
    pthread_t thread;
    end_a_capture(NULL); /* that began before captures were reported */
    launch_once();
    begin_a_capture();
    begin_a_capture();
    for (int under_way = 2; under_way; under_way--) {
        assert_false(quiet_moment_is_due(&moment, 0));
        assert_false(quiet_moment_begin(&moment, hour_ms));
        assert_false(quiet_moment_begin_last(&moment));
        assert_true(moment.is_closed);
        quiet_moment_end(&moment);
        launch_once(); /* is not held back */
        assert_int_equal(pthread_create(&thread, NULL, end_a_capture, NULL), 0);
        pthread_join(thread, NULL);
    }
    assert_true(quiet_moment_is_due(&moment, 0)); /* at once: a capture is not a failed attempt */
    assert_true(quiet_moment_begin(&moment, 1));
    quiet_moment_end(&moment);
}

static void *capture_later(void *begun_ns)
{
    (void)captures_begin(NULL, &moment, false);
    quiet_moment_capture(&moment, true);
    *(int64_t *)begun_ns = clock_mono_ns();
    (void)captures_end(&moment, false); /* CUDA refused it */
    quiet_moment_capture(&moment, false);
    return NULL;
}

static void a_capture_begins_after_its_end(void **state)
{
    (void)state;
    pthread_t thread;
    int64_t begun_ns = 0;
    launch_once();
    assert_true(quiet_moment_begin(&moment, 1));
    assert_int_equal(pthread_create(&thread, NULL, capture_later, &begun_ns), 0);
    usleep(20000);
    int64_t ended_ns = clock_mono_ns();
    quiet_moment_end(&moment);
    pthread_join(thread, NULL);
    assert_true(begun_ns >= ended_ns);
    assert_false(captures_any());
}

static void a_context_that_cannot_be_waited_for_is_not_idle(void **state)
{
    (void)state;
    launch_once();
    deep_contexts_add(&moment.contexts, &moment); /* without CUDA it cannot be waited for */
    assert_false(quiet_moment_begin(&moment, hour_ms));
    assert_int_equal(moment.tries, 1);
    assert_false(quiet_moment_begin_last(&moment));
    quiet_moment_end(&moment);
    deep_contexts_remove(&moment.contexts, &moment);
    assert_true(quiet_moment_begin(&moment, 1));
    quiet_moment_end(&moment);
}

int main(void)
{
#define WITH_MOMENT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_MOMENT(a_program_that_launches_nothing_is_left_alone),
        WITH_MOMENT(launches_wait_for_its_end),
        WITH_MOMENT(a_launch_that_does_not_return_puts_it_off_and_the_next_tries_become_rare),
        WITH_MOMENT(a_launch_that_began_before_the_first_report_does_not_leave),
        WITH_MOMENT(there_is_none_while_a_graph_is_captured),
        WITH_MOMENT(a_capture_begins_after_its_end),
        WITH_MOMENT(a_context_that_cannot_be_waited_for_is_not_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
