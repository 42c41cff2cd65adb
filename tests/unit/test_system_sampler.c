/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "requirement.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/system_sampler.h"
#include "format/batch.h"
#include "format/json.h"

static const char session_id[] = "11111111-2222-4333-8444-555555555555";
enum { HOUR_MS = 3600 * 1000, NAMES_MAX = 16 };

struct bench {
    char base[64];
    struct log_writer *writer;
    struct system_sampler *sampler;
};

/* The content of the system channel. */
struct content {
    unsigned host_rows, device_rows, process_rows, losses, gpu_losses;
    unsigned mark_count;
    char marks[NAMES_MAX][300]; /* "start NAME" */
    int64_t mark_times[NAMES_MAX];
    bool has_host_values, has_hostname;
    char loss_reason[64];
    unsigned device_ids; /* bit mask */
};

static void bench_open(struct bench *bench, unsigned interval_ms, bool is_continuous, bool use_nvidia)
{
    snprintf(bench->base, sizeof bench->base, "/tmp/gpufl-sampler-XXXXXX");
    assert_non_null(mkdtemp(bench->base));
    struct log_writer_options writer_options = {.base_dir = bench->base, .session_id = session_id};
    assert_int_equal(log_writer_open(&bench->writer, &writer_options, NULL), GPUFL_OK);
    struct system_sampler_options options = {.writer = bench->writer,
                                             .session_id = session_id,
                                             .app_name = "sampler \"test\"",
                                             .interval_ms = interval_ms,
                                             .is_continuous = is_continuous,
                                             .use_nvidia = use_nvidia};
    struct problem problem;
    assert_int_equal(system_sampler_start(&bench->sampler, &options, &problem), GPUFL_OK);
    if (!use_nvidia)
        assert_string_equal(problem.text, "");
}

static void bench_run(struct bench *bench)
{
    assert_int_equal(system_sampler_run(bench->sampler), GPUFL_OK);
}

static void bench_stop(struct bench *bench)
{
    system_sampler_stop(bench->sampler);
    log_writer_close(bench->writer, 1000);
}

static void bench_remove(struct bench *bench)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", bench->base, session_id);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(path);
    rmdir(bench->base);
}

static void batch_note(struct content *content, const char *line, size_t size, unsigned *rows)
{
    struct batch_view view = {0};
    assert_int_equal(batch_decode(&view, line, size, NULL), GPUFL_OK);
    *rows += view.row_count;
    if (rows == &content->device_rows)
        for (uint32_t i = 0; i < view.row_count; i++)
            content->device_ids |= 1u << view.columns[DEVICE_METRIC_DEVICE_ID].cells[i];
    if (rows == &content->host_rows)
        content->has_host_values = view.columns[HOST_METRIC_RAM_TOTAL_MIB].cells[0] > 0 &&
                                   view.columns[HOST_METRIC_PROCESS_RSS_MIB].cells[0] >= 0;
    batch_view_free(&view);
}

static void line_note(struct content *content, const char *line, size_t size)
{
    struct json_document document;
    assert_int_equal(json_parse(&document, line, size, NULL), GPUFL_OK);
    const struct json_value *root = document.root;
    const char *type = json_get_text(root, "type", "");
    assert_string_equal(json_get_text(root, "session_id", ""), session_id);
    if (!strcmp(type, "host_metric_batch")) {
        content->has_hostname = json_member(root, "hostname") && json_member(root, "ip_addr");
        batch_note(content, line, size, &content->host_rows);
    } else if (!strcmp(type, "device_metric_batch")) {
        batch_note(content, line, size, &content->device_rows);
    } else if (!strcmp(type, "process_metric_batch")) {
        batch_note(content, line, size, &content->process_rows);
    } else if (!strcmp(type, "loss")) {
        content->losses++;
        content->gpu_losses += !strcmp(json_get_text(root, "reason", ""), "gpu_lost");
        snprintf(content->loss_reason, sizeof content->loss_reason, "%s", json_get_text(root, "reason", ""));
    } else if (!strncmp(type, "system_", 7)) {
        assert_string_equal(json_get_text(root, "app", ""), "sampler \"test\"");
        assert_int_equal(json_get_int(root, "pid", 0) > 0, 1);
        assert_int_equal(json_member(root, "host")->kind, JSON_OBJECT);
        assert_int_equal(json_member(root, "devices")->kind, JSON_ARRAY);
        if (content->mark_count < NAMES_MAX) {
            content->mark_times[content->mark_count] = json_get_int(root, "ts_ns", 0);
            snprintf(content->marks[content->mark_count++], sizeof content->marks[0], "%s %s", type + 7,
                     json_get_text(root, "name", ""));
        }
    } else {
        fail_msg("unexpected record %s", type);
    }
    json_free(&document);
}

static struct content content_read(const struct bench *bench)
{
    struct content content = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/%s/system.log", bench->base, session_id);
    FILE *file = fopen(path, "r");
    if (!file)
        return content;
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t size; (size = getline(&line, &capacity, file)) > 0;)
        if (line[size - 1] == '\n')
            line_note(&content, line, (size_t)size - 1);
    free(line);
    fclose(file);
    return content;
}

/* Waits for rows that must arrive; the limit only ends a broken run. */
static void wait_for_host_rows(const struct bench *bench, unsigned rows)
{
    struct timespec pause = {0, 2000000};
    for (int i = 0; i < 300000; i++) {
        if (content_read(bench).host_rows >= rows)
            return;
        nanosleep(&pause, NULL);
    }
    fail_msg("no %u rows in ten minutes", rows);
}

static void rate_zero_marks_windows_and_samples_nothing(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, 0, true, false);
    bench_run(&bench);
    system_sampler_hold(bench.sampler);
    system_sampler_window(bench.sampler, "phase", true);
    system_sampler_window(bench.sampler, "phase", false);
    system_sampler_release(bench.sampler);
    bench_stop(&bench);
    struct content content = content_read(&bench);
    assert_int_equal(content.host_rows, 0);
    assert_int_equal(content.mark_count, 2);
    assert_string_equal(content.marks[0], "start phase");
    assert_string_equal(content.marks[1], "stop phase");
    bench_remove(&bench);
}

static void continuous_sampling_has_a_first_and_a_last_sample(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, HOUR_MS, true, false);
    bench_run(&bench);
    bench_stop(&bench);
    struct content content = content_read(&bench);
    assert_int_equal(content.host_rows, 2);
    assert_true(content.has_host_values);
    assert_true(content.has_hostname);
    assert_int_equal(content.losses, 0);
    bench_remove(&bench);
}

static void continuous_sampling_takes_a_sample_every_interval(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, 1, true, false);
    bench_run(&bench);
    wait_for_host_rows(&bench, 5);
    assert_true(system_sampler_cpu_ns(bench.sampler) > 0);
    bench_stop(&bench);
    bench_remove(&bench);
}

static void outside_of_windows_and_scopes_nothing_is_sampled(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, 1, false, false);
    bench_run(&bench);
    bench_stop(&bench);
    assert_int_equal(content_read(&bench).host_rows, 0);
    bench_remove(&bench);
}

static void a_window_is_marked_and_has_two_samples(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, HOUR_MS, false, false);
    bench_run(&bench);
    system_sampler_window(bench.sampler, "a|b \xc3\xa4", true);
    system_sampler_window(bench.sampler, "a|b \xc3\xa4", false);
    bench_stop(&bench);
    struct content content = content_read(&bench);
    assert_int_equal(content.host_rows, 2);
    assert_int_equal(content.mark_count, 2);
    assert_string_equal(content.marks[0], "start a|b \xc3\xa4");
    assert_string_equal(content.marks[1], "stop a|b \xc3\xa4");
    assert_true(content.mark_times[0] <= content.mark_times[1]);
    bench_remove(&bench);
}

static void windows_nest_and_a_stray_stop_is_ignored(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, HOUR_MS, false, false);
    bench_run(&bench);
    system_sampler_window(bench.sampler, "stray", false);
    system_sampler_window(bench.sampler, "outer", true);
    system_sampler_window(bench.sampler, "inner", true);
    system_sampler_window(bench.sampler, "inner", false);
    system_sampler_window(bench.sampler, "outer", false);
    system_sampler_window(bench.sampler, "stray", false);
    bench_stop(&bench);
    struct content content = content_read(&bench);
    assert_int_equal(content.mark_count, 4);
    assert_string_equal(content.marks[0], "start outer");
    assert_string_equal(content.marks[3], "stop outer");
    assert_int_equal(content.host_rows, 4);
    bench_remove(&bench);
}

static void an_open_window_ends_with_a_last_sample(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, HOUR_MS, false, false);
    bench_run(&bench);
    system_sampler_window(bench.sampler, "open", true);
    bench_stop(&bench);
    struct content content = content_read(&bench);
    assert_int_equal(content.mark_count, 1);
    assert_int_equal(content.host_rows, 2);
    bench_remove(&bench);
}

static void a_scope_that_was_over_at_once_is_not_missed(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, HOUR_MS, false, false);
    system_sampler_hold(bench.sampler);
    system_sampler_release(bench.sampler);
    bench_run(&bench);
    bench_stop(&bench);
    assert_int_equal(content_read(&bench).host_rows, 1);
    bench_remove(&bench);
}

static void a_scope_wakes_the_idle_sampler_and_nothing_is_sampled_after_it(void **state)
{
    (void)state;
    enum { interval_ms = 300 };
    struct bench bench;
    bench_open(&bench, interval_ms, false, false);
    bench_run(&bench);
    int64_t begun_ns = clock_mono_ns();
    system_sampler_hold(bench.sampler);
    wait_for_host_rows(&bench, 1);
    system_sampler_release(bench.sampler);
    bool is_within = clock_mono_ns() - begun_ns < interval_ms * INT64_C(1000000);
    nanosleep(&(struct timespec){0, 2 * interval_ms * 1000000}, NULL);
    unsigned rows = content_read(&bench).host_rows;
    bench_stop(&bench);
    if (is_within) /* otherwise the scope lasted until the next sample was due */
        assert_int_equal(rows, 1);
    assert_int_equal(content_read(&bench).host_rows, rows);
    bench_remove(&bench);
}

static void a_stray_release_does_not_keep_the_sampler_busy(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, HOUR_MS, false, false);
    system_sampler_release(bench.sampler);
    bench_run(&bench);
    bench_stop(&bench);
    assert_int_equal(content_read(&bench).host_rows, 0);
    bench_remove(&bench);
}

static void more_windows_than_fit_are_counted_as_lost(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, 0, false, false);
    for (int i = 0; i < 65; i++)
        system_sampler_window(bench.sampler, "burst", true);
    bench_run(&bench);
    bench_stop(&bench);
    struct content content = content_read(&bench);
    assert_int_equal(content.losses, 1);
    assert_string_equal(content.loss_reason, "window_queue_full");
    bench_remove(&bench);
}

static void a_long_name_is_cut_at_a_whole_character(void **state)
{
    (void)state;
    char name[400];
    memset(name, 'x', sizeof name);
    memcpy(name + 254, "\xc3\xa4", 2); /* its second byte does not fit */
    name[399] = '\0';
    struct bench bench;
    bench_open(&bench, 0, false, false);
    bench_run(&bench);
    system_sampler_window(bench.sampler, name, true);
    system_sampler_window(bench.sampler, NULL, true);
    bench_stop(&bench);
    struct content content = content_read(&bench);
    assert_int_equal(strlen(content.marks[0]), strlen("start ") + 254);
    assert_string_equal(content.marks[1], "start ");
    bench_remove(&bench);
}

static void stopping_what_never_ran_writes_nothing(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, 1, true, false);
    bench_stop(&bench);
    assert_int_equal(content_read(&bench).host_rows, 0);
    bench_remove(&bench);
    system_sampler_stop(NULL);
}

static void the_description_has_the_members_of_job_start(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, 0, false, false);
    struct bytes out = {0};
    bytes_append_text(&out, "{\"type\":\"job_start\"");
    system_sampler_describe(bench.sampler, &out);
    bytes_append_char(&out, '}');
    struct json_document document;
    assert_int_equal(json_parse(&document, out.data, out.size, NULL), GPUFL_OK);
    const struct json_value *host = json_member(document.root, "host");
    assert_int_equal(json_member(host, "cpu_pct")->kind, JSON_NULL); /* there is nothing yet to compare with */
    assert_true(json_get_int(host, "ram_total_mib", 0) > 0);
    static const char *const arrays[] = {"devices", "gpu_static_devices", "cuda_static_devices", "rocm_static_devices"};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        assert_int_equal(json_member(document.root, arrays[i])->kind, JSON_ARRAY);
    json_free(&document);
    bytes_free(&out);
    assert_string_equal(system_sampler_driver_version(bench.sampler), "");
    bench_stop(&bench);
    bench_remove(&bench);
}

static void *holder_main(void *argument)
{
    struct system_sampler *sampler = argument;
    for (int i = 0; i < 2000; i++) {
        system_sampler_hold(sampler);
        if (i % 500 == 0)
            system_sampler_window(sampler, "thread", i % 1000 == 0);
        system_sampler_release(sampler);
    }
    return NULL;
}

static void many_threads_may_hold_and_mark(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, 1, false, false);
    bench_run(&bench);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, holder_main, bench.sampler), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    bench_stop(&bench);
    assert_true(content_read(&bench).host_rows >= 2);
    bench_remove(&bench);
}

/* In a separate process, because a loaded vendor library is never unloaded. */
static struct content run_on_fake_nvml(const char *faults, unsigned interval_ms, unsigned host_rows)
{
    struct bench bench;
    snprintf(bench.base, sizeof bench.base, "/tmp/gpufl-sampler-XXXXXX");
    int channel[2];
    assert_int_equal(pipe(channel), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        setenv("GPUFL_NVML_PATH", FAKES_DIR "/libnvidia-ml.so.1", 1);
        setenv("FAKE_FAULTS", faults, 1);
        bench_open(&bench, interval_ms, true, true);
        bench_run(&bench);
        wait_for_host_rows(&bench, host_rows);
        bench_stop(&bench);
        _exit(write(channel[1], bench.base, sizeof bench.base) != sizeof bench.base);
    }
    close(channel[1]);
    bool has_base = read(channel[0], bench.base, sizeof bench.base) == sizeof bench.base;
    close(channel[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(has_base);
    assert_int_equal(status, 0);
    struct content content = content_read(&bench);
    bench_remove(&bench);
    return content;
}

static void every_gpu_has_rows(void **state)
{
    (void)state;
    REQUIRE(access(FAKES_DIR "/libnvidia-ml.so.1", R_OK) == 0, "the look-alike NVML");
    struct content content = run_on_fake_nvml("", HOUR_MS, 1);
    assert_true(content.device_rows >= 2);
    assert_true(content.device_ids & 1);
    assert_int_equal(content.losses, 0);
}

static void a_lost_gpu_is_reported_once_and_not_sampled_again(void **state)
{
    (void)state;
    REQUIRE(access(FAKES_DIR "/libnvidia-ml.so.1", R_OK) == 0, "the look-alike NVML");
    struct content content = run_on_fake_nvml("lost_gpu_after_ms=0", 1, 20);
    assert_true(content.host_rows >= 20);
    assert_in_range(content.gpu_losses, 1, 8); /* one for each GPU, whatever the number of samples */
    assert_int_equal(content.device_rows, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate_zero_marks_windows_and_samples_nothing),
        cmocka_unit_test(continuous_sampling_has_a_first_and_a_last_sample),
        cmocka_unit_test(continuous_sampling_takes_a_sample_every_interval),
        cmocka_unit_test(outside_of_windows_and_scopes_nothing_is_sampled),
        cmocka_unit_test(a_window_is_marked_and_has_two_samples),
        cmocka_unit_test(windows_nest_and_a_stray_stop_is_ignored),
        cmocka_unit_test(an_open_window_ends_with_a_last_sample),
        cmocka_unit_test(a_scope_that_was_over_at_once_is_not_missed),
        cmocka_unit_test(a_scope_wakes_the_idle_sampler_and_nothing_is_sampled_after_it),
        cmocka_unit_test(a_stray_release_does_not_keep_the_sampler_busy),
        cmocka_unit_test(more_windows_than_fit_are_counted_as_lost),
        cmocka_unit_test(a_long_name_is_cut_at_a_whole_character),
        cmocka_unit_test(stopping_what_never_ran_writes_nothing),
        cmocka_unit_test(the_description_has_the_members_of_job_start),
        cmocka_unit_test(many_threads_may_hold_and_mark),
        cmocka_unit_test(every_gpu_has_rows),
        cmocka_unit_test(a_lost_gpu_is_reported_once_and_not_sampled_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
