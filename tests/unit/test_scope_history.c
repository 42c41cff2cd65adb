/* SPDX-License-Identifier: Apache-2.0 */
/* Which scope a thread was in: results for more threads and steps than there is room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/scope_history.h"

#define SECOND_NS INT64_C(1000000000)

enum { threads_max = 4096, threads_with_steps = 2048, steps_max = 64 * 1024 };

static int make(void **state)
{
    return scope_history_make((struct scope_history **)state) == GPUFL_OK ? 0 : -1;
}
static int unmake(void **state)
{
    scope_history_free(*state);
    return 0;
}

static void assert_scope(struct scope_history *history, uint32_t thread_id, int64_t time_ns, uint64_t scope_id)
{
    uint64_t found;
    assert_true(scope_history_find(history, thread_id, time_ns, &found));
    assert_int_equal(found, scope_id);
}

static void assert_unknown(struct scope_history *history, uint32_t thread_id, int64_t time_ns)
{
    uint64_t found;
    assert_false(scope_history_find(history, thread_id, time_ns, &found));
    assert_int_equal(found, 0);
}

/* A scope of the thread, one second from start_ns on; its id is the thread's. */
static void be_in_scope(struct scope_history *history, uint32_t thread_id, int64_t start_ns)
{
    scope_history_step(history, thread_id, start_ns, thread_id);
    scope_history_step(history, thread_id, start_ns + SECOND_NS, 0);
}

static void a_thread_without_room_for_steps_is_unknown_but_for_its_last(void **state)
{
    struct scope_history *history = *state;
    for (uint32_t thread_id = 1; thread_id <= 8; thread_id++)
        for (int64_t i = 0; i < steps_max; i++)
            scope_history_step(history, thread_id, 1000 + i, 1);
    scope_history_step(history, 9, 5000, 777);
    scope_history_step(history, 9, 6000, 778);
    assert_unknown(history, 9, 5001);
    assert_unknown(history, 9, 4000);
    assert_scope(history, 9, 6001, 778);
    assert_scope(history, 10, 5001, 0);
}

static void threads_beyond_the_steps_of_all_are_unknown(void **state)
{
    struct scope_history *history = *state;
    for (uint32_t thread_id = 1; thread_id <= threads_with_steps + 1; thread_id++)
        be_in_scope(history, thread_id, SECOND_NS);
    assert_scope(history, threads_with_steps, SECOND_NS + 1, threads_with_steps);
    assert_unknown(history, threads_with_steps + 1, SECOND_NS + 1);
}

static void threads_beyond_the_table_are_unknown(void **state)
{
    struct scope_history *history = *state;
    for (uint32_t thread_id = 1; thread_id <= threads_max; thread_id++)
        be_in_scope(history, thread_id, SECOND_NS);
    assert_scope(history, threads_max + 1, SECOND_NS + 1, 0);
    be_in_scope(history, threads_max + 1, SECOND_NS);
    assert_unknown(history, threads_max + 1, SECOND_NS + 1);
    assert_scope(history, 1, SECOND_NS + 1, 1);
}

static void threads_that_left_their_scopes_long_ago_make_room(void **state)
{
    struct scope_history *history = *state;
    enum { threads = 5 * threads_max };
    const uint32_t main_thread = 1000000;
    scope_history_step(history, main_thread, SECOND_NS, 42); /* and stays there */
    for (uint32_t i = 1; i <= threads; i++)
        be_in_scope(history, i, (1 + i / 100) * SECOND_NS);
    int64_t last_ns = (1 + threads / 100) * SECOND_NS;
    assert_scope(history, threads, last_ns + 1, threads);
    assert_scope(history, threads - 500, last_ns - 5 * SECOND_NS + 1, threads - 500);
    assert_scope(history, main_thread, last_ns, 42);
    assert_unknown(history, 1, SECOND_NS + 1);
    assert_scope(history, 1, last_ns, 0);
    assert_true(scope_history_bytes(history) < 10 << 20);
}

static void a_forgotten_thread_that_comes_back_does_not_deny_its_old_scopes(void **state)
{
    struct scope_history *history = *state;
    for (uint32_t thread_id = 1; thread_id <= threads_with_steps; thread_id++)
        be_in_scope(history, thread_id, SECOND_NS);
    for (int i = 0; i < 3; i++) /* idle threads are evicted only once in a while */
        for (uint32_t step = 0; step < 2 * threads_max; step++)
            scope_history_step(history, threads_with_steps, 20 * SECOND_NS + step, 0);
    be_in_scope(history, threads_with_steps + 1, 21 * SECOND_NS);
    be_in_scope(history, 1, 22 * SECOND_NS);
    assert_scope(history, 1, 22 * SECOND_NS + 1, 1);
    assert_unknown(history, 1, SECOND_NS + 1);
    assert_scope(history, 1, 20 * SECOND_NS, 0);
}

int main(void)
{
#define WITH_HISTORY(test) cmocka_unit_test_setup_teardown(test, make, unmake)
    const struct CMUnitTest tests[] = {
        WITH_HISTORY(a_thread_without_room_for_steps_is_unknown_but_for_its_last),
        WITH_HISTORY(threads_beyond_the_steps_of_all_are_unknown),
        WITH_HISTORY(threads_beyond_the_table_are_unknown),
        WITH_HISTORY(threads_that_left_their_scopes_long_ago_make_room),
        WITH_HISTORY(a_forgotten_thread_that_comes_back_does_not_deny_its_old_scopes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
