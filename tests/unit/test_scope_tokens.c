/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that work for scopes of other threads: what their calls and scopes belong to, in whatever order the rings of
 * the threads are read. */
#include "recorder_fixture.h"

#include "base/clock.h"
#include "base/current_thread.h"
#include "capture/scope_tokens.h"
#include "capture/scope_tracker.h"
#include "capture/task_scopes.h"

#include <pthread.h>
#include <unistd.h>

enum { calls_max = 64, origin_token = 1, origin_autograd = 2 };

static void no_wake(void) {}

struct fixture {
    char dir[256];
    struct log_writer *writer;
    struct recorder recorder;
    struct scope_tracker *tracker;
    struct tick_scale scale;
    uint64_t scope_of_call[calls_max]; /* by correlation id */
};

static void on_call(void *user, const struct user_call *call, const struct call_time *time)
{
    struct fixture *fixture = user;
    fixture->scope_of_call[call->correlation_id] = time->scope_id;
}

static int open_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    clock_setup(NULL);
    tick_scale_start(&fixture->scale);
    recorder_fixture_open(fixture->dir, &fixture->writer, &fixture->recorder);
    fixture_line_all(fixture->writer, RECORD_JOB_START, fixture_job_start);
    assert_int_equal(thread_logs_setup(no_wake), GPUFL_OK);
    assert_int_equal(scope_tracker_make(&fixture->tracker, &fixture->recorder,
                                        &(struct thread_sink){.user = fixture, .on_call = on_call}),
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

static void begin(const char *name)
{
    (void)thread_log_scope_begin(&(struct scope_text){.name = name, .name_size = strlen(name)});
}

static void end(void)
{
    (void)thread_log_scope_end(SCOPE_STACK_API);
}

static void adopt(uint64_t token)
{
    (void)thread_log_adopt(SCOPE_STACK_ADOPTED, token);
}

static void release(void)
{
    (void)thread_log_scope_end(SCOPE_STACK_ADOPTED);
}

static void call(uint32_t correlation_id)
{
    thread_log_call(&(struct user_call){.correlation_id = correlation_id}, clock_ticks());
}

static void drain(struct fixture *fixture)
{
    scope_tracker_drain(fixture->tracker, &fixture->scale);
}

/* Runs the function on another thread, to its end. */
static void elsewhere(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* The row of the n-th scope event or adoption that is not written to the log yet. */
static const int64_t *row_of(const struct fixture *fixture, enum record_type type, uint32_t number)
{
    const struct batch *batch = &fixture->recorder.batches[type];
    assert_in_range(number, 0, batch->row_count - 1);
    return &batch
                ->cells[number * (type == RECORD_SCOPE_EVENT_BATCH ? SCOPE_COLUMN_COUNT : SCOPE_ADOPTION_COLUMN_COUNT)];
}

static uint32_t adoptions(const struct fixture *fixture)
{
    return fixture->recorder.batches[RECORD_SCOPE_ADOPTION_BATCH].row_count;
}

struct job {
    uint64_t token;
    uint32_t thread_id;
};

static void *work_for(void *argument)
{
    struct job *job = argument;
    job->thread_id = current_thread_id();
    call(1);
    adopt(job->token);
    call(2);
    begin("inner");
    call(3);
    end();
    release();
    call(4);
    return NULL;
}

static void a_thread_that_adopts_a_scope_works_for_it_and_for_scopes_inside_it(void **state)
{
    struct fixture *fixture = *state;
    begin("outer");
    struct job job = {.token = thread_log_token()};
    elsewhere(work_for, &job);
    end();
    drain(fixture);
    const int64_t *outer = row_of(fixture, RECORD_SCOPE_EVENT_BATCH, 0);
    const int64_t *inner = NULL;
    for (uint32_t i = 0; i < 4; i++)
        if (row_of(fixture, RECORD_SCOPE_EVENT_BATCH, i)[SCOPE_THREAD_ID] == job.thread_id)
            inner = row_of(fixture, RECORD_SCOPE_EVENT_BATCH, i);
    assert_non_null(inner);
    assert_int_equal(inner[SCOPE_PARENT_ID], outer[SCOPE_SCOPE_INSTANCE_ID]);
    assert_int_equal(inner[SCOPE_DEPTH], 1);
    assert_int_not_equal(inner[SCOPE_NAME_ID], outer[SCOPE_NAME_ID]);
    assert_int_equal(fixture->scope_of_call[1], 0);
    assert_int_equal(fixture->scope_of_call[2], outer[SCOPE_SCOPE_INSTANCE_ID]);
    assert_int_equal(fixture->scope_of_call[3], inner[SCOPE_SCOPE_INSTANCE_ID]);
    assert_int_equal(fixture->scope_of_call[4], 0);
    assert_int_equal(adoptions(fixture), 1);
    const int64_t *adoption = row_of(fixture, RECORD_SCOPE_ADOPTION_BATCH, 0);
    assert_int_equal(adoption[SCOPE_ADOPTION_THREAD_ID], job.thread_id);
    assert_int_equal(adoption[SCOPE_ADOPTION_SCOPE_ID], outer[SCOPE_SCOPE_INSTANCE_ID]);
    assert_int_equal(adoption[SCOPE_ADOPTION_ADOPTION_ORIGIN], origin_token);
    assert_int_equal(fixture->recorder.batches[RECORD_SCOPE_EVENT_BATCH].row_count, 4); /* adopting begins no scope */
}

struct meeting {
    pthread_barrier_t barrier;
    uint64_t token;
};

static void *adopt_at_the_meeting(void *argument)
{
    struct meeting *meeting = argument;
    call(1); /* its ring is the first one */
    pthread_barrier_wait(&meeting->barrier);
    pthread_barrier_wait(&meeting->barrier);
    adopt(meeting->token);
    call(2);
    release();
    pthread_barrier_wait(&meeting->barrier);
    return NULL;
}

static void *own_the_scope(void *argument)
{
    struct meeting *meeting = argument;
    begin("owned");
    meeting->token = thread_log_token();
    call(3);
    end();
    call(4);
    return NULL;
}

/* Also a ring that is read later than that of the adopting thread, and a scope that has ended by then. */
static void the_order_in_which_rings_are_read_does_not_matter(void **state)
{
    struct fixture *fixture = *state;
    struct meeting meeting = {0};
    pthread_t first;
    assert_int_equal(pthread_barrier_init(&meeting.barrier, NULL, 2), 0);
    assert_int_equal(pthread_create(&first, NULL, adopt_at_the_meeting, &meeting), 0);
    pthread_barrier_wait(&meeting.barrier);
    elsewhere(own_the_scope, &meeting);
    pthread_barrier_wait(&meeting.barrier);
    pthread_barrier_wait(&meeting.barrier);
    assert_int_equal(pthread_join(first, NULL), 0);
    drain(fixture);
    assert_int_not_equal(fixture->scope_of_call[2], 0);
    assert_int_equal(fixture->scope_of_call[2], fixture->scope_of_call[3]);
    assert_int_equal(fixture->scope_of_call[4], 0);
    pthread_barrier_destroy(&meeting.barrier);
}

static void work_for_a_scope_that_ended_long_ago_still_belongs_to_it(void **state)
{
    struct fixture *fixture = *state;
    begin("gone");
    call(1);
    uint64_t token = thread_log_token();
    end();
    drain(fixture);
    adopt(token);
    call(2);
    release();
    drain(fixture);
    assert_int_not_equal(fixture->scope_of_call[2], 0);
    assert_int_equal(fixture->scope_of_call[2], fixture->scope_of_call[1]);
}

static void no_token_and_one_of_another_session_change_nothing(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(thread_log_token(), 0);
    begin("of an earlier session");
    uint64_t stale = thread_log_token();
    assert_int_not_equal(stale, 0);
    end();
    scope_tracker_discard(fixture->tracker);
    thread_logs_start();
    begin("own");
    call(1);
    adopt(0);
    call(2);
    adopt(stale);
    call(3);
    release();
    release();
    release(); /* one too many */
    call(4);
    end();
    adopt(stale);
    call(5);
    release();
    drain(fixture);
    for (uint32_t i = 2; i <= 4; i++)
        assert_int_equal(fixture->scope_of_call[i], fixture->scope_of_call[1]);
    assert_int_equal(fixture->scope_of_call[5], 0);
    assert_int_equal(adoptions(fixture), 0);
    assert_int_equal(atomic_load(&fixture->recorder.lost[LOSS_SCOPE_TOKENS]), 0);
}

static void a_token_is_made_once_for_each_entry_into_a_scope(void **state)
{
    struct fixture *fixture = *state;
    begin("a");
    uint64_t a = thread_log_token();
    assert_int_equal(thread_log_token(), a);
    begin("b");
    uint64_t b = thread_log_token();
    assert_int_not_equal(b, a);
    adopt(a);
    assert_int_equal(thread_log_token(), a); /* and can be handed on */
    release();
    end();
    end();
    begin("a");
    assert_int_not_equal(thread_log_token(), a);
    end();
    drain(fixture);
}

static void *adopt_and_exit(void *argument)
{
    adopt(*(uint64_t *)argument);
    call(1);
    return NULL;
}

static void a_thread_that_exits_while_it_works_for_a_scope_ends_that(void **state)
{
    struct fixture *fixture = *state;
    begin("outer");
    uint64_t token = thread_log_token();
    elsewhere(adopt_and_exit, &token);
    drain(fixture);
    assert_int_equal(adoptions(fixture), 1);
    adopt(token);
    call(2);
    drain(fixture);
    scope_tracker_close_open(fixture->tracker, clock_log_ns());
    assert_int_equal(adoptions(fixture), 2); /* the one that is open at the session's end, too */
    assert_int_equal(fixture->scope_of_call[2], fixture->scope_of_call[1]);
    release();
    end();
}

static void a_token_whose_scope_is_forgotten_is_counted(void **state)
{
    struct fixture *fixture = *state;
    enum { later = 400000, per_drain = 500 };
    begin("early");
    uint64_t early = thread_log_token();
    end();
    for (int i = 0; i < later; i++) {
        begin("later");
        (void)thread_log_token();
        end();
        if (i % per_drain == 0)
            drain(fixture);
    }
    adopt(early);
    call(1);
    release();
    drain(fixture);
    assert_int_equal(fixture->scope_of_call[1], 0);
    assert_int_equal(atomic_load(&fixture->recorder.lost[LOSS_SCOPE_TOKENS]), 1);
}

static int current_task = -1; /* of all threads: they run one after the other */

static int task_now(void)
{
    return current_task;
}

/* As an autograd thread: operators begin before the number of the task is known, and work goes on between nodes. */
static void *run_tasks(void *argument)
{
    const uint64_t *tokens = argument;
    const struct scope_text node = {.name = "node", .name_size = 4, .stack = SCOPE_STACK_NVTX};
    call(1);
    current_task = 7;
    assert_true(thread_log_scope_begin(&node).is_outermost);
    task_scopes_bind(7, tokens[0]);
    call(2);
    assert_true(thread_log_scope_end(SCOPE_STACK_NVTX).is_outermost); /* the adopted scope is not the thread's */
    current_task = -1;
    call(3);
    current_task = 8; /* not bound: nobody knows whose it is */
    call(4);
    task_scopes_bind(8, tokens[1]);
    task_scopes_check();
    (void)thread_log_scope_begin(&node);
    call(5);
    (void)thread_log_scope_end(SCOPE_STACK_NVTX);
    current_task = 7;
    begin("own");
    call(6);
    end();
    adopt(tokens[0]);
    current_task = 8;
    call(7);
    release();
    call(8);
    return NULL;
}

static void a_thread_without_scopes_works_for_the_scope_of_its_task(void **state)
{
    struct fixture *fixture = *state;
    uint64_t tokens[2];
    begin("first");
    call(10);
    tokens[0] = thread_log_token();
    end();
    begin("second");
    call(11);
    tokens[1] = thread_log_token();
    task_scopes_follow(task_now);
    elsewhere(run_tasks, tokens);
    current_task = 8;
    call(12); /* the task's caller is in the scope itself */
    end();
    current_task = -1;
    call(13);
    task_scopes_follow(NULL);
    drain(fixture);
    const uint64_t *scopes = fixture->scope_of_call, first = scopes[10], second = scopes[11];
    assert_int_not_equal(first, 0);
    assert_int_equal(scopes[1], 0);
    assert_int_equal(scopes[2], first);
    assert_int_equal(scopes[3], first);
    assert_int_equal(scopes[4], 0);
    assert_int_equal(scopes[7], first);
    assert_int_equal(scopes[8], second);
    assert_int_equal(scopes[12], second);
    assert_int_equal(scopes[13], 0);
    uint64_t inner = 0;
    const struct batch *batch = &fixture->recorder.batches[RECORD_SCOPE_EVENT_BATCH];
    for (uint32_t i = 0; i < batch->row_count; i++) {
        const int64_t *row = row_of(fixture, RECORD_SCOPE_EVENT_BATCH, i);
        uint64_t id = (uint64_t)row[SCOPE_SCOPE_INSTANCE_ID];
        if (id != scopes[5] && id != scopes[6])
            continue;
        assert_int_equal(row[SCOPE_PARENT_ID], second);
        inner++;
    }
    assert_int_equal(inner, 4); /* begin and end of both */
    assert_int_equal(row_of(fixture, RECORD_SCOPE_ADOPTION_BATCH, 0)[SCOPE_ADOPTION_ADOPTION_ORIGIN], origin_autograd);
}

static void scopes_in_use_are_remembered_while_others_are_forgotten(void **state)
{
    (void)state;
    struct scope_tokens tokens = {0};
    assert_null(scope_tokens_find(&tokens, 7));
    assert_true(scope_tokens_add(&tokens, &(struct token_scope){.token = 7, .id = 70}));
    for (uint64_t token = 1000; token < 1000000; token++) {
        assert_true(scope_tokens_add(&tokens, &(struct token_scope){.token = token, .id = token}));
        if (token % 1000 == 0)
            assert_non_null(scope_tokens_find(&tokens, 7));
    }
    assert_int_equal(scope_tokens_find(&tokens, 7)->id, 70);
    assert_int_equal(scope_tokens_find(&tokens, 999999)->id, 999999);
    assert_null(scope_tokens_find(&tokens, 1000));
    scope_tokens_free(&tokens);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(a_thread_that_adopts_a_scope_works_for_it_and_for_scopes_inside_it),
        WITH_FIXTURE(the_order_in_which_rings_are_read_does_not_matter),
        WITH_FIXTURE(work_for_a_scope_that_ended_long_ago_still_belongs_to_it),
        WITH_FIXTURE(no_token_and_one_of_another_session_change_nothing),
        WITH_FIXTURE(a_token_is_made_once_for_each_entry_into_a_scope),
        WITH_FIXTURE(a_thread_that_exits_while_it_works_for_a_scope_ends_that),
        WITH_FIXTURE(a_token_whose_scope_is_forgotten_is_counted),
        WITH_FIXTURE(a_thread_without_scopes_works_for_the_scope_of_its_task),
        cmocka_unit_test(scopes_in_use_are_remembered_while_others_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
