/* SPDX-License-Identifier: Apache-2.0 */
/* The log's clock continues while the wall clock is set, and times of the wall clock are converted to it. */
#include "base/clock.h"
#include "base/wall_steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define S INT64_C(1000000000)
#define MS INT64_C(1000000)

/* The simulated machine: one hour after boot, with the wall clock wall_ahead_ns ahead. */
struct machine {
    struct wall_steps steps;
    int64_t boot_ns, wall_ahead_ns;
};

static struct wall_reading read_clocks(const struct machine *machine)
{
    return (struct wall_reading){machine->boot_ns - 100, machine->boot_ns + machine->wall_ahead_ns,
                                 machine->boot_ns + 100};
}

static struct machine start(void)
{
    struct machine machine = {.boot_ns = 3600 * S, .wall_ahead_ns = 1000000 * S};
    wall_steps_start(&machine.steps, read_clocks(&machine));
    return machine;
}

static int64_t wall_of(const struct machine *machine)
{
    return machine->boot_ns + machine->wall_ahead_ns;
}

/* For a session whose wall clock was 1000000 s ahead at its start. */
static int64_t log_of(const struct machine *machine)
{
    return machine->boot_ns + 1000000 * S;
}

static int64_t note(struct machine *machine)
{
    return wall_steps_note(&machine->steps, read_clocks(machine));
}

static int64_t certain_log(const struct machine *machine, int64_t wall_ns, int64_t earliest_ns)
{
    bool is_certain;
    int64_t log_ns = wall_steps_log_ns(&machine->steps, wall_ns, earliest_ns, &is_certain);
    assert_true(is_certain);
    return log_ns;
}

static void without_steps_the_wall_clock_is_the_logs_clock(void **state)
{
    (void)state;
    struct machine machine = start();
    for (int i = 0; i < 100; i++) {
        machine.boot_ns += 100 * MS;
        assert_int_equal(note(&machine), 0);
        assert_int_equal(certain_log(&machine, wall_of(&machine), INT64_MIN), wall_of(&machine));
    }
}

static void a_slow_reading_is_not_a_step(void **state)
{
    (void)state;
    struct machine machine = start();
    struct wall_reading reading = read_clocks(&machine);
    reading.after_boot_ns += 2 * S; /* the thread was suspended for that long */
    assert_int_equal(wall_steps_note(&machine.steps, reading), 0);
    reading.wall_ns += 2 * S; /* the clock was read before the suspension, or after it */
    assert_int_equal(wall_steps_note(&machine.steps, reading), 0);
}

static void each_step_is_noticed_and_durations_across_it_are_preserved(void **state)
{
    (void)state;
    static const int64_t sizes_ns[] = {60 * S, -60 * S, 400 * MS, -400 * MS, 3 * MS, 3600 * S, -5 * S};
    struct machine machine = start();
    for (size_t i = 0; i < sizeof sizes_ns / sizeof *sizes_ns; i++) {
        machine.boot_ns += S;
        assert_int_equal(note(&machine), 0);
        int64_t before_wall_ns = wall_of(&machine), before_log_ns = log_of(&machine);
        machine.boot_ns += 10 * MS;
        machine.wall_ahead_ns += sizes_ns[i];
        machine.boot_ns += 50 * MS;
        int64_t after_wall_ns = wall_of(&machine), after_log_ns = log_of(&machine);
        machine.boot_ns += 40 * MS;
        assert_int_equal(note(&machine), sizes_ns[i]);
        /* Each was launched one millisecond earlier. */
        bool is_certain;
        assert_int_equal(wall_steps_log_ns(&machine.steps, before_wall_ns, before_log_ns - MS, &is_certain),
                         before_log_ns);
        assert_int_equal(wall_steps_log_ns(&machine.steps, after_wall_ns, after_log_ns - MS, &is_certain),
                         after_log_ns);
    }
}

static void without_a_call_a_time_is_certain_when_only_one_side_of_the_step_is_possible(void **state)
{
    (void)state;
    struct machine machine = start();
    machine.boot_ns += 10 * S;
    assert_int_equal(note(&machine), 0);
    int64_t before_wall_ns = wall_of(&machine), before_log_ns = log_of(&machine);
    machine.wall_ahead_ns += 60 * S;
    machine.boot_ns += 100 * MS;
    assert_int_equal(note(&machine), 60 * S);
    machine.boot_ns += 100 * MS;
    assert_int_equal(note(&machine), 0);
    assert_int_equal(certain_log(&machine, before_wall_ns, INT64_MIN), before_log_ns);
    assert_int_equal(certain_log(&machine, wall_of(&machine), INT64_MIN), log_of(&machine));
}

static void a_time_that_the_clock_showed_twice_is_uncertain_without_a_call(void **state)
{
    (void)state;
    struct machine machine = start();
    machine.boot_ns += 10 * S;
    assert_int_equal(note(&machine), 0);
    machine.wall_ahead_ns -= 400 * MS;
    machine.boot_ns += 100 * MS;
    assert_int_equal(note(&machine), -400 * MS);
    machine.boot_ns += 2 * S;
    assert_int_equal(note(&machine), 0);
    bool is_certain;
    int64_t twice_ns = wall_of(&machine) - 2 * S;
    (void)wall_steps_log_ns(&machine.steps, twice_ns, INT64_MIN, &is_certain);
    assert_false(is_certain);
    int64_t log_ns = log_of(&machine) - 2 * S;
    assert_int_equal(certain_log(&machine, twice_ns, log_ns - 10 * MS), log_ns);
}

static void a_time_that_no_clock_showed_is_uncertain(void **state)
{
    (void)state;
    struct machine machine = start();
    machine.wall_ahead_ns += 60 * S;
    machine.boot_ns += 100 * MS;
    assert_int_equal(note(&machine), 60 * S);
    bool is_certain;
    (void)wall_steps_log_ns(&machine.steps, wall_of(&machine) + 3600 * S, INT64_MIN, &is_certain);
    assert_false(is_certain);
}

static void of_too_many_steps_the_latest_are_kept(void **state)
{
    (void)state;
    struct machine machine = start();
    for (int i = 0; i < 10 * WALL_STEPS_KEPT; i++) {
        machine.boot_ns += S;
        machine.wall_ahead_ns += (i % 2 ? -7 : 5) * S;
        assert_int_equal(note(&machine), (i % 2 ? -7 : 5) * S);
    }
    assert_int_equal(certain_log(&machine, wall_of(&machine), log_of(&machine)), log_of(&machine));
}

static void file_write(char path[64], const char *text)
{
    snprintf(path, 64, "/tmp/gpufl-clocksource-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    fputs(text, file);
    fclose(file);
}

static void the_counter_is_used_only_where_the_kernel_uses_it(void **state)
{
    (void)state;
    char path[64];
    file_write(path, "hpet\n");
    clock_setup(path);
    assert_false(clock_has_counter);
    unlink(path);
    clock_setup(path);
    assert_false(clock_has_counter);
    struct tick_scale scale;
    tick_scale_start(&scale);
    int64_t before_ns = clock_boot_ns();
    uint64_t ticks = clock_ticks();
    assert_in_range(ticks, before_ns, clock_boot_ns());
    tick_scale_update(&scale);
    assert_in_range(tick_scale_log_ns(&scale, ticks), clock_wall_ns() - 60 * S, clock_wall_ns());
}

static void ticks_become_times_of_the_logs_clock(void **state)
{
    (void)state;
    clock_setup(NULL);
    clock_log_start();
    struct tick_scale scale;
    tick_scale_start(&scale);
    int64_t before_ns = clock_log_ns();
    uint64_t ticks = clock_ticks();
    int64_t after_ns = clock_log_ns();
    tick_scale_update(&scale);
    assert_in_range(tick_scale_log_ns(&scale, ticks), before_ns - MS, after_ns + MS);
    assert_int_equal(clock_take_step(), 0);
    assert_false(clock_has_steps());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_steps_the_wall_clock_is_the_logs_clock),
        cmocka_unit_test(a_slow_reading_is_not_a_step),
        cmocka_unit_test(each_step_is_noticed_and_durations_across_it_are_preserved),
        cmocka_unit_test(without_a_call_a_time_is_certain_when_only_one_side_of_the_step_is_possible),
        cmocka_unit_test(a_time_that_the_clock_showed_twice_is_uncertain_without_a_call),
        cmocka_unit_test(a_time_that_no_clock_showed_is_uncertain),
        cmocka_unit_test(of_too_many_steps_the_latest_are_kept),
        cmocka_unit_test(the_counter_is_used_only_where_the_kernel_uses_it),
        cmocka_unit_test(ticks_become_times_of_the_logs_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
