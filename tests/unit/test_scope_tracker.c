/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes that nest deeply or have more names than are kept: their paths, their ends, and what is counted as lost. */
#include "recorder_fixture.h"

#include "base/clock.h"
#include "base/current_thread.h"
#include "capture/scope_tracker.h"
#include "format/json.h"

#include <unistd.h>

enum { open_max = 8192, begins_per_drain = 500 };

static void no_wake(void) {}

struct fixture {
    char dir[256];
    struct log_writer *writer;
    struct recorder recorder;
    struct scope_tracker *tracker;
    struct tick_scale scale;
};

static int open_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    clock_setup(NULL);
    tick_scale_start(&fixture->scale);
    recorder_fixture_open(fixture->dir, &fixture->writer, &fixture->recorder);
    fixture_line_all(fixture->writer, RECORD_JOB_START, fixture_job_start);
    assert_int_equal(thread_logs_setup(no_wake), GPUFL_OK);
    assert_int_equal(scope_tracker_make(&fixture->tracker, &fixture->recorder, &(struct thread_sink){0}), GPUFL_OK);
    scope_tracker_discard(fixture->tracker);
    thread_logs_start();
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    scope_tracker_free(fixture->tracker);
    recorder_fixture_close(fixture->dir, fixture->writer, &fixture->recorder);
    free(fixture);
    return 0;
}

static void begin(const char *name)
{
    (void)thread_log_scope_begin(&(struct scope_text){.name = name, .name_size = strlen(name)});
}

/* A name of that size for each number. */
static void name_number(char *name, size_t size, int number)
{
    int digits = snprintf(name, size + 1, "%d", number);
    memset(name + digits, 'x', size - (size_t)digits);
    name[size] = '\0';
}

static void drain(struct fixture *fixture)
{
    scope_tracker_drain(fixture->tracker, &fixture->scale);
}

static void begin_often(struct fixture *fixture, const char *name, int count)
{
    for (int i = 0; i < count; i++) {
        begin(name);
        if (i % begins_per_drain == 0)
            drain(fixture);
    }
    drain(fixture);
}

static void end_often(struct fixture *fixture, int count)
{
    for (int i = 0; i < count; i++) {
        (void)thread_log_scope_end(SCOPE_STACK_API);
        if (i % begins_per_drain == 0)
            drain(fixture);
    }
    drain(fixture);
}

static uint64_t lost(const struct fixture *fixture, enum loss_reason reason)
{
    return atomic_load(&fixture->recorder.lost[reason]);
}

static const int64_t *last_row(const struct fixture *fixture)
{
    const struct batch *batch = &fixture->recorder.batches[RECORD_SCOPE_EVENT_BATCH];
    assert_true(batch->row_count);
    return &batch->cells[(batch->row_count - 1) * SCOPE_COLUMN_COUNT];
}

static void an_end_that_counts_iterations_writes_them(void **state)
{
    struct fixture *fixture = *state;
    const struct scope_text text = {.name = "bench", .name_size = 5, .repeat = 100};
    for (int is_counted = 0; is_counted < 2; is_counted++) {
        (void)thread_log_scope_begin(&text);
        drain(fixture);
        assert_int_equal(last_row(fixture)[SCOPE_REPEAT], 100);
        const struct scope_edge edge =
            is_counted ? thread_log_scope_end_counted(SCOPE_STACK_API, 3) : thread_log_scope_end(SCOPE_STACK_API);
        assert_true(edge.is_outermost);
        drain(fixture);
        assert_int_equal(last_row(fixture)[SCOPE_EVENT_TYPE], 1);
        assert_int_equal(last_row(fixture)[SCOPE_REPEAT], is_counted ? 3 : 100);
    }
}

/* The scope names in the log's scope channel. */
struct written_names {
    const char *wanted;
    uint64_t count, bytes, longest, wanted_id;
};

static bool take_line(void *user, const struct log_line *line)
{
    struct written_names *names = user;
    const struct json_value *entries = line->type == RECORD_DICTIONARY_UPDATE && line->channel == CHANNEL_SCOPE
                                           ? json_member(line->object, dictionary_catalogue[DICTIONARY_SCOPE_NAME].name)
                                           : NULL;
    for (const struct json_value *entry = entries ? entries->child : NULL; entry; entry = entry->next) {
        names->count++;
        names->bytes += entry->text_size;
        if (entry->text_size > names->longest)
            names->longest = entry->text_size;
        if (!strcmp(entry->text, names->wanted))
            names->wanted_id = strtoull(entry->key, NULL, 10);
    }
    return true;
}

static struct written_names names_read(struct fixture *fixture, const char *wanted)
{
    struct written_names names = {.wanted = wanted};
    struct log_summary summary;
    struct problem problem = {""};
    recorder_flush(&fixture->recorder, 0);
    if (log_read(log_writer_dir(fixture->writer), take_line, NULL, &names, &summary, &problem) != GPUFL_OK)
        fail_msg("log_read: %s", problem.text);
    return names;
}

static void a_deep_recursion_leaves_later_scopes_their_names(void **state)
{
    struct fixture *fixture = *state;
    enum { depth = 4000 };
    begin_often(fixture, "solve_subproblem", depth);
    assert_int_not_equal(last_row(fixture)[SCOPE_NAME_ID], 0);
    end_often(fixture, depth);
    begin_often(fixture, "later_and_innocent", 1);
    int64_t name_id = last_row(fixture)[SCOPE_NAME_ID];
    struct written_names names = names_read(fixture, "later_and_innocent");
    assert_int_equal(names.wanted_id, name_id);
    assert_true(names.bytes < 1 << 20);
    assert_int_equal(scope_tracker_count(fixture->tracker), depth + 1);
    assert_int_equal(recorder_lost_total(&fixture->recorder), 0);
}

static void scopes_that_are_too_deep_are_named_below_an_ellipsis(void **state)
{
    struct fixture *fixture = *state;
    begin_often(fixture, "f", 1000);
    begin_often(fixture, "leaf", 1);
    int64_t name_id = last_row(fixture)[SCOPE_NAME_ID];
    end_often(fixture, 500);
    begin_often(fixture, "leaf", 1);
    assert_int_equal(last_row(fixture)[SCOPE_NAME_ID], name_id);
    char wanted[1024];
    size_t used = 0;
    for (int i = 0; i < 250; i++)
        used += (size_t)snprintf(wanted + used, sizeof wanted - used, "f|");
    snprintf(wanted + used, sizeof wanted - used, "\u2026|leaf");
    struct written_names names = names_read(fixture, wanted);
    assert_int_equal(names.wanted_id, name_id);
    assert_int_equal(names.count, 250 + 3); /* the ellipsis itself and what is below it */
}

static void long_names_are_kept_whole_and_their_paths_stay_bounded(void **state)
{
    struct fixture *fixture = *state;
    static char name[SCOPE_TEXT_BYTES_MAX + 1];
    for (int i = 0; i < 40; i++) {
        memset(name, 'a' + i % 26, sizeof name - 1);
        begin(name);
        drain(fixture);
    }
    struct written_names names = names_read(fixture, name);
    assert_true(names.longest > SCOPE_TEXT_BYTES_MAX);
    assert_true(names.longest < 4 * SCOPE_TEXT_BYTES_MAX);
    assert_int_equal(recorder_lost_total(&fixture->recorder), 0);
}

static void more_path_text_than_is_kept_costs_no_scope_its_name(void **state)
{
    struct fixture *fixture = *state;
    enum { outer = 100, inner = 100, size = 3000 };
    static char name[size + 1];
    begin("first");
    (void)thread_log_scope_end(SCOPE_STACK_API);
    for (int i = 0; i < outer; i++) {
        name_number(name, size, i);
        begin(name);
        for (int j = 0; j < inner; j++) {
            name_number(name, size, outer + j);
            begin(name);
            (void)thread_log_scope_end(SCOPE_STACK_API);
            drain(fixture);
            assert_int_not_equal(last_row(fixture)[SCOPE_NAME_ID], 0);
        }
        (void)thread_log_scope_end(SCOPE_STACK_API);
    }
    begin_often(fixture, "first", 1);
    int64_t name_id = last_row(fixture)[SCOPE_NAME_ID];
    assert_true(name_id > 1); /* it was evicted, so it is written again */
    assert_int_equal(names_read(fixture, "first").wanted_id, name_id);
    assert_true(scope_tracker_bytes(fixture->tracker) < 64 << 20);
    assert_int_equal(recorder_lost_total(&fixture->recorder), 0);
}

static void an_open_scope_keeps_its_name_while_others_are_forgotten(void **state)
{
    struct fixture *fixture = *state;
    enum { count = 6000, size = 3000 };
    static char name[size + 1];
    begin_often(fixture, "server", 1);
    int64_t server_name_id = last_row(fixture)[SCOPE_NAME_ID];
    for (int i = 0; i < count; i++) {
        name_number(name, size, i);
        begin(name);
        (void)thread_log_scope_end(SCOPE_STACK_API);
        drain(fixture);
    }
    begin_often(fixture, "later", 1);
    int64_t later_name_id = last_row(fixture)[SCOPE_NAME_ID];
    end_often(fixture, 2);
    assert_int_equal(last_row(fixture)[SCOPE_NAME_ID], server_name_id);
    assert_int_equal(names_read(fixture, "server|later").wanted_id, later_name_id);
    assert_int_equal(recorder_lost_total(&fixture->recorder), 0);
}

static void scopes_inside_a_nameless_scope_are_not_named_as_if_they_were_outermost(void **state)
{
    struct fixture *fixture = *state;
    enum { depth = 1500, size = 16000 }; /* open at once: more than the names that are kept */
    static char name[size + 1];
    begin_often(fixture, "known", 1);
    (void)thread_log_scope_end(SCOPE_STACK_API);
    for (int i = 0; i < depth; i++) {
        name_number(name, size, i);
        begin(name);
        drain(fixture);
    }
    assert_int_equal(last_row(fixture)[SCOPE_NAME_ID], 0);
    begin_often(fixture, "known", 1);
    assert_int_equal(last_row(fixture)[SCOPE_NAME_ID], 0);
    assert_true(lost(fixture, LOSS_SCOPE_NAMES) > 0);
    end_often(fixture, depth + 1);
    begin_often(fixture, "known", 1);
    assert_int_not_equal(last_row(fixture)[SCOPE_NAME_ID], 0);
}

static void more_tags_than_are_kept_are_all_written(void **state)
{
    struct fixture *fixture = *state;
    enum { count = 3000, size = 3000 };
    static char tag[size + 1];
    for (int i = 0; i < count; i++) {
        name_number(tag, size, i);
        (void)thread_log_scope_begin(
            &(struct scope_text){.name = "step", .name_size = 4, .tag = tag, .tag_size = strlen(tag)});
        (void)thread_log_scope_end(SCOPE_STACK_API);
        drain(fixture);
        assert_int_equal(last_row(fixture)[SCOPE_TAG_ID], i + 1);
    }
    assert_int_equal(recorder_lost_total(&fixture->recorder), 0);
}

static void the_end_of_a_scope_that_was_too_deep_closes_no_other(void **state)
{
    struct fixture *fixture = *state;
    enum { depth = 8500 };
    begin_often(fixture, "root", 1);
    int64_t root_id = last_row(fixture)[SCOPE_SCOPE_INSTANCE_ID];
    begin_often(fixture, "f", depth);
    end_often(fixture, depth);
    assert_int_equal(last_row(fixture)[SCOPE_DEPTH], 1);
    assert_int_not_equal(last_row(fixture)[SCOPE_SCOPE_INSTANCE_ID], root_id);
    end_often(fixture, 1);
    assert_int_equal(last_row(fixture)[SCOPE_SCOPE_INSTANCE_ID], root_id);
    assert_int_equal(last_row(fixture)[SCOPE_EVENT_TYPE], 1);
    assert_int_equal(lost(fixture, LOSS_SCOPE_DEPTH), 1 + depth - open_max);
    assert_int_equal(recorder_lost_total(&fixture->recorder), 1 + depth - open_max);
}

static void begin_in(uint32_t stack, const char *name)
{
    (void)thread_log_scope_begin(&(struct scope_text){.name = name, .name_size = strlen(name), .stack = stack});
}

static uint64_t row_count(const struct fixture *fixture)
{
    return fixture->recorder.batches[RECORD_SCOPE_EVENT_BATCH].row_count;
}

static void an_end_in_one_stack_leaves_those_of_others_open(void **state)
{
    struct fixture *fixture = *state;
    begin_in(SCOPE_STACK_API, "step");
    drain(fixture);
    int64_t step = last_row(fixture)[SCOPE_SCOPE_INSTANCE_ID];
    begin_in(SCOPE_STACK_NVTX, "a");
    begin_in(SCOPE_STACK_DOMAINS, "b");
    drain(fixture);
    int64_t b = last_row(fixture)[SCOPE_SCOPE_INSTANCE_ID], a = last_row(fixture)[SCOPE_PARENT_ID];
    assert_int_equal(last_row(fixture)[SCOPE_DEPTH], 2);

    assert_int_equal(thread_log_scope_end(SCOPE_STACK_DOMAINS + 1).level, -1); /* no scope of that stack is open */
    assert_int_equal(thread_log_scope_end(SCOPE_STACK_NVTX).level, 0);
    assert_int_equal(thread_log_scope_end(SCOPE_STACK_NVTX).level, -1);
    drain(fixture);
    assert_int_equal(row_count(fixture), 4);
    assert_int_equal(last_row(fixture)[SCOPE_SCOPE_INSTANCE_ID], a);
    assert_int_equal(last_row(fixture)[SCOPE_PARENT_ID], step);
    assert_int_equal(last_row(fixture)[SCOPE_DEPTH], 1);

    begin_in(SCOPE_STACK_NVTX, "c"); /* inside b, which is the innermost one that is open */
    drain(fixture);
    assert_int_equal(last_row(fixture)[SCOPE_PARENT_ID], b);
    assert_int_equal(names_read(fixture, "step|a|b|c").wanted_id > 0, 1);
    assert_int_equal(thread_log_scope_end(SCOPE_STACK_API).level, 0);
    assert_false(thread_log_scope_end(SCOPE_STACK_DOMAINS).is_outermost);
    assert_true(thread_log_scope_end(SCOPE_STACK_NVTX).is_outermost);
    drain(fixture);
    uint64_t scope_id;
    assert_true(scope_history_find(scope_tracker_history(fixture->tracker), current_thread_id(), INT64_MAX, &scope_id));
    assert_int_equal(scope_id, 0);
}

static void levels_only_count_scopes_of_the_same_stack(void **state)
{
    struct fixture *fixture = *state;
    struct scope_text text = {.name = "x", .name_size = 1};
    for (uint32_t stack = SCOPE_STACK_API; stack < SCOPE_STACK_COUNT; stack++) {
        text.stack = stack;
        for (int level = 0; level < 3; level++)
            assert_int_equal(thread_log_scope_begin(&text).level, level);
    }
    for (uint32_t stack = SCOPE_STACK_API; stack < SCOPE_STACK_COUNT; stack++)
        for (int level = 2; level >= -1; level--)
            assert_int_equal(thread_log_scope_end(stack).level, level);
    drain(fixture);
    assert_int_equal(scope_tracker_count(fixture->tracker), 3 * SCOPE_STACK_COUNT);
}

static void ranges_that_never_end_hide_no_later_ones(void **state)
{
    struct fixture *fixture = *state;
    enum { leaked = 40000, room = 16384 };
    const struct scope_text text = {.name = "leaked", .name_size = 6, .source = 2};
    uint64_t id = 1;
    for (; id <= leaked; id++) {
        thread_log_range_start(&text, id);
        if (id % begins_per_drain == 0)
            drain(fixture);
    }
    drain(fixture);
    uint64_t forgotten = lost(fixture, LOSS_OPEN_RANGES);
    assert_true(forgotten >= leaked - room);
    assert_int_equal(lost(fixture, LOSS_SCOPE_RING), 0);
    for (int i = 0; i < 1000; i++, id++) {
        thread_log_range_start(&text, id);
        thread_log_range_end(id);
        drain(fixture);
        assert_int_equal(last_row(fixture)[SCOPE_EVENT_TYPE], 1);
    }
}

static void a_mark_is_a_scope_without_length_that_nothing_is_in(void **state)
{
    struct fixture *fixture = *state;
    double half = 0.5;
    struct scope_text mark = {.name = "loss spike",
                              .name_size = 10,
                              .source = 6,
                              .details = {.category = 7, .color = 0xff00ff00, .has_color = 1, .payload_type = 3}};
    memcpy(&mark.details.payload, &half, sizeof half);
    begin("step");
    drain(fixture);
    int64_t step = last_row(fixture)[SCOPE_SCOPE_INSTANCE_ID];
    thread_log_mark(&mark);
    drain(fixture);
    const int64_t *row = last_row(fixture);
    assert_int_equal(row[SCOPE_EVENT_TYPE], 1);
    assert_int_equal(row[SCOPE_PARENT_ID], step);
    assert_int_equal(row[SCOPE_CATEGORY], 7);
    assert_int_equal(row[SCOPE_COLOR], 0xff00ff00);
    assert_int_equal(row[SCOPE_PAYLOAD_INT], CELL_UNKNOWN);
    assert_memory_equal(&row[SCOPE_PAYLOAD_REAL], &half, sizeof half);
    uint64_t scope_id;
    assert_true(scope_history_find(scope_tracker_history(fixture->tracker), current_thread_id(), INT64_MAX, &scope_id));
    assert_int_equal(scope_id, step);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(an_end_that_counts_iterations_writes_them),
        WITH_FIXTURE(a_deep_recursion_leaves_later_scopes_their_names),
        WITH_FIXTURE(scopes_that_are_too_deep_are_named_below_an_ellipsis),
        WITH_FIXTURE(long_names_are_kept_whole_and_their_paths_stay_bounded),
        WITH_FIXTURE(more_path_text_than_is_kept_costs_no_scope_its_name),
        WITH_FIXTURE(an_open_scope_keeps_its_name_while_others_are_forgotten),
        WITH_FIXTURE(more_tags_than_are_kept_are_all_written),
        WITH_FIXTURE(scopes_inside_a_nameless_scope_are_not_named_as_if_they_were_outermost),
        WITH_FIXTURE(the_end_of_a_scope_that_was_too_deep_closes_no_other),
        WITH_FIXTURE(an_end_in_one_stack_leaves_those_of_others_open),
        WITH_FIXTURE(levels_only_count_scopes_of_the_same_stack),
        WITH_FIXTURE(ranges_that_never_end_hide_no_later_ones),
        WITH_FIXTURE(a_mark_is_a_scope_without_length_that_nothing_is_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
