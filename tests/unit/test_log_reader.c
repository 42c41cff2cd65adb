/* SPDX-License-Identifier: Apache-2.0 */
#include "session_fixture.h"

#include "logfile/line.h"
#include "logfile/segment.h"

#include <pthread.h>
#include <stdatomic.h>

/* A small finished session in one live file per channel. */
static void make_session(const char *base, char dir[512], uint32_t batches)
{
    struct log_writer *writer = fixture_open(base, 0, false);
    struct batch batch;
    assert_int_equal(batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, 4), GPUFL_OK);
    fixture_line_all(writer, RECORD_JOB_START, fixture_job_start);
    fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE, fixture_dictionary);
    for (uint32_t i = 0; i < batches; i++)
        assert_int_equal(fixture_kernels(writer, &batch, 1 + i * 4, 4), GPUFL_OK);
    fixture_line_all(writer, RECORD_SHUTDOWN, fixture_shutdown);
    snprintf(dir, 512, "%s", log_writer_dir(writer));
    log_writer_close(writer, 1000);
    batch_free(&batch);
}

static void job_start_comes_first_and_records_of_all_channels_once(void **state)
{
    char dir[512];
    make_session(*state, dir, 2);
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.issue_count, 0);
    assert_string_equal(seen.order, "job_start shutdown dictionary_update kernel_event_batch kernel_event_batch");
    assert_int_equal(seen.summary.rows[RECORD_JOB_START], 1);
    assert_int_equal(seen.summary.rows[RECORD_KERNEL_EVENT_BATCH], 8);
    assert_int_equal(seen.summary.files, 4);
    assert_true(seen.summary.has_shutdown);
}

static void job_start_comes_first_even_when_only_the_last_channel_has_it(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    fixture_line(writer, CHANNEL_SYSTEM, RECORD_LOSS, "{\"type\":\"loss\"");
    fixture_line(writer, CHANNEL_SASS, RECORD_JOB_START, fixture_job_start);
    struct fixture_seen seen = fixture_see(*state);
    assert_string_equal(seen.order, "job_start loss");
    log_writer_close(writer, 1000);
}

static void scopes_come_before_kernels(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    struct batch kernels, scopes;
    assert_int_equal(batch_init(&kernels, RECORD_KERNEL_EVENT_BATCH, 4), GPUFL_OK);
    assert_int_equal(batch_init(&scopes, RECORD_SCOPE_EVENT_BATCH, 4), GPUFL_OK);
    fixture_kernels(writer, &kernels, 1, 4);
    batch_row(&scopes)[SCOPE_SCOPE_INSTANCE_ID] = 1;
    struct bytes line = {0};
    batch_encode(&scopes, FIXTURE_ID, "", &line);
    assert_int_equal(log_writer_line(writer, CHANNEL_SCOPE, RECORD_SCOPE_EVENT_BATCH, &line, 1), GPUFL_OK);
    bytes_free(&line);
    fixture_line(writer, CHANNEL_SYSTEM, RECORD_LOSS, "{\"type\":\"loss\"");
    assert_string_equal(fixture_see(*state).order, "loss scope_event_batch kernel_event_batch");
    log_writer_close(writer, 1000);
    batch_free(&kernels);
    batch_free(&scopes);
}

/* Truncates the file at every byte: every complete line is delivered, the rest is a torn tail or nothing, and the
 * channel's end is reported as missing. */
static void every_truncation_is_readable_and_reported(void **state)
{
    char dir[512];
    make_session(*state, dir, 3);
    size_t size;
    char *text = fixture_read(dir, "device.log", &size);
    for (size_t cut = 0; cut <= size; cut++) {
        fixture_write(dir, "device.log", text, cut);
        struct fixture_seen seen = fixture_see(dir);
        uint64_t whole = 0;
        size_t last = 0;
        for (size_t i = 0; i < cut; i++)
            if (text[i] == '\n') {
                whole++;
                last = i + 1;
            }
        /* Complete except for the LF. */
        bool is_unended_whole = cut > last && text[cut] == '\n';
        whole += is_unended_whole;
        bool is_torn = cut > last && !is_unended_whole;
        assert_int_equal(seen.issues[LOG_ISSUE_TORN_TAIL], is_torn);
        assert_int_equal(seen.summary.has_torn_tail, is_torn);
        bool is_whole = whole == 6; /* job_start, dictionary, kernels, shutdown */
        assert_int_equal(seen.issues[LOG_ISSUE_MISSING_LINES], !is_whole);
        assert_int_equal(seen.issue_count, is_torn + !is_whole);
        uint64_t kernel_lines = whole < 2 ? 0 : whole - 2 > 3 ? 3 : whole - 2;
        assert_int_equal(seen.kernels, kernel_lines * 4);
        if (is_torn) {
            assert_int_equal(seen.last[LOG_ISSUE_TORN_TAIL].line, whole + 1);
            assert_string_equal(seen.last[LOG_ISSUE_TORN_TAIL].file, "device.log");
        }
    }
    free(text);
}

static void every_flipped_byte_is_noticed_and_damages_one_line_only(void **state)
{
    char dir[512];
    make_session(*state, dir, 2);
    size_t size;
    char *text = fixture_read(dir, "device.log", &size);
    for (size_t at = 0; at < size; at++) {
        char saved = text[at];
        text[at] = (char)(saved ^ (1 << at % 7));
        fixture_write(dir, "device.log", text, size);
        struct fixture_seen seen = fixture_see(dir);
        text[at] = saved;
        bool is_at_end = at == size - 1; /* without the last LF the line is torn */
        uint64_t noticed = seen.issues[LOG_ISSUE_DAMAGED_LINE] + seen.issues[LOG_ISSUE_TORN_TAIL];
        if (!noticed || noticed > 2 || (seen.issues[LOG_ISSUE_TORN_TAIL] && !is_at_end))
            fail_msg("byte %zu of %zu: %llu damaged", at, size, (unsigned long long)noticed);
        /* A line without its LF is damaged together with the next line. */
        assert_true(seen.summary.missing_lines <= (saved == '\n'));
        assert_true(seen.kernels == 8 || seen.kernels == 4 || (saved == '\n' && seen.kernels == 0));
    }
    free(text);
}

static void random_damage_never_crashes(void **state)
{
    char dir[512];
    make_session(*state, dir, 3);
    size_t size;
    char *text = fixture_read(dir, "device.log", &size);
    uint32_t random = 12345;
    for (int round = 0; round < 300; round++) {
        char *copy = malloc(size);
        memcpy(copy, text, size);
        for (int i = 0; i < 1 + round % 9; i++) {
            random = random * 1664525 + 1013904223;
            copy[random % size] = (char)(random >> 24);
        }
        fixture_write(dir, "device.log", copy, size);
        bool is_changed = memcmp(copy, text, size) != 0;
        struct fixture_seen seen = fixture_see(dir);
        assert_true(!is_changed || seen.issue_count > 0);
        assert_true(seen.kernels <= 12);
        free(copy);
    }
    free(text);
}

static void a_missing_line_is_reported_at_its_place(void **state)
{
    char dir[512];
    make_session(*state, dir, 5);
    size_t size;
    char *text = fixture_read(dir, "device.log", &size);
    /* Without lines 4 and 5. */
    char *from = text, *to;
    for (int i = 0; i < 3; i++)
        from = strchr(from, '\n') + 1;
    to = strchr(strchr(from, '\n') + 1, '\n') + 1;
    memmove(from, to, (size_t)(text + size - to));
    fixture_write(dir, "device.log", text, size - (size_t)(to - from));
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.summary.missing_lines, 2);
    assert_int_equal(seen.issues[LOG_ISSUE_MISSING_LINES], 1);
    assert_int_equal(seen.last[LOG_ISSUE_MISSING_LINES].count, 2);
    assert_int_equal(seen.last[LOG_ISSUE_MISSING_LINES].line, 4);
    assert_int_equal(seen.kernels, 12);
    free(text);
}

static void a_repeated_line_is_delivered_once(void **state)
{
    char dir[512];
    make_session(*state, dir, 1);
    size_t size;
    char *text = fixture_read(dir, "device.log", &size);
    char *twice = malloc(size * 2);
    memcpy(twice, text, size);
    memcpy(twice + size, text, size);
    fixture_write(dir, "device.log", twice, size * 2);
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.kernels, 4);
    assert_int_equal(seen.issues[LOG_ISSUE_DUPLICATE_LINE], 4);
    free(text);
    free(twice);
}

static void a_symbolic_link_is_never_followed(void **state)
{
    char dir[512], link[512], target[512];
    make_session(*state, dir, 1);
    fixture_path(link, dir, "device.log");
    fixture_path(target, *state, "elsewhere.log");
    assert_int_equal(rename(link, target), 0);
    assert_int_equal(symlink(target, link), 0);
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.kernels, 0);
    assert_int_equal(seen.issues[LOG_ISSUE_UNREADABLE], 1);
    assert_non_null(strstr(seen.last[LOG_ISSUE_UNREADABLE].text, "symbolic link"));
}

static void a_fifo_in_place_of_a_file_does_not_hang(void **state)
{
    char dir[512], path[512];
    make_session(*state, dir, 1);
    fixture_path(path, dir, "device.log");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(fixture_see(dir).issues[LOG_ISSUE_UNREADABLE], 1);
}

static void a_directory_with_one_session_is_read_as_that_session(void **state)
{
    char dir[512];
    make_session(*state, dir, 1);
    assert_int_equal(fixture_see(*state).kernels, 4);
}

static void several_sessions_are_listed_newest_first(void **state)
{
    static const char *const ids[] = {"00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000003",
                                      "00000000-0000-4000-8000-000000000002"};
    for (int i = 0; i < 3; i++) {
        char path[512];
        struct timespec times[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};
        fixture_path(path, *state, ids[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        fixture_write(path, ".gpufl-session.lock", "", 0);
        snprintf(path + strlen(path), 64, "/.gpufl-session.lock");
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    struct session_list list;
    struct problem problem = {""};
    assert_int_equal(session_list_find(&list, *state, &problem), GPUFL_OK);
    assert_int_equal(list.count, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(strrchr(list.paths[i], '/') + 1, ids[2 - i]);
    session_list_free(&list);
    struct newest_session newest;
    assert_int_equal(session_find_newest(*state, &newest, &problem), GPUFL_OK);
    assert_int_equal(newest.count, 3);
    assert_string_equal(strrchr(newest.path, '/') + 1, ids[2]);
}

/* Copying changes file times, but not the start in the id. */
static void sessions_are_ordered_by_the_time_in_their_ids(void **state)
{
    static const char *const newest_first[] = {
        "019f0000-0001-7000-8000-000000000000", "019f0000-0000-7000-8000-000000000001",
        "019f0000-0000-7000-8000-000000000000", "00000000-0000-4000-8000-000000000001"};
    for (int i = 0; i < 4; i++) {
        char path[512];
        struct timespec times[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};
        fixture_path(path, *state, newest_first[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    struct session_list list;
    struct problem problem = {""};
    assert_int_equal(session_list_find(&list, *state, &problem), GPUFL_OK);
    assert_int_equal(list.count, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(strrchr(list.paths[i], '/') + 1, newest_first[i]);
    session_list_free(&list);
}

static void of_several_sessions_the_newest_is_read(void **state)
{
    char dir[512];
    make_session(*state, dir, 1);
    assert_int_equal(fixture_see(*state).kernels, 4);
    char old[512];
    fixture_path(old, *state, "00000000-0000-7000-8000-000000000001");
    assert_int_equal(mkdir(old, 0700), 0);
    fixture_write(old, "device.log", "", 0);
    assert_int_equal(fixture_see(*state).kernels, 4);
    fixture_path(old, *state, "ffffffff-0000-7000-8000-000000000001");
    assert_int_equal(mkdir(old, 0700), 0);
    fixture_write(old, "device.log", "", 0);
    assert_int_equal(fixture_see(*state).kernels, 0);
}

static void a_directory_without_sessions_is_not_found(void **state)
{
    struct log_summary summary;
    struct problem problem = {""};
    assert_int_equal(log_read(*state, NULL, NULL, NULL, &summary, &problem), GPUFL_E_NOT_FOUND);
    assert_non_null(strstr(problem.text, *state));
    char path[512];
    fixture_path(path, *state, "nothing");
    assert_int_equal(log_read(path, NULL, NULL, NULL, &summary, &problem), GPUFL_E_NOT_FOUND);
    assert_non_null(strstr(problem.text, "nothing"));
}

static bool stop_at_once(void *user, const struct log_line *line)
{
    (void)line;
    ++*(int *)user;
    return false;
}

static void a_record_of_a_newer_format_is_refused_with_its_place(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    fixture_line(writer, CHANNEL_DEVICE, RECORD_JOB_START, fixture_job_start);
    fixture_line(writer, CHANNEL_SYSTEM, RECORD_LOSS, "{\"type\":\"loss\"");
    fixture_line(writer, CHANNEL_SYSTEM, RECORD_LOSS, "{\"type\":\"loss\",\"version\":99");
    struct log_summary summary;
    struct problem problem = {""};
    assert_int_equal(log_read(*state, NULL, NULL, NULL, &summary, &problem), GPUFL_E_UNSUPPORTED);
    assert_non_null(strstr(problem.text, "system.log:2 has log format 99"));
    log_writer_close(writer, 1000);
}

static void reading_stops_on_request(void **state)
{
    char dir[512];
    make_session(*state, dir, 3);
    int calls = 0;
    struct log_summary summary;
    assert_int_equal(log_read(dir, stop_at_once, NULL, &calls, &summary, NULL), GPUFL_OK);
    assert_int_equal(calls, 1);
}

static void unknown_types_are_delivered_as_such_and_counted(void **state)
{
    struct log_writer *writer = fixture_open(*state, 0, false);
    fixture_line(writer, CHANNEL_DEVICE, RECORD_UNKNOWN, "{\"type\":\"from_the_future\",\"x\":[1,2]");
    struct fixture_seen seen = fixture_see(*state);
    assert_int_equal(seen.summary.unknown_types, 1);
    assert_string_equal(seen.order, "from_the_future");
    assert_int_equal(seen.issues[LOG_ISSUE_DAMAGED_LINE], 0);
    log_writer_close(writer, 1000);
}

static void a_torn_line_before_a_synthetic_shutdown_is_a_torn_tail(void **state)
{
    char dir[512];
    make_session(*state, dir, 1);
    size_t size;
    char *text = fixture_read(dir, "device.log", &size);
    char *last = memrchr(text, '\n', size - 1);
    size_t torn = (size_t)(last + 20 - text);
    struct bytes file = {0};
    char trailer[LINE_TRAILER_MAX];
    static const char end[] =
        "{\"type\":\"shutdown\",\"session_id\":\"" FIXTURE_ID "\",\"ts_ns\":9999,\"synthetic\":true";
    bytes_append(&file, text, torn);
    bytes_append_text(&file, "\n");
    bytes_append_text(&file, end);
    bytes_append(&file, trailer, line_trailer(trailer, end, strlen(end), 5));
    fixture_write(dir, "device.log", file.data, file.size);
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.issues[LOG_ISSUE_TORN_TAIL], 1);
    assert_int_equal(seen.issues[LOG_ISSUE_DAMAGED_LINE], 0);
    assert_int_equal(seen.summary.damaged_lines, 0);
    assert_int_equal(seen.summary.missing_lines, 0);
    assert_false(seen.summary.is_synthetic_shutdown); /* the other channels have the real shutdown */
    bytes_free(&file);
    free(text);
}

static void a_line_over_the_limit_is_skipped_and_the_next_one_read(void **state)
{
    char dir[512], path[512];
    make_session(*state, dir, 1);
    fixture_path(path, dir, "scope.log");
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    static char block[1 << 20];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 65; i++)
        assert_int_equal(fwrite(block, 1, sizeof block, file), sizeof block);
    fputs("\n{\"type\":\"system_start\",\"session_id\":\"x\",\"name\":\"after\"}\n", file);
    fclose(file);
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.issues[LOG_ISSUE_DAMAGED_LINE], 1);
    assert_non_null(strstr(seen.last[LOG_ISSUE_DAMAGED_LINE].text, "64 MiB"));
    assert_int_equal(seen.summary.rows[RECORD_SYSTEM_START], 1);
}

static atomic_bool is_writing;

static void *write_many(void *user)
{
    struct log_writer *writer = user;
    struct batch batch;
    if (batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, 16) == GPUFL_OK) {
        for (uint32_t i = 0; i < 1500; i++)
            (void)fixture_kernels(writer, &batch, 1 + i * 16, 16);
        batch_free(&batch);
    }
    atomic_store(&is_writing, false);
    return NULL;
}

/* Files are rotated, sealed and removed while the session is read; the reader still sees a prefix without gaps. */
static void a_session_can_be_read_while_it_is_written(void **state)
{
    struct log_writer *writer = fixture_open(*state, 3000, true);
    pthread_t thread;
    atomic_store(&is_writing, true);
    assert_int_equal(pthread_create(&thread, NULL, write_many, writer), 0);
    uint64_t kernels = 0;
    while (atomic_load(&is_writing)) {
        struct fixture_seen seen = fixture_see(*state);
        for (int kind = 0; kind < LOG_ISSUE_UNFINISHED; kind++)
            if (seen.issues[kind])
                fail_msg("%s line %llu: %s", seen.last[kind].file, (unsigned long long)seen.last[kind].line,
                         seen.last[kind].text);
        assert_true(seen.kernels >= kernels);
        kernels = seen.kernels;
        assert_int_equal(seen.corr_sum, kernels * (kernels + 1) / 2);
    }
    pthread_join(thread, NULL);
    log_writer_close(writer, 60000);
    assert_int_equal(fixture_see(*state).kernels, 1500 * 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(job_start_comes_first_and_records_of_all_channels_once, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(job_start_comes_first_even_when_only_the_last_channel_has_it, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(scopes_come_before_kernels, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(every_truncation_is_readable_and_reported, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(every_flipped_byte_is_noticed_and_damages_one_line_only, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(random_damage_never_crashes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_missing_line_is_reported_at_its_place, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_repeated_line_is_delivered_once, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_symbolic_link_is_never_followed, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_fifo_in_place_of_a_file_does_not_hang, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_directory_with_one_session_is_read_as_that_session, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(several_sessions_are_listed_newest_first, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(sessions_are_ordered_by_the_time_in_their_ids, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(of_several_sessions_the_newest_is_read, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_directory_without_sessions_is_not_found, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_record_of_a_newer_format_is_refused_with_its_place, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(reading_stops_on_request, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(unknown_types_are_delivered_as_such_and_counted, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_torn_line_before_a_synthetic_shutdown_is_a_torn_tail, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_line_over_the_limit_is_skipped_and_the_next_one_read, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_session_can_be_read_while_it_is_written, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
