/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/stages.h"
#include "base/watch.h"

#include <stdatomic.h>
#include <string.h>
#include <pthread.h>
#include <unistd.h>

#define BUDGET_NS INT64_C(6000000000) /* stages that do not hang get at least a second */

static struct seen {
    char runs[8]; /* the stages that ran, one letter each */
    size_t failed[4];
    enum stage_end ends[4];
    const char *calls[4];
    int failure_count;
} seen;
static atomic_bool is_released, has_late_stage_ended;

static pthread_mutex_t seen_mutex = PTHREAD_MUTEX_INITIALIZER; /* an abandoned stage runs in parallel with later ones */

static void note(char letter)
{
    pthread_mutex_lock(&seen_mutex);
    size_t used = strlen(seen.runs);
    seen.runs[used] = letter;
    seen.runs[used + 1] = '\0';
    pthread_mutex_unlock(&seen_mutex);
}

static void run_a(void *user)
{
    (void)user;
    note('a');
}

static void run_c(void *user)
{
    (void)user;
    note('c');
}

static int hang(void)
{
    int result = 0;
    while (!result || result < 0)
        result = pause();
    return result;
}

static void hang_in_a_call(void *user)
{
    (void)user;
    note('h');
    (void)WATCHED("vendorCall", hang());
    note('!');
}

static void wait_for_release(void *user)
{
    (void)user;
    note('w');
    while (!atomic_load(&is_released))
        usleep(100);
    atomic_store(&has_late_stage_ended, true);
}

static void wait_as_long_as_allowed(void *user)
{
    (void)user;
    int64_t until_ns = stages_until_ns(INT64_C(3600000000000));
    note('w');
    while (clock_mono_ns() < until_ns)
        usleep(100);
}

static void on_failure(void *user, size_t index, enum stage_end end, const char *call)
{
    assert_ptr_equal(user, &seen);
    seen.failed[seen.failure_count] = index;
    seen.ends[seen.failure_count] = end;
    seen.calls[seen.failure_count++] = call;
}

static void run_stages(void (*second)(void *user), void (*third)(void *user))
{
    const struct stage stages[] = {{run_a, 20, 30}, {second, 40, 50}, {third, 60, 70}, {run_c, 100, 100}};
    const struct stage_plan plan = {stages, sizeof stages / sizeof *stages, "stages", 0, on_failure};
    memset(&seen, 0, sizeof seen);
    stages_run(&plan, &seen, BUDGET_NS);
}

static void stages_run_one_after_the_other(void **state)
{
    (void)state;
    run_stages(run_a, run_c);
    assert_string_equal(seen.runs, "aacc");
    assert_int_equal(seen.failure_count, 0);
}

static void a_stage_whose_call_hangs_is_abandoned_and_the_next_one_runs(void **state)
{
    (void)state;
    run_stages(hang_in_a_call, run_c);
    assert_string_equal(seen.runs, "ahcc");
    assert_int_equal(seen.failure_count, 1);
    assert_int_equal(seen.failed[0], 1);
    assert_int_equal(seen.ends[0], STAGE_HUNG);
    assert_string_equal(seen.calls[0], "vendorCall");
}

static void two_stages_may_hang(void **state)
{
    (void)state;
    run_stages(hang_in_a_call, hang_in_a_call);
    assert_string_equal(seen.runs, "ahhc");
    assert_int_equal(seen.failure_count, 2);
    assert_int_equal(seen.failed[1], 2);
}

static void an_abandoned_busy_stage_does_not_run_the_next_one_twice(void **state)
{
    (void)state;
    run_stages(wait_for_release, run_c);
    assert_int_equal(seen.failure_count, 1);
    assert_int_equal(seen.ends[0], STAGE_BUSY);
    assert_null(seen.calls[0]);
    atomic_store(&is_released, true);
    while (!atomic_load(&has_late_stage_ended))
        usleep(100);
    assert_string_equal(seen.runs, "awcc");
}

static void a_wait_inside_a_stage_ends_before_the_stage_is_abandoned(void **state)
{
    (void)state;
    run_stages(wait_as_long_as_allowed, run_c);
    assert_string_equal(seen.runs, "awcc");
    /* On a busy machine the stage may still have been late; but its wait was bounded. */
    assert_true(stages_until_ns(INT64_C(3600000000000)) > clock_mono_ns() + INT64_C(3500000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_run_one_after_the_other),
        cmocka_unit_test(a_stage_whose_call_hangs_is_abandoned_and_the_next_one_runs),
        cmocka_unit_test(two_stages_may_hang),
        cmocka_unit_test(an_abandoned_busy_stage_does_not_run_the_next_one_twice),
        cmocka_unit_test(a_wait_inside_a_stage_ends_before_the_stage_is_abandoned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
