/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent, and what is remembered of it: windows and the cursor. */
#include "session_fixture.h"

#include "base/clock.h"
#include "logfile/segment.h"
#include "logfile/session_dir.h"
#include "upload/cursor.h"
#include "upload/window.h"

#include <zlib.h>

static const struct window_limits wide = {.raw_bytes_max = 100 << 20, .gzip_bytes_max = 100 << 20};

/* A closed session with `batches` lines of 500 kernels; returns its directory. */
static void session_make(char out[512], const char *base, int batches)
{
    struct log_writer *writer = fixture_open(base, 0, false);
    struct batch batch;
    assert_int_equal(batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, 500), GPUFL_OK);
    fixture_line_all(writer, RECORD_JOB_START, fixture_job_start);
    fixture_line_all(writer, RECORD_DICTIONARY_UPDATE, fixture_dictionary);
    for (int i = 0; i < batches; i++)
        assert_int_equal(fixture_kernels(writer, &batch, (uint32_t)i * 500 + 1, 500), GPUFL_OK);
    fixture_line_all(writer, RECORD_SHUTDOWN, fixture_shutdown);
    log_writer_close(writer, 10000);
    batch_free(&batch);
    fixture_path(out, base, FIXTURE_ID);
}

static void source_open(struct window_source *source, struct session_files *files, const char *dir,
                        enum channel channel, const struct window_limits *limits)
{
    struct problem problem = {""};
    assert_int_equal(session_files_list(files, dir, &problem), GPUFL_OK);
    size_t i = 0;
    while (i < files->log_count && files->items[i].channel != channel)
        i++;
    assert_true(i < files->log_count);
    assert_int_equal(window_source_open(source, files, &files->items[i], limits, INT64_MAX, &problem), GPUFL_OK);
}

/* Appends the uncompressed body. */
static void unzip(const struct bytes *body, struct bytes *out)
{
    z_stream stream = {.next_in = (Bytef *)body->data, .avail_in = (uInt)body->size};
    assert_int_equal(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
    int result = Z_OK;
    while (result == Z_OK) {
        assert_true(bytes_reserve(out, 1 << 16));
        stream.next_out = (Bytef *)out->data + out->size;
        stream.avail_out = 1 << 16;
        result = inflate(&stream, Z_NO_FLUSH);
        out->size += (1 << 16) - stream.avail_out;
    }
    assert_int_equal(result, Z_STREAM_END);
    assert_int_equal(stream.avail_in, 0);
    inflateEnd(&stream);
}

/* Reads all bodies of the file in order and checks the limits; returns their number. */
static unsigned read_all(const char *dir, enum channel channel, const struct window_limits *limits, struct bytes *text,
                         uint64_t *events)
{
    struct window_source source;
    struct session_files files;
    struct window window = {0};
    unsigned windows = 0;
    enum window_result result;
    source_open(&source, &files, dir, channel, limits);
    while ((result = window_source_next(&source, &window)) == WINDOW_READY) {
        size_t before = text->size;
        unzip(&window.body, text);
        assert_int_equal(text->size - before, window.raw_bytes);
        assert_true(window.raw_bytes <= limits->raw_bytes_max && window.body.size <= limits->gzip_bytes_max);
        assert_int_equal(text->data[text->size - 1], '\n');
        assert_int_equal(window.crc32, crc32(0, (const Bytef *)window.body.data, (uInt)window.body.size));
        *events += window.events;
        windows++;
    }
    assert_int_equal(result, WINDOW_NO_MORE);
    assert_int_equal(source.damaged_lines, 0);
    window_free(&window);
    window_source_close(&source);
    session_files_free(&files);
    return windows;
}

static void windows_are_cut_between_lines_and_hold_them_all(void **state)
{
    (void)state;
    const char *base = fixture_dir();
    char dir[512];
    size_t size;
    session_make(dir, base, 40);
    char *plain = fixture_read(dir, "device.log", &size);
    static const struct window_limits tight = {.raw_bytes_max = 100000, .gzip_bytes_max = 100 << 20};
    struct bytes whole = {0}, cut = {0};
    uint64_t events = 0, cut_events = 0;
    assert_int_equal(read_all(dir, CHANNEL_DEVICE, &wide, &whole, &events), 1);
    assert_true(read_all(dir, CHANNEL_DEVICE, &tight, &cut, &cut_events) > 5);
    assert_int_equal(events, 40 * 500 + 3);
    assert_int_equal(cut_events, events);
    assert_int_equal(whole.size, size);
    assert_memory_equal(whole.data, plain, size);
    assert_int_equal(cut.size, size);
    assert_memory_equal(cut.data, plain, size);
    free(plain);
    bytes_free(&whole);
    bytes_free(&cut);
    fixture_remove(base);
}

static void sealed_lines_come_back_byte_for_byte(void **state)
{
    (void)state;
    const char *base = fixture_dir();
    char dir[512];
    size_t size;
    session_make(dir, base, 20);
    char *plain = fixture_read(dir, "device.log", &size);
    struct problem problem = {""};
    assert_int_equal(seal_session(dir, &problem), GPUFL_OK);
    assert_true(fixture_exists(dir, "device.000001.log.zst"));
    struct bytes text = {0};
    uint64_t events = 0;
    assert_int_equal(read_all(dir, CHANNEL_DEVICE, &wide, &text, &events), 1);
    assert_int_equal(text.size, size);
    assert_memory_equal(text.data, plain, size);
    free(plain);
    bytes_free(&text);
    fixture_remove(base);
}

/* Makes a v1 session whose lines are `sizes` characters of noise that does not compress. */
static void noise_make(const char *dir, const size_t *sizes, size_t count)
{
    struct bytes text = {0};
    uint64_t random = 1;
    for (size_t i = 0; i < count; i++) {
        bytes_append_text(&text, "{\"type\":\"noise\",\"text\":\"");
        for (size_t c = 0; c < sizes[i]; c++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            bytes_append_char(&text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[random >> 58]);
        }
        bytes_append_text(&text, "\"}\n");
    }
    fixture_write(dir, "device.log", text.data, text.size);
    bytes_free(&text);
}

static void the_compressed_limit_holds_for_lines_that_do_not_compress(void **state)
{
    (void)state;
    const char *base = fixture_dir();
    size_t sizes[60];
    for (size_t i = 0; i < 60; i++)
        sizes[i] = 10000 + i * 2000;
    noise_make(base, sizes, 60);
    static const struct window_limits tight = {.raw_bytes_max = 100 << 20, .gzip_bytes_max = 500000};
    struct bytes text = {0};
    uint64_t events = 0;
    assert_true(read_all(base, CHANNEL_DEVICE, &tight, &text, &events) > 5);
    assert_int_equal(events, 60);
    size_t size;
    char *plain = fixture_read(base, "device.log", &size);
    assert_int_equal(text.size, size);
    assert_memory_equal(text.data, plain, size);
    free(plain);
    bytes_free(&text);
    fixture_remove(base);
}

static void a_line_over_the_limits_is_reported_and_reading_continues(void **state)
{
    (void)state;
    const char *base = fixture_dir();
    static const size_t sizes[] = {100, 400000, 100, 800000, 100};
    noise_make(base, sizes, 5);
    /* The second line is too large after compression, the fourth already before. */
    static const struct window_limits tight = {.raw_bytes_max = 500000, .gzip_bytes_max = 250000};
    struct window_source source;
    struct session_files files;
    struct window window = {0};
    source_open(&source, &files, base, CHANNEL_DEVICE, &tight);
    static const enum window_result expected[] = {WINDOW_READY,     WINDOW_TOO_LARGE, WINDOW_READY,
                                                  WINDOW_TOO_LARGE, WINDOW_READY,     WINDOW_NO_MORE};
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(window_source_next(&source, &window), expected[i]);
    window_free(&window);
    window_source_close(&source);
    session_files_free(&files);
    fixture_remove(base);
}

static void damaged_and_torn_lines_are_distinguished(void **state)
{
    (void)state;
    const char *base = fixture_dir();
    static const char text[] =
        "{\"type\":\"a\"}\nnot json\n{\"type\":\"b\"}\n{\"type\":\"c\",\"seq\":4,\"crc\":\"00000000\"}\n"
        "{\"type\":\"d\"}\n{\"type\":\"e";
    fixture_write(base, "device.log", text, sizeof text - 1);
    struct window_source source;
    struct session_files files;
    struct window window = {0};
    struct bytes sent = {0};
    source_open(&source, &files, base, CHANNEL_DEVICE, &wide);
    assert_int_equal(window_source_next(&source, &window), WINDOW_READY);
    unzip(&window.body, &sent);
    assert_string_equal(bytes_text(&sent), "{\"type\":\"a\"}\n{\"type\":\"b\"}\n{\"type\":\"d\"}\n");
    assert_int_equal(window.lines, 3);
    assert_int_equal(window_source_next(&source, &window), WINDOW_NO_MORE);
    assert_int_equal(source.damaged_lines, 2);
    assert_true(source.has_torn_tail);
    bytes_free(&sent);
    window_free(&window);
    window_source_close(&source);
    session_files_free(&files);
    fixture_remove(base);
}

static void reading_ends_with_the_deadline_or_with_damage(void **state)
{
    (void)state;
    const char *base = fixture_dir();
    char dir[512];
    session_make(dir, base, 5);
    struct window_source source;
    struct session_files files;
    struct window window = {0};
    source_open(&source, &files, dir, CHANNEL_DEVICE, &wide);
    source.deadline_mono_ns = clock_mono_ns();
    assert_int_equal(window_source_next(&source, &window), WINDOW_LATE);
    window_source_close(&source);
    session_files_free(&files);

    struct problem problem = {""};
    size_t size;
    assert_int_equal(seal_session(dir, &problem), GPUFL_OK);
    char *sealed = fixture_read(dir, "device.000001.log.zst", &size);
    memset(sealed + size / 3, 0x55, 64);
    fixture_write(dir, "device.000001.log.zst", sealed, size);
    free(sealed);
    source_open(&source, &files, dir, CHANNEL_DEVICE, &wide);
    enum window_result result;
    while ((result = window_source_next(&source, &window)) == WINDOW_READY)
        continue;
    assert_int_equal(result, WINDOW_FAILED);
    assert_non_null(strstr(source.reason, "damaged"));
    window_free(&window);
    window_source_close(&source);
    session_files_free(&files);
    fixture_remove(base);
}

static void window_ids_are_uuids_that_depend_on_their_arguments_alone(void **state)
{
    (void)state;
    char seen[300][WINDOW_ID_SIZE + 1], again[WINDOW_ID_SIZE + 1];
    unsigned count = 0;
    static const char *const sessions[] = {FIXTURE_ID, "0f8fad5b-d9cb-469f-a165-70867728950f", "x"};
    for (int s = 0; s < 3; s++)
        for (int channel = 0; channel < CHANNEL_COUNT; channel++)
            for (uint64_t sequence = 1; sequence <= 25; sequence++) {
                window_id_make(seen[count], sessions[s], (enum channel)channel, sequence);
                window_id_make(again, sessions[s], (enum channel)channel, sequence);
                assert_string_equal(seen[count], again);
                assert_true(session_id_is_valid(again));
                assert_int_equal(again[14], '8');
                assert_non_null(strchr("89ab", again[19]));
                for (unsigned i = 0; i < count; i++)
                    assert_string_not_equal(seen[i], again);
                count++;
            }
    /* A permanent value: a server must recognize a window that the next version of gpufl sends again. */
    window_id_make(again, FIXTURE_ID, CHANNEL_DEVICE, 1);
    assert_string_equal(again, "984b188c-7963-8d0a-a740-c23c93ef3052");
}

static void a_cursor_keeps_the_state_of_each_server(void **state)
{
    (void)state;
    const char *base = fixture_dir();
    int dir_fd = open(base, O_RDONLY | O_DIRECTORY);
    struct cursor cursor;
    for (int i = 0; i < 20; i++) {
        char address[64];
        snprintf(address, sizeof address, "http://host%d/api/v1", i);
        assert_int_equal(cursor_load(&cursor, dir_fd, address), GPUFL_OK);
        assert_true(cursor.server_count <= 16);
        assert_int_equal(cursor.current->file_count, 0);
        for (uint64_t number = 1; number <= 20; number++) {
            struct cursor_file *file = cursor_file_get(&cursor, CHANNEL_SCOPE, number);
            assert_non_null(file);
            *file = (struct cursor_file){CHANNEL_SCOPE, number, number + 2, number + (uint64_t)i % 2, (uint64_t)i};
        }
        cursor.current->is_complete = i % 2;
        assert_int_equal(cursor_save(&cursor), GPUFL_OK);
        cursor_free(&cursor);
    }
    assert_int_equal(cursor_load(&cursor, dir_fd, "http://host19/api/v1"), GPUFL_OK);
    assert_true(cursor.current->is_complete);
    assert_int_equal(cursor.current->file_count, 20);
    const struct cursor_file *file = cursor_file_get(&cursor, CHANNEL_SCOPE, 7);
    assert_int_equal(file->windows, 9);
    assert_int_equal(file->sent, 8);
    assert_int_equal(file->left_out, 19);
    cursor_free(&cursor);
    assert_int_equal(cursor_load(&cursor, dir_fd, "http://host0/api/v1"), GPUFL_OK);
    assert_int_equal(cursor.current->file_count, 0); /* the oldest was removed to make room */
    cursor_free(&cursor);
    close(dir_fd);
    fixture_remove(base);
}

static void a_damaged_cursor_is_ignored(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "[",
        "null",
        "{\"schema_version\":2,\"servers\":[]}",
        "{\"schema_version\":1,\"servers\":[{\"address\":7,\"files\":[]}]}",
        "{\"schema_version\":1,\"servers\":[{\"address\":\"a\",\"files\":[{\"channel\":\"device\",\"file\":1,\"windows\":1,"
        "\"sent\":2,\"left_out\":0}]}]}",
        "{\"schema_version\":1,\"servers\":[{\"address\":\"a\",\"files\":[{\"channel\":\"device\",\"file\":-1,\"windows\":1,"
        "\"sent\":1,\"left_out\":0}]}]}",
    };
    const char *base = fixture_dir();
    int dir_fd = open(base, O_RDONLY | O_DIRECTORY);
    struct cursor cursor;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fixture_write(base, CURSOR_NAME, bad[i], strlen(bad[i]));
        assert_int_equal(cursor_load(&cursor, dir_fd, "a"), GPUFL_OK);
        assert_int_equal(cursor.current->file_count, 0);
        cursor_free(&cursor);
    }
    /* A symbolic link is neither read nor written through. */
    char link_path[512], target[512];
    fixture_path(link_path, base, CURSOR_NAME);
    fixture_path(target, base, "elsewhere");
    fixture_write(base, "elsewhere", "kept", 4);
    assert_int_equal(unlink(link_path), 0);
    assert_int_equal(symlink(target, link_path), 0);
    assert_int_equal(cursor_load(&cursor, dir_fd, "a"), GPUFL_OK);
    assert_int_equal(cursor_save(&cursor), GPUFL_OK);
    cursor_free(&cursor);
    size_t size;
    char *text = fixture_read(base, "elsewhere", &size);
    assert_string_equal(text, "kept");
    free(text);
    close(dir_fd);
    fixture_remove(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_cut_between_lines_and_hold_them_all),
        cmocka_unit_test(sealed_lines_come_back_byte_for_byte),
        cmocka_unit_test(the_compressed_limit_holds_for_lines_that_do_not_compress),
        cmocka_unit_test(a_line_over_the_limits_is_reported_and_reading_continues),
        cmocka_unit_test(damaged_and_torn_lines_are_distinguished),
        cmocka_unit_test(reading_ends_with_the_deadline_or_with_damage),
        cmocka_unit_test(window_ids_are_uuids_that_depend_on_their_arguments_alone),
        cmocka_unit_test(a_cursor_keeps_the_state_of_each_server),
        cmocka_unit_test(a_damaged_cursor_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
