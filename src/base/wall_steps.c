/* SPDX-License-Identifier: Apache-2.0 */
#include "base/wall_steps.h"

enum {
    /* the kernel keeps the difference of the two clocks exactly, but readings are whole nanoseconds */
    rounding_ns = 1000,
    slack_ns = 1000000 /* CUPTI's times deviate from the clock by some microseconds */
};

static struct wall_era *era_at(const struct wall_steps *steps, uint32_t number)
{
    return (struct wall_era *)&steps->eras[number % WALL_STEPS_KEPT];
}

static int64_t offset_of(struct wall_reading reading)
{
    return reading.wall_ns - (reading.before_boot_ns + (reading.after_boot_ns - reading.before_boot_ns) / 2);
}

void wall_steps_start(struct wall_steps *steps, struct wall_reading now)
{
    *steps = (struct wall_steps){
        .log_offset_ns = offset_of(now),
        .eras = {{.offset_ns = offset_of(now), .not_before_ns = INT64_MIN, .begun_ns = INT64_MIN}},
        .era_count = 1,
        .latest_boot_ns = now.after_boot_ns,
    };
}

int64_t wall_steps_note(struct wall_steps *steps, struct wall_reading now)
{
    const struct wall_era *era = era_at(steps, steps->era_count - 1);
    int64_t previous_ns = steps->latest_boot_ns;
    steps->latest_boot_ns = now.after_boot_ns;
    /* The wall clock was read at an unknown moment in between: a step is only what neither edge explains. */
    if (now.wall_ns - era->offset_ns >= now.before_boot_ns - rounding_ns &&
        now.wall_ns - era->offset_ns <= now.after_boot_ns + rounding_ns)
        return 0;
    int64_t step_ns = offset_of(now) - era->offset_ns;
    *era_at(steps, steps->era_count++) =
        (struct wall_era){.offset_ns = offset_of(now), .not_before_ns = previous_ns, .begun_ns = now.after_boot_ns};
    return step_ns;
}

/* The CLOCK_BOOTTIME at which the wall clock showed this time in that era; *is_in_era: that moment belongs to the
 * era. */
static int64_t boot_in_era(const struct wall_steps *steps, uint32_t number, int64_t wall_ns, bool *is_in_era)
{
    const struct wall_era *era = era_at(steps, number);
    bool is_last = number + 1 == steps->era_count;
    int64_t boot_ns = wall_ns - era->offset_ns;
    int64_t until_ns = is_last ? steps->latest_boot_ns : era_at(steps, number + 1)->begun_ns;
    *is_in_era =
        (era->not_before_ns == INT64_MIN || boot_ns >= era->not_before_ns - slack_ns) && boot_ns <= until_ns + slack_ns;
    return boot_ns;
}

/* If the call is known, any era is possible, because CUPTI may stamp work that ran before a step with the clock after
 * the step; work starts soon after its call. Otherwise the era must fit, and newer eras are preferred. */
int64_t wall_steps_log_ns(const struct wall_steps *steps, int64_t wall_ns, int64_t earliest_ns, bool *is_certain)
{
    const bool has_earliest = earliest_ns != INT64_MIN;
    uint32_t last = steps->era_count - 1;
    uint32_t first = steps->era_count > WALL_STEPS_KEPT ? steps->era_count - WALL_STEPS_KEPT : 0;
    int64_t chosen_ns = wall_ns - era_at(steps, last)->offset_ns; /* if no era is possible */
    int possible = 0, in_era = 0;
    bool is_chosen_in_era = false;
    for (uint32_t number = first; number <= last; number++) {
        bool is_in_era;
        int64_t boot_ns = boot_in_era(steps, number, wall_ns, &is_in_era);
        bool is_after = has_earliest && boot_ns + steps->log_offset_ns >= earliest_ns - slack_ns;
        if (boot_ns > steps->latest_boot_ns + slack_ns || !(has_earliest ? is_after : is_in_era))
            continue;
        in_era += is_in_era;
        if (possible++ && (has_earliest ? boot_ns >= chosen_ns : boot_ns <= chosen_ns))
            continue;
        chosen_ns = boot_ns;
        is_chosen_in_era = is_in_era;
    }
    *is_certain = possible == 1 || (in_era == 1 && is_chosen_in_era);
    return chosen_ns + steps->log_offset_ns;
}
