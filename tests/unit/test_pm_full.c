/* SPDX-License-Identifier: Apache-2.0 */
/* PM sampling with a full hardware buffer or image: what is lost is counted once, and the rest of the run is
 * recorded. */
#include "pm_world.h"

/* Runs until a decode has met a failure of the kind. */
static struct seen crowded(bool keeps_oldest, struct pm_sampler_totals *total)
{
    struct world world;
    world_open(&world, two_metrics, 2);
    world.options.hardware_buffer_bytes = 2 * SAMPLE_BYTES;
    world.options.keeps_oldest = keeps_oldest;
    world_start(&world);
    RUN_UNTIL(&world, totals(&world).missed >= 10 && (!keeps_oldest || totals(&world).overflows >= 3));
    world_finish(&world);
    *total = totals(&world);
    return see_log(&world);
}

static void overwritten_body(void)
{
    struct pm_sampler_totals total;
    struct seen seen = crowded(false, &total);
    CHECK(total.overflows == 0 && seen.missing == 2 * total.missed);
    CHECK(seen.losses > 0 && seen.unknown_losses == 0 && seen.lost == total.missed);
}

static void overflow_body(void)
{
    struct pm_sampler_totals total;
    struct seen seen = crowded(true, &total);
    CHECK(seen.unknown_losses > 0 && seen.lost == total.missed && seen.missing == 2 * total.missed);
}

/* From that sample on the look-alike returns no samples until the device is reopened. */
static void full_once_body(void)
{
    struct world world;
    world_begin(&world);
    RUN_UNTIL(&world, totals(&world).overflows == 1);
    uint64_t samples = totals(&world).samples;
    RUN_UNTIL(&world, totals(&world).samples >= samples + 200);
    CHECK(pm_sampler_trouble(world.sampler, &world.problem));
    world_finish(&world);
    struct pm_sampler_totals total = totals(&world);
    CHECK(total.overflows == 1 && total.first_dropped == 2 && total.bad_time == 0 && total.devices_failed == 0);
    struct seen seen = see_log(&world);
    CHECK(seen.configs == 1 && seen.unknown_losses == 1 && seen.rows[0] == 2 * total.samples);
    /* The content of the buffer and the dropped first sample are intervals without a row, counted once each. */
    CHECK(total.missed >= 1 && seen.lost == total.missed && seen.missing == 2 * total.missed);
    CHECK(!strcmp(seen.cause, world.problem.text) &&
          !strncmp(seen.cause, "the hardware buffer of 64 MiB was full ", 39));
    CHECK(strstr(seen.cause, " ms after the last read"));
}

/* Decoding takes twice as long as sampling: the buffer fills again and again. */
static void full_often_body(void)
{
    struct world world;
    world_open(&world, two_metrics, 2);
    world.options.hardware_buffer_bytes = 512 * SAMPLE_BYTES;
    world_start(&world);
    for (uint64_t overflows = 1; overflows <= 2; overflows++) {
        RUN_UNTIL(&world, totals(&world).overflows >= overflows);
        uint64_t samples = totals(&world).samples;
        RUN_UNTIL(&world, totals(&world).samples > samples + 1);
    }
    world_finish(&world);
    struct pm_sampler_totals total = totals(&world);
    CHECK(total.devices_failed == 0 && total.first_dropped > 1);
    struct seen seen = see_log(&world);
    CHECK(seen.lost == total.missed + total.bad_time && seen.missing == 2 * seen.lost);
}

static void full_always_body(void)
{
    struct world world;
    world_open(&world, two_metrics, 2);
    world.options.hardware_buffer_bytes = 2 * SAMPLE_BYTES;
    world_start(&world);
    RUN_UNTIL(&world, totals(&world).devices_failed == 1);
    CHECK(totals(&world).overflows == 4); /* of the first object and of three more */
    CHECK(pm_sampler_trouble(world.sampler, &world.problem));
    CHECK(strstr(world.problem.text, "the hardware buffer of 1184 bytes was full"));
    world_finish(&world);
    struct seen seen = see_log(&world);
    CHECK(seen.unknown_losses > 0);
}

/* At 20 us and 40 us per sample the image fills up soon, and the next sample begins in the past. */
static void stale_body(void)
{
    struct world world;
    interval_ns = 20000;
    world_open(&world, two_metrics, 2);
    world.options.interval_us = 20;
    world_start(&world);
    RUN_UNTIL(&world, totals(&world).first_dropped >= 3);
    uint64_t samples = totals(&world).samples;
    RUN_UNTIL(&world, totals(&world).samples >= samples + 10);
    world_finish(&world);
    struct pm_sampler_totals total = totals(&world);
    CHECK(total.overflows == 0 && total.bad_time == 0 && total.queue_lost == 0 && total.missed > 0);
    struct seen seen = see_log(&world);
    CHECK(seen.rows[0] == 2 * total.samples && seen.lost == total.missed && seen.missing == 2 * total.missed);
}

IN_CHILD(what_ring_mode_overwrites_is_counted_by_its_gap, "", overwritten_body)
IN_CHILD(a_hardware_overflow_is_a_loss_of_unknown_size, "", overflow_body)
IN_CHILD(a_full_hardware_buffer_costs_its_samples_and_not_the_rest_of_the_run, "pm_full_at=3", full_once_body)
IN_CHILD(a_hardware_buffer_that_fills_again_is_opened_again, "pm_dead_when_full=1; pm_decode_us=400", full_often_body)
IN_CHILD(a_hardware_buffer_that_is_always_full_fails_with_a_reason, "pm_dead_when_full=1", full_always_body)
IN_CHILD(a_sample_that_begins_before_the_last_one_is_an_interval_missed, "pm_stale_us=2000000; pm_decode_us=40",
         stale_body)
IN_CHILD(a_sample_that_reaches_over_a_gap_is_an_interval_missed, "pm_stale_us=100; pm_decode_us=40", stale_body)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ring_mode_overwrites_is_counted_by_its_gap),
        cmocka_unit_test(a_hardware_overflow_is_a_loss_of_unknown_size),
        cmocka_unit_test(a_full_hardware_buffer_costs_its_samples_and_not_the_rest_of_the_run),
        cmocka_unit_test(a_hardware_buffer_that_fills_again_is_opened_again),
        cmocka_unit_test(a_hardware_buffer_that_is_always_full_fails_with_a_reason),
        cmocka_unit_test(a_sample_that_begins_before_the_last_one_is_an_interval_missed),
        cmocka_unit_test(a_sample_that_reaches_over_a_gap_is_an_interval_missed),
    };
    environment_clear();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
