/* SPDX-License-Identifier: Apache-2.0 */
/* The contract that every engine of the store must meet. */
#include "store_fixture.h"

#include <inttypes.h>

/* Everything in a model that comes from rows and records, as text: models with equal text are equal. */
static void model_describe(const struct session_model *model, struct bytes *out)
{
    const struct kernel_columns *k = &model->kernels;
    bytes_append_format(out, "%s %s %s %s %" PRId64 " %" PRId64 " lost\n", model->job.app, model->job.session_id,
                        model->job.engine, model->job.hostname, model->first_ns, model->last_ns);
    for (size_t i = 0; i < k->count; i++)
        bytes_append_format(out, "k %" PRId64 " %" PRId64 " %" PRId64 " %u %u %u %u %u %u %u %u\n", k->start_ns[i],
                            k->duration_ns[i], k->api_start_ns[i], k->api_duration_ns[i], k->kernel_id[i],
                            k->launch_id[i], k->stream_id[i], k->thread_id[i], k->corr_id[i],
                            k->scope[i] == ID_UNKNOWN ? 0 : model->scopes[k->scope[i]].path_id, k->device[i]);
    for (size_t i = 0; i < model->copy_count; i++)
        bytes_append_format(out, "c %" PRId64 " %" PRId64 " %" PRIu64 " %u %d\n", model->copies[i].span.start_ns,
                            model->copies[i].span.duration_ns, model->copies[i].bytes, model->copies[i].copy_kind,
                            model->copies[i].is_async);
    for (size_t i = 0; i < model->sync_count; i++)
        bytes_append_format(out, "s %" PRId64 " %" PRId64 " %u %u\n", model->syncs[i].start_ns,
                            model->syncs[i].duration_ns, model->syncs[i].stream_id, model->syncs[i].sync_type);
    const struct metric_table *metrics = &model->device_metrics;
    for (size_t i = 0; i < metrics->count; i++) {
        for (unsigned c = 0; c < record_catalogue[metrics->type].column_count; c++)
            bytes_append_format(out, " %" PRId64, metrics->columns[c] ? metrics->columns[c][i] : CELL_UNKNOWN);
        bytes_append_char(out, '\n');
    }
    for (unsigned d = 0; d < DICTIONARY_COUNT; d++)
        for (uint32_t i = 0; i < model->dictionaries[d].count; i++)
            if (model->dictionaries[d].texts[i])
                bytes_append_format(out, "d%u %u %s\n", d, i, model->dictionaries[d].texts[i]);
    bytes_append_format(out, "%zu scopes %zu launches %zu memsets %zu graphs %zu memory %" PRIu64 " invalid\n",
                        model->scope_count, model->launch_count, model->memset_count, model->graph_count,
                        model->memory_event_count, model->invalid_rows);
    for (size_t i = 0; i < model->loss_count; i++)
        bytes_append_format(out, "l %s %s %" PRIu64 "\n", model->losses[i].reason, model->losses[i].record_type,
                            model->losses[i].count);
}

/* The JSON report without the parts that describe files. */
static void report_describe(struct session_model *model, struct bytes *out)
{
    model->summary.files = model->summary.bytes = model->summary.lines = 0;
    model->summary.damaged_lines = model->summary.missing_lines = 0;
    model->summary.sealed_files = model->summary.sealed_bytes = 0;
    model->summary.has_torn_tail = false;
    model->issue_count = 0;
    memset(model->issues_by_kind, 0, sizeof model->issues_by_kind);
    const struct report_options options = {.top = 1000};
    assert_int_equal(report_json(model, &options, out), GPUFL_OK);
}

static void models_compare(struct session_model *expected, struct session_model *actual, const char *what)
{
    struct bytes a = {0}, b = {0};
    model_describe(expected, &a);
    model_describe(actual, &b);
    report_describe(expected, &a);
    report_describe(actual, &b);
    if (a.size != b.size || memcmp(a.data, b.data, a.size) != 0) {
        size_t at = 0;
        while (at < a.size && at < b.size && a.data[at] == b.data[at])
            at++;
        size_t from = at > 60 ? at - 60 : 0;
        fail_msg("%s differs at %zu: '%.160s' against '%.160s'", what, at, bytes_text(&a) + from,
                 bytes_text(&b) + from);
    }
    bytes_free(&a);
    bytes_free(&b);
}

static void session_compare(struct store *store, const char *dir)
{
    struct session_model *expected;
    MUST(session_load(&expected, dir, &problem));
    struct session_model *actual = store_model(store, expected->job.session_id);
    models_compare(expected, actual, dir);
    session_free(expected);
    session_free(actual);
}

static void what_was_written_is_read_back_to_the_row(void **state)
{
    struct store *store = fixture_store(*state);
    char dir[512];
    for (size_t i = 0; i < SESSION_COUNT; i++) {
        golden_path(dir, golden_sessions[i]);
        deliver_session(store, dir, i % 2 ? 3 : 1000, i % 3 == 0);
        session_compare(store, dir);
    }
    /* The same after small segments were merged. */
    MUST(store_maintain(store, &problem));
    for (size_t i = 0; i < SESSION_COUNT; i++) {
        golden_path(dir, golden_sessions[i]);
        session_compare(store, dir);
    }
    store_close(store);
    store = fixture_store(*state);
    golden_path(dir, "trace");
    session_compare(store, dir);
    store_close(store);
}

static void a_recorded_training_gives_the_same_report_from_the_store(void **state)
{
    struct store *store = fixture_store(*state);
    const char *dir = SOURCE_DIR "/examples/recorded/h200-training";
    deliver_session(store, dir, 20, true);
    session_compare(store, dir);
    MUST(store_maintain(store, &problem));
    session_compare(store, dir);
    store_close(store);
}

/* ---- exactly once ---- */

static void a_window_delivered_twice_counts_once(void **state)
{
    struct store *store = fixture_store(*state);
    char dir[512];
    golden_path(dir, "trace");
    struct delivery first = deliver_session(store, dir, 3, true);
    assert_true(first.lines > 0);
    assert_int_equal(first.repeated_lines, 0);
    struct delivery second = deliver_session(store, dir, 3, true);
    assert_int_equal(second.repeated_windows, second.windows);
    assert_int_equal(second.lines, 0);
    session_compare(store, dir);
    store_close(store);
}

static void lines_count_once_whichever_window_contains_them(void **state)
{
    struct store *store = fixture_store(*state);
    char dir[512];
    golden_path(dir, "trace");
    struct delivery first = deliver_session(store, dir, 3, true);
    struct delivery other = deliver_session(store, dir, 5, false);
    assert_int_equal(other.lines, 0);
    assert_int_equal(other.repeated_lines, first.lines);
    session_compare(store, dir);
    store_close(store);
}

static void batches_of_v1_without_a_window_count_once_by_their_id(void **state)
{
    struct store *store = fixture_store(*state);
    char dir[512];
    golden_path(dir, "v1");
    deliver_session(store, dir, 4, true);
    store_close(store);
    fixture_remove(*state);
    mkdir(*state, 0700);
    store = fixture_store(*state);
    struct delivery first = deliver_session(store, dir, 4, false);
    uint64_t rows_before, rows_after;
    struct store_stats stats;
    struct session_model *model = store_model(store, first.session_id);
    rows_before = model->kernels.count;
    session_free(model);
    deliver_session(store, dir, 7, false);
    model = store_model(store, first.session_id);
    rows_after = model->kernels.count;
    session_free(model);
    assert_int_equal(rows_before, rows_after);
    assert_true(rows_before > 0);
    MUST(store_stats(store, &stats, &problem));
    store_close(store);
}

static void the_same_identity_with_another_crc_is_a_conflict(void **state)
{
    struct store *store = fixture_store(*state);
    char dir[512];
    struct store_write *write = NULL;
    enum store_delivery answer;
    golden_path(dir, "trace");
    struct delivery delivery = deliver_session(store, dir, 1000, true);
    struct store_identity identity = {
        .session_id = delivery.session_id, .window_id = "0", .channel = CHANNEL_DEVICE, .crc = 78};
    MUST(store_write_begin(store, &identity, &write, &answer, &problem));
    assert_int_equal(answer, STORE_CONFLICT);
    assert_null(write);
    identity.crc = 77;
    MUST(store_write_begin(store, &identity, &write, &answer, &problem));
    assert_int_equal(answer, STORE_REPEATED);
    store_close(store);
}

static const char record_line[] = "{\"type\":\"clock_sync\",\"session_id\":\"s\",\"ts_ns\":5,\"mono_ns\":1}";

static struct store_write *begin(struct store *store, const char *session_id, const char *window_id)
{
    struct store_write *write = NULL;
    enum store_delivery answer;
    const struct store_identity identity = {
        .session_id = session_id, .window_id = window_id, .channel = CHANNEL_SYSTEM, .crc = 1};
    MUST(store_write_begin(store, &identity, &write, &answer, &problem));
    assert_int_equal(answer, STORE_NEW);
    return write;
}

/* Without a CRC; seq < 0: without a seq. */
static gpufl_status put_line(struct store_write *write, enum channel channel, const char *text, int64_t seq)
{
    struct log_line line = {.channel = channel, .file = "", .seq = seq};
    struct json_document document = {0};
    struct batch_view view = {0};
    char reason[LINE_REASON_SIZE];
    assert_false(log_line_decode(&line, &view, &document, text, strlen(text), reason));
    line.seq = seq;
    gpufl_status status = store_write_line(write, &line, text, strlen(text), NULL, NULL);
    json_free(&document);
    batch_view_free(&view);
    return status;
}

static void two_deliveries_of_the_same_lines_at_once_keep_one(void **state)
{
    struct store *store = fixture_store(*state);
    struct store_written written;
    struct store_write *a = begin(store, "s", ""), *b = begin(store, "s", "");
    assert_int_equal(put_line(a, CHANNEL_SYSTEM, record_line, 1), GPUFL_OK);
    assert_int_equal(put_line(b, CHANNEL_SYSTEM, record_line, 1), GPUFL_OK);
    MUST(store_write_commit(a, &written, &problem));
    assert_int_equal(written.lines, 1);
    struct problem problem = {""};
    assert_int_equal(store_write_commit(b, &written, &problem), GPUFL_E_BUSY);
    b = begin(store, "s", "");
    assert_int_equal(put_line(b, CHANNEL_SYSTEM, record_line, 1), GPUFL_OK);
    MUST(store_write_commit(b, &written, &problem));
    assert_int_equal(written.lines, 0);
    assert_int_equal(written.repeated_lines, 1);
    /* The same with two deliveries of one window. */
    a = begin(store, "s", "w"), b = begin(store, "s", "w");
    MUST(store_write_commit(a, &written, &problem));
    assert_int_equal(written.delivery, STORE_NEW);
    MUST(store_write_commit(b, &written, &problem));
    assert_int_equal(written.delivery, STORE_REPEATED);
    store_close(store);
}

static void an_aborted_write_leaves_nothing(void **state)
{
    struct store *store = fixture_store(*state);
    struct store_stats stats;
    struct store_write *write = begin(store, "s", "w");
    assert_int_equal(put_line(write, CHANNEL_SYSTEM, record_line, 1), GPUFL_OK);
    store_write_abort(write);
    MUST(store_stats(store, &stats, &problem));
    assert_int_equal(stats.sessions, 0);
    assert_int_equal(stats.segments, 0);
    store_close(store);
}

static void lines_of_another_session_are_rejected_and_the_write_continues(void **state)
{
    struct store *store = fixture_store(*state);
    struct store_written written;
    struct store_write *write = begin(store, "other", "w");
    assert_int_equal(put_line(write, CHANNEL_SYSTEM, record_line, 1), GPUFL_E_INVALID);
    assert_int_equal(put_line(write, CHANNEL_SYSTEM, "{\"type\":\"clock_sync\",\"ts_ns\":5}", 2), GPUFL_OK);
    MUST(store_write_commit(write, &written, &problem));
    assert_int_equal(written.lines, 1);
    store_close(store);
}

static void a_full_store_rejects_whole_writes_and_recovers(void **state)
{
    struct store *store = NULL;
    struct store_options options = {.no_background = true, .bytes_max = 1 << 20};
    struct store_written written;
    struct problem problem = {""};
    gpufl_status status = GPUFL_OK;
    char location[1024];
    if (fixture_location(*state, location) != *state)
        skip(); /* only the embedded engine has a size limit */
    MUST(store_open(&store, *state, &options, &problem));
    char *text = malloc(200000);
    assert_non_null(text);
    uint64_t kept = 0, seq = 1;
    uint32_t random = 1;
    for (; status == GPUFL_OK && seq < 100; seq++) {
        /* Letters that do not compress. */
        int size = snprintf(text, 200000, "{\"type\":\"clock_sync\",\"session_id\":\"s\",\"ts_ns\":5,\"x\":\"");
        for (int i = 0; i < 100000; i++)
            text[size++] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
                [(random = random * 1664525 + 1013904223) >> 26];
        memcpy(text + size, "\"}", 3);
        struct store_write *write = begin(store, "s", "");
        assert_int_equal(put_line(write, CHANNEL_SYSTEM, text, (int64_t)seq), GPUFL_OK);
        status = store_write_commit(write, &written, &problem);
        kept += status == GPUFL_OK;
    }
    assert_int_equal(status, GPUFL_E_LIMIT);
    assert_non_null(strstr(problem.text, "limit"));
    assert_true(kept > 2);
    store_close(store);
    /* Acknowledged data is stored, and the same lines are accepted once there is space. */
    store = fixture_store(*state);
    struct store_stats stats;
    MUST(store_stats(store, &stats, &problem));
    assert_int_equal(stats.rows, kept);
    struct store_write *write = begin(store, "s", "");
    assert_int_equal(put_line(write, CHANNEL_SYSTEM, text, (int64_t)seq - 1), GPUFL_OK);
    MUST(store_write_commit(write, &written, &problem));
    assert_int_equal(written.lines, 1);
    free(text);
    store_close(store);
}

/* ---- reading parts ---- */

struct counting {
    uint64_t rows, lines;
    int64_t min_ns, max_ns;
    uint64_t columns;
};

static bool count_line(void *user, const struct log_line *line)
{
    struct counting *counting = user;
    counting->lines++;
    if (!line->batch)
        return true;
    counting->rows += line->batch->row_count;
    for (unsigned c = 0; c < line->batch->info->column_count; c++)
        counting->columns |= (uint64_t)line->batch->columns[c].present << c;
    for (uint32_t i = 0; line->batch->columns[KERNEL_DT_NS].present && i < line->batch->row_count; i++) {
        int64_t time_ns = line->batch->base_time_ns + line->batch->columns[KERNEL_DT_NS].cells[i];
        counting->min_ns = counting->rows == line->batch->row_count && !i ? time_ns
                           : time_ns < counting->min_ns                   ? time_ns
                                                                          : counting->min_ns;
        counting->max_ns = time_ns > counting->max_ns ? time_ns : counting->max_ns;
    }
    return true;
}

static void reading_a_range_returns_only_its_types_and_times(void **state)
{
    struct store *store = fixture_store(*state);
    char dir[512];
    golden_path(dir, "trace");
    struct delivery delivery = deliver_session(store, dir, 3, true);
    struct session_model *model = store_model(store, delivery.session_id);
    const struct kernel_columns *kernels = &model->kernels;
    assert_true(kernels->count > 10);
    struct store_range range = {.session_id = delivery.session_id,
                                .from_ns = kernels->start_ns[kernels->count / 3],
                                .to_ns = kernels->start_ns[kernels->count / 2],
                                .columns = 1u << KERNEL_KERNEL_ID};
    record_set_add(&range.types, RECORD_KERNEL_EVENT_BATCH);
    uint64_t expected = 0;
    for (size_t i = 0; i < kernels->count; i++)
        expected +=
            kernels->start_ns[i] < range.to_ns &&
            (kernels->start_ns[i] >= range.from_ns || kernels->start_ns[i] + kernels->duration_ns[i] > range.from_ns);
    struct counting counting = {0};
    MUST(store_read(store, &range, count_line, &counting, &problem));
    assert_int_equal(counting.rows, expected);
    assert_int_equal(counting.columns, 1u << KERNEL_KERNEL_ID);
    struct problem problem = {""};
    range.session_id = "no-such-session";
    assert_int_equal(store_read(store, &range, count_line, &counting, &problem), GPUFL_E_NOT_FOUND);
    session_free(model);
    store_close(store);
}

/* ---- rollups ---- */

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(what_was_written_is_read_back_to_the_row),
        TEST(a_recorded_training_gives_the_same_report_from_the_store),
        TEST(a_window_delivered_twice_counts_once),
        TEST(lines_count_once_whichever_window_contains_them),
        TEST(batches_of_v1_without_a_window_count_once_by_their_id),
        TEST(the_same_identity_with_another_crc_is_a_conflict),
        TEST(two_deliveries_of_the_same_lines_at_once_keep_one),
        TEST(an_aborted_write_leaves_nothing),
        TEST(lines_of_another_session_are_rejected_and_the_write_continues),
        TEST(a_full_store_rejects_whole_writes_and_recovers),
        TEST(reading_a_range_returns_only_its_types_and_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
