/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of the handmade sessions in tests/golden: text formats byte for byte, and requirements of every format. After
 * an intended change: GPUFL_UPDATE_GOLDEN=1 test_export, then read the diff. */
#include "session_fixture.h"

#include "export/export.h"
#include "export/filter.h"
#include "export/lanes.h"
#include "export/protobuf.h"
#include "export/tables.h"

#include <math.h>

static struct session_model *model_load(const char *name)
{
    char dir[512];
    struct session_model *model;
    struct problem problem = {""};
    snprintf(dir, sizeof dir, "%s/tests/golden/%s", SOURCE_DIR, name);
    if (session_load(&model, dir, &problem) != GPUFL_OK)
        fail_msg("%s: %s", dir, problem.text);
    return model;
}

static struct bytes file_content(const char *path)
{
    struct bytes content = {0};
    FILE *file = fopen(path, "rb");
    char block[4096];
    for (size_t size; file && (size = fread(block, 1, sizeof block, file)) > 0;)
        bytes_append(&content, block, size);
    if (file)
        fclose(file);
    return content;
}

static struct export_options options_of(enum export_format format, const char *output)
{
    return (struct export_options){.format = format, .output = output, .from_ms = NAN, .to_ms = NAN};
}

static struct bytes export_text(const struct session_model *model, struct export_options options, const char *dir)
{
    char path[512];
    struct problem problem = {""};
    struct export_result result;
    fixture_path(path, dir, "export");
    options.output = path;
    if (export_session(model, &options, &result, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
    struct bytes text = file_content(path);
    assert_int_equal(result.bytes, text.size);
    assert_int_equal(remove(path), 0);
    return text;
}

struct golden {
    const char *session, *file;
    enum export_format format;
    const char *table, *scope;
    double from_ms, to_ms; /* 0 and 0: no limit */
};

static const struct golden goldens[] = {
    {"two_gpus", "two_gpus.json", EXPORT_CHROME, NULL, NULL, 0, 0},
    {"v1", "v1.json", EXPORT_CHROME, NULL, NULL, 0, 0},
    {"trace", "trace_backward.json", EXPORT_CHROME, NULL, "backward", 40, 44},
    {"two_gpus", "two_gpus.jsonl", EXPORT_OTLP, NULL, NULL, 0, 0},
    {"killed", "killed.losses.csv", EXPORT_CSV, "losses", NULL, 0, 0},
    {"trace", "trace.kernels.csv", EXPORT_CSV, "kernels", "epoch|forward", 0, 0},
    {"trace", "trace.scopes.csv", EXPORT_CSV, "scopes", NULL, 0, 0},
    {"trace", "trace.copies.csv", EXPORT_CSV, "copies", NULL, 0, 0},
    {"trace", "trace.syncs.csv", EXPORT_CSV, "syncs", NULL, 0, 0},
    {"trace", "trace.launches.csv", EXPORT_CSV, "launches", NULL, 0, 0},
    {"hostile", "hostile.kernels.csv", EXPORT_CSV, "kernels", NULL, 0, 3},
    {"range_metrics", "range_metrics.pm_samples.csv", EXPORT_CSV, "pm_samples", NULL, 0, 0},
    {"range_metrics", "range_metrics.csv", EXPORT_CSV, "range_metrics", NULL, 0, 0},
    {"pc_sampling", "pc_sampling.stalls.csv", EXPORT_CSV, "stalls", NULL, 0, 0},
    {"trace", "trace.folded", EXPORT_COLLAPSED, NULL, NULL, 0, 0},
    {"hostile", "hostile.folded", EXPORT_COLLAPSED, NULL, NULL, 0, 3},
    {"trace", "trace.speedscope.json", EXPORT_SPEEDSCOPE, NULL, NULL, 0, 0},
};

static void the_export_is_as_expected(void **state)
{
    char *dir = *state;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const struct golden *golden = &goldens[i];
        struct session_model *model = model_load(golden->session);
        struct export_options options = options_of(golden->format, NULL);
        options.table = golden->table;
        options.scope = golden->scope;
        if (golden->to_ms > 0) {
            options.from_ms = golden->from_ms;
            options.to_ms = golden->to_ms;
        }
        struct bytes actual = export_text(model, options, dir);
        char path[512];
        snprintf(path, sizeof path, "%s/tests/golden/export/%s", SOURCE_DIR, golden->file);
        if (getenv("GPUFL_UPDATE_GOLDEN")) {
            FILE *file = fopen(path, "wb");
            assert_non_null(file);
            assert_int_equal(fwrite(actual.data, 1, actual.size, file), actual.size);
            fclose(file);
        }
        struct bytes expected = file_content(path);
        if (expected.size != actual.size || memcmp(expected.data, actual.data, actual.size) != 0)
            fail_msg("%s differs; GPUFL_UPDATE_GOLDEN=1 accepts the new text:\n%s", path, bytes_text(&actual));
        bytes_free(&expected);
        bytes_free(&actual);
        session_free(model);
    }
}

static void a_scope_is_selected_by_its_name_in_the_log_or_in_the_report(void **state)
{
    char *dir = *state;
    struct session_model *model = model_load("trace");
    struct export_options options = options_of(EXPORT_CSV, NULL);
    options.table = "kernels";
    options.scope = "epoch|forward";
    struct bytes expected = export_text(model, options, dir);
    options.scope = "epoch > forward";
    struct bytes actual = export_text(model, options, dir);
    assert_string_equal(bytes_text(&actual), bytes_text(&expected));
    bytes_free(&actual);
    bytes_free(&expected);
    options.scope = "epoch > for";
    struct export_result result;
    struct problem problem = {""};
    options.output = dir;
    assert_int_equal(export_session(model, &options, &result, &problem), GPUFL_E_NOT_FOUND);
    session_free(model);
}

static void every_session_can_be_exported_in_every_format(void **state)
{
    static const char *const names[] = {"bench",    "deep",        "deep_hostile", "deep_v1",       "degraded",
                                        "empty",    "hostile",     "killed",       "monitor",       "v1",
                                        "two_gpus", "pc_sampling", "sass_metrics", "range_metrics", "masked_gpu"};
    char *dir = *state, path[512];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct session_model *model = model_load(names[i]);
        for (unsigned format = 0; format < EXPORT_FORMAT_COUNT; format++) {
            struct problem problem = {""};
            struct export_result result;
            fixture_path(path, dir, "out");
            struct export_options options = options_of((enum export_format)format, path);
            gpufl_status status = export_session(model, &options, &result, &problem);
            if (status != GPUFL_OK)
                fail_msg("%s as %s: %s", names[i], export_format_names[format], problem.text);
            fixture_remove(path);
        }
        session_free(model);
    }
}

/* NVML numbers the used GPU 1 and CUDA 0: its samples must be grouped with its kernels. */
static void the_samples_of_a_gpu_are_in_the_process_of_its_kernels(void **state)
{
    char *dir = *state;
    struct session_model *model = model_load("masked_gpu");
    struct bytes text = export_text(model, options_of(EXPORT_CHROME, NULL), dir);
    unsigned kernels = 0, samples = 0, samples_of_others = 0;
    for (const char *line = bytes_text(&text); line; line = strchr(line, '\n')) {
        int pid = 0;
        line += strspn(line, "\n");
        struct bytes one = {0};
        bytes_append(&one, line, strcspn(line, "\n"));
        bool is_first_gpu = sscanf(bytes_text(&one), "{\"ph\":\"%*c\",\"pid\":%d", &pid) == 1 && pid == 1 << 30;
        kernels += is_first_gpu && strstr(bytes_text(&one), "\"cat\":\"kernel\"");
        if (strstr(bytes_text(&one), "\"gpu_util\"") && is_first_gpu) {
            assert_non_null(strstr(bytes_text(&one), "{\"value\":99}"));
            samples++;
        } else if (strstr(bytes_text(&one), "\"gpu_util\"")) {
            assert_non_null(strstr(bytes_text(&one), "{\"value\":0}"));
            samples_of_others++;
        }
        bytes_free(&one);
    }
    assert_int_equal(kernels, model->kernels.count);
    assert_int_equal(samples, 3);
    assert_int_equal(samples_of_others, 3);
    bytes_free(&text);
    session_free(model);
}

static void an_export_replaces_a_file_only_with_force(void **state)
{
    char *dir = *state, path[512];
    struct session_model *model = model_load("two_gpus");
    struct problem problem = {""};
    struct export_result result;
    fixture_path(path, dir, "trace.json");
    FILE *file = fopen(path, "w");
    fputs("mine", file);
    fclose(file);
    struct export_options options = options_of(EXPORT_CHROME, path);
    assert_int_equal(export_session(model, &options, &result, &problem), GPUFL_E_BUSY);
    assert_non_null(strstr(problem.text, "--force"));
    struct bytes text = file_content(path);
    assert_string_equal(bytes_text(&text), "mine");
    bytes_free(&text);
    options.may_replace = true;
    assert_int_equal(export_session(model, &options, &result, &problem), GPUFL_OK);
    text = file_content(path);
    assert_true(text.size > 1000 && text.data[0] == '{');
    bytes_free(&text);
    session_free(model);
}

static void a_failed_export_leaves_nothing_behind(void **state)
{
    char *dir = *state, path[512];
    struct session_model *model = model_load("two_gpus");
    struct problem problem = {""};
    struct export_result result;
    fixture_path(path, dir, "nowhere/trace.json");
    struct export_options options = options_of(EXPORT_CHROME, path);
    assert_int_equal(export_session(model, &options, &result, &problem), GPUFL_E_IO);
    assert_non_null(strstr(problem.text, "nowhere"));
    options.output = "-";
    options.format = EXPORT_SQLITE;
    assert_int_equal(export_session(model, &options, &result, &problem), GPUFL_E_INVALID);
    fixture_path(path, dir, "x.csv");
    options = options_of(EXPORT_CSV, path);
    options.scope = "no such scope";
    assert_int_equal(export_session(model, &options, &result, &problem), GPUFL_E_NOT_FOUND);
    assert_non_null(strstr(problem.text, "no such scope"));
    assert_int_equal(access(path, F_OK), -1);
    session_free(model);
}

static void the_format_is_guessed_from_the_extension(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum export_format format;
    } cases[] = {
        {"a.json", EXPORT_CHROME},      {"a.JSON.gz", EXPORT_CHROME},  {"a.speedscope.json", EXPORT_SPEEDSCOPE},
        {"a.pftrace", EXPORT_PERFETTO}, {"b/a.sqlite", EXPORT_SQLITE}, {"a.pb.gz", EXPORT_PPROF},
        {"a.folded", EXPORT_COLLAPSED}, {"a.jsonl", EXPORT_OTLP},      {"dir/", EXPORT_CSV}};
    enum export_format format;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(export_format_guess(cases[i].name, &format));
        assert_int_equal(format, cases[i].format);
    }
    assert_false(export_format_guess("-", &format));
    assert_false(export_format_guess("train", &format));
    assert_false(export_format_guess(".gz", &format));
}

static void lengths_of_nested_messages_use_the_bytes_they_need(void **state)
{
    (void)state;
    struct bytes out = {0};
    size_t outer = protobuf_begin(&out, 1);
    size_t inner = protobuf_begin(&out, 2);
    for (int i = 0; i < 300; i++)
        bytes_append_char(&out, 'x');
    protobuf_end(&out, inner);
    protobuf_end(&out, outer);
    protobuf_text(&out, 3, "");
    protobuf_int(&out, 4, -1);
    const unsigned char *data = (const unsigned char *)out.data;
    assert_int_equal(data[0], 1 << 3 | 2);
    assert_int_equal(data[1] | data[2] << 8, (303 & 127) | 128 | (303 >> 7) << 8);
    assert_int_equal(data[3], 2 << 3 | 2);
    assert_int_equal(data[4] | data[5] << 8, (300 & 127) | 128 | (300 >> 7) << 8);
    assert_int_equal(data[6], 'x');
    assert_int_equal(out.size, 3 + 303 + 2 + 11);
    assert_int_equal(data[3 + 303 + 1], 0);
    bytes_free(&out);
}

static void overlapping_events_get_separate_lanes(void **state)
{
    (void)state;
    struct timeline_visitor visitor = {0};
    struct lane_set set = {.visitor = &visitor};
    const struct timeline_lane *first = lane_for(&set, LANE_STREAM, 0, 7, 0, 100, LANE_FLAT);
    const struct timeline_lane *inside = lane_for(&set, LANE_STREAM, 0, 7, 10, 20, LANE_FLAT);
    const struct timeline_lane *after = lane_for(&set, LANE_STREAM, 0, 7, 100, 110, LANE_FLAT);
    assert_ptr_equal(after, first);
    assert_ptr_not_equal(inside, first);
    assert_int_equal(inside->number, 1);
    const struct timeline_lane *outer = lane_for(&set, LANE_SCOPES, DEVICE_UNKNOWN, 1, 0, 100, LANE_NESTED);
    assert_ptr_equal(lane_for(&set, LANE_SCOPES, DEVICE_UNKNOWN, 1, 10, 90, LANE_NESTED), outer);
    assert_ptr_equal(lane_for(&set, LANE_SCOPES, DEVICE_UNKNOWN, 1, 20, 90, LANE_NESTED), outer);
    assert_ptr_not_equal(lane_for(&set, LANE_SCOPES, DEVICE_UNKNOWN, 1, 30, 95, LANE_NESTED), outer);
    assert_int_equal(set.count, 4);
    lane_set_free(&set);
}

static void no_table_has_more_columns_than_its_writers_have_room_for(void **state)
{
    (void)state;
    for (size_t i = 0; export_tables[i]; i++) {
        assert_in_range(table_column_count(export_tables[i]), 1, TABLE_COLUMNS_MAX);
        assert_ptr_equal(export_table_find(export_tables[i]->name), export_tables[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_export_is_as_expected, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_scope_is_selected_by_its_name_in_the_log_or_in_the_report, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(every_session_can_be_exported_in_every_format, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_samples_of_a_gpu_are_in_the_process_of_its_kernels, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(an_export_replaces_a_file_only_with_force, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_failed_export_leaves_nothing_behind, fixture_setup, fixture_teardown),
        cmocka_unit_test(the_format_is_guessed_from_the_extension),
        cmocka_unit_test(lengths_of_nested_messages_use_the_bytes_they_need),
        cmocka_unit_test(overlapping_events_get_separate_lanes),
        cmocka_unit_test(no_table_has_more_columns_than_its_writers_have_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
