/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "format/json.h"
#include "logfile/line.h"
#include "logfile/reader.h"
#include "logfile/recovery.h"
#include "logfile/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SESSION_ID "01234567-89ab-7cde-8f01-23456789abcd"

struct fixture {
    char base[64], dir[160];
};

/* A process that writes a session and dies without ending it: its lock is released, its files stay. */
static void write_and_die(const char *base, bool with_shutdown)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct log_writer *writer;
        struct problem problem;
        struct log_writer_options options = {.base_dir = base, .session_id = SESSION_ID};
        if (log_writer_open(&writer, &options, &problem) != GPUFL_OK)
            _exit(1);
        struct bytes line = {0};
        bytes_append_text(
            &line,
            "{\"version\":1,\"type\":\"job_start\",\"pid\":4711,\"app\":\"a \\\"b\\\"\",\"session_id\":\"" SESSION_ID
            "\",\"ts_ns\":1");
        log_writer_line_all(writer, 1u << CHANNEL_DEVICE | 1u << CHANNEL_SYSTEM, RECORD_JOB_START, &line);
        bytes_clear(&line);
        bytes_append_text(&line, "{\"type\":\"loss\",\"session_id\":\"" SESSION_ID
                                 "\",\"ts_ns\":2,\"reason\":\"test\",\"count\":1");
        for (int i = 0; i < 3; i++)
            log_writer_line(writer, CHANNEL_SYSTEM, RECORD_LOSS, &line, 1);
        if (with_shutdown) {
            bytes_clear(&line);
            bytes_append_text(&line, "{\"type\":\"shutdown\",\"pid\":4711,\"app\":\"a\",\"session_id\":\"" SESSION_ID
                                     "\",\"ts_ns\":3");
            log_writer_line_all(writer, 0, RECORD_SHUTDOWN, &line);
        }
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (!fixture)
        return -1;
    snprintf(fixture->base, sizeof fixture->base, "/tmp/gpufl-recovery-XXXXXX");
    if (!mkdtemp(fixture->base))
        return -1;
    snprintf(fixture->dir, sizeof fixture->dir, "%s/%s", fixture->base, SESSION_ID);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", fixture->base);
    int status = system(command);
    free(fixture);
    return status;
}

static void path_of(const struct fixture *fixture, const char *name, char out[256])
{
    snprintf(out, 256, "%s/%s", fixture->dir, name);
}

/* Reads the complete file, NUL-terminated; the caller frees. */
static char *read_file(const struct fixture *fixture, const char *name)
{
    char path[256];
    path_of(fixture, name, path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    assert_true(fread(text, 1, 65535, file) > 0);
    fclose(file);
    return text;
}

/* The last line without LF: checks its checksum and returns its sequence number. */
static int64_t last_seq(char *text, const char **line)
{
    size_t size = strlen(text);
    assert_int_equal(text[size - 1], '\n');
    text[size - 1] = '\0';
    char *start = strrchr(text, '\n');
    *line = start ? start + 1 : text;
    struct line_end end = line_end_read(*line, strlen(*line));
    assert_int_equal(end.crc, LINE_CRC_GOOD);
    return end.seq;
}

static const struct session_end killed = {.is_known = true, .exit_code = -1, .signal = SIGKILL};

static void the_identity_of_a_session_is_its_job_start(void **state)
{
    struct fixture *fixture = *state;
    write_and_die(fixture->base, false);
    struct session_identity identity;
    struct problem problem = {""};
    assert_int_equal(session_identity_read(fixture->dir, &identity, &problem), GPUFL_OK);
    assert_int_equal(identity.pid, 4711);
    assert_string_equal(identity.app, "a \"b\"");
    assert_string_equal(identity.session_id, SESSION_ID);
}

static void a_killed_session_gets_its_end_in_every_channel_with_the_next_number(void **state)
{
    struct fixture *fixture = *state;
    write_and_die(fixture->base, false);
    struct problem problem = {""};
    unsigned appended = 0;
    assert_int_equal(session_append_shutdown(fixture->dir, &killed, &appended, &problem), GPUFL_OK);
    assert_int_equal(appended, 2);
    const char *line;
    char *device = read_file(fixture, "device.log"), *system_text = read_file(fixture, "system.log");
    assert_int_equal(last_seq(device, &line), 2);
    assert_int_equal(last_seq(system_text, &line), 5);
    struct json_document document;
    assert_int_equal(json_parse(&document, line, strlen(line), NULL), GPUFL_OK);
    assert_string_equal(json_get_text(document.root, "type", ""), "shutdown");
    assert_int_equal(json_get_int(document.root, "pid", 0), 4711);
    assert_string_equal(json_get_text(document.root, "app", ""), "a \"b\"");
    assert_true(json_get_bool(document.root, "synthetic", false));
    assert_true(json_get_bool(document.root, "signaled", false));
    assert_false(json_get_bool(document.root, "crashed", true));
    assert_int_equal(json_get_int(document.root, "signal", 0), SIGKILL);
    json_free(&document);
    free(device);
    free(system_text);

    struct log_summary summary;
    assert_int_equal(log_read(fixture->dir, NULL, NULL, NULL, &summary, &problem), GPUFL_OK);
    assert_true(summary.is_synthetic_shutdown);
    assert_int_equal(summary.damaged_lines, 0);
    assert_int_equal(summary.missing_lines, 0);
}

static void the_end_is_appended_once_and_never_to_a_session_that_has_one(void **state)
{
    struct fixture *fixture = *state;
    write_and_die(fixture->base, true);
    struct problem problem = {""};
    unsigned appended = 99;
    assert_int_equal(session_append_shutdown(fixture->dir, &killed, &appended, &problem), GPUFL_OK);
    assert_int_equal(appended, 0);
}

static void a_torn_line_is_kept_and_terminated(void **state)
{
    struct fixture *fixture = *state;
    write_and_die(fixture->base, false);
    char path[256];
    path_of(fixture, "system.log", path);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs("{\"type\":\"loss\",\"rea", file);
    fclose(file);
    struct problem problem = {""};
    unsigned appended = 0;
    assert_int_equal(session_append_shutdown(fixture->dir, &killed, &appended, &problem), GPUFL_OK);
    const char *line;
    char *text = read_file(fixture, "system.log");
    assert_non_null(strstr(text, "{\"type\":\"loss\",\"rea\n{\"type\":\"shutdown\""));
    /* The torn line had number 5. */
    assert_int_equal(last_seq(text, &line), 6);
    free(text);
    struct log_summary summary;
    assert_int_equal(log_read(fixture->dir, NULL, NULL, NULL, &summary, &problem), GPUFL_OK);
    assert_true(summary.damaged_lines == 1 || summary.has_torn_tail);
}

static void an_empty_live_file_after_a_rotation_continues_the_numbers(void **state)
{
    struct fixture *fixture = *state;
    write_and_die(fixture->base, false);
    char live[256], rotated[256];
    path_of(fixture, "system.log", live);
    path_of(fixture, "system.000001.log", rotated);
    assert_int_equal(rename(live, rotated), 0);
    close(open(live, O_CREAT | O_WRONLY, 0600));
    struct problem problem = {""};
    unsigned appended = 0;
    assert_int_equal(session_append_shutdown(fixture->dir, &killed, &appended, &problem), GPUFL_OK);
    const char *line;
    char *text = read_file(fixture, "system.log");
    assert_int_equal(last_seq(text, &line), 5);
    free(text);
}

static void a_torn_first_line_after_a_rotation_continues_the_numbers(void **state)
{
    struct fixture *fixture = *state;
    write_and_die(fixture->base, false);
    char live[256], rotated[256];
    path_of(fixture, "system.log", live);
    path_of(fixture, "system.000001.log", rotated);
    assert_int_equal(rename(live, rotated), 0);
    FILE *file = fopen(live, "w");
    assert_non_null(file);
    fputs("{\"type\":\"loss\",\"rea", file);
    fclose(file);
    struct problem problem = {""};
    unsigned appended = 0;
    assert_int_equal(session_append_shutdown(fixture->dir, &killed, &appended, &problem), GPUFL_OK);
    const char *line;
    char *text = read_file(fixture, "system.log");
    assert_int_equal(last_seq(text, &line), 6);
    free(text);
}

static void the_session_of_a_running_writer_is_not_touched(void **state)
{
    struct fixture *fixture = *state;
    int ready[2], go[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct log_writer *writer;
        struct problem problem;
        struct log_writer_options options = {.base_dir = fixture->base, .session_id = SESSION_ID};
        struct bytes line = {0};
        if (log_writer_open(&writer, &options, &problem) != GPUFL_OK)
            _exit(1);
        bytes_append_text(&line, "{\"type\":\"job_start\",\"pid\":1,\"app\":\"a\",\"session_id\":\"" SESSION_ID
                                 "\",\"ts_ns\":1");
        log_writer_line_all(writer, 1u << CHANNEL_SYSTEM, RECORD_JOB_START, &line);
        char byte = 'r';
        _exit(write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1 ? 0 : 1);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    struct problem problem = {""};
    unsigned appended = 0;
    assert_int_equal(session_append_shutdown(fixture->dir, &killed, &appended, &problem), GPUFL_E_BUSY);
    assert_int_equal(write(go[1], "g", 1), 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(session_append_shutdown(fixture->dir, &killed, &appended, &problem), GPUFL_OK);
    assert_int_equal(appended, 1);
    close(ready[0]);
    close(ready[1]);
    close(go[0]);
    close(go[1]);
}

static void a_symbolic_link_is_never_written_through(void **state)
{
    struct fixture *fixture = *state;
    write_and_die(fixture->base, false);
    char live[256], target[256];
    path_of(fixture, "device.log", live);
    snprintf(target, sizeof target, "%s/target", fixture->base);
    assert_int_equal(rename(live, target), 0);
    assert_int_equal(symlink(target, live), 0);
    struct stat before, after;
    assert_int_equal(stat(target, &before), 0);
    struct problem problem = {""};
    unsigned appended = 0;
    gpufl_status status = session_append_shutdown(fixture->dir, &killed, &appended, &problem);
    assert_int_equal(stat(target, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    assert_true(appended <= 1);
    assert_true(status == GPUFL_OK || problem.text[0] != '\0');
}

#define RECOVERY_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECOVERY_TEST(the_identity_of_a_session_is_its_job_start),
        RECOVERY_TEST(a_killed_session_gets_its_end_in_every_channel_with_the_next_number),
        RECOVERY_TEST(the_end_is_appended_once_and_never_to_a_session_that_has_one),
        RECOVERY_TEST(a_torn_line_is_kept_and_terminated),
        RECOVERY_TEST(an_empty_live_file_after_a_rotation_continues_the_numbers),
        RECOVERY_TEST(a_torn_first_line_after_a_rotation_continues_the_numbers),
        RECOVERY_TEST(the_session_of_a_running_writer_is_not_touched),
        RECOVERY_TEST(a_symbolic_link_is_never_written_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
