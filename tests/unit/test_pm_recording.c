/* SPDX-License-Identifier: Apache-2.0 */
/* Counters recorded by PM sampling: those of a GPU with the real profiler host, those of the look-alike with its
 * own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fakes/fake_client.h"
#include "driver/metric_sets.h"
#include "driver/profiler_target.h"
#include "recording.h"
#include "requirement.h"
#include "sanitizer.h"

#include <math.h>

#define CUPTI_NOW "libcupti.so.13"
#define RECORDING SOURCE_DIR "/tests/recordings/h200_pm.pmrec"
enum { CHILD_MISSES = 77 };

static const char *recording_path = RECORDING; /* tests/recordings/README.md describes the format */

static void recording_read(struct recording *recording)
{
    FILE *file = fopen(recording_path, "rb");
    CHECK(file && fseek(file, 0, SEEK_END) == 0);
    recording->size = (size_t)ftell(file);
    rewind(file);
    recording->data = malloc(recording->size);
    CHECK(recording->data && fread(recording->data, 1, recording->size, file) == recording->size);
    fclose(file);
}

static void recording_evaluate(struct profiler_host *host, struct recording *recording, const char **metrics,
                               uint32_t metric_count, uint32_t sample_count)
{
    const uint8_t *samples = recording_take(recording, (size_t)sample_count * (2 + metric_count) * 8);
    size_t image_bytes = recording->size - recording->at;
    /* The host requires memory from malloc. */
    uint8_t *image = malloc(image_bytes);
    CHECK(image);
    memcpy(image, recording_take(recording, image_bytes), image_bytes);
    size_t values_seen = 0;
    int64_t last_end_ns = 0;
    for (uint32_t i = 0; i < sample_count; i++, samples += (2 + metric_count) * 8) {
        int64_t times[2];
        double expected[METRICS_MAX], values[METRICS_MAX];
        memcpy(times, samples, sizeof times);
        memcpy(expected, samples + sizeof times, metric_count * sizeof *expected);
        struct problem problem = {""};
        if (profiler_host_evaluate(host, image, image_bytes, i, metrics, metric_count, values, &problem) != GPUFL_OK)
            fprintf(stderr, "sample %u: %s\n", i, problem.text);
        CHECK(problem.text[0] == '\0');
        for (uint32_t m = 0; m < metric_count; m++) {
            CHECK(isnan(expected[m]) ? isnan(values[m]) : fabs(values[m] - expected[m]) <= 1e-9 * fabs(expected[m]));
            values_seen += values[m] > 0;
        }
        CHECK(times[1] > times[0] && (i == 0 || times[0] >= last_end_ns));
        last_end_ns = times[1];
    }
    CHECK(values_seen > 0);
    free(image);
}

static void recording_body(void)
{
    struct cupti *library;
    struct profiler_host *host;
    struct recording recording = {0};
    recording_read(&recording);
    CHECK(!memcmp(recording_take(&recording, 8), "PMREC\0\0\0", 8) && recording_u32(&recording) == 1);
    (void)recording_u32(&recording); /* CUPTI's version */
    const char *chip = recording_take(&recording, PROFILER_CHIP_NAME_BYTES);
    CHECK(memchr(chip, '\0', PROFILER_CHIP_NAME_BYTES));
    uint32_t metric_count = recording_u32(&recording), sample_count = recording_u32(&recording);
    CHECK(metric_count > 0 && metric_count <= METRICS_MAX && sample_count > 1);
    static char names[METRICS_MAX][METRIC_NAME_BYTES];
    const char *metrics[METRICS_MAX];
    for (uint32_t i = 0; i < metric_count; i++) {
        const char *name = recording_take(&recording, METRIC_NAME_BYTES);
        memcpy(names[i], name, METRIC_NAME_BYTES - 1);
        metrics[i] = names[i];
    }
    if (cupti_load(&library, NULL) != GPUFL_OK ||
        profiler_host_open(&host, library, chip, PROFILER_PM_SAMPLING, NULL, 0, NULL) != GPUFL_OK)
        _exit(CHILD_MISSES);
    recording_evaluate(host, &recording, metrics, metric_count, sample_count);
    profiler_host_close(host);
    free(recording.data);
    _exit(0);
}

/* The recorder with the look-alike's libraries. */
static int recorder_run(const char *path, const char *faults)
{
    static const char *const variables[] = {"LD_LIBRARY_PATH", "GPUFL_CUDA_PATH", "GPUFL_CUPTI_PATH",
                                            "GPUFL_NVML_PATH"};
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
            setenv(variables[i], FAKES_DIR, 1);
        setenv("FAKE_FAULTS", faults, 1);
        alarm(600);
        execl(BUILD_DIR "/tests/record_pm_sampling", "record_pm_sampling", path, (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void what_the_recorder_writes_gives_its_values_again(void **state)
{
    (void)state;
    static const char *const faults[] = {"", "pm_full_at=2"};
    char path[] = "/tmp/gpufl-pmrec-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    recording_path = path;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(recorder_run(path, faults[i]), 0);
        in_child(CUPTI_NOW, "", recording_body);
    }
    assert_int_equal(recorder_run(path, "fail=cuptiPmSamplingDecodeData@*:8"), 1);
    recording_path = RECORDING;
    unlink(path);
}

static void recorded_counters_give_the_values_they_gave_on_the_gpu(void **state)
{
    (void)state;
    if (IS_SANITIZED)
        skip();
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        recording_body();
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) != CHILD_MISSES, "CUPTI's profiler host");
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_the_recorder_writes_gives_its_values_again),
                                       cmocka_unit_test(recorded_counters_give_the_values_they_gave_on_the_gpu)};
    environment_clear();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
