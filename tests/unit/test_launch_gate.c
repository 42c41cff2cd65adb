/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/launch_gate.h"

enum { LONG_MS = 60000, SHORT_MS = 20, THREADS = 4, LAUNCHES = 20000, CLOSINGS = 200 };

static struct launch_gate gate;
static pthread_barrier_t both;
static atomic_int launched, closed_in_time;

static int gate_make(void **state)
{
    (void)state;
    launch_gate_init(&gate);
    atomic_store(&launched, 0);
    atomic_store(&closed_in_time, 0);
    return 0;
}

static int gate_free(void **state)
{
    (void)state;
    launch_gate_destroy(&gate);
    return 0;
}

static void closing_waits_for_launches_under_way(void **state)
{
    (void)state;
    launch_gate_enter(&gate);
    assert_false(launch_gate_close(&gate, false, SHORT_MS));
    launch_gate_leave(&gate);
    assert_true(launch_gate_close(&gate, false, LONG_MS));
    launch_gate_open(&gate, false);
    launch_gate_enter(&gate); /* is open again */
    assert_true(launch_gate_close(&gate, true, LONG_MS));
    launch_gate_open(&gate, true);
    launch_gate_leave(&gate);
    assert_int_equal(atomic_load(&gate.inside), 0);
}

static void *launch_once(void *nothing)
{
    pthread_barrier_wait(&both);
    launch_gate_enter(&gate);
    atomic_fetch_add(&launched, 1);
    launch_gate_leave(&gate);
    return nothing;
}

static void a_launch_waits_while_the_gate_is_closed(void **state)
{
    (void)state;
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    assert_true(launch_gate_close(&gate, false, LONG_MS));
    assert_int_equal(pthread_create(&thread, NULL, launch_once, NULL), 0);
    pthread_barrier_wait(&both);
    assert_int_equal(atomic_load(&launched), 0);
    launch_gate_open(&gate, false);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&launched), 1);
    pthread_barrier_destroy(&both);
}

static void a_launch_opens_a_gate_that_nobody_opens(void **state)
{
    (void)state;
    gate.enter_wait_ms = SHORT_MS;
    assert_true(launch_gate_close(&gate, false, LONG_MS));
    launch_gate_enter(&gate);
    gate.enter_wait_ms = LONG_MS;
    launch_gate_enter(&gate); /* the next one does not wait */
    launch_gate_leave(&gate);
    launch_gate_leave(&gate);
    launch_gate_open(&gate, false); /* it returned after all */
    assert_true(launch_gate_close(&gate, false, LONG_MS));
    launch_gate_open(&gate, false);
}

static void *close_inside(void *nothing)
{
    launch_gate_enter(&gate);
    pthread_barrier_wait(&both);
    if (launch_gate_close(&gate, true, LONG_MS)) {
        atomic_fetch_add(&closed_in_time, 1);
        launch_gate_open(&gate, true);
    }
    launch_gate_leave(&gate);
    return nothing;
}

static void two_launches_that_close_the_gate_do_not_wait_for_each_other(void **state)
{
    (void)state;
    pthread_t threads[2];
    pthread_barrier_init(&both, NULL, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, close_inside, NULL), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&closed_in_time), 2);
    assert_int_equal(atomic_load(&gate.inside), 0);
    pthread_barrier_destroy(&both);
}

static int under_way[THREADS]; /* not atomic: the thread sanitizer also detects a gate that leaks */

static void *launch_often(void *number)
{
    for (int i = 0; i < LAUNCHES; i++) {
        launch_gate_enter(&gate);
        under_way[(uintptr_t)number] = 1;
        under_way[(uintptr_t)number] = 0;
        launch_gate_leave(&gate);
    }
    return NULL;
}

static void nothing_is_launched_while_it_is_closed(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, (void *)i), 0);
    for (int i = 0; i < CLOSINGS; i++) {
        assert_true(launch_gate_close(&gate, false, LONG_MS));
        for (int thread = 0; thread < THREADS; thread++)
            assert_int_equal(under_way[thread], 0);
        launch_gate_open(&gate, false);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(closing_waits_for_launches_under_way, gate_make, gate_free),
        cmocka_unit_test_setup_teardown(a_launch_waits_while_the_gate_is_closed, gate_make, gate_free),
        cmocka_unit_test_setup_teardown(a_launch_opens_a_gate_that_nobody_opens, gate_make, gate_free),
        cmocka_unit_test_setup_teardown(two_launches_that_close_the_gate_do_not_wait_for_each_other, gate_make,
                                        gate_free),
        cmocka_unit_test_setup_teardown(nothing_is_launched_while_it_is_closed, gate_make, gate_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
