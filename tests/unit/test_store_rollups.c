/* SPDX-License-Identifier: Apache-2.0 */
/* The sums that the store keeps equal what the analysis computes from the sessions. */
#include "store_fixture.h"

#include <inttypes.h>

struct kernel_check {
    const struct analysis *analysis;
    size_t count;
};

static bool check_kernel(void *user, const struct store_kernel *kernel)
{
    struct kernel_check *check = user;
    const struct session_model *model = check->analysis->model;
    const struct hotspot *hotspot = NULL;
    for (size_t i = 0; i < check->analysis->hotspot_count; i++)
        if (check->analysis->hotspots[i].kernel_id == kernel->kernel_id)
            hotspot = &check->analysis->hotspots[i];
    assert_non_null(hotspot);
    assert_string_equal(kernel->name, hotspot->name ? hotspot->name : "");
    assert_int_equal(kernel->count, hotspot->duration.count);
    assert_int_equal(kernel->total_ns, hotspot->duration.total);
    assert_int_equal(kernel->min_ns, hotspot->duration.min);
    assert_int_equal(kernel->max_ns, hotspot->duration.max);
    uint64_t bins[STORE_HISTOGRAM_BINS] = {0};
    double squares = 0;
    for (size_t i = 0; i < model->kernels.count; i++) {
        int64_t ns = model->kernels.duration_ns[i];
        if (model->kernels.kernel_id[i] != kernel->kernel_id)
            continue;
        unsigned bin = 0;
        while (bin < 63 && ns >> bin)
            bin++;
        bins[bin]++;
        squares += (double)ns * (double)ns;
    }
    assert_memory_equal(bins, kernel->histogram, sizeof bins);
    assert_true(kernel->sum_squares >= squares * 0.999999 && kernel->sum_squares <= squares * 1.000001);
    check->count++;
    return true;
}

static bool check_scope(void *user, const struct store_scope *scope)
{
    struct kernel_check *check = user;
    const struct analysis *analysis = check->analysis;
    const struct scope_node *node = &analysis->scopes[0];
    for (size_t i = 0; i < analysis->scope_count && scope->path_id; i++)
        if (analysis->scopes[i].path_id == scope->path_id)
            node = &analysis->scopes[i];
    assert_true(!scope->path_id == (node == &analysis->scopes[0]));
    assert_int_equal(scope->kernels, node->kernels_self);
    assert_int_equal(scope->kernel_ns, node->gpu_self_ns);
    assert_int_equal(scope->calls, node->calls);
    if (!node->open_calls)
        assert_int_equal(scope->wall_ns, node->wall_ns);
    if (scope->path_id)
        assert_string_equal(scope->path, session_text(analysis->model, DICTIONARY_SCOPE_NAME, scope->path_id));
    check->count++;
    return true;
}

static bool check_session(void *user, const struct store_session *session)
{
    const struct analysis *analysis = user;
    const struct session_model *model = analysis->model;
    bool is_exact, has_unknown_loss = false;
    for (size_t i = 0; i < model->loss_count; i++)
        has_unknown_loss |= model->losses[i].has_unknown_count;
    assert_string_equal(session->app, model->job.app);
    assert_string_equal(session->host, model->job.hostname);
    assert_string_equal(session->kind, model->job.kind);
    assert_int_equal(session->start_ns, model->job.start_ns);
    assert_int_equal(session->kernels, model->kernels.count);
    assert_int_equal(session->kernel_ns, analysis->kernel_ns);
    assert_int_equal(session->lost, session_lost(model, &is_exact));
    /* The store counts what loss records report; anything else that a crash lost shows in the state. */
    assert_int_equal(session->has_unknown_loss, has_unknown_loss);
    enum store_session_state state = model->job.has_crashed        ? STORE_SESSION_CRASHED
                                     : model->summary.has_shutdown ? STORE_SESSION_COMPLETE
                                                                   : STORE_SESSION_LIVE;
    assert_int_equal(session->state, state);
    assert_true(session->bytes > 0);
    return true;
}

static void rollups_and_catalog_equal_what_the_analysis_finds(void **state)
{
    static const char *const names[] = {"trace",     "two_gpus", "launch_bound", "killed",
                                        "sync_loop", "degraded", "bench"};
    struct store *store = fixture_store(*state);
    char dir[512];
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            golden_path(dir, names[i]);
            struct delivery delivery = deliver_session(store, dir, 2 + i, true);
            struct session_model *model;
            struct analysis analysis;
            MUST(session_load(&model, dir, &problem));
            assert_int_equal(analysis_make(&analysis, model), GPUFL_OK);
            struct kernel_check kernels = {.analysis = &analysis}, scopes = kernels;
            MUST(store_kernels(store, delivery.session_id, check_kernel, &kernels, &problem));
            assert_int_equal(kernels.count, analysis.hotspot_count);
            MUST(store_scopes(store, delivery.session_id, check_scope, &scopes, &problem));
            MUST(store_session(store, delivery.session_id, check_session, &analysis, &problem));
            analysis_free(&analysis);
            session_free(model);
        }
        MUST(store_maintain(store, &problem));
    }
    store_close(store);
}

struct metric_check {
    struct store *store;
    const struct session_model *model;
    size_t count;
};

static bool check_metric(void *user, const struct store_metric *metric)
{
    struct metric_check *check = user;
    const struct metric_table *table = &check->model->device_metrics;
    int64_t min = INT64_MAX, max = INT64_MIN;
    double sum = 0;
    uint64_t count = 0;
    assert_int_equal(metric->type, RECORD_DEVICE_METRIC_BATCH);
    for (size_t i = 0; i < table->count; i++) {
        int64_t value = table->columns[metric->column] ? table->columns[metric->column][i] : CELL_UNKNOWN;
        if (table->columns[0][i] / 60000000000 * 60000000000 != metric->minute_ns || value == CELL_UNKNOWN ||
            table->columns[DEVICE_METRIC_DEVICE_ID][i] != 0)
            continue;
        min = value < min ? value : min;
        max = value > max ? value : max;
        sum += (double)value;
        count++;
    }
    assert_int_equal(metric->count, count);
    assert_int_equal(metric->min, min);
    assert_int_equal(metric->max, max);
    assert_true(metric->mean >= sum / (double)count - 1e-6 * sum && metric->mean <= sum / (double)count + 1e-6 * sum);
    check->count++;
    return true;
}

static bool take_gpu(void *user, const struct store_gpu *gpu)
{
    struct metric_check *check = user;
    if (!*gpu->uuid)
        return true;
    const struct metric_table *table = &check->model->device_metrics;
    size_t last = table->count;
    for (size_t i = 0; i < table->count; i++)
        if (table->columns[DEVICE_METRIC_DEVICE_ID][i] == gpu->device_id &&
            (last == table->count || table->columns[0][i] >= table->columns[0][last]))
            last = i;
    assert_true(last < table->count);
    assert_int_equal(gpu->sample_ns, table->columns[0][last]);
    assert_int_equal(gpu->type->type, RECORD_DEVICE_METRIC_BATCH);
    for (unsigned c = 1; c < gpu->type->column_count; c++)
        assert_int_equal(gpu->sample[c], table->columns[c] ? table->columns[c][last] : CELL_UNKNOWN);
    MUST(store_metrics(check->store, gpu->host, gpu->uuid, 1, INT64_C(1) << 61, check_metric, check, &problem));
    return true;
}

static void gpus_have_their_latest_sample_and_sums_per_minute(void **state)
{
    struct metric_check check = {.store = fixture_store(*state)};
    char dir[512];
    golden_path(dir, "monitor");
    struct delivery delivery = deliver_session(check.store, dir, 2, true);
    struct session_model *model = store_model(check.store, delivery.session_id);
    check.model = model;
    MUST(store_gpus(check.store, NULL, take_gpu, &check, &problem));
    assert_true(check.count > 0);
    session_free(model);
    store_close(check.store);
}

/* ---- minutes ---- */

enum { MINUTES = 8 };
struct minute_sums {
    uint64_t count[MINUTES];
    int64_t min[MINUTES], max[MINUTES], last_minute;
};
static const char minutes_id[] = "0192f300-0000-7000-8000-0000000000aa";

static void sample_deliver(struct store *store, uint64_t number, int64_t minute, int64_t value)
{
    char text[400];
    struct delivery delivery = {.store = store, .has_identity = true, .windows = number};
    snprintf(delivery.session_id, sizeof delivery.session_id, "%s", minutes_id);
    int size = snprintf(text, sizeof text,
                        "{\"version\":1,\"type\":\"device_metric_batch\",\"session_id\":\"%s\",\"batch_id\":%" PRIu64
                        ",\"base_time_ns\":%" PRId64 ",\"columns\":[\"dt_ns\",\"device_id\",\"gpu_util\"],"
                        "\"rows\":[[%" PRIu64 ",0,%" PRId64 "]]}",
                        minutes_id, number, minute * INT64_C(60000000000), number, value);
    delivery_begin(&delivery, CHANNEL_SYSTEM);
    delivery_line(&delivery, CHANNEL_SYSTEM, text, (size_t)size);
    delivery_commit(&delivery);
    batch_view_free(&delivery.view);
}

static bool take_minute(void *user, const struct store_metric *metric)
{
    struct minute_sums *sums = user;
    int64_t minute = metric->minute_ns / INT64_C(60000000000);
    assert_int_equal(metric->column, DEVICE_METRIC_GPU_UTIL);
    assert_in_range(minute, sums->last_minute + 1, MINUTES - 1);
    sums->last_minute = minute;
    sums->count[minute] = metric->count;
    sums->min[minute] = metric->min;
    sums->max[minute] = metric->max;
    return true;
}

static void late_samples_are_added_to_their_own_minute(void **state)
{
    static const struct {
        int64_t minute, value;
    } samples[] = {{5, 50}, {5, 51}, {4, 40}, {6, 60}, {5, 49}, {4, 44}, {6, 61}, {3, 30}, {5, 55}};
    struct store *store = fixture_store(*state);
    struct minute_sums expected = {.last_minute = 0};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        int64_t minute = samples[i].minute, value = samples[i].value;
        sample_deliver(store, i + 1, minute, value);
        bool is_first = !expected.count[minute]++;
        expected.min[minute] = is_first || value < expected.min[minute] ? value : expected.min[minute];
        expected.max[minute] = is_first || value > expected.max[minute] ? value : expected.max[minute];
        if (i == 3) { /* a restart must change nothing */
            store_close(store);
            store = fixture_store(*state);
        }
        struct minute_sums sums = {.last_minute = 0};
        MUST(store_metrics(store, "", "device-0", 1, INT64_C(1) << 61, take_minute, &sums, &problem));
        assert_memory_equal(sums.count, expected.count, sizeof sums.count);
        assert_memory_equal(sums.min, expected.min, sizeof sums.min);
        assert_memory_equal(sums.max, expected.max, sizeof sums.max);
    }
    struct minute_sums part = {.last_minute = 0};
    MUST(store_metrics(store, "", "device-0", INT64_C(4) * 60000000000, INT64_C(6) * 60000000000, take_minute, &part,
                       &problem));
    assert_int_equal(part.count[3] + part.count[6], 0);
    assert_int_equal(part.count[4] + part.count[5], 6);
    store_close(store);
}

static bool search_kernel(void *user, const struct store_kernel *kernel)
{
    unsigned *count = user;
    assert_non_null(strcasestr(kernel->name, "gemm"));
    assert_true(kernel->count > 0);
    assert_true(*kernel->app);
    (*count)++;
    return true;
}

static void kernels_are_found_across_sessions(void **state)
{
    struct store *store = fixture_store(*state);
    char dir[512];
    unsigned count = 0, none = 0;
    for (size_t i = 0; i < SESSION_COUNT; i++) {
        golden_path(dir, golden_sessions[i]);
        deliver_session(store, dir, 1000, true);
    }
    MUST(store_kernel_search(store, "GEMM", 100, search_kernel, &count, &problem));
    assert_true(count > 1);
    MUST(store_kernel_search(store, "%gemm_", 100, search_kernel, &none, &problem));
    assert_int_equal(none, 0);
    store_close(store);
}

/* ---- timeline ---- */

static void timeline_compare(struct store *store, const struct session_model *model, unsigned shift)
{
    struct timeline timeline;
    int64_t width_ns = INT64_C(1) << shift, busy_ns = 0, expected_ns = 0, to_ns = 0;
    for (size_t i = 0; i < model->kernels.count; i++) {
        expected_ns += model->kernels.duration_ns[i];
        int64_t end_ns = model->kernels.start_ns[i] + model->kernels.duration_ns[i] + 1;
        to_ns = end_ns > to_ns ? end_ns : to_ns;
    }
    uint64_t count = 0;
    int64_t step_ns = width_ns * 1000;
    for (int64_t from_ns = model->kernels.start_ns[0] / width_ns * width_ns; from_ns < to_ns; from_ns += step_ns) {
        MUST(store_timeline(store, model->job.session_id, from_ns, from_ns + step_ns, width_ns, &timeline, &problem));
        assert_int_equal(timeline.width_ns, width_ns);
        for (size_t t = 0; t < timeline.track_count; t++) {
            const struct timeline_track *track = &timeline.tracks[t];
            if (track->type != RECORD_KERNEL_EVENT_BATCH)
                continue;
            for (size_t i = track->first; i < track->first + track->count; i++) {
                const struct timeline_bucket *bucket = &timeline.buckets[i];
                busy_ns += bucket->busy_ns;
                count += bucket->count;
                assert_true(bucket->key_ns <= bucket->busy_ns && bucket->key_ns >= 0);
                assert_int_equal(bucket->start_ns % width_ns, 0);
                assert_true(bucket->start_ns >= from_ns && bucket->start_ns < from_ns + step_ns);
            }
        }
        timeline_free(&timeline);
    }
    assert_int_equal(busy_ns, expected_ns);
    assert_int_equal(count, model->kernels.count);
}

static void timeline_buckets_add_up_to_all_work_at_every_zoom(void **state)
{
    struct store *store = fixture_store(*state);
    const char *dir = SOURCE_DIR "/examples/recorded/h200-training";
    struct delivery delivery = deliver_session(store, dir, 50, true);
    struct session_model *model = store_model(store, delivery.session_id);
    for (int round = 0; round < 2; round++) {
        for (unsigned shift = 18; shift < 36; shift += 3)
            timeline_compare(store, model, shift);
        MUST(store_maintain(store, &problem));
    }
    session_free(model);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(rollups_and_catalog_equal_what_the_analysis_finds),
        TEST(gpus_have_their_latest_sample_and_sums_per_minute),
        TEST(late_samples_are_added_to_their_own_minute),
        TEST(kernels_are_found_across_sessions),
        TEST(timeline_buckets_add_up_to_all_work_at_every_zoom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
