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
    return scope_path_push(name, strlen(name));
}

static void names_are_joined_from_the_outside_in(void **state)
{
    (void)state;
    assert_string_equal(push("step"), "step");
    assert_string_equal(push("forward"), "step|forward");
    assert_string_equal(scope_path_push("attention_of_layer_3", 9), "step|forward|attention");
    scope_path_pop();
    scope_path_pop();
    assert_string_equal(push("backward"), "step|backward");
    scope_path_pop();
    scope_path_pop();
    assert_string_equal(push("load"), "load");
    scope_path_pop();
}

static void ends_without_a_begin_change_nothing(void **state)
{
    (void)state;
    scope_path_pop();
    scope_path_pop();
    assert_string_equal(push("a"), "a");
    scope_path_pop();
}

static void long_names_are_cut_and_come_off_again(void **state)
{
    (void)state;
    char name[5000];
    memset(name, 'n', sizeof name);
    push("outer");
    const char *path = scope_path_push(name, sizeof name);
    assert_int_equal(strlen(path), 2047);
    assert_memory_equal(path, "outer|nnn", 9);
    assert_int_equal(strlen(push("inner")), 2047); /* no room: the path stays whole */
    scope_path_pop();
    scope_path_pop();
    assert_string_equal(push("b"), "outer|b");
    scope_path_pop();
    scope_path_pop();
}

static void deeper_levels_than_are_kept_are_counted(void **state)
{
    (void)state;
    enum { depth = 200 };
    for (int i = 0; i < depth; i++)
        push("s");
    for (int i = 0; i < depth - 1; i++)
        scope_path_pop();
    assert_string_equal(push("t"), "s|t");
    scope_path_pop();
    scope_path_pop();
    assert_string_equal(push("u"), "u");
    scope_path_pop();
}

static void *other_thread(void *result)
{
    *(int *)result = strcmp(push("mine"), "mine") == 0;
    return NULL; /* with the scope open: the path goes with the thread */
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
    scope_path_pop();
    scope_path_pop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_joined_from_the_outside_in),
        cmocka_unit_test(ends_without_a_begin_change_nothing),
        cmocka_unit_test(long_names_are_cut_and_come_off_again),
        cmocka_unit_test(deeper_levels_than_are_kept_are_counted),
        cmocka_unit_test(each_thread_has_its_own_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
