/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded engine merges segments of records until merging gains nothing, and then leaves them alone. */
#include "store_fixture.h"

enum { LINE_NAMES = 200, WINDOW_LINES = 120, ENDLESS_S = 600 };

/* Writes the next window: lines numbered from *next. They compress about twenty times. */
static void window_write(struct store *store, uint64_t *next, unsigned line_count, unsigned name_count)
{
    struct delivery delivery = {.store = store, .has_identity = true, .windows = *next};
    struct bytes line = {0};
    snprintf(delivery.session_id, sizeof delivery.session_id, "%s", FIXTURE_ID);
    delivery_begin(&delivery, CHANNEL_DEVICE);
    for (unsigned i = 0; i < line_count; i++, ++*next) {
        bytes_clear(&line);
        bytes_append_text(&line, "{\"version\":1,\"type\":\"dictionary_update\",\"session_id\":\"" FIXTURE_ID
                                 "\",\"kernel_dict\":{");
        for (unsigned name = 0; name < name_count; name++)
            bytes_append_format(&line,
                                "%s\"%llu\":\"void at::native::vectorized_elementwise_kernel<4, "
                                "at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, %llu)\"",
                                name ? "," : "", (unsigned long long)(*next * LINE_NAMES + name + 1),
                                (unsigned long long)(*next * LINE_NAMES + name + 1));
        bytes_append_text(&line, "}}");
        assert_false(line.failed);
        delivery_line(&delivery, CHANNEL_DEVICE, line.data, line.size);
    }
    delivery_commit(&delivery);
    batch_view_free(&delivery.view);
    bytes_free(&line);
}

static bool expect_next(void *user, const struct log_line *line)
{
    uint64_t *next = user;
    const struct json_value *names = json_member(line->object, "kernel_dict");
    assert_non_null(names);
    char first[32];
    snprintf(first, sizeof first, "%llu", (unsigned long long)(*next * LINE_NAMES + 1));
    assert_non_null(json_member(names, first));
    ++*next;
    return true;
}

/* Checks that every line is stored, in the order in which it came. */
static void lines_are_whole(struct store *store, uint64_t expected)
{
    const struct store_range range = {.session_id = FIXTURE_ID};
    uint64_t next = 0;
    MUST(store_read(store, &range, expect_next, &next, &problem));
    assert_int_equal(next, expected);
}

static struct store_stats maintained(struct store *store)
{
    struct store_stats stats;
    alarm(ENDLESS_S);
    MUST(store_maintain(store, &problem));
    alarm(0);
    MUST(store_stats(store, &stats, &problem));
    return stats;
}

static void records_that_compress_well_become_one_segment_and_stay_one(void **state)
{
    struct store *store = fixture_store(*state);
    uint64_t lines = 0;
    window_write(store, &lines, WINDOW_LINES, LINE_NAMES);
    window_write(store, &lines, WINDOW_LINES, LINE_NAMES);
    MUST(store_session_end(store, FIXTURE_ID, &problem));
    struct store_stats first = maintained(store), second = maintained(store);
    assert_int_equal(first.segments, 1);
    assert_int_equal(second.segments, 1);
    assert_int_equal(second.compactions, first.compactions);
    lines_are_whole(store, lines);
    store_close(store);
}

static void segments_are_not_rewritten_when_merging_would_not_make_them_fewer(void **state)
{
    struct store *store = fixture_store(*state);
    uint64_t lines = 0;
    struct store_stats before;
    for (int window = 0; window < 10; window++)
        window_write(store, &lines, WINDOW_LINES, LINE_NAMES);
    MUST(store_session_end(store, FIXTURE_ID, &problem));
    MUST(store_stats(store, &before, &problem));
    struct store_stats first = maintained(store), second = maintained(store);
    assert_true(first.segments > 1); /* limited by what a reader must hold at once */
    assert_true(first.segments * 4 <= before.segments);
    assert_int_equal(second.segments, first.segments);
    assert_int_equal(second.compactions, first.compactions);
    assert_int_equal(second.commit_groups, first.commit_groups);
    lines_are_whole(store, lines);
    /* One more line is merged; the large segments before it are not touched. */
    window_write(store, &lines, 1, 1);
    struct store_stats third = maintained(store);
    assert_true(third.segments <= first.segments + 1);
    assert_true(third.compactions <= second.compactions + 1);
    lines_are_whole(store, lines);
    store_close(store);
}

static void small_records_behind_large_ones_are_merged_while_the_session_is_live(void **state)
{
    struct store *store = fixture_store(*state);
    uint64_t lines = 0;
    for (int window = 0; window < 10; window++)
        window_write(store, &lines, WINDOW_LINES, LINE_NAMES);
    struct store_stats large = maintained(store);
    for (int round = 0; round < 2; round++) {
        for (int window = 0; window < 40; window++)
            window_write(store, &lines, 1, 1);
        struct store_stats after = maintained(store);
        assert_true(after.segments < large.segments + 40);
        lines_are_whole(store, lines);
    }
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(records_that_compress_well_become_one_segment_and_stay_one),
        TEST(segments_are_not_rewritten_when_merging_would_not_make_them_fewer),
        TEST(small_records_behind_large_ones_are_merged_while_the_session_is_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
