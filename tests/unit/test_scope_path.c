/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/scope_path.h"

#include <pthread.h>
#include <string.h>

static const char *push(const char *name)
{
    return scope_path_push(SCOPE_STACK_API, name, strlen(name));
}

static void names_are_joined_from_the_outside_in(void **state)
{
    (void)state;
    assert_string_equal(push("step"), "step");
    assert_string_equal(push("forward"), "step|forward");
    assert_string_equal(scope_path_push(SCOPE_STACK_API, "attention_of_layer_3", 9), "step|forward|attention");
    (void)scope_path_pop(SCOPE_STACK_API);
    (void)scope_path_pop(SCOPE_STACK_API);
    assert_string_equal(push("backward"), "step|backward");
    (void)scope_path_pop(SCOPE_STACK_API);
    (void)scope_path_pop(SCOPE_STACK_API);
    assert_string_equal(push("load"), "load");
    (void)scope_path_pop(SCOPE_STACK_API);
}

static void ends_without_a_begin_change_nothing(void **state)
{
    (void)state;
    (void)scope_path_pop(SCOPE_STACK_API);
    (void)scope_path_pop(SCOPE_STACK_API);
    assert_string_equal(push("a"), "a");
    (void)scope_path_pop(SCOPE_STACK_API);
}

static void long_names_are_cut_and_come_off_again(void **state)
{
    (void)state;
    char name[5000];
    memset(name, 'n', sizeof name);
    push("outer");
    const char *path = scope_path_push(SCOPE_STACK_API, name, sizeof name);
    assert_int_equal(strlen(path), 2047);
    assert_memory_equal(path, "outer|nnn", 9);
    assert_int_equal(strlen(push("inner")), 2047); /* no room: the path does not change */
    (void)scope_path_pop(SCOPE_STACK_API);
    (void)scope_path_pop(SCOPE_STACK_API);
    assert_string_equal(push("b"), "outer|b");
    (void)scope_path_pop(SCOPE_STACK_API);
    (void)scope_path_pop(SCOPE_STACK_API);
}

static void deeper_levels_than_are_kept_are_counted(void **state)
{
    (void)state;
    enum { depth = 200 };
    for (int i = 0; i < depth; i++)
        push("s");
    for (int i = 0; i < depth - 1; i++)
        (void)scope_path_pop(SCOPE_STACK_API);
    assert_string_equal(push("t"), "s|t");
    (void)scope_path_pop(SCOPE_STACK_API);
    (void)scope_path_pop(SCOPE_STACK_API);
    assert_string_equal(push("u"), "u");
    (void)scope_path_pop(SCOPE_STACK_API);
}

static void a_scope_that_ends_before_those_in_it_stays_in_their_paths(void **state)
{
    (void)state;
    enum { other = SCOPE_STACK_NVTX };
    push("a");
    assert_string_equal(scope_path_push(other, "b", 1), "a|b");
    assert_int_equal(scope_path_pop(SCOPE_STACK_API), 1); /* one that began later is open */
    assert_int_equal(scope_path_pop(SCOPE_STACK_API), -1);
    assert_string_equal(push("c"), "a|b|c");
    assert_int_equal(scope_path_pop(SCOPE_STACK_API), 0);
    assert_int_equal(scope_path_pop(other), 0);
    assert_string_equal(push("d"), "d");
    assert_int_equal(scope_path_pop(SCOPE_STACK_API), 0);
}

static void *other_thread(void *result)
{
    *(int *)result = strcmp(push("mine"), "mine") == 0;
    return NULL; /* with the scope open: the path is freed with the thread */
}

static void each_thread_has_its_own_path(void **state)
{
    (void)state;
    pthread_t thread;
    int is_alone = 0;
    push("main");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &is_alone), 0);
    pthread_join(thread, NULL);
    assert_true(is_alone);
    assert_string_equal(push("still"), "main|still");
    (void)scope_path_pop(SCOPE_STACK_API);
    (void)scope_path_pop(SCOPE_STACK_API);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_joined_from_the_outside_in),
        cmocka_unit_test(ends_without_a_begin_change_nothing),
        cmocka_unit_test(long_names_are_cut_and_come_off_again),
        cmocka_unit_test(deeper_levels_than_are_kept_are_counted),
        cmocka_unit_test(a_scope_that_ends_before_those_in_it_stays_in_their_paths),
        cmocka_unit_test(each_thread_has_its_own_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
