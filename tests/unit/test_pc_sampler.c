/* SPDX-License-Identifier: Apache-2.0 */
/* PC samples to rows: whose they are, what is added up, what is lost; and the
 * engine on the look-alike CUPTI, in a process for each set of faults. */
#include "session_fixture.h"

#include "../fakes/fake_client.h"
#include "capture/pc_ring.h"
#include "capture/pc_sampler.h"
#include "driver/cupti_table.h"

#include <time.h>

#define SECOND_NS INT64_C(1000000000)
#define BEGIN_NS INT64_C(1763000000000000000)
enum { CONTEXT = 3, STALL = 9 };

struct fixture {
    char dir[256];
    struct log_writer *writer;
    struct recorder recorder;
    struct names names;
    struct kernel_history *history;
    struct pc_attribution *attribution;
    struct pc_ring *ring;
};

static uint32_t scope_name(void *user, uint64_t scope_id)
{
    (void)user;
    return (uint32_t)scope_id + 1000;
}

static struct pc_attribution_options attribution_options(struct fixture *fixture)
{
    return (struct pc_attribution_options){&fixture->recorder, &fixture->names, fixture->history, scope_name, NULL};
}

static struct fixture *fixture_make(void)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    snprintf(fixture->dir, sizeof fixture->dir, "%s", fixture_dir());
    const struct log_writer_options options = {.base_dir = fixture->dir, .session_id = FIXTURE_ID};
    assert_int_equal(log_writer_open(&fixture->writer, &options, NULL), GPUFL_OK);
    assert_int_equal(recorder_open(&fixture->recorder, fixture->writer, FIXTURE_ID, "test"), GPUFL_OK);
    names_open(&fixture->names, &fixture->recorder);
    assert_int_equal(kernel_history_make(&fixture->history, 1024), GPUFL_OK);
    return fixture;
}

static int open_fixture(void **state)
{
    struct fixture *fixture = fixture_make();
    const struct pc_attribution_options options = attribution_options(fixture);
    assert_int_equal(pc_attribution_make(&fixture->attribution, &options), GPUFL_OK);
    assert_int_equal(pc_ring_make(&fixture->ring, &fixture->recorder), GPUFL_OK);
    pc_attribution_define(fixture->attribution, 1, 77, "_Z1aPf");
    pc_attribution_define(fixture->attribution, 2, 77, "_Z1bPf");
    pc_attribution_stall(fixture->attribution, 0, STALL, "stalled_wait");
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    pc_ring_free(fixture->ring);
    pc_attribution_free(fixture->attribution);
    kernel_history_free(fixture->history);
    names_close(&fixture->names);
    recorder_close(&fixture->recorder);
    log_writer_close(fixture->writer, 1000);
    fixture_remove(fixture->dir);
    free(fixture);
    return 0;
}

static void ran(struct fixture *fixture, const char *symbol, int64_t start_ns, int64_t end_ns, uint64_t scope_id,
                uint32_t correlation_id)
{
    const struct kernel_execution execution = {
        BEGIN_NS + start_ns, BEGIN_NS + end_ns, scope_id, kernel_history_symbol(fixture->history, symbol), CONTEXT,
        correlation_id};
    kernel_history_add(fixture->history, &execution);
}

static void sampled(struct fixture *fixture, uint32_t function, int64_t start_ns, int64_t end_ns, uint32_t samples,
                    uint32_t correlation_id)
{
    const struct pc_interval interval = {BEGIN_NS + start_ns, BEGIN_NS + end_ns, CONTEXT, 0, 0};
    const struct pc_count count = {0x40, function, STALL, samples, correlation_id};
    pc_attribution_add(fixture->attribution, &interval, &count, 1);
}

static uint32_t row_count(const struct fixture *fixture)
{
    return fixture->recorder.batches[RECORD_PROFILE_SAMPLE_BATCH].row_count;
}
static const int64_t *row_at(const struct fixture *fixture, uint32_t index)
{
    assert_true(index < row_count(fixture));
    return &fixture->recorder.batches[RECORD_PROFILE_SAMPLE_BATCH].cells[index * PROFILE_SAMPLE_COLUMN_COUNT];
}
static uint64_t lost(const struct fixture *fixture, enum loss_reason reason)
{
    return atomic_load(&fixture->recorder.lost[reason]);
}

static void one_execution_in_the_interval_is_certain(void **state)
{
    struct fixture *fixture = *state;
    ran(fixture, "_Z1aPf", 1000, 5000, 7, 42);
    ran(fixture, "_Z1bPf", 1000, 5000, 8, 43);
    sampled(fixture, 1, 0, 10000, 5, 0);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    const int64_t *row = row_at(fixture, 0);
    assert_int_equal(row_count(fixture), 1);
    assert_int_equal(row[PROFILE_SAMPLE_CORR_ID], 42);
    assert_int_equal(row[PROFILE_SAMPLE_SCOPE_ID], 7);
    assert_int_equal(row[PROFILE_SAMPLE_SCOPE_NAME_ID], 1007);
    assert_int_equal(row[PROFILE_SAMPLE_CONFIDENCE_BP], 10000);
    assert_int_equal(row[PROFILE_SAMPLE_INSTANCES], 1);
    assert_int_equal(row[PROFILE_SAMPLE_METRIC_VALUE], 5);
    assert_int_equal(row[PROFILE_SAMPLE_STALL_REASON], STALL);
    assert_int_equal(row[PROFILE_SAMPLE_METRIC_ID], 1);
    assert_int_equal(row[PROFILE_SAMPLE_PC_OFFSET], 0x40);
    assert_int_equal(row[PROFILE_SAMPLE_CUBIN_CRC], 77);
    assert_int_equal(row[PROFILE_SAMPLE_INTERVAL_NS], 10000);
    assert_int_equal(row[PROFILE_SAMPLE_SAMPLE_KIND], 0);
}

static void several_executions_name_the_scope_with_most_time_and_its_share(void **state)
{
    struct fixture *fixture = *state;
    ran(fixture, "_Z1aPf", 1000, 4000, 7, 42);
    ran(fixture, "_Z1aPf", 5000, 6000, 8, 43);
    sampled(fixture, 1, 0, 10000, 5, 0);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    const int64_t *row = row_at(fixture, 0);
    assert_int_equal(row[PROFILE_SAMPLE_CORR_ID], 0);
    assert_int_equal(row[PROFILE_SAMPLE_SCOPE_ID], 7);
    assert_int_equal(row[PROFILE_SAMPLE_CONFIDENCE_BP], 7500);
    assert_int_equal(row[PROFILE_SAMPLE_INSTANCES], 2);
}

static void without_an_execution_nothing_is_claimed(void **state)
{
    struct fixture *fixture = *state;
    ran(fixture, "_Z1bPf", 1000, 4000, 7, 42);
    sampled(fixture, 1, 0, 10000, 5, 0);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    const int64_t *row = row_at(fixture, 0);
    assert_int_equal(row[PROFILE_SAMPLE_INSTANCES], CELL_UNKNOWN);
    assert_int_equal(row[PROFILE_SAMPLE_CONFIDENCE_BP], CELL_UNKNOWN);
    assert_int_equal(row[PROFILE_SAMPLE_SCOPE_ID], 0);
    assert_int_equal(row[PROFILE_SAMPLE_CORR_ID], 0);
    assert_int_equal(pc_attribution_unattributed(fixture->attribution), 5);
}

static void a_forgotten_past_is_not_guessed_at(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 1100; i++) /* more than are remembered */
        ran(fixture, "_Z1bPf", i * 100, i * 100 + 50, 7, 1);
    ran(fixture, "_Z1aPf", 1000, 2000, 9, 42);
    sampled(fixture, 1, 0, 3000, 5, 0);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_INSTANCES], CELL_UNKNOWN);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_SCOPE_ID], 0);
}

static void samples_with_a_launch_of_their_own_are_exact(void **state)
{
    struct fixture *fixture = *state;
    ran(fixture, "_Z1aPf", 1000, 4000, 7, 42);
    ran(fixture, "_Z1aPf", 4000, 9000, 8, 43);
    sampled(fixture, 1, 0, 10000, 5, 42);
    sampled(fixture, 1, 0, 10000, 6, 43);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    assert_int_equal(row_count(fixture), 2);
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t *row = row_at(fixture, i);
        assert_int_equal(row[PROFILE_SAMPLE_CORR_ID], 42 + i);
        assert_int_equal(row[PROFILE_SAMPLE_SCOPE_ID], 7 + i);
        assert_int_equal(row[PROFILE_SAMPLE_CONFIDENCE_BP], 10000);
        assert_int_equal(row[PROFILE_SAMPLE_METRIC_VALUE], 5 + i);
    }
}

static void intervals_of_one_scope_are_added_up_for_a_second(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 20; i++) /* two a drain; each even one reaches into the next drain */
        ran(fixture, "_Z1aPf", i * 10000000 + 3000000, i * 10000000 + 11000000, 7, (uint32_t)i + 1);
    for (int i = 0; i < 10; i++)
        sampled(fixture, 1, i * 20000000, (i + 1) * 20000000, 5, 0);
    pc_attribution_write(fixture->attribution, BEGIN_NS + SECOND_NS);
    assert_int_equal(row_count(fixture), 0);
    pc_attribution_write(fixture->attribution, BEGIN_NS + 2 * SECOND_NS);
    assert_int_equal(row_count(fixture), 1);
    const int64_t *row = row_at(fixture, 0);
    assert_int_equal(row[PROFILE_SAMPLE_METRIC_VALUE], 50);
    assert_int_equal(row[PROFILE_SAMPLE_INSTANCES], 20);
    assert_int_equal(row[PROFILE_SAMPLE_CONFIDENCE_BP], 10000);
    assert_int_equal(row[PROFILE_SAMPLE_INTERVAL_NS], 200000000);
}

static void a_kernel_that_still_runs_is_waited_for(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 5; i++)
        sampled(fixture, 1, i * SECOND_NS, (i + 1) * SECOND_NS, 5, 0);
    pc_attribution_write(fixture->attribution, BEGIN_NS + 6 * SECOND_NS);
    assert_int_equal(row_count(fixture), 0);
    ran(fixture, "_Z1aPf", 1000, 6 * SECOND_NS, 7, 42); /* it has ended: here is its record */
    pc_attribution_write(fixture->attribution, BEGIN_NS + 8 * SECOND_NS);
    assert_int_equal(row_count(fixture), 1);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_CORR_ID], 42);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_METRIC_VALUE], 25);
}

static void waiting_ends_after_half_a_minute(void **state)
{
    struct fixture *fixture = *state;
    sampled(fixture, 1, 0, 1000, 5, 0);
    sampled(fixture, 2, 31 * SECOND_NS, 31 * SECOND_NS + 1000, 6, 0);
    pc_attribution_write(fixture->attribution, BEGIN_NS + 33 * SECOND_NS);
    assert_int_equal(row_count(fixture), 1);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_METRIC_VALUE], 5);
    ran(fixture, "_Z1bPf", 31 * SECOND_NS, 32 * SECOND_NS, 7, 42);
    sampled(fixture, 2, 31 * SECOND_NS, 31 * SECOND_NS + 1000, 4, 0);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    uint64_t samples = 0;
    for (uint32_t i = 1; i < row_count(fixture); i++) {
        assert_int_equal(row_at(fixture, i)[PROFILE_SAMPLE_CORR_ID], 42);
        samples += (uint64_t)row_at(fixture, i)[PROFILE_SAMPLE_METRIC_VALUE];
    }
    assert_int_equal(samples, 10);
}

static void full_tables_are_written_early_and_nothing_is_lost(void **state)
{
    struct fixture *fixture = *state;
    const struct pc_interval interval = {BEGIN_NS, BEGIN_NS + 1000, CONTEXT, 0, 0};
    uint64_t written = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        const struct pc_count count = {i * 16, 1 + i % 2, STALL, 1, i % 3 ? 0 : i};
        pc_attribution_add(fixture->attribution, &interval, &count, 1);
    }
    pc_attribution_write(fixture->attribution, INT64_MAX);
    recorder_flush(&fixture->recorder, 0);
    struct log_writer_stats stats;
    log_writer_stats(fixture->writer, &stats);
    written = stats.rows[RECORD_PROFILE_SAMPLE_BATCH];
    assert_int_equal(written, 200000);
    assert_int_equal(lost(fixture, LOSS_PC_TABLE), 0);
}

static void a_full_ring_counts_what_it_cannot_take(void **state)
{
    struct fixture *fixture = *state;
    struct pc_sample samples[256];
    const struct pc_interval interval = {BEGIN_NS, BEGIN_NS + 1000, CONTEXT, 0, 0};
    for (uint32_t i = 0; i < 256; i++)
        samples[i] = (struct pc_sample){77, "_Z1aPf", i * 16, 1, STALL, 2, 0};
    uint64_t pushed = 0;
    for (int i = 0; i < 2000; i++, pushed += 512)
        pc_ring_push_samples(fixture->ring, &interval, samples, 256);
    uint64_t missing = lost(fixture, LOSS_PC_TABLE);
    assert_in_range(missing, 1, pushed);
    pc_ring_read(fixture->ring, fixture->attribution, INT64_MAX);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    uint64_t written = 0;
    for (uint32_t i = 0; i < row_count(fixture); i++)
        written += (uint64_t)row_at(fixture, i)[PROFILE_SAMPLE_METRIC_VALUE];
    assert_int_equal(written + missing, pushed);
    /* And there is room again. */
    pc_ring_push_samples(fixture->ring, &interval, samples, 256);
    assert_int_equal(lost(fixture, LOSS_PC_TABLE), missing);
}

static void samples_wait_in_the_ring_until_their_kernels_are_known(void **state)
{
    struct fixture *fixture = *state;
    const struct pc_sample sample = {77, "_Z1aPf", 16, 1, STALL, 2, 0};
    const struct pc_interval interval = {BEGIN_NS, BEGIN_NS + 1000, CONTEXT, 0, 0};
    pc_ring_push_samples(fixture->ring, &interval, &sample, 1);
    pc_ring_read(fixture->ring, fixture->attribution, BEGIN_NS + 999);
    ran(fixture, "_Z1aPf", 0, 500, 7, 42);
    pc_ring_read(fixture->ring, fixture->attribution, BEGIN_NS + 1000);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_CORR_ID], 42);
}

static void the_period_gives_at_least_the_rate(void **state)
{
    (void)state;
    assert_int_equal(pc_sampler_period_exponent(2000, 1980000), 21); /* 3,776 samples a second and SM */
    assert_int_equal(pc_sampler_period_exponent(1, 1980000), 31);
    assert_int_equal(pc_sampler_period_exponent(4000000000u, 1980000), 5);
    for (uint32_t rate_hz = 100; rate_hz < 1000000; rate_hz = rate_hz * 3 / 2) {
        uint32_t exponent = pc_sampler_period_exponent(rate_hz, 1755000);
        assert_true(UINT64_C(4) * 1755000 * 1000 / rate_hz >= UINT64_C(1) << exponent);
        assert_true(UINT64_C(4) * 1755000 * 1000 / rate_hz < UINT64_C(2) << exponent);
    }
}

/* ---- the engine, on the look-alike ---- */

static struct cupti product;
static struct fixture *engine;
static struct pc_sampler *sampler;
static const struct fake_kernel kernel = {"_Z6samplePf", 32, 0, 0, 2000000};

static struct gpu_context current_context(void)
{
    struct fake_context *(*current)(void);
    CHECK(rt.cudaDeviceSynchronize() == FAKE_SUCCESS);
    *(void **)&current = dlsym(RTLD_DEFAULT, "fake_current_context");
    return (struct gpu_context){current(), 1, 0};
}

static void engine_open(bool is_serialized)
{
    product.library.handle = library_load("libcupti.so.13");
    product.version = 130001;
    *(void **)&product.call.get_result_string = dlsym(product.library.handle, "cuptiGetResultString");
    static const struct fake_image image = {FAKE_IMAGE_MAGIC, 1, &kernel};
    void **handle = rt.__cudaRegisterFatBinary((void *)(uintptr_t)&image);
    rt.__cudaRegisterFunction(handle, (const char *)&kernel, NULL, kernel.name, -1, NULL, NULL, NULL, NULL, NULL);
    rt.__cudaUnregisterFatBinary(handle);
    engine = fixture_make();
    const struct pc_sampler_options options = {.cupti = &product,
                                               .attribution = attribution_options(engine),
                                               .is_serialized = is_serialized,
                                               .period_exponent = 16,
                                               .drain_ms = 2};
    CHECK(pc_sampler_make(&sampler, &options, NULL) == GPUFL_OK);
    CHECK(pc_sampler_start(sampler) == GPUFL_OK);
}

static void engine_close(void)
{
    pc_sampler_free(sampler);
    void *state = engine;
    (void)close_fixture(&state);
}

static void run_kernels(int count, uint64_t scope_id)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t start_ns = (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
    for (int i = 0; i < count; i++)
        CHECK(launch(&kernel, NULL) == FAKE_SUCCESS);
    CHECK(rt.cudaDeviceSynchronize() == FAKE_SUCCESS);
    clock_gettime(CLOCK_REALTIME, &now);
    const struct kernel_execution execution = {start_ns, (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec,
                                               scope_id, kernel_history_symbol(engine->history, kernel.name),
                                               1,        42};
    kernel_history_add(engine->history, &execution);
}

static uint64_t samples_written(void)
{
    uint64_t samples = 0;
    for (uint32_t i = 0; i < row_count(engine); i++)
        samples += (uint64_t)row_at(engine, i)[PROFILE_SAMPLE_METRIC_VALUE];
    return samples;
}

static void sample_a_program(void)
{
    engine_open(false);
    const struct gpu_context context = current_context();
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK); /* again: no harm */
    run_kernels(10, 7);
    CHECK(pc_sampler_bytes(sampler) > 1 << 20);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    struct pc_sampler_totals totals = pc_sampler_totals(sampler);
    CHECK(totals.samples > 0 && totals.samples == samples_written());
    CHECK(totals.contexts == 1 && totals.contexts_failed == 0 && totals.unattributed == 0 && totals.intervals > 0);
    for (uint32_t i = 0; i < row_count(engine); i++) {
        CHECK(row_at(engine, i)[PROFILE_SAMPLE_SCOPE_ID] == 7 && row_at(engine, i)[PROFILE_SAMPLE_CORR_ID] == 42);
        CHECK(row_at(engine, i)[PROFILE_SAMPLE_METRIC_ID] > 0);
    }
    CHECK(!pc_sampler_trouble(sampler, NULL));
    recorder_flush(&engine->recorder, 0);
    size_t size;
    char *text = fixture_read(engine->dir, FIXTURE_ID "/scope.log", &size);
    CHECK(strstr(text, "\"type\":\"pc_sampling_config\""));
    CHECK(strstr(text, "\"mode\":\"continuous\",\"period_cycles\":65536"));
    CHECK(strstr(text, "stalled_long_scoreboard"));
    free(text);
    engine_close();
}
static void samples_of_a_program_become_rows(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", sample_a_program);
}

static void sample_serialized(void)
{
    engine_open(true);
    const struct gpu_context context = current_context();
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
    run_kernels(3, 7);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    int64_t first = row_at(engine, 0)[PROFILE_SAMPLE_CORR_ID];
    bool has_other = false;
    for (uint32_t i = 0; i < row_count(engine); i++) {
        CHECK(row_at(engine, i)[PROFILE_SAMPLE_CONFIDENCE_BP] == 10000);
        has_other |= row_at(engine, i)[PROFILE_SAMPLE_CORR_ID] != first;
    }
    CHECK(first > 0 && has_other);
    engine_close();
}
static void serialized_samples_name_their_launch(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", sample_serialized);
}

static void pause_and_resume(void)
{
    struct problem problem = {""};
    engine_open(false);
    const struct gpu_context context = current_context();
    pc_sampler_want(sampler, &context);
    while (pc_sampler_totals(sampler).contexts == 0)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    run_kernels(2, 7);
    CHECK(pc_sampler_pause(sampler, &problem) == GPUFL_OK);
    uint64_t before = pc_sampler_totals(sampler).samples;
    CHECK(before > 0);
    run_kernels(2, 8);
    CHECK(pc_sampler_resume(sampler, 5, &problem) == GPUFL_OK);
    CHECK(pc_sampler_totals(sampler).samples == before);
    run_kernels(2, 9);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    uint64_t in_window = 0;
    for (uint32_t i = 0; i < row_count(engine); i++) {
        const int64_t *row = row_at(engine, i);
        CHECK(row[PROFILE_SAMPLE_SCOPE_ID] == (row[PROFILE_SAMPLE_WINDOW_ID] == 5 ? 9 : 7));
        if (row[PROFILE_SAMPLE_WINDOW_ID] == 5)
            in_window += (uint64_t)row[PROFILE_SAMPLE_METRIC_VALUE];
    }
    CHECK(in_window > 0 && in_window + before == pc_sampler_totals(sampler).samples);
    engine_close();
}
static void nothing_is_sampled_during_a_pause(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", pause_and_resume);
}

static void contexts_come_and_go(void)
{
    int (*create)(struct fake_context **, unsigned, int);
    int (*destroy)(struct fake_context *);
    *(void **)&create = dlsym(RTLD_DEFAULT, "cuCtxCreate_v2");
    *(void **)&destroy = dlsym(RTLD_DEFAULT, "cuCtxDestroy_v2");
    engine_open(false);
    (void)current_context();
    for (uint32_t i = 0; i < 3 * PC_CONTEXTS_MAX; i++) {
        struct fake_context *handle;
        CHECK(create(&handle, 0, 0) == FAKE_SUCCESS);
        const struct gpu_context context = {handle, i + 2, 0};
        if (i % 2)
            pc_sampler_want(sampler, &context);
        else
            CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
        if (i % 16 == 0)
            CHECK(launch(&kernel, NULL) == FAKE_SUCCESS);
        CHECK(rt.cudaDeviceSynchronize() == FAKE_SUCCESS);
        pc_sampler_detach(sampler, handle);
        pc_sampler_detach(sampler, handle); /* no longer known */
        CHECK(destroy(handle) == FAKE_SUCCESS);
    }
    CHECK(lost(engine, LOSS_PC_CONTEXTS) == 0);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    CHECK(pc_sampler_totals(sampler).samples > 0 && samples_written() == pc_sampler_totals(sampler).samples);
    CHECK(!pc_sampler_trouble(sampler, NULL));
    engine_close();
}
static void contexts_may_come_and_go_while_sampling(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", contexts_come_and_go);
}

static void too_many_contexts(void)
{
    struct problem problem = {""};
    engine_open(false);
    (void)current_context();
    CHECK(pc_sampler_pause(sampler, &problem) == GPUFL_OK); /* none of them is real */
    for (uintptr_t i = 0; i < PC_CONTEXTS_MAX; i++) {
        const struct gpu_context context = {(void *)(i + 1), (uint32_t)i, 0};
        CHECK(pc_sampler_attach(sampler, &context, &problem) == GPUFL_OK);
    }
    const struct gpu_context context = {(void *)(uintptr_t)1000, 1000, 0};
    CHECK(pc_sampler_attach(sampler, &context, &problem) == GPUFL_E_LIMIT);
    pc_sampler_want(sampler, &context);
    CHECK(lost(engine, LOSS_PC_CONTEXTS) == 2);
    engine_close();
}
static void contexts_beyond_the_limit_are_refused_and_counted(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", too_many_contexts);
}

static void sample_in_two_sessions(void)
{
    engine_open(false);
    const struct gpu_context context = current_context();
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
    run_kernels(2, 7);
    pc_sampler_stop(sampler, false); /* other threads may launch: it stays on */
    pc_sampler_write(sampler, INT64_MAX);
    uint64_t first = samples_written();
    CHECK(first > 0 && first == pc_sampler_totals(sampler).samples);
    pc_sampler_free(sampler);
    run_kernels(5, 8); /* between the sessions: nobody's */
    struct pc_sampler_options options = {
        .cupti = &product, .attribution = attribution_options(engine), .is_serialized = true, .period_exponent = 12};
    struct problem problem = {""};
    CHECK(pc_sampler_make(&sampler, &options, NULL) == GPUFL_OK);
    CHECK(pc_sampler_attach(sampler, &context, &problem) == GPUFL_E_UNSUPPORTED); /* it cannot change its mode */
    CHECK(strstr(problem.text, "mode"));
    pc_sampler_free(sampler);
    options.is_serialized = false;
    CHECK(pc_sampler_make(&sampler, &options, NULL) == GPUFL_OK);
    CHECK(pc_sampler_attach(sampler, &context, &problem) == GPUFL_OK);
    run_kernels(2, 9);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    CHECK(samples_written() == first + pc_sampler_totals(sampler).samples);
    CHECK(row_at(engine, row_count(engine) - 1)[PROFILE_SAMPLE_SCOPE_ID] == 9);
    recorder_flush(&engine->recorder, 0);
    size_t size;
    char *text = fixture_read(engine->dir, FIXTURE_ID "/scope.log", &size);
    CHECK(!strstr(text, "\"period_cycles\":4096")); /* and says which period it really has */
    free(text);
    engine_close();
}
static void a_second_session_takes_over_what_the_first_left_on(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", sample_in_two_sessions);
}

static void sample_with_losses(void)
{
    engine_open(false);
    const struct gpu_context context = current_context();
    CHECK(pc_sampler_attach(sampler, &context, NULL) == GPUFL_OK);
    run_kernels(3, 7);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    struct pc_sampler_totals totals = pc_sampler_totals(sampler);
    CHECK(totals.dropped > 0 && totals.dropped % 17 == 0 && lost(engine, LOSS_PC_DROPPED) == totals.dropped);
    CHECK(totals.samples == samples_written());
    engine_close();
}
static void dropped_samples_are_a_loss(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "pc_dropped=17", sample_with_losses);
}

static bool is_harmless; /* the call's failure is made good */

static void sample_with_a_failing_call(void)
{
    struct problem problem = {""};
    engine_open(false);
    const struct gpu_context context = current_context();
    bool is_attached = pc_sampler_attach(sampler, &context, &problem) == GPUFL_OK;
    run_kernels(5, 7);
    /* Enough drains for a failure in any of them, and for giving up. */
    for (int i = 0; i < 50; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    run_kernels(5, 7);
    pc_sampler_stop(sampler, true);
    pc_sampler_write(sampler, INT64_MAX);
    struct pc_sampler_totals totals = pc_sampler_totals(sampler);
    CHECK(totals.samples == samples_written());
    CHECK(is_attached || totals.samples == 0);
    CHECK(is_harmless || pc_sampler_trouble(sampler, &problem));
    CHECK(is_harmless || (problem.text[0] && lost(engine, LOSS_PC_FAILED) > 0));
    CHECK(!is_harmless || (totals.samples > 0 && lost(engine, LOSS_PC_FAILED) == 0));
    recorder_flush(&engine->recorder, 0);
    if (!is_harmless) {
        size_t size;
        char *text = fixture_read(engine->dir, FIXTURE_ID "/system.log", &size);
        char *line = strstr(text, "\"reason\":\"pc_sampling_failed\"");
        CHECK(line && strstr(line, "\"count\":null"));
        free(text);
    }
    engine_close();
}
static void every_call_may_fail_and_the_log_says_so(void **state)
{
    static const struct {
        const char *faults;
        bool is_harmless;
    } cases[] = {
        {"fail=cuptiProfilerInitialize@1:999", false},
        {"fail=cuptiProfilerDeviceSupported@1:35", false},
        {"fail=cuptiPCSamplingGetNumStallReasons@1:7", true}, /* asked again once it is enabled */
        {"fail=cuptiPCSamplingGetNumStallReasons@*:7", false},
        {"fail=cuptiPCSamplingGetStallReasons@*:7", false},
        {"fail=cuptiPCSamplingEnable@1:35", false},
        {"fail=cuptiPCSamplingSetConfigurationAttribute@1:7", false},
        {"fail=cuptiPCSamplingGetData@1:999", false},
        {"fail=cuptiPCSamplingGetData@3:7", false},
        {"fail=cuptiPCSamplingGetData@*:999", false},
        {"fail=cuptiPCSamplingDisable@1:999", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        is_harmless = cases[i].is_harmless;
        in_child("libcupti.so.13", cases[i].faults, sample_with_a_failing_call);
    }
}

int main(void)
{
    environment_clear();
    const struct CMUnitTest tests[] = {
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)
        WITH_FIXTURE(one_execution_in_the_interval_is_certain),
        WITH_FIXTURE(several_executions_name_the_scope_with_most_time_and_its_share),
        WITH_FIXTURE(without_an_execution_nothing_is_claimed),
        WITH_FIXTURE(a_forgotten_past_is_not_guessed_at),
        WITH_FIXTURE(samples_with_a_launch_of_their_own_are_exact),
        WITH_FIXTURE(intervals_of_one_scope_are_added_up_for_a_second),
        WITH_FIXTURE(a_kernel_that_still_runs_is_waited_for),
        WITH_FIXTURE(waiting_ends_after_half_a_minute),
        WITH_FIXTURE(full_tables_are_written_early_and_nothing_is_lost),
        WITH_FIXTURE(a_full_ring_counts_what_it_cannot_take),
        WITH_FIXTURE(samples_wait_in_the_ring_until_their_kernels_are_known),
        cmocka_unit_test(the_period_gives_at_least_the_rate),
        cmocka_unit_test(samples_of_a_program_become_rows),
        cmocka_unit_test(serialized_samples_name_their_launch),
        cmocka_unit_test(nothing_is_sampled_during_a_pause),
        cmocka_unit_test(contexts_may_come_and_go_while_sampling),
        cmocka_unit_test(contexts_beyond_the_limit_are_refused_and_counted),
        cmocka_unit_test(a_second_session_takes_over_what_the_first_left_on),
        cmocka_unit_test(dropped_samples_are_a_loss),
        cmocka_unit_test(every_call_may_fail_and_the_log_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
