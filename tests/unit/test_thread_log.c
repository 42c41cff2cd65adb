/* SPDX-License-Identifier: Apache-2.0 */
/* Threads' rings, scope tracking and scope history, without any GPU. */
#include "recorder_fixture.h"

#include "base/clock.h"
#include "capture/scope_tracker.h"

#include <pthread.h>

static void no_wake(void) {}
static void no_stack(void *user, const struct stack_event *event)
{
    (void)user;
    (void)event;
}

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
    clock_setup(NULL);
    tick_scale_start(&fixture->scale);
    recorder_fixture_open(fixture->dir, &fixture->writer, &fixture->recorder);
    assert_int_equal(thread_logs_setup(no_wake), GPUFL_OK);
    assert_int_equal(
        scope_tracker_make(&fixture->tracker, &fixture->recorder, &(struct thread_sink){.on_stack = no_stack}),
        GPUFL_OK);
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

static bool begin(const char *name)
{
    struct scope_text text = {.name = name, .name_size = strlen(name)};
    return thread_log_scope_begin(&text).is_outermost;
}

static bool end(void)
{
    return thread_log_scope_end(SCOPE_STACK_API).is_outermost;
}

static uint64_t lost(const struct fixture *fixture, enum loss_reason reason)
{
    return atomic_load(&fixture->recorder.lost[reason]);
}

static const int64_t *row(const struct fixture *fixture, uint32_t index)
{
    const struct batch *batch = &fixture->recorder.batches[RECORD_SCOPE_EVENT_BATCH];
    assert_true(index < batch->row_count);
    return &batch->cells[index * SCOPE_COLUMN_COUNT];
}

static void nested_scopes_become_begin_and_end_rows_with_parents(void **state)
{
    struct fixture *fixture = *state;
    assert_true(begin("epoch"));
    assert_false(begin("batch"));
    assert_false(end());
    assert_true(end());
    scope_tracker_drain(fixture->tracker, &fixture->scale);
    assert_int_equal(fixture->recorder.batches[RECORD_SCOPE_EVENT_BATCH].row_count, 4);
    assert_int_equal(row(fixture, 1)[SCOPE_PARENT_ID], row(fixture, 0)[SCOPE_SCOPE_INSTANCE_ID]);
    assert_int_equal(row(fixture, 1)[SCOPE_DEPTH], 1);
    assert_int_equal(row(fixture, 2)[SCOPE_EVENT_TYPE], 1);
    assert_int_equal(row(fixture, 2)[SCOPE_SCOPE_INSTANCE_ID], row(fixture, 1)[SCOPE_SCOPE_INSTANCE_ID]);
    const struct bytes *entries = &fixture->recorder.entries[DICTIONARY_SCOPE_NAME];
    assert_memory_equal(entries->data, "\"1\":\"epoch\",\"2\":\"epoch|batch\"", entries->size);
}

static void an_end_without_a_begin_is_ignored(void **state)
{
    struct fixture *fixture = *state;
    assert_false(end());
    begin("a");
    end();
    assert_false(end());
    scope_tracker_drain(fixture->tracker, &fixture->scale);
    assert_int_equal(fixture->recorder.batches[RECORD_SCOPE_EVENT_BATCH].row_count, 2);
}

static void a_full_ring_drops_whole_scopes_and_counts_each(void **state)
{
    struct fixture *fixture = *state;
    enum { pairs = 5000 };
    for (int i = 0; i < pairs; i++) {
        begin("outer");
        begin("inner");
        end();
        end();
    }
    scope_tracker_drain(fixture->tracker, &fixture->scale);
    uint64_t kept = scope_tracker_count(fixture->tracker);
    assert_true(kept > 500 && kept < 2 * pairs);
    assert_int_equal(kept + lost(fixture, LOSS_SCOPE_RING), 2 * pairs);
    /* Every recorded begin has its end, so the thread is outside of all scopes. */
    assert_true(begin("next"));
    assert_true(end());
}

static void a_begin_deep_inside_always_leaves_room_for_all_ends(void **state)
{
    struct fixture *fixture = *state;
    enum { depth = 3000 };
    for (int i = 0; i < depth; i++)
        begin("d");
    for (int i = 0; i < depth; i++)
        end();
    scope_tracker_drain(fixture->tracker, &fixture->scale);
    scope_tracker_close_open(fixture->tracker, 0);
    struct log_writer_stats stats;
    recorder_flush(&fixture->recorder, 0);
    log_writer_stats(fixture->writer, &stats);
    assert_int_equal(stats.rows[RECORD_SCOPE_EVENT_BATCH], 2 * scope_tracker_count(fixture->tracker));
    assert_int_equal(scope_tracker_count(fixture->tracker) + lost(fixture, LOSS_SCOPE_RING), depth);
}

static void tag_repeat_and_warmup_reach_the_begin_row(void **state)
{
    struct fixture *fixture = *state;
    struct scope_text text = {
        .name = "matmul", .name_size = 6, .tag = "math", .tag_size = 4, .repeat = 10, .warmup = 3};
    thread_log_scope_begin(&text);
    end();
    scope_tracker_drain(fixture->tracker, &fixture->scale);
    assert_int_equal(row(fixture, 0)[SCOPE_REPEAT], 10);
    assert_int_equal(row(fixture, 0)[SCOPE_WARMUP], 3);
    assert_int_equal(row(fixture, 0)[SCOPE_TAG_ID], 1);
    assert_memory_equal(fixture->recorder.entries[DICTIONARY_TAG].data, "\"1\":\"math\"", 10);
}

static void a_name_longer_than_the_limit_is_counted_and_its_end_dropped(void **state)
{
    struct fixture *fixture = *state;
    static char name[SCOPE_TEXT_BYTES_MAX + 2];
    memset(name, 'n', sizeof name - 1);
    begin(name);
    end();
    scope_tracker_drain(fixture->tracker, &fixture->scale);
    assert_int_equal(lost(fixture, LOSS_SCOPE_RING), 1);
    assert_int_equal(scope_tracker_count(fixture->tracker), 0);
}

static void the_end_of_a_dropped_scope_leaves_the_scope_around_it_open(void **state)
{
    struct fixture *fixture = *state;
    static char name[SCOPE_TEXT_BYTES_MAX + 2];
    memset(name, 'n', sizeof name - 1);
    begin("outer");
    begin(name); /* dropped */
    assert_false(end());
    assert_true(end());
    scope_tracker_drain(fixture->tracker, &fixture->scale);
    assert_int_equal(fixture->recorder.batches[RECORD_SCOPE_EVENT_BATCH].row_count, 2);
}

static void take_scope(void *user, const struct user_call *call, const struct call_time *time)
{
    ((uint64_t *)user)[call->correlation_id] = time->scope_id;
}

static void the_scope_of_a_call_inside_a_dropped_scope_is_unknown_and_not_the_one_around_it(void **state)
{
    struct fixture *fixture = *state;
    static char name[SCOPE_TEXT_BYTES_MAX + 2];
    memset(name, 'n', sizeof name - 1);
    uint64_t scopes[4];
    struct scope_tracker *tracker;
    assert_int_equal(
        scope_tracker_make(&tracker, &fixture->recorder, &(struct thread_sink){scopes, no_stack, take_scope, NULL}),
        GPUFL_OK);
    for (uint32_t i = 0; i < 4; i++) {
        if (i == 1)
            begin("outer");
        if (i == 2)
            begin(name); /* dropped */
        if (i == 3)
            end();
        thread_log_call(&(struct user_call){.correlation_id = i, .has_kernel = true}, clock_ticks());
    }
    end();
    scope_tracker_drain(tracker, &fixture->scale);
    scope_tracker_free(tracker);
    assert_int_equal(scopes[0], 0);
    assert_true(scopes[1] && scopes[1] != SCOPE_UNKNOWN);
    assert_true(scopes[2] == SCOPE_UNKNOWN);
    assert_int_equal(scopes[3], scopes[1]);
}

static void scopes_begun_before_the_session_do_not_end_in_it(void **state)
{
    struct fixture *fixture = *state;
    begin("before");
    scope_tracker_discard(fixture->tracker);
    thread_logs_start(); /* the next session */
    assert_false(end());
    scope_tracker_drain(fixture->tracker, &fixture->scale);
    assert_int_equal(scope_tracker_count(fixture->tracker), 0);
}

static void *open_and_close(void *argument)
{
    for (int i = 0; i < 200; i++) {
        begin(argument);
        begin("inner");
        end();
        end();
    }
    return NULL;
}

static void rings_of_finished_threads_are_used_again(void **state)
{
    struct fixture *fixture = *state;
    size_t before = 0;
    for (int i = 0; i < 2 * THREAD_LOG_COUNT_MAX; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, open_and_close, "worker"), 0);
        pthread_join(thread, NULL);
        scope_tracker_drain(fixture->tracker, &fixture->scale);
        if (i == 2)
            before = thread_logs_bytes();
    }
    assert_int_equal(thread_logs_bytes(), before);
    assert_int_equal(scope_tracker_count(fixture->tracker), 2 * THREAD_LOG_COUNT_MAX * 400);
    assert_int_equal(lost(fixture, LOSS_SCOPE_THREADS), 0);
}

struct crowd {
    pthread_barrier_t is_full, is_over; /* all threads have had their first scope; the remaining threads may continue */
    bool stays[THREAD_LOG_COUNT_MAX + 8];
};
struct member {
    struct crowd *crowd;
    int number;
};

static void *be_one_of_many(void *argument)
{
    struct member *member = argument;
    struct crowd *crowd = member->crowd;
    begin("first");
    end();
    pthread_barrier_wait(&crowd->is_full);
    if (!crowd->stays[member->number])
        return NULL;
    pthread_barrier_wait(&crowd->is_over);
    open_and_close("later");
    return NULL;
}

static void threads_that_got_no_ring_get_one_when_others_exit(void **state)
{
    struct fixture *fixture = *state;
    enum { count = THREAD_LOG_COUNT_MAX + 8, staying = 8 };
    static struct crowd crowd;
    static pthread_t threads[count];
    static struct member members[count];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    pthread_barrier_init(&crowd.is_full, NULL, count + 1);
    pthread_barrier_init(&crowd.is_over, NULL, staying + 1);
    for (int i = 0; i < count; i++) {
        members[i] = (struct member){&crowd, i};
        crowd.stays[i] = i >= count - staying;
        assert_int_equal(pthread_create(&threads[i], &attributes, be_one_of_many, &members[i]), 0);
    }
    pthread_barrier_wait(&crowd.is_full);
    scope_tracker_drain(fixture->tracker, &fixture->scale);
    uint64_t refused = lost(fixture, LOSS_SCOPE_THREADS);
    assert_true(refused >= 8); /* this thread may have a ring, too */
    assert_int_equal(scope_tracker_count(fixture->tracker) + refused, count);
    for (int i = 0; i < count - staying; i++)
        pthread_join(threads[i], NULL);
    scope_tracker_drain(fixture->tracker, &fixture->scale);
    pthread_barrier_wait(&crowd.is_over);
    for (int i = count - staying; i < count; i++)
        pthread_join(threads[i], NULL);
    scope_tracker_drain(fixture->tracker, &fixture->scale);
    assert_int_equal(lost(fixture, LOSS_SCOPE_THREADS), refused);
    assert_int_equal(scope_tracker_count(fixture->tracker) + refused + lost(fixture, LOSS_SCOPE_RING),
                     count + staying * 400);
    assert_true(thread_logs_bytes() <= 48 << 20);
    pthread_attr_destroy(&attributes);
}

static void *leave_two_open(void *argument)
{
    (void)argument;
    begin("request");
    begin("step");
    return NULL;
}

static void the_scopes_that_a_thread_leaves_open_end_when_it_exits(void **state)
{
    struct fixture *fixture = *state;
    pthread_t thread;
    int64_t before_ns = clock_wall_ns();
    assert_int_equal(pthread_create(&thread, NULL, leave_two_open, NULL), 0);
    pthread_join(thread, NULL);
    int64_t after_ns = clock_wall_ns();
    tick_scale_update(&fixture->scale);
    scope_tracker_drain(fixture->tracker, &fixture->scale);
    const struct batch *batch = &fixture->recorder.batches[RECORD_SCOPE_EVENT_BATCH];
    assert_int_equal(batch->row_count, 4);
    for (uint32_t i = 2; i < 4; i++) {
        int64_t time_ns = batch->base_time_ns + row(fixture, i)[SCOPE_DT_NS];
        assert_int_equal(row(fixture, i)[SCOPE_EVENT_TYPE], 1);
        assert_int_equal(row(fixture, i)[SCOPE_SCOPE_INSTANCE_ID], row(fixture, 3 - i)[SCOPE_SCOPE_INSTANCE_ID]);
        assert_in_range(time_ns, before_ns - 1000000, after_ns + 1000000); /* two clocks */
    }
    uint64_t scope_id;
    assert_true(scope_history_find(scope_tracker_history(fixture->tracker), (uint32_t)row(fixture, 0)[SCOPE_THREAD_ID],
                                   after_ns + 1000000, &scope_id));
    assert_int_equal(scope_id, 0);
}

static void many_threads_at_once_keep_their_stacks_apart(void **state)
{
    struct fixture *fixture = *state;
    enum { threads = 16 };
    pthread_t thread[threads];
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, open_and_close, "worker"), 0);
    for (int i = 0; i < 100; i++)
        scope_tracker_drain(fixture->tracker, &fixture->scale);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    scope_tracker_drain(fixture->tracker, &fixture->scale);
    assert_int_equal(scope_tracker_count(fixture->tracker) + lost(fixture, LOSS_SCOPE_RING), threads * 400);
}

static void history_answers_with_the_innermost_scope_of_that_thread(void **state)
{
    (void)state;
    struct scope_history *history;
    assert_int_equal(scope_history_make(&history), GPUFL_OK);
    scope_history_step(history, 7, 100, 1);
    scope_history_step(history, 7, 200, 2);
    scope_history_step(history, 7, 300, 1);
    scope_history_step(history, 7, 400, 0);
    uint64_t id;
    const struct {
        int64_t time_ns;
        uint64_t id;
    } cases[] = {{50, 0}, {100, 1}, {199, 1}, {200, 2}, {299, 2}, {300, 1}, {400, 0}, {1000, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(scope_history_find(history, 7, cases[i].time_ns, &id));
        assert_int_equal(id, cases[i].id);
    }
    assert_true(scope_history_find(history, 8, 150, &id));
    assert_int_equal(id, 0);
    scope_history_free(history);
}

static void history_says_unknown_for_time_it_has_forgotten(void **state)
{
    (void)state;
    struct scope_history *history;
    assert_int_equal(scope_history_make(&history), GPUFL_OK);
    for (int64_t i = 0; i < 200000; i++)
        scope_history_step(history, 7, i * 10, (uint64_t)i);
    uint64_t id;
    assert_false(scope_history_find(history, 7, 50, &id));
    assert_true(scope_history_find(history, 7, 199999 * 10, &id));
    assert_int_equal(id, 199999);
    assert_true(scope_history_is_pressed(history));
    assert_true(scope_history_bytes(history) < 10 << 20);
    scope_history_free(history);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(nested_scopes_become_begin_and_end_rows_with_parents),
        WITH_FIXTURE(an_end_without_a_begin_is_ignored),
        WITH_FIXTURE(a_full_ring_drops_whole_scopes_and_counts_each),
        WITH_FIXTURE(a_begin_deep_inside_always_leaves_room_for_all_ends),
        WITH_FIXTURE(tag_repeat_and_warmup_reach_the_begin_row),
        WITH_FIXTURE(a_name_longer_than_the_limit_is_counted_and_its_end_dropped),
        WITH_FIXTURE(the_end_of_a_dropped_scope_leaves_the_scope_around_it_open),
        WITH_FIXTURE(the_scope_of_a_call_inside_a_dropped_scope_is_unknown_and_not_the_one_around_it),
        WITH_FIXTURE(scopes_begun_before_the_session_do_not_end_in_it),
        WITH_FIXTURE(rings_of_finished_threads_are_used_again),
        WITH_FIXTURE(threads_that_got_no_ring_get_one_when_others_exit),
        WITH_FIXTURE(the_scopes_that_a_thread_leaves_open_end_when_it_exits),
        WITH_FIXTURE(many_threads_at_once_keep_their_stacks_apart),
        cmocka_unit_test(history_answers_with_the_innermost_scope_of_that_thread),
        cmocka_unit_test(history_says_unknown_for_time_it_has_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
