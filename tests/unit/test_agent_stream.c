/* SPDX-License-Identifier: Apache-2.0 */
/* A channel as the agent reads it: numbered lines, independent of what happens to their files. */
#include "session_fixture.h"

#include "agent/channel_stream.h"
#include "logfile/line.h"
#include "logfile/segment.h"
#include "logfile/session_source.h"

struct reading {
    char dir[512];
    struct session_files files;
    bool is_shadowed[64];
    struct stream_source source;
    struct channel_stream stream;
    struct channel_state state;
    struct stream_window window;
};

static void reading_open(struct reading *reading, const char *dir)
{
    memset(reading, 0, sizeof *reading);
    snprintf(reading->dir, sizeof reading->dir, "%s", dir);
    reading->files.dir_fd = -1;
    reading->stream.channel = CHANNEL_DEVICE;
    reading->state.next_line = reading->state.next_window = 1;
    assert_int_equal(stream_window_open(&reading->window), GPUFL_OK);
}

static void reading_close(struct reading *reading)
{
    session_files_free(&reading->files);
    stream_window_close(&reading->window);
}

static void reading_list(struct reading *reading)
{
    session_files_free(&reading->files);
    memset(reading->is_shadowed, 0, sizeof reading->is_shadowed);
    assert_int_equal(session_files_list(&reading->files, reading->dir, NULL), GPUFL_OK);
    assert_true(reading->files.log_count <= 64);
    session_files_mark_shadowed(&reading->files, reading->is_shadowed);
    reading->source =
        (struct stream_source){.files = &reading->files, .is_shadowed = reading->is_shadowed, .session_id = FIXTURE_ID};
}

/* Retries until the files stop changing. */
static enum stream_result reading_next(struct reading *reading)
{
    enum stream_result result = STREAM_AGAIN;
    for (int i = 0; i < 3 && result == STREAM_AGAIN; i++) {
        reading_list(reading);
        result = channel_stream_read(&reading->stream, &reading->source, &reading->state, &reading->window);
    }
    return result;
}

static void acknowledge(struct reading *reading)
{
    if (reading->window.is_published)
        reading->state.next_window = reading->window.next;
    else
        reading->state.next_line = reading->window.next;
    reading->state.pending.is_set = false;
    reading->stream.place = reading->window.place;
}

static void forget_place(struct reading *reading)
{
    memset(&reading->stream.place, 0, sizeof reading->stream.place);
}

/* Writes one line with this seq as the writer does. */
static void line_append(const char *dir, const char *name, uint64_t seq)
{
    char path[512], object[64], trailer[LINE_TRAILER_MAX];
    fixture_path(path, dir, name);
    int size = snprintf(object, sizeof object, "{\"type\":\"nvtx_marker_event\",\"name\":\"%d\"", (int)seq);
    size_t trailer_size = line_trailer(trailer, object, (size_t)size, seq);
    FILE *file = fopen(path, "ae");
    assert_non_null(file);
    assert_int_equal(fwrite(object, 1, (size_t)size, file), (size_t)size);
    assert_int_equal(fwrite(trailer, 1, trailer_size, file), trailer_size);
    fclose(file);
}

static void text_append(const char *dir, const char *name, const char *text)
{
    char path[512];
    fixture_path(path, dir, name);
    FILE *file = fopen(path, "ae");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
}

static void file_rename(const char *dir, const char *from, const char *to)
{
    char old_path[512], new_path[512];
    fixture_path(old_path, dir, from);
    fixture_path(new_path, dir, to);
    assert_int_equal(rename(old_path, new_path), 0);
}

static void expect_lines(struct reading *reading, uint64_t first, uint64_t last)
{
    assert_int_equal(reading_next(reading), STREAM_WINDOW);
    assert_int_equal(reading->window.first, first);
    assert_int_equal(reading->window.last, last);
    assert_int_equal(reading->window.window.lines, last - first + 1);
}

static void only_complete_lines_are_read(void **state)
{
    const char *dir = *state;
    struct reading reading;
    reading_open(&reading, dir);
    line_append(dir, "device.log", 1);
    line_append(dir, "device.log", 2);
    text_append(dir, "device.log", "{\"type\":\"half");
    expect_lines(&reading, 1, 2);
    acknowledge(&reading);
    assert_int_equal(reading_next(&reading), STREAM_NOTHING);
    text_append(dir, "device.log", "\"}\n");
    expect_lines(&reading, 3, 3);
    reading_close(&reading);
}

static void rotation_loses_nothing_and_repeats_nothing(void **state)
{
    const char *dir = *state;
    struct reading reading;
    reading_open(&reading, dir);
    line_append(dir, "device.log", 1);
    expect_lines(&reading, 1, 1);
    acknowledge(&reading);
    line_append(dir, "device.log", 2);
    file_rename(dir, "device.log", "device.000001.log");
    line_append(dir, "device.log", 3);
    expect_lines(&reading, 2, 2); /* a window never spans files */
    acknowledge(&reading);
    expect_lines(&reading, 3, 3);
    acknowledge(&reading);
    assert_int_equal(reading_next(&reading), STREAM_NOTHING);
    /* A new process finds the position by the lines alone. */
    line_append(dir, "device.log", 4);
    forget_place(&reading);
    expect_lines(&reading, 4, 4);
    reading_close(&reading);
}

static void a_rotation_between_listing_and_opening_is_noticed(void **state)
{
    const char *dir = *state;
    struct reading reading;
    reading_open(&reading, dir);
    line_append(dir, "device.log", 1);
    line_append(dir, "device.log", 2);
    reading_list(&reading);
    file_rename(dir, "device.log", "device.000001.log");
    line_append(dir, "device.log", 3);
    /* The listing has one file, and its name now belongs to another one. */
    assert_int_equal(channel_stream_read(&reading.stream, &reading.source, &reading.state, &reading.window),
                     STREAM_AGAIN);
    expect_lines(&reading, 1, 2);
    acknowledge(&reading);
    expect_lines(&reading, 3, 3);
    reading_close(&reading);
}

static void a_gap_in_the_numbers_is_counted(void **state)
{
    const char *dir = *state;
    struct reading reading;
    reading_open(&reading, dir);
    line_append(dir, "device.log", 4);
    line_append(dir, "device.log", 5);
    line_append(dir, "device.log", 9);
    assert_int_equal(reading_next(&reading), STREAM_WINDOW);
    assert_int_equal(reading.window.first, 4);
    assert_int_equal(reading.window.last, 9);
    assert_int_equal(reading.window.missing_lines, 6);
    assert_false(reading.window.has_damage);
    reading_close(&reading);
}

static void damaged_lines_are_left_out_and_counted(void **state)
{
    const char *dir = *state;
    struct reading reading;
    reading_open(&reading, dir);
    line_append(dir, "device.log", 1);
    text_append(dir, "device.log", "{\"type\":\"x\",\"seq\":2,\"crc\":\"00000000\"}\n");
    line_append(dir, "device.log", 3);
    text_append(dir, "device.log", "not a line\n");
    assert_int_equal(reading_next(&reading), STREAM_WINDOW);
    assert_int_equal(reading.window.window.lines, 2);
    assert_int_equal(reading.window.last, 3);
    assert_int_equal(reading.window.left_out_lines, 2);
    assert_int_equal(reading.window.missing_lines, 0);
    assert_int_equal(reading.window.next, 5);
    acknowledge(&reading);
    /* Only damage: there is no window, but reading still ends. */
    text_append(dir, "device.log", "more of it\n");
    assert_int_equal(reading_next(&reading), STREAM_PASSED);
    assert_int_equal(reading.window.next, 6);
    acknowledge(&reading);
    assert_int_equal(reading_next(&reading), STREAM_NOTHING);
    reading_close(&reading);
}

static void a_torn_line_that_a_launcher_terminated_is_not_damage(void **state)
{
    const char *dir = *state;
    static const char object[] = "{\"type\":\"shutdown\",\"session_id\":\"" FIXTURE_ID "\",\"synthetic\":true";
    char trailer[LINE_TRAILER_MAX + 1] = "";
    struct reading reading;
    reading_open(&reading, dir);
    line_append(dir, "device.log", 1);
    text_append(dir, "device.log", "{\"type\":\"ke\n");
    text_append(dir, "device.log", object);
    trailer[line_trailer(trailer, object, strlen(object), 3)] = '\0';
    text_append(dir, "device.log", trailer);
    assert_int_equal(reading_next(&reading), STREAM_WINDOW);
    assert_int_equal(reading.window.window.lines, 2);
    assert_int_equal(reading.window.left_out_lines, 0);
    assert_int_equal(reading.window.missing_lines, 0);
    assert_true(reading.window.has_shutdown);
    reading_close(&reading);
}

static void a_file_with_a_reused_inode_is_not_mistaken_for_the_old_file(void **state)
{
    const char *dir = *state;
    struct reading reading;
    reading_open(&reading, dir);
    line_append(dir, "device.log", 1);
    line_append(dir, "device.log", 2);
    expect_lines(&reading, 1, 2);
    acknowledge(&reading);
    /* Simulates a reused inode: same inode, other content, long enough. */
    char path[512];
    fixture_path(path, dir, "device.log");
    assert_int_equal(truncate(path, 0), 0);
    for (uint64_t seq = 3; seq < 8; seq++)
        line_append(dir, "device.log", seq);
    expect_lines(&reading, 3, 7);
    assert_int_equal(reading.window.left_out_lines, 0);
    reading_close(&reading);
}

static void unnumbered_lines_are_counted_instead(void **state)
{
    const char *dir = *state;
    static const char line[] = "{\"type\":\"nvtx_marker_event\",\"name\":\"n\"}\n";
    struct reading reading;
    reading_open(&reading, dir);
    text_append(dir, "device.000001.log", line);
    text_append(dir, "device.000001.log", line);
    text_append(dir, "device.log", line);
    expect_lines(&reading, 1, 2);
    acknowledge(&reading);
    forget_place(&reading);
    expect_lines(&reading, 3, 3);
    reading_close(&reading);
}

/* Saves the state of a window as the agent does before sending it. */
static void note_pending(struct reading *reading)
{
    reading->state.pending = (struct pending_window){.is_set = true,
                                                     .first = reading->window.first,
                                                     .last = reading->window.last,
                                                     .coding = reading->window.coding,
                                                     .crc32 = reading->window.window.crc32};
}

static void session_write(const char *base, char dir[512], bool is_sealed)
{
    struct log_writer *writer = fixture_open(base, 65536, false);
    struct batch batch;
    assert_int_equal(batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, 500), GPUFL_OK);
    fixture_line_all(writer, RECORD_JOB_START, fixture_job_start);
    fixture_line_all(writer, RECORD_DICTIONARY_UPDATE, fixture_dictionary);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(fixture_kernels(writer, &batch, i * 500 + 1, 500), GPUFL_OK);
    fixture_line_all(writer, RECORD_SHUTDOWN, fixture_shutdown);
    log_writer_close(writer, 10000);
    batch_free(&batch);
    fixture_path(dir, base, FIXTURE_ID);
    if (is_sealed)
        assert_int_equal(seal_session(dir, NULL), GPUFL_OK);
}

static void a_pending_window_is_rebuilt_byte_for_byte(void **state)
{
    char dir[512];
    struct reading reading;
    session_write(*state, dir, false);
    for (enum body_coding coding = BODY_GZIP; coding < BODY_CODING_COUNT; coding++) {
        reading_open(&reading, dir);
        reading_list(&reading);
        reading.source.coding = coding;
        assert_int_equal(channel_stream_read(&reading.stream, &reading.source, &reading.state, &reading.window),
                         STREAM_WINDOW);
        struct bytes body = {0};
        bytes_append(&body, reading.window.window.body.data, reading.window.window.body.size);
        char id[WINDOW_ID_SIZE + 1];
        memcpy(id, reading.window.id, sizeof id);
        note_pending(&reading);
        /* After a crash, followed by more lines, and sealed meanwhile. */
        line_append(dir, "device.log", 1000 + coding);
        forget_place(&reading);
        if (coding == BODY_ZSTD) {
            assert_int_equal(seal_session(dir, NULL), GPUFL_OK);
        }
        assert_int_equal(reading_next(&reading), STREAM_WINDOW);
        assert_string_equal(reading.window.id, id);
        assert_int_equal(reading.window.coding, coding);
        assert_int_equal(reading.window.window.body.size, body.size);
        assert_memory_equal(reading.window.window.body.data, body.data, body.size);
        bytes_free(&body);
        reading_close(&reading);
    }
}

static void every_line_of_a_session_is_read_once(void **state)
{
    for (int is_sealed = 0; is_sealed < 2; is_sealed++) {
        char dir[512], base[512];
        struct reading reading;
        fixture_path(base, *state, is_sealed ? "sealed" : "plain");
        session_write(base, dir, is_sealed);
        reading_open(&reading, dir);
        uint64_t events = 0, windows = 0, expected = 1;
        enum stream_result result;
        bool has_shutdown = false;
        while ((result = reading_next(&reading)) == STREAM_WINDOW) {
            assert_int_equal(reading.window.first, expected);
            expected = reading.window.last + 1;
            events += reading.window.window.events;
            has_shutdown |= reading.window.has_shutdown;
            windows++;
            acknowledge(&reading);
        }
        assert_int_equal(result, STREAM_NOTHING);
        assert_int_equal(events, 20 * 500 + 3);
        assert_true(windows > 1 && has_shutdown);
        reading_close(&reading);
    }
}

static void a_pending_window_whose_lines_are_gone_is_skipped(void **state)
{
    const char *dir = *state;
    struct reading reading;
    reading_open(&reading, dir);
    line_append(dir, "device.log", 10);
    reading.state.pending = (struct pending_window){.is_set = true, .first = 1, .last = 5};
    assert_int_equal(reading_next(&reading), STREAM_PASSED);
    assert_int_equal(reading.window.next, 6);
    assert_int_equal(reading.window.missing_lines, 5);
    acknowledge(&reading);
    assert_int_equal(reading_next(&reading), STREAM_WINDOW);
    assert_int_equal(reading.window.first, 10);
    reading_close(&reading);
}

static void a_damaged_segment_does_not_stop_the_channel(void **state)
{
    const char *dir = *state;
    struct reading reading;
    reading_open(&reading, dir);
    text_append(dir, "device.000001.log.zst", "this is not zstd");
    line_append(dir, "device.log", 7);
    expect_lines(&reading, 7, 7);
    assert_int_equal(reading.window.missing_lines, 6);
    assert_non_null(strstr(reading.window.reason, "device.000001.log.zst"));
    assert_true(reading.window.has_damage);
    reading_close(&reading);
}

static void a_segment_that_was_cut_off_is_damaged(void **state)
{
    char dir[512], path[512];
    struct stat info;
    struct reading reading;
    session_write(*state, dir, true);
    fixture_path(path, dir, "device.000001.log.zst");
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size * 2 / 3), 0);
    reading_open(&reading, dir);
    bool has_damage = false;
    uint64_t missing_lines = 0;
    enum stream_result result;
    while ((result = reading_next(&reading)) == STREAM_WINDOW) {
        has_damage |= reading.window.has_damage;
        missing_lines += reading.window.missing_lines;
        acknowledge(&reading);
    }
    assert_int_equal(result, STREAM_NOTHING);
    assert_true(has_damage && missing_lines > 0);
    reading_close(&reading);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_complete_lines_are_read),
        TEST(rotation_loses_nothing_and_repeats_nothing),
        TEST(a_rotation_between_listing_and_opening_is_noticed),
        TEST(a_gap_in_the_numbers_is_counted),
        TEST(damaged_lines_are_left_out_and_counted),
        TEST(a_torn_line_that_a_launcher_terminated_is_not_damage),
        TEST(a_file_with_a_reused_inode_is_not_mistaken_for_the_old_file),
        TEST(unnumbered_lines_are_counted_instead),
        TEST(a_pending_window_is_rebuilt_byte_for_byte),
        TEST(every_line_of_a_session_is_read_once),
        TEST(a_pending_window_whose_lines_are_gone_is_skipped),
        TEST(a_damaged_segment_does_not_stop_the_channel),
        TEST(a_segment_that_was_cut_off_is_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
