/* SPDX-License-Identifier: Apache-2.0 */
/* Disassembly is added to ended sessions, and to no other. */
#include "golden_session.h"
#include "session_fixture.h"
#include "tool_fixture.h"

#include "analysis/code_listings.h"
#include "code_object_fixture.h"
#include "cubin_fixture.h"
#include "logfile/packed_bytes.h"
#include "logfile/recovery.h"
#include "logfile/segment.h"
#include "logfile/session_append.h"

#include <sys/eventfd.h>
#include <sys/resource.h>

static const struct code_listings_options usual = {.time_limit_ms = 60000};

static void good_tool_install(const char *dir)
{
    tool_install(dir, "printf '\\t.section\\t.text.vector_add,\"ax\",@progbits\\n"
                      "        /*0000*/      LDC R1, c[0x0][0x28] ;\\n"
                      "        /*00e0*/      IMAD.WIDE R4, R9, 0x4, R4 ;\\n'");
}

static void code_write(struct log_writer *writer, unsigned crc, const char *arch, const uint8_t *bytes, size_t size)
{
    struct bytes line = {0};
    struct problem problem = {""};
    bytes_append_format(&line,
                        "{\"version\":1,\"type\":\"code_object\",\"session_id\":\"" FIXTURE_ID
                        "\",\"ts_ns\":2000,\"cubin_crc\":\"%u\",\"arch\":\"%s\",\"bytes\":%zu,\"encoding\":\"%s\","
                        "\"data\":\"",
                        crc, arch, size, PACKED_BYTES_ENCODING);
    assert_int_equal(packed_bytes_append(&line, bytes, size, &problem), GPUFL_OK);
    bytes_append_char(&line, '"');
    assert_int_equal(log_writer_line(writer, CHANNEL_SASS, RECORD_CODE_OBJECT, &line, 1), GPUFL_OK);
    bytes_free(&line);
}

/* An ended session with counters of vector_add, whose cubin is in the log. */
static void session_write(const char *base, char dir[512], const char *cubin, bool has_shutdown,
                          void (*more_write)(struct log_writer *writer))
{
    struct log_writer *writer = fixture_open(base, 0, false);
    size_t size;
    uint8_t *bytes = fixture_cubin_read(cubin, &size);
    fixture_line_all(writer, RECORD_JOB_START, fixture_job_start);
    assert_int_equal(fixture_line(writer, CHANNEL_SASS, RECORD_DICTIONARY_UPDATE,
                                  "{\"version\":1,\"type\":\"dictionary_update\",\"session_id\":\"" FIXTURE_ID
                                  "\",\"function_dict\":{\"1\":\"vector_add\"},\"metric_dict\":{\"1\":"
                                  "\"smsp__sass_inst_executed\"}"),
                     GPUFL_OK);
    code_write(writer, 77, "sm_90", bytes, size);
    assert_int_equal(
        fixture_line(writer, CHANNEL_SASS, RECORD_PROFILE_SAMPLE_BATCH,
                     "{\"version\":1,\"type\":\"profile_sample_batch\",\"session_id\":\"" FIXTURE_ID
                     "\",\"batch_id\":1,\"base_time_ns\":3000,\"columns\":[\"dt_ns\",\"sample_kind\",\"function_id\","
                     "\"pc_offset\",\"metric_id\",\"metric_value\",\"cubin_crc\"],\"rows\":[[0,1,1,0,1,640,77],"
                     "[0,1,1,224,1,640,77]]"),
        GPUFL_OK);
    if (more_write)
        more_write(writer);
    if (has_shutdown)
        fixture_line_all(writer, RECORD_SHUTDOWN, fixture_shutdown);
    log_writer_close(writer, 0);
    free(bytes);
    fixture_path(dir, base, FIXTURE_ID);
}

static void assert_complete(const char *dir)
{
    struct verify_report report;
    struct problem problem = {""};
    assert_int_equal(verify_session(dir, &report, &problem), GPUFL_OK);
    if (!report.is_complete)
        fail_msg("%s:%d %s", report.issues[0].file, (int)report.issues[0].line, report.issues[0].text);
    verify_report_free(&report);
}

static struct code_listings add(const char *dir, const struct code_listings_options *options, gpufl_status expected)
{
    struct code_listings result;
    struct problem problem = {""};
    gpufl_status status = code_listings_add(dir, options, &result, &problem);
    if (status != expected)
        fail_msg("status %d: %s", (int)status, problem.text);
    return result;
}

static void counted_functions_get_their_text_and_only_once(void **state)
{
    const char *base = *state;
    char dir[512];
    good_tool_install(base);
    session_write(base, dir, "vector_add.sm_90", true, NULL);
    struct code_listings result = add(dir, &usual, GPUFL_OK);
    assert_int_equal(result.added, 1);
    assert_true(result.bytes > 0);
    assert_true(fixture_exists(dir, "sass.000001.log") && fixture_exists(dir, "sass.log"));
    assert_complete(dir);
    result = add(dir, &usual, GPUFL_OK);
    assert_int_equal(result.added, 0);
    assert_int_equal(result.present, 1);
    assert_int_equal(tool_runs(base), 1);
    assert_false(fixture_exists(dir, "sass.000002.log"));

    struct session_model *model;
    struct problem problem = {""};
    struct code_lookup lookup;
    struct code_text text;
    assert_int_equal(session_load(&model, dir, &problem), GPUFL_OK);
    assert_int_equal(code_lookup_open(&lookup, model, CODE_STORED), GPUFL_OK);
    struct code_function function = code_lookup_function(&lookup, 77, "vector_add");
    code_lookup_at(&lookup, &function, 0xe0, &text);
    assert_string_equal(text.sass, "IMAD.WIDE R4, R9, 0x4, R4");
    assert_int_equal(text.line, 6);
    code_lookup_at(&lookup, &function, 0x20, &text);
    assert_true(text.is_raw);
    code_function_close(&function);
    code_lookup_close(&lookup);
    session_free(model);
}

/* The same session with AMD code besides NVIDIA's, and an AMD kernel that ran. */
static void amd_part_write(struct log_writer *writer)
{
    size_t size;
    uint8_t *bytes = fixture_object_read("kernels.gfx90a", ".co", &size);
    code_write(writer, 78, "gfx90a", bytes, size);
    free(bytes);
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_DICTIONARY_UPDATE,
                                  "{\"version\":1,\"type\":\"dictionary_update\",\"session_id\":\"" FIXTURE_ID
                                  "\",\"kernel_dict\":{\"1\":\"block_sum\"}"),
                     GPUFL_OK);
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_KERNEL_EVENT_BATCH,
                                  "{\"version\":1,\"type\":\"kernel_event_batch\",\"session_id\":\"" FIXTURE_ID
                                  "\",\"batch_id\":1,\"base_time_ns\":3000,\"columns\":[\"dt_ns\",\"kernel_id\","
                                  "\"duration_ns\"],\"rows\":[[0,1,500]]"),
                     GPUFL_OK);
}

static void each_vendors_code_has_its_own_tool_and_reason(void **state)
{
    const char *base = *state;
    char dir[512], code[700];
    good_tool_install(base);
    setenv("GPUFL_LLVM_OBJDUMP", "/nowhere", 1);
    session_write(base, dir, "vector_add.sm_90", true, amd_part_write);
    struct code_listings result = add(dir, &usual, GPUFL_OK);
    assert_int_equal(result.added, 1);
    assert_int_equal(result.without_tool, 1);
    assert_non_null(strstr(result.reason.text, "GPUFL_LLVM_OBJDUMP"));
    snprintf(code, sizeof code, "cat '%s/tests/recordings/code_objects/listing.gfx90a.txt'", SOURCE_DIR);
    tool_install_as(base, "llvm-objdump", "GPUFL_LLVM_OBJDUMP", code);
    setenv("GPUFL_NVDISASM", "/nowhere", 1);
    result = add(dir, &usual, GPUFL_OK);
    assert_int_equal(result.added, 1);
    assert_int_equal(result.present, 1);
    assert_int_equal(result.without_tool, 0);
    assert_complete(dir);
    unsetenv("GPUFL_LLVM_OBJDUMP");
}

static void code_without_lines_reports_so_even_with_text(void **state)
{
    const char *base = *state;
    char dir[512];
    good_tool_install(base);
    session_write(base, dir, "no_lines.sm_90", true, NULL);
    assert_int_equal(add(dir, &usual, GPUFL_OK).added, 1);
    struct session_model *model;
    struct problem problem = {""};
    struct code_lookup lookup;
    assert_int_equal(session_load(&model, dir, &problem), GPUFL_OK);
    assert_int_equal(code_lookup_open(&lookup, model, CODE_STORED), GPUFL_OK);
    struct code_function function = code_lookup_function(&lookup, 77, "vector_add");
    assert_non_null(function.listing);
    assert_non_null(strstr(function.problem, "-lineinfo"));
    code_function_close(&function);
    code_lookup_close(&lookup);
    session_free(model);
}

static void a_sealed_session_stays_sealed(void **state)
{
    const char *base = *state;
    char dir[512];
    struct problem problem = {""};
    good_tool_install(base);
    session_write(base, dir, "vector_add.sm_90", true, NULL);
    assert_int_equal(seal_session(dir, &problem), GPUFL_OK);
    assert_int_equal(add(dir, &usual, GPUFL_OK).added, 1);
    assert_true(fixture_exists(dir, "sass.000002.log.zst"));
    assert_false(fixture_exists(dir, "sass.log"));
    assert_complete(dir);
}

static void a_session_with_a_writer_is_rejected(void **state)
{
    const char *base = *state;
    char dir[512];
    good_tool_install(base);
    session_write(base, dir, "vector_add.sm_90", true, NULL);
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), lock_fd = session_lock_open(dir_fd);
    assert_true(lock_fd >= 0);
    assert_int_equal(add(dir, &usual, GPUFL_E_BUSY).added, 0);
    close(lock_fd);
    close(dir_fd);
    assert_int_equal(add(dir, &usual, GPUFL_OK).added, 1);
}

static void no_end_is_marked_after_added_text(void **state)
{
    const char *base = *state;
    char dir[512];
    struct problem problem = {""};
    unsigned appended = 0;
    good_tool_install(base);
    session_write(base, dir, "vector_add.sm_90", true, NULL);
    assert_int_equal(add(dir, &usual, GPUFL_OK).added, 1);
    assert_int_equal(session_append_shutdown(dir, &(struct session_end){.exit_code = -1}, &appended, &problem),
                     GPUFL_OK);
    assert_int_equal(appended, 0);
}

static void without_time_no_tool_is_run(void **state)
{
    const char *base = *state;
    char dir[512];
    good_tool_install(base);
    session_write(base, dir, "vector_add.sm_90", true, NULL);
    struct code_listings result = add(dir, &(struct code_listings_options){.time_limit_ms = 0}, GPUFL_OK);
    assert_int_equal(result.left, 1);
    assert_string_equal(result.reason.text, "the time was over");
    assert_int_equal(tool_runs(base), 0);
    assert_false(fixture_exists(dir, "sass.000001.log"));
}

static void a_tool_without_an_answer_leaves_the_session_as_it_is(void **state)
{
    const char *base = *state;
    char dir[512];
    tool_install(base, "echo 'no such architecture' >&2; exit 1");
    session_write(base, dir, "vector_add.sm_90", true, NULL);
    struct code_listings result = add(dir, &usual, GPUFL_OK);
    assert_int_equal(result.failed, 1);
    assert_non_null(strstr(result.reason.text, "no such architecture"));
    assert_false(fixture_exists(dir, "sass.000001.log"));
    assert_int_equal(setenv("GPUFL_NVDISASM", dir, 1), 0);
    add(dir, &usual, GPUFL_E_NOT_FOUND);
    assert_complete(dir);
}

/* Three more functions with samples; the second and the third are printed together. */
static void sampled_part_write(struct log_writer *writer)
{
    size_t size;
    uint8_t *bytes = fixture_cubin_read("inlined.sm_90", &size);
    code_write(writer, 79, "sm_90", bytes, size);
    free(bytes);
    assert_int_equal(fixture_line(writer, CHANNEL_SASS, RECORD_DICTIONARY_UPDATE,
                                  "{\"version\":1,\"type\":\"dictionary_update\",\"session_id\":\"" FIXTURE_ID
                                  "\",\"function_dict\":{\"2\":\"_Z7squaresPKfPf\",\"3\":\"_Z9distancesPKfS0_Pfi\","
                                  "\"4\":\"$_Z9distancesPKfS0_Pfi$_Z8slow_sumPKfi\"}"),
                     GPUFL_OK);
    assert_int_equal(
        fixture_line(writer, CHANNEL_SASS, RECORD_PROFILE_SAMPLE_BATCH,
                     "{\"version\":1,\"type\":\"profile_sample_batch\",\"session_id\":\"" FIXTURE_ID
                     "\",\"batch_id\":2,\"base_time_ns\":3000,\"columns\":[\"dt_ns\",\"sample_kind\",\"function_id\","
                     "\"pc_offset\",\"metric_value\",\"cubin_crc\"],\"rows\":[[0,0,4,0,10,79],[0,0,3,0,20,79],"
                     "[0,0,2,0,30,79]]"),
        GPUFL_OK);
}

static const char *const hottest_first[] = {"_Z7squaresPKfPf", "_Z9distancesPKfS0_Pfi",
                                            "$_Z9distancesPKfS0_Pfi$_Z8slow_sumPKfi", "vector_add"};

static void sampled_tool_install(const char *dir, const char *code)
{
    static const char listing[] = "\t.section\t.text._Z7squaresPKfPf,\"ax\",@progbits\n"
                                  "        /*0000*/      S2R R0, SR_TID.X ;\n"
                                  "\t.section\t.text._Z9distancesPKfS0_Pfi,\"ax\",@progbits\n"
                                  "        /*0000*/      LDC R1, c[0x0][0x28] ;\n"
                                  "        /*0370*/      MOV R2, R4 ;\n"
                                  "\t.section\t.text.vector_add,\"ax\",@progbits\n"
                                  "        /*0000*/      LDC R1, c[0x0][0x28] ;\n";
    char script[700];
    fixture_write(dir, "listing", listing, sizeof listing - 1);
    snprintf(script, sizeof script, "cd '%s'\n%s", dir, code);
    tool_install(dir, script);
}

static void assert_listings(const char *dir, const char *const *functions, size_t count)
{
    struct session_model *model;
    struct problem problem = {""};
    assert_int_equal(session_load(&model, dir, &problem), GPUFL_OK);
    assert_int_equal(model->deep.listing_count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(model->deep.listings[i].function, functions[i]);
    session_free(model);
    assert_complete(dir);
}

static void progress_keep(void *user, size_t done, size_t total)
{
    size_t *progress = user;
    progress[0] = done;
    progress[1] = total;
}

static void texts_are_in_the_order_of_samples_whichever_is_ready_first(void **state)
{
    const char *base = *state;
    char dir[512];
    size_t progress[2] = {0, 0};
    const struct code_listings_options two_at_once = {
        .time_limit_ms = 120000, .threads = 2, .on_progress = progress_keep, .user = progress};
    /* The hottest function is finished only after another one. */
    sampled_tool_install(base, "[ $3 = 15 ] || : > other\n"
                               "for i in $(seq 6000); do [ -e other ] && exec cat listing; sleep 0.01; done");
    session_write(base, dir, "vector_add.sm_90", true, sampled_part_write);
    assert_int_equal(add(dir, &two_at_once, GPUFL_OK).added, 4);
    assert_listings(dir, hottest_first, 4);
    assert_int_equal(tool_runs(base), 3);
    assert_int_equal(progress[0], 4);
    assert_int_equal(progress[1], 4);
}

static void a_stopped_run_leaves_a_valid_session_that_can_be_continued(void **state)
{
    const char *base = *state;
    char dir[512];
    int stop_fd = eventfd(1, EFD_CLOEXEC);
    assert_true(stop_fd >= 0);
    sampled_tool_install(base, "exec sleep 1000");
    session_write(base, dir, "vector_add.sm_90", true, sampled_part_write);
    struct code_listings result =
        add(dir, &(struct code_listings_options){.time_limit_ms = 120000, .stop_fd = &stop_fd}, GPUFL_OK);
    close(stop_fd);
    assert_int_equal(result.left, 4);
    assert_string_equal(result.reason.text, "interrupted");
    assert_false(fixture_exists(dir, "sass.000001.log"));
    assert_complete(dir);
    sampled_tool_install(base, "cat listing");
    assert_int_equal(add(dir, &usual, GPUFL_OK).added, 4);
    assert_listings(dir, hottest_first, 4);
}

static void a_session_without_code_needs_nothing(void **state)
{
    const char *base = *state;
    char dir[512];
    good_tool_install(base);
    struct log_writer *writer = fixture_open(base, 0, false);
    assert_int_equal(fixture_line(writer, CHANNEL_DEVICE, RECORD_JOB_START, fixture_job_start), GPUFL_OK);
    log_writer_close(writer, 0);
    fixture_path(dir, base, FIXTURE_ID);
    struct code_listings result = add(dir, &usual, GPUFL_OK);
    assert_int_equal(result.added + result.present + result.failed + result.left, 0);
    assert_int_equal(tool_runs(base), 0);
    add(base, &usual, GPUFL_E_NOT_FOUND);
}

static void added_lines_continue_the_numbering_of_their_channel(void **state)
{
    const char *base = *state;
    char dir[512];
    struct problem problem = {""};
    struct session_append append;
    struct bytes line = {0};
    session_write(base, dir, "vector_add.sm_90", false, NULL);
    assert_int_equal(session_append_open(&append, dir, CHANNEL_SASS, &problem), GPUFL_OK);
    uint64_t before = append.end.last_seq;
    bytes_append_text(&line, "{\"type\":\"cubin_disassembly\",\"session_id\":\"" FIXTURE_ID "\"");
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(session_append_line(&append, &line, &problem), GPUFL_OK);
        assert_int_equal(append.end.last_seq, before + i);
    }
    line.failed = true;
    assert_int_equal(session_append_line(&append, &line, &problem), GPUFL_E_LIMIT);
    assert_int_equal(session_append_close(&append, dir, &problem), GPUFL_OK);
    struct verify_report report;
    assert_int_equal(verify_session(dir, &report, &problem), GPUFL_OK);
    assert_int_equal(report.summary.rows[RECORD_CUBIN_DISASSEMBLY], 3);
    assert_int_equal(report.summary.missing_lines + report.summary.damaged_lines, 0);
    verify_report_free(&report);
    bytes_free(&line);
    assert_int_equal(session_append_open(&append, dir, CHANNEL_SASS, &problem), GPUFL_OK);
    assert_int_equal(append.end.last_seq, before + 3);
    assert_int_equal(session_append_close(&append, dir, &problem), GPUFL_OK);
}

static void a_file_size_limit_loses_the_line_but_does_not_kill_the_program(void **state)
{
    const char *base = *state;
    char dir[512];
    struct problem problem = {""};
    struct session_append append;
    struct bytes line = {0};
    session_write(base, dir, "vector_add.sm_90", true, NULL);
    assert_int_equal(session_append_open(&append, dir, CHANNEL_SASS, &problem), GPUFL_OK);
    bytes_append_text(&line, "{\"type\":\"cubin_disassembly\",\"session_id\":\"" FIXTURE_ID "\"");
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    gpufl_status status = session_append_line(&append, &line, &problem);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, GPUFL_E_IO);
    assert_non_null(strstr(problem.text, "too large"));
    assert_int_equal(session_append_line(&append, &line, &problem), GPUFL_OK);
    assert_int_equal(session_append_close(&append, dir, &problem), GPUFL_OK);
    bytes_free(&line);
    assert_complete(dir);
}

static int teardown(void **state)
{
    unsetenv("GPUFL_NVDISASM");
    unsetenv("XDG_CACHE_HOME");
    return fixture_teardown(state);
}

#define LISTING_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LISTING_TEST(counted_functions_get_their_text_and_only_once),
        LISTING_TEST(each_vendors_code_has_its_own_tool_and_reason),
        LISTING_TEST(code_without_lines_reports_so_even_with_text),
        LISTING_TEST(a_sealed_session_stays_sealed),
        LISTING_TEST(a_session_with_a_writer_is_rejected),
        LISTING_TEST(no_end_is_marked_after_added_text),
        LISTING_TEST(without_time_no_tool_is_run),
        LISTING_TEST(a_tool_without_an_answer_leaves_the_session_as_it_is),
        LISTING_TEST(texts_are_in_the_order_of_samples_whichever_is_ready_first),
        LISTING_TEST(a_stopped_run_leaves_a_valid_session_that_can_be_continued),
        LISTING_TEST(a_session_without_code_needs_nothing),
        LISTING_TEST(added_lines_continue_the_numbering_of_their_channel),
        LISTING_TEST(a_file_size_limit_loses_the_line_but_does_not_kill_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
