/* SPDX-License-Identifier: Apache-2.0 */
/* Which executions of a function overlap an interval, and what is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/kernel_history.h"

#include <stdio.h>

enum { CONTEXT = 3 };

static int make(void **state)
{
    return kernel_history_make((struct kernel_history **)state, 1024) == GPUFL_OK ? 0 : -1;
}
static int make_small(void **state)
{
    return kernel_history_make((struct kernel_history **)state, 16) == GPUFL_OK ? 0 : -1;
}
static int unmake(void **state)
{
    kernel_history_free(*state);
    return 0;
}

static void add(struct kernel_history *history, const char *symbol, int64_t start_ns, int64_t end_ns, uint64_t scope_id,
                uint32_t correlation_id)
{
    const struct kernel_execution execution = {
        start_ns, end_ns, scope_id, kernel_history_symbol(history, symbol), CONTEXT, correlation_id, 0};
    kernel_history_add(history, &execution);
}

static struct kernel_overlap overlap(struct kernel_history *history, const char *symbol, int64_t from_ns, int64_t to_ns)
{
    struct kernel_overlap overlap;
    kernel_history_overlap(history, kernel_history_symbol(history, symbol), CONTEXT, from_ns, to_ns, &overlap);
    return overlap;
}

static void the_only_execution_in_an_interval_is_certain(void **state)
{
    struct kernel_history *history = *state;
    add(history, "a", 1000, 2000, 7, 42);
    add(history, "a", 5000, 6000, 8, 43);
    struct kernel_overlap found = overlap(history, "a", 1500, 4000);
    assert_int_equal(found.instances, 1);
    assert_int_equal(found.correlation_id, 42);
    assert_int_equal(found.share_count, 1);
    assert_int_equal(found.shares[0].scope_id, 7);
    assert_int_equal(found.shares[0].ns, found.total_ns);
    assert_true(found.is_complete);
}

static void time_of_a_scope_that_is_not_known_makes_no_scope_certain(void **state)
{
    struct kernel_history *history = *state;
    add(history, "a", 1000, 2000, 0, 42);
    add(history, "a", 2000, 5000, SCOPE_UNKNOWN, 43);
    struct kernel_overlap found = overlap(history, "a", 1000, 5000);
    assert_int_equal(found.instances, 2);
    assert_int_equal(found.total_ns, 4000);
    assert_int_equal(found.shares[0].ns, 1000);
    assert_int_equal(found.unknown_ns, 3000);
    struct kernel_execution execution;
    assert_false(kernel_history_find(history, 43, kernel_history_symbol(history, "a"), &execution));
}

static void several_executions_give_each_scope_its_time(void **state)
{
    struct kernel_history *history = *state;
    add(history, "a", 0, 3000, 7, 1);
    add(history, "a", 3000, 4000, 8, 2);
    add(history, "a", 5000, 7000, 7, 3); /* half of it inside */
    struct kernel_overlap found = overlap(history, "a", 1000, 6000);
    assert_int_equal(found.instances, 3);
    assert_int_equal(found.correlation_id, 0);
    assert_int_equal(found.share_count, 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(found.shares[i].ns, found.shares[i].scope_id == 7 ? 3000 : 1000);
    assert_int_equal(found.total_ns, 4000);
}

static void other_functions_and_contexts_do_not_count(void **state)
{
    struct kernel_history *history = *state;
    add(history, "a", 1000, 2000, 7, 1);
    add(history, "b", 1000, 2000, 8, 2);
    assert_int_equal(overlap(history, "a", 0, 9000).instances, 1);
    struct kernel_overlap found;
    kernel_history_overlap(history, kernel_history_symbol(history, "a"), CONTEXT + 1, 0, 9000, &found);
    assert_int_equal(found.instances, 0);
    assert_int_equal(overlap(history, "c", 0, 9000).instances, 0);
}

static void executions_of_every_length_are_found_from_inside_them(void **state)
{
    struct kernel_history *history = *state;
    const int64_t begin_ns = INT64_C(1763000000000000000), second_ns = 1000000000;
    uint32_t id = 0;
    for (int64_t length_ns = 1; length_ns < 3600 * second_ns; length_ns *= 3) {
        char name[32];
        snprintf(name, sizeof name, "k%u", ++id);
        add(history, name, begin_ns, begin_ns + length_ns, 5, id);
        struct kernel_overlap found = overlap(history, name, begin_ns + length_ns - length_ns / 100,
                                              begin_ns + length_ns - length_ns / 100 + 20000000);
        assert_int_equal(found.instances, 1);
        assert_int_equal(found.correlation_id, id);
        assert_int_equal(overlap(history, name, begin_ns + length_ns + 1, begin_ns + length_ns + second_ns).instances,
                         0);
        assert_int_equal(overlap(history, name, begin_ns - second_ns, begin_ns - 1).instances, 0);
    }
}

static void a_look_up_agrees_with_a_plain_scan(void **state)
{
    struct kernel_history *history = *state;
    struct kernel_execution all[1000];
    uint64_t random = 12345;
    const int64_t begin_ns = INT64_C(1763000000000000000);
    uint32_t symbol = kernel_history_symbol(history, "a");
    for (int i = 0; i < 1000; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t start_ns = begin_ns + (int64_t)(random >> 32);
        int64_t length_ns = (int64_t)((random >> 20 & 0xffff) << (random >> 40 & 15));
        all[i] = (struct kernel_execution){start_ns, start_ns + length_ns, 1, symbol, CONTEXT, (uint32_t)i + 1, 0};
        kernel_history_add(history, &all[i]);
    }
    for (int64_t from_ns = begin_ns; from_ns < begin_ns + (INT64_C(1) << 32); from_ns += INT64_C(211111111)) {
        uint32_t expected = 0, began = 0;
        int64_t to_ns = from_ns + 20000000;
        for (int i = 0; i < 1000; i++)
            if (all[i].start_ns <= to_ns && all[i].end_ns >= from_ns) {
                expected++;
                began += all[i].start_ns >= from_ns;
            }
        struct kernel_overlap found;
        kernel_history_overlap(history, symbol, CONTEXT, from_ns, to_ns, &found);
        assert_int_equal(found.instances, expected);
        assert_int_equal(found.began, began);
    }
}

static void what_is_forgotten_is_said(void **state)
{
    struct kernel_history *history = *state; /* remembers 16 */
    for (uint32_t i = 1; i <= 20; i++)
        add(history, "a", i * 1000, i * 1000 + 500, i, i);
    assert_false(overlap(history, "a", 4500, 6000).is_complete);
    struct kernel_overlap found = overlap(history, "a", 4501, 6100);
    assert_true(found.is_complete);
    assert_int_equal(found.instances, 2);
    assert_int_equal(overlap(history, "a", 0, 100000).instances, 16);
}

static void a_launch_is_found_until_it_is_forgotten(void **state)
{
    struct kernel_history *history = *state;
    struct kernel_execution execution;
    uint32_t symbol = kernel_history_symbol(history, "a");
    for (uint32_t i = 1; i <= 20; i++)
        add(history, "a", i * 1000, i * 1000 + 500, i, i);
    assert_true(kernel_history_find(history, 20, symbol, &execution));
    assert_int_equal(execution.scope_id, 20);
    assert_true(kernel_history_find(history, 5, symbol, &execution));
    assert_false(kernel_history_find(history, 4, symbol, &execution));
    assert_false(kernel_history_find(history, 20, symbol + 1, &execution));
}

static void more_scopes_than_can_be_distinguished_do_not_overstate_a_share(void **state)
{
    struct kernel_history *history = *state;
    enum { count = KERNEL_SHARES_MAX + 100 };
    for (uint32_t i = 1; i <= count; i++)
        add(history, "a", i * 1000, i * 1000 + 500, i, i);
    struct kernel_overlap found = overlap(history, "a", 0, 1000000);
    assert_int_equal(found.instances, count);
    assert_int_equal(found.share_count, KERNEL_SHARES_MAX);
    for (uint32_t i = 0; i < found.share_count; i++)
        assert_int_equal(found.shares[i].ns, 500);
    assert_int_equal(found.unknown_ns, 100 * 500);
    assert_int_equal(found.total_ns, count * 500);
}

static void instances_of_a_path_are_one_share(void **state)
{
    struct kernel_history *history = *state;
    for (uint32_t i = 0; i < 6; i++) {
        struct kernel_execution execution = {
            i * 1000, i * 1000 + 100, i + 1, kernel_history_symbol(history, "a"), CONTEXT, i + 1, i % 3 ? 5 : 6};
        kernel_history_add(history, &execution);
    }
    struct kernel_overlap found = overlap(history, "a", 3000, 9000); /* the last three: paths 6, 5, 5 */
    assert_int_equal(found.share_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(found.shares[i].ns, found.shares[i].path_id == 5 ? 200 : 100);
        assert_int_equal(found.shares[i].scope_id, found.shares[i].path_id == 5 ? 0 : 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_only_execution_in_an_interval_is_certain, make, unmake),
        cmocka_unit_test_setup_teardown(time_of_a_scope_that_is_not_known_makes_no_scope_certain, make, unmake),
        cmocka_unit_test_setup_teardown(several_executions_give_each_scope_its_time, make, unmake),
        cmocka_unit_test_setup_teardown(other_functions_and_contexts_do_not_count, make, unmake),
        cmocka_unit_test_setup_teardown(executions_of_every_length_are_found_from_inside_them, make, unmake),
        cmocka_unit_test_setup_teardown(a_look_up_agrees_with_a_plain_scan, make, unmake),
        cmocka_unit_test_setup_teardown(what_is_forgotten_is_said, make_small, unmake),
        cmocka_unit_test_setup_teardown(a_launch_is_found_until_it_is_forgotten, make_small, unmake),
        cmocka_unit_test_setup_teardown(instances_of_a_path_are_one_share, make, unmake),
        cmocka_unit_test_setup_teardown(more_scopes_than_can_be_distinguished_do_not_overstate_a_share, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
