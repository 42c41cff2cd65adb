/* SPDX-License-Identifier: Apache-2.0 */
/* How often PM samples are decoded, with sizes measured on an H200. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/pm_device.h"

enum { MS = 1000000, IMAGE_BYTES_PER_SAMPLE = 40134 /* nine metrics */ };

static int64_t pace_ns(int64_t interval_ns, size_t hardware_buffer_bytes)
{
    struct pm_feed feed = {.options = {.interval_ns = interval_ns,
                                       .hardware_buffer_bytes = hardware_buffer_bytes,
                                       .sample_capacity = pm_feed_capacity(interval_ns)}};
    struct pm_sampling_facts facts = {.image_bytes = feed.options.sample_capacity * (size_t)IMAGE_BYTES_PER_SAMPLE};
    pm_feed_pace(&feed, &facts);
    assert_int_equal(feed.period_ns, feed.quiet_period_ns);
    /* One period's samples fit in half of the image, so a decode may be late. */
    if (feed.period_ns > MS)
        assert_true(feed.period_ns / interval_ns <= feed.options.sample_capacity / 2);
    return feed.period_ns;
}

static void a_decode_finds_an_eighth_of_what_the_hardware_buffer_holds(void **state)
{
    (void)state;
    assert_int_equal(pace_ns(MS, 64 << 20), 52 * MS);
    assert_int_equal(pace_ns(MS, 32 << 20), 26 * MS);
    assert_int_equal(pace_ns(MS / 10, 64 << 20), 52 * MS / 10);
}

static void the_period_has_bounds(void **state)
{
    (void)state;
    assert_int_equal(pace_ns(MS, (size_t)1 << 30), PM_PERIOD_NS_MAX);
    assert_int_equal(pace_ns(1000 * (int64_t)MS, 64 << 20), PM_PERIOD_NS_MAX);
    assert_int_equal(pace_ns(1000, 64 << 20), MS);
    assert_int_equal(pace_ns(MS, 4096), MS);
}

static void an_image_takes_what_late_decodes_find(void **state)
{
    (void)state;
    assert_int_equal(pm_feed_capacity(MS), 400);
    assert_int_equal(pm_feed_capacity(MS / 10), 1024);
    assert_int_equal(pm_feed_capacity(100 * (int64_t)MS), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decode_finds_an_eighth_of_what_the_hardware_buffer_holds),
        cmocka_unit_test(the_period_has_bounds),
        cmocka_unit_test(an_image_takes_what_late_decodes_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
