/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks, from the threads' rings to rows: one text for each distinct stack; only rows that need a name wait for it. */
#include "recorder_fixture.h"

#include "base/clock.h"
#include "capture/scope_tracker.h"
#include "capture/stacked_rows.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

/* Replaces the product's name look-up, which can be made to wait here. */
static pthread_mutex_t names_gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t questions;

int dladdr(const void *address, Dl_info *info)
{
    void *extra;
    atomic_fetch_add(&questions, 1);
    pthread_mutex_lock(&names_gate);
    pthread_mutex_unlock(&names_gate);
    return dladdr1(address, info, &extra, RTLD_DL_SYMENT);
}

struct fixture {
    char dir[256];
    struct log_writer *writer;
    struct recorder recorder;
    struct names names;
    struct stacks *stacks;
    struct stacked_rows *rows;
    struct scope_tracker *tracker;
    struct tick_scale scale;
    uint32_t seen_count, seen[8192]; /* numbers, in order */
    uint32_t frames_sent;
};

static void no_wake(void) {}
static void take_stack(void *user, const struct stack_event *event)
{
    struct fixture *fixture = user;
    assert_true(fixture->seen_count < sizeof fixture->seen / sizeof *fixture->seen);
    fixture->seen[fixture->seen_count++] = stacks_identify(fixture->stacks, event);
    fixture->frames_sent += event->frame_count;
}

static int open_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    clock_setup(NULL);
    tick_scale_start(&fixture->scale);
    recorder_fixture_open(fixture->dir, &fixture->writer, &fixture->recorder);
    names_open(&fixture->names, &fixture->recorder);
    assert_int_equal(stacks_make(&fixture->stacks, &fixture->names, NULL), GPUFL_OK);
    assert_int_equal(stacked_rows_make(&fixture->rows, &fixture->recorder, fixture->stacks), GPUFL_OK);
    assert_int_equal(thread_logs_setup(no_wake), GPUFL_OK);
    const struct thread_sink sink = {.user = fixture, .on_stack = take_stack};
    assert_int_equal(scope_tracker_make(&fixture->tracker, &fixture->recorder, &sink), GPUFL_OK);
    scope_tracker_discard(fixture->tracker);
    thread_logs_start();
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    scope_tracker_free(fixture->tracker);
    stacked_rows_free(fixture->rows);
    stacks_free(fixture->stacks);
    names_close(&fixture->names);
    recorder_fixture_close(fixture->dir, fixture->writer, &fixture->recorder);
    free(fixture);
    return 0;
}

static uint64_t lost(const struct fixture *fixture, enum loss_reason reason)
{
    return atomic_load(&fixture->recorder.lost[reason]);
}

static uint64_t lost_ever(const struct fixture *fixture)
{
    return recorder_lost_total(&fixture->recorder);
}

/* Sends a stack of the functions above, innermost first; different seeds give different stacks. */
static void send(uint32_t correlation_id, uint32_t seed, uint32_t frame_count)
{
    uint64_t frames[STACK_FRAMES_MAX];
    for (uint32_t i = 0; i < frame_count; i++)
        frames[i] = (uintptr_t)&open_fixture + 1 + (i == frame_count / 2 ? seed : 0);
    thread_log_stack(correlation_id, frames, frame_count);
}

static void drain(struct fixture *fixture)
{
    scope_tracker_drain(fixture->tracker, &fixture->scale);
}

static const struct batch *kernels(const struct fixture *fixture)
{
    return &fixture->recorder.batches[RECORD_KERNEL_EVENT_BATCH];
}

static int64_t stack_of_row(const struct fixture *fixture, uint32_t row)
{
    assert_true(row < kernels(fixture)->row_count);
    return kernels(fixture)->cells[row * KERNEL_COLUMN_COUNT + KERNEL_STACK_ID];
}

static void add_row(struct fixture *fixture, uint32_t stack)
{
    const struct work work = {.start_ns = 1000, .duration_ns = 10, .record = RECORD_KERNEL_EVENT_BATCH};
    const struct call call = {.scope_id = 7, .thread_id = 3, .stack_id = stack, .has_times = true};
    stacked_rows_add(fixture->rows, &work, &call);
}

static void frames_are_sent_once_and_a_hash_stands_for_them_afterwards(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t i = 0; i < 300; i++)
        send(i, i % 3, 100);
    drain(fixture);
    assert_int_equal(fixture->seen_count, 300);
    assert_int_equal(fixture->frames_sent, 300); /* 3 * 100 */
    for (uint32_t i = 0; i < 300; i++)
        assert_int_equal(fixture->seen[i], i % 3 + 1);
    thread_logs_start(); /* another session, in which none was sent */
    send(1, 0, 100);
    drain(fixture);
    assert_int_equal(fixture->frames_sent, 400);
    assert_int_equal(lost_ever(fixture), 0);
}

static void *send_from_thread(void *unused)
{
    (void)unused;
    send(9, 5, 20);
    return NULL;
}

static void a_stack_has_one_number_whichever_thread_it_is_of(void **state)
{
    struct fixture *fixture = *state;
    send(8, 5, 20);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, send_from_thread, NULL), 0);
    pthread_join(thread, NULL);
    drain(fixture);
    assert_int_equal(fixture->frames_sent, 40);
    assert_int_equal(fixture->seen[0], 1);
    assert_int_equal(fixture->seen[1], 1);
}

static void stacks_never_take_the_room_of_scopes(void **state)
{
    struct fixture *fixture = *state;
    const struct scope_text scope = {.name = "step", .name_size = 4};
    enum { scopes = 500, stacks = 3000 };
    for (uint32_t i = 0; i < stacks; i++)
        send(i, i, STACK_FRAMES_MAX);
    for (int i = 0; i < scopes; i++) {
        thread_log_scope_begin(&scope);
        thread_log_scope_end(SCOPE_STACK_API);
    }
    drain(fixture);
    assert_int_equal(scope_tracker_count(fixture->tracker), scopes);
    assert_int_equal(lost(fixture, LOSS_SCOPE_RING), 0);
    assert_in_range(fixture->seen_count, 100, stacks - 1);
    assert_int_equal(fixture->seen_count + lost(fixture, LOSS_STACK_RING), stacks);
    /* A stack that did not fit was not sent, so its frames are sent later. */
    send(stacks, stacks - 1, STACK_FRAMES_MAX);
    uint32_t before = fixture->frames_sent;
    drain(fixture);
    assert_int_equal(fixture->frames_sent, before + STACK_FRAMES_MAX);
}

static void a_hash_without_its_frames_is_a_counted_loss(void **state)
{
    struct fixture *fixture = *state;
    const struct stack_event event = {.correlation_id = 1, .hash = 77};
    assert_int_equal(stacks_identify(fixture->stacks, &event), 0);
    assert_int_equal(lost(fixture, LOSS_STACK_TEXTS), 1);
}

/* As many distinct stacks as numbers, of 16 addresses each, whose names are found quickly. */
static void send_number(uint32_t correlation_id, uint32_t number)
{
    uint64_t frames[8];
    for (uint32_t i = 0; i < 8; i++)
        frames[i] = (uintptr_t)&open_fixture + 1 + (number >> 4 * i & 15);
    thread_log_stack(correlation_id, frames, 8);
}

static void more_stacks_than_are_kept_are_all_spelled_and_come_back_with_their_frames(void **state)
{
    struct fixture *fixture = *state;
    enum { count = 100000, per_drain = 1000 };
    for (uint32_t i = 0; i < count; i++) {
        send_number(i + 1, i);
        if ((i + 1) % per_drain)
            continue;
        fixture->seen_count = 0;
        drain(fixture);
        assert_int_equal(fixture->seen[per_drain - 1], i + 1);
        stacks_settle(fixture->stacks, true);
    }
    assert_true(stacks_bytes(fixture->stacks) < 64 << 20);
    fixture->frames_sent = fixture->seen_count = 0;
    send_number(1, 0);
    drain(fixture);
    assert_int_equal(fixture->frames_sent, 8);
    assert_int_equal(fixture->seen[0], count + 1);
    assert_int_equal(lost_ever(fixture), 0);
}

static void rows_wait_for_the_names_in_their_stack_and_nothing_else_does(void **state)
{
    struct fixture *fixture = *state;
    pthread_mutex_lock(&names_gate);
    for (uint32_t i = 0; i < 50; i++)
        send(i, i, 30);
    drain(fixture);
    stacks_settle(fixture->stacks, false);
    for (uint32_t i = 0; i < 50; i++)
        add_row(fixture, fixture->seen[i]);
    stacked_rows_settle(fixture->rows);
    assert_int_equal(kernels(fixture)->row_count, 0);
    assert_int_equal(fixture->recorder.entries[DICTIONARY_FUNCTION].size, 0);
    add_row(fixture, 0); /* without a stack */
    assert_int_equal(kernels(fixture)->row_count, 1);
    pthread_mutex_unlock(&names_gate);
    stacks_settle(fixture->stacks, true);
    stacked_rows_settle(fixture->rows);
    assert_int_equal(kernels(fixture)->row_count, 51);
    assert_int_equal(stack_of_row(fixture, 0), 0);
    for (uint32_t i = 1; i < 51; i++) {
        assert_int_not_equal(stack_of_row(fixture, i), 0);
        assert_int_equal(kernels(fixture)->cells[i * KERNEL_COLUMN_COUNT + KERNEL_SCOPE_ID], 7);
    }
    assert_int_not_equal(fixture->recorder.entries[DICTIONARY_FUNCTION].size, 0);
    assert_int_equal(lost_ever(fixture), 0);
}

static void more_waiting_rows_than_fit_go_without_their_stack_and_are_counted(void **state)
{
    struct fixture *fixture = *state;
    enum { rows = 33 * 1024, waiting = 32 * 1024 };
    pthread_mutex_lock(&names_gate);
    send(1, 1, 30);
    drain(fixture);
    for (uint32_t i = 0; i < rows; i++)
        add_row(fixture, fixture->seen[0]);
    assert_int_equal(lost(fixture, LOSS_STACK_LATE), rows - waiting);
    assert_int_equal(kernels(fixture)->row_count, rows - waiting);
    assert_int_equal(stack_of_row(fixture, 0), 0);
    pthread_mutex_unlock(&names_gate);
    stacks_settle(fixture->stacks, true);
    stacked_rows_settle(fixture->rows);
    struct log_writer_stats stats;
    recorder_flush(&fixture->recorder, 0);
    log_writer_stats(fixture->writer, &stats);
    assert_int_equal(stats.rows[RECORD_KERNEL_EVENT_BATCH], rows);
}

static void an_address_is_looked_up_once(void **state)
{
    struct fixture *fixture = *state;
    send(1, 0, 40);
    drain(fixture);
    stacks_settle(fixture->stacks, true);
    uint64_t before = atomic_load(&questions);
    for (uint32_t i = 1; i < 20; i++)
        send(i, 0, 40 + i); /* the same address, more often */
    drain(fixture);
    stacks_settle(fixture->stacks, true);
    assert_int_equal(fixture->seen[19], 20);
    assert_int_equal(atomic_load(&questions), before);
}

static void a_session_can_end_while_stacks_still_wait_for_names(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t i = 0; i < 200; i++)
        send(i, i, 60);
    drain(fixture); /* the teardown frees what is left */
    assert_int_equal(fixture->seen[199], 200);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(frames_are_sent_once_and_a_hash_stands_for_them_afterwards),
        WITH_FIXTURE(a_stack_has_one_number_whichever_thread_it_is_of),
        WITH_FIXTURE(stacks_never_take_the_room_of_scopes),
        WITH_FIXTURE(a_hash_without_its_frames_is_a_counted_loss),
        WITH_FIXTURE(more_stacks_than_are_kept_are_all_spelled_and_come_back_with_their_frames),
        WITH_FIXTURE(rows_wait_for_the_names_in_their_stack_and_nothing_else_does),
        WITH_FIXTURE(more_waiting_rows_than_fit_go_without_their_stack_and_are_counted),
        WITH_FIXTURE(an_address_is_looked_up_once),
        WITH_FIXTURE(a_session_can_end_while_stacks_still_wait_for_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
