/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/current_thread.h"
#include "base/own_thread.h"
#include "base/watch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { result = 7 };

/* A call that returns when the pipe is closed, and what its thread did. */
static struct thread {
    int pipe[2];
    atomic_int tid, is_in_call, is_returning, has_gone_on, got;
    pthread_t thread;
} hung;

static int call_until_released(void)
{
    char byte;
    atomic_store(&hung.tid, (pid_t)current_thread_id());
    atomic_store(&hung.is_in_call, 1);
    (void)!read(hung.pipe[0], &byte, 1);
    atomic_store(&hung.is_returning, 1);
    return result;
}

static int call_that_calls_back(void)
{
    return WATCHED("inner", call_until_released());
}

static void *run_one_call(void *unused)
{
    atomic_store(&hung.got, WATCHED("outer", call_until_released()));
    atomic_store(&hung.has_gone_on, 1);
    return unused;
}

static void *run_nested_calls(void *unused)
{
    (void)WATCHED("outer", call_that_calls_back());
    return unused;
}

static void *run_outside_of_calls(void *unused)
{
    (void)call_until_released();
    return unused;
}

static void start(void *(*run)(void *))
{
    memset(&hung, 0, sizeof hung);
    assert_int_equal(pipe(hung.pipe), 0);
    assert_true(own_thread_start(&hung.thread, "hung", OWN_THREAD_STACK_SMALL, run, NULL));
    while (!atomic_load(&hung.is_in_call))
        usleep(100);
}

static void release(void)
{
    close(hung.pipe[1]);
}

static void a_call_returns_what_it_returned(void **state)
{
    (void)state;
    start(run_one_call);
    release();
    const char *call = NULL;
    assert_int_equal(watch_join(hung.thread, INT64_MAX, INT64_MAX, &call), WATCH_ENDED);
    assert_int_equal(atomic_load(&hung.got), result);
    assert_null(call);
}

static void a_thread_whose_call_hangs_is_abandoned_and_the_call_is_named(void **state)
{
    (void)state;
    const char *call = NULL;
    start(run_one_call);
    assert_null(watch_hung("out"));
    assert_int_equal(watch_join(hung.thread, clock_mono_ns(), clock_mono_ns(), &call), WATCH_HUNG);
    assert_string_equal(call, "outer");
    assert_string_equal(watch_hung("out"), "outer");
    assert_null(watch_hung("nvml"));
    assert_int_equal(watch_hung_count(), 1);
    assert_string_equal(watch_hung_call(0), "outer");
}

/* The state of the watched thread in /proc: 'S' means that it sleeps, here outside of the watched call. */
static char state_of_thread(void)
{
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&hung.tid));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
    fclose(file);
    return state;
}

static void an_abandoned_thread_does_nothing_when_its_call_returns(void **state)
{
    (void)state;
    const char *call = NULL;
    start(run_one_call);
    assert_int_equal(watch_join(hung.thread, clock_mono_ns(), clock_mono_ns(), &call), WATCH_HUNG);
    release();
    while (!atomic_load(&hung.is_returning) || state_of_thread() != 'S')
        usleep(100);
    assert_int_equal(atomic_load(&hung.has_gone_on), 0);
}

static void the_innermost_call_is_named(void **state)
{
    (void)state;
    const char *call = NULL;
    start(run_nested_calls);
    assert_int_equal(watch_join(hung.thread, clock_mono_ns(), clock_mono_ns(), &call), WATCH_HUNG);
    assert_string_equal(call, "inner");
}

static void the_outer_call_is_named_again_after_the_inner_one(void **state)
{
    (void)state;
    watch_enter("outer");
    (void)WATCHED("inner", 0);
    assert_null(watch_longest(INT64_MAX)); /* nobody waits for the calls of this thread */
    watch_leave(0);
    start(run_nested_calls);
    assert_string_equal(watch_longest(INT64_MAX), "inner");
    assert_null(watch_longest(0));
    release();
    assert_int_equal(watch_join(hung.thread, INT64_MAX, INT64_MAX, &(const char *){NULL}), WATCH_ENDED);
    assert_null(watch_longest(INT64_MAX));
}

static void a_thread_in_our_own_code_is_not_abandoned(void **state)
{
    (void)state;
    const char *call = NULL;
    uint32_t before = watch_hung_count();
    start(run_outside_of_calls);
    assert_int_equal(watch_join(hung.thread, clock_mono_ns(), clock_mono_ns(), &call), WATCH_BUSY);
    assert_null(call);
    assert_int_equal(watch_hung_count(), before);
    release();
}

static int fork_in_a_call(void)
{
    pid_t child = fork();
    if (child == 0)
        watch_after_fork_in_child();
    return child;
}

static void a_forked_child_has_only_its_own_calls(void **state)
{
    (void)state;
    start(run_one_call);
    pid_t child = WATCHED("fork", fork_in_a_call()); /* the child returns from its call, too */
    if (child == 0)
        _exit(watch_longest(INT64_MAX) ? 1 : 0);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_string_equal(watch_longest(INT64_MAX), "outer");
    release();
    assert_int_equal(watch_join(hung.thread, INT64_MAX, INT64_MAX, &(const char *){NULL}), WATCH_ENDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_returns_what_it_returned),
        cmocka_unit_test(a_thread_whose_call_hangs_is_abandoned_and_the_call_is_named),
        cmocka_unit_test(an_abandoned_thread_does_nothing_when_its_call_returns),
        cmocka_unit_test(the_innermost_call_is_named),
        cmocka_unit_test(the_outer_call_is_named_again_after_the_inner_one),
        cmocka_unit_test(a_thread_in_our_own_code_is_not_abandoned),
        cmocka_unit_test(a_forked_child_has_only_its_own_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
