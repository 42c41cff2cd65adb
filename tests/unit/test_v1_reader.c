/* SPDX-License-Identifier: Apache-2.0 */
/* Wire v1, outwards: a minimal reader that knows nothing but v1's rules, on a session of ours. */
#include "session_fixture.h"

static int setup(void **state)
{
    *state = strdup(fixture_dir());
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    fixture_remove(*state);
    free(*state);
    return 0;
}

struct v1_reader {
    char names[8][64];
    unsigned job_starts, shutdowns, ignored;
    char seen[16][96];
    unsigned seen_count;
    int64_t kernels, duration_sum, start_sum;
    char first_name[64];
    bool is_first_line, starts_with_job_start;
};

static bool v1_is_repeated(struct v1_reader *reader, const struct json_value *root)
{
    char key[96];
    snprintf(key, sizeof key, "%.20s %.40s %lld", json_get_text(root, "type", ""),
             json_get_text(root, "session_id", ""), (long long)json_get_int(root, "ts_ns", 0));
    for (unsigned i = 0; i < reader->seen_count; i++)
        if (!strcmp(reader->seen[i], key))
            return true;
    assert_true(reader->seen_count < 16);
    memcpy(reader->seen[reader->seen_count++], key, sizeof key);
    return false;
}

static unsigned v1_column(const struct json_value *root, const char *name)
{
    unsigned index = 0;
    for (const struct json_value *column = json_member(root, "columns")->child; column; column = column->next, index++)
        if (!strcmp(column->text, name))
            return index;
    fail_msg("no column %s", name);
    return 0;
}

static int64_t v1_cell(const struct json_value *row, unsigned column)
{
    const struct json_value *cell = row->child;
    for (; column && cell; column--)
        cell = cell->next;
    assert_non_null(cell);
    assert_int_equal(cell->kind, JSON_INT);
    return cell->integer;
}

static void v1_take(struct v1_reader *reader, const struct json_value *root)
{
    const char *type = json_get_text(root, "type", "");
    if (reader->is_first_line)
        reader->starts_with_job_start = !strcmp(type, "job_start");
    reader->is_first_line = false;
    if (!strcmp(type, "job_start") || !strcmp(type, "shutdown")) {
        if (!v1_is_repeated(reader, root))
            *(*type == 'j' ? &reader->job_starts : &reader->shutdowns) += 1;
    } else if (!strcmp(type, "dictionary_update")) {
        const struct json_value *names = json_member(root, "kernel_dict");
        for (const struct json_value *entry = names ? names->child : NULL; entry; entry = entry->next)
            snprintf(reader->names[strtoul(entry->key, NULL, 10) % 8], 64, "%.60s", entry->text);
    } else if (!strcmp(type, "kernel_event_batch")) {
        unsigned dt = v1_column(root, "dt_ns"), id = v1_column(root, "kernel_id"),
                 duration = v1_column(root, "duration_ns");
        int64_t base = json_get_int(root, "base_time_ns", 0);
        for (const struct json_value *row = json_member(root, "rows")->child; row; row = row->next) {
            assert_int_equal(row->count, json_member(root, "columns")->count);
            const char *name = reader->names[v1_cell(row, id) % 8];
            assert_true(*name); /* defined before it is used */
            if (!reader->kernels)
                snprintf(reader->first_name, sizeof reader->first_name, "%s", name);
            reader->kernels++;
            reader->duration_sum += v1_cell(row, duration);
            reader->start_sum += base + v1_cell(row, dt);
        }
    } else {
        reader->ignored++;
    }
}

static void v1_read(struct v1_reader *reader, const char *dir, const char *name)
{
    size_t size;
    char *text = fixture_read(dir, name, &size);
    reader->is_first_line = true;
    for (char *line = text, *feed; (feed = strchr(line, '\n')) != NULL; line = feed + 1) {
        struct json_document document;
        struct json_error error = {0};
        if (json_parse(&document, line, (size_t)(feed - line), &error))
            fail_msg("%s: %s", name, error.text);
        v1_take(reader, document.root);
        json_free(&document);
    }
    free(text);
}

static void a_v1_reader_gets_the_right_values_from_our_live_files(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    struct batch batch;
    assert_int_equal(batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, 100), GPUFL_OK);
    fixture_line_all(writer, RECORD_JOB_START, fixture_job_start);
    fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE, fixture_dictionary);
    int64_t duration_sum = 0, start_sum = 0;
    for (uint32_t first = 1; first <= 201; first += 100) {
        assert_int_equal(fixture_kernels(writer, &batch, first, 100), GPUFL_OK);
        for (uint32_t i = 0; i < 100; i++) {
            duration_sum += 900 + i;
            start_sum += 1000000 + first + (int64_t)i * 1500;
        }
    }
    fixture_line(writer, CHANNEL_SYSTEM, RECORD_CLOCK_SYNC, "{\"type\":\"clock_sync\",\"ts_ns\":1,\"mono_ns\":2");
    fixture_line_all(writer, RECORD_SHUTDOWN, fixture_shutdown);
    static const char *const files[] = {"device.log", "scope.log", "system.log", "sass.log"};
    struct v1_reader reader = {.first_name = ""};
    for (int i = 0; i < 4; i++) {
        v1_read(&reader, log_writer_dir(writer), files[i]);
        assert_true(reader.starts_with_job_start);
    }
    assert_int_equal(reader.job_starts, 1);
    assert_int_equal(reader.shutdowns, 1);
    assert_int_equal(reader.kernels, 300);
    assert_int_equal(reader.duration_sum, duration_sum);
    assert_int_equal(reader.start_sum, start_sum);
    assert_string_equal(reader.first_name, "axpy");
    assert_int_equal(reader.ignored, 1);
    log_writer_close(writer, 1000);
    batch_free(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_v1_reader_gets_the_right_values_from_our_live_files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
