/* SPDX-License-Identifier: Apache-2.0 */
/* What the counter APIs share on the target side, with the look-alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fakes/fake_client.h"
#include "driver/cupti_table.h"
#include "driver/profiler_host_abi.h"
#include "driver/profiler_target.h"

#define CUPTI_NOW "libcupti.so.13"

static struct cupti *cupti_of_child(void)
{
    CHECK(cu.init(0) == FAKE_SUCCESS);
    struct cupti *loaded = NULL;
    CHECK(cupti_load(&loaded, NULL) == GPUFL_OK);
    return loaded;
}

static void share_body(void)
{
    struct cupti *loaded = cupti_of_child();
    struct problem problem = {""};
    uint8_t *image = NULL;
    size_t bytes = 0;
    CHECK(profiler_target_check(loaded, 0, PROFILER_API_PC_SAMPLING, &problem) != GPUFL_OK); /* not acquired */
    CHECK(profiler_target_acquire(loaded, &problem) == GPUFL_OK);
    CHECK(profiler_target_acquire(loaded, &problem) == GPUFL_OK);
    profiler_target_release(loaded);
    CHECK(profiler_target_check(loaded, 0, PROFILER_API_PC_SAMPLING, &problem) == GPUFL_OK); /* still one user */
    CHECK(profiler_target_availability(loaded, NULL, &image, &bytes, &problem) == GPUFL_OK);
    CHECK(image && bytes == 64);
    free(image);
    profiler_target_release(loaded);
    CHECK(profiler_target_check(loaded, 0, PROFILER_API_PC_SAMPLING, &problem) != GPUFL_OK);
    profiler_target_release(loaded); /* a surplus release is harmless */
    CHECK(profiler_target_acquire(loaded, &problem) == GPUFL_OK);
    profiler_target_release(loaded);
    CHECK(!cupti_first_failure(loaded)[0] || strstr(cupti_first_failure(loaded), "cuptiProfilerDeviceSupported"));
    char chip[PROFILER_CHIP_NAME_BYTES];
    CHECK(profiler_target_chip(loaded, 0, chip, &problem) == GPUFL_OK && !strcmp(chip, "GH100"));
    CHECK(profiler_target_chip(loaded, 1, chip, &problem) == GPUFL_E_INVALID && strstr(problem.text, "no GPU 1"));
}

static void the_profiler_is_initialized_once_for_all_its_users(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "", share_body);
}

static const char *expected_part;

static void unsupported_body(void)
{
    struct cupti *loaded = cupti_of_child();
    struct problem problem = {""};
    CHECK(profiler_target_acquire(loaded, &problem) == GPUFL_OK);
    CHECK(profiler_target_check(loaded, 0, PROFILER_API_RANGE, &problem) == GPUFL_E_UNSUPPORTED);
    CHECK(strstr(problem.text, "GPU 0 has no range profiling") && strstr(problem.text, expected_part));
}

static void each_reason_of_an_unsupported_device_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *fault, *part;
    } cases[] = {{"unsupported=architecture", "architecture"},
                 {"unsupported=sli", "SLI"},
                 {"unsupported=vgpu", "enable_profiling=1"},
                 {"unsupported=confidential_compute", "confidential computing"},
                 {"unsupported=cmp", "CMP"},
                 {"unsupported=wsl", "WSL"},
                 {"unsupported=moon", "reports no reason"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expected_part = cases[i].part;
        in_child(CUPTI_NOW, cases[i].fault, unsupported_body);
    }
}

static void wording_body(void)
{
    static const struct {
        int result;
        gpufl_status status;
        const char *parts[3];
    } cases[] = {
        {35, GPUFL_E_PERMISSION, {"RmProfilingAdminOnly", "CAP_PERFMON", "NVreg_RestrictProfilingToAdminUsers=0"}},
        {26, GPUFL_E_BUSY, {"DCGM", "ncu", "nsys"}},
        {33, GPUFL_E_UNSUPPORTED, {"vGPU", "enable_profiling=1"}},
        {40, GPUFL_E_PERMISSION, {"vGPU", "enable_profiling=1"}},
        {41, GPUFL_E_UNSUPPORTED, {"confidential computing"}},
        {42, GPUFL_E_UNSUPPORTED, {"CMP"}},
        {43, GPUFL_E_UNSUPPORTED, {"MIG"}},
        {44, GPUFL_E_UNSUPPORTED, {"SLI"}},
        {45, GPUFL_E_UNSUPPORTED, {"WSL"}},
        {36, GPUFL_E_BUSY, {"another profiler"}},
        {39, GPUFL_E_BUSY, {"another profiler"}},
        {999, GPUFL_E_UNSUPPORTED, {"cuptiThing failed", "CUPTI_ERROR_UNKNOWN"}},
    };
    struct cupti *loaded = cupti_of_child();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct problem problem = {""};
        char number[16];
        snprintf(number, sizeof number, "%d)", cases[i].result);
        CHECK(profiler_problem(loaded, "cuptiThing", cases[i].result, &problem) == cases[i].status);
        CHECK(strstr(problem.text, "cuptiThing") && strstr(problem.text, number));
        for (size_t part = 0; part < 3 && cases[i].parts[part]; part++)
            CHECK(strstr(problem.text, cases[i].parts[part]) != NULL);
        CHECK(strlen(problem.text) < sizeof problem.text - 1);
    }
}

static void each_refusal_says_what_to_do(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "", wording_body);
}

static void failing_body(void)
{
    struct cupti *loaded = cupti_of_child();
    struct problem problem = {""};
    uint8_t *image = NULL;
    size_t bytes;
    char chip[PROFILER_CHIP_NAME_BYTES];
    int failures = 0;
    failures += profiler_target_chip(loaded, 0, chip, &problem) != GPUFL_OK;
    if (profiler_target_acquire(loaded, &problem) == GPUFL_OK) {
        failures += profiler_target_check(loaded, 0, PROFILER_API_SASS_METRICS, &problem) != GPUFL_OK;
        failures += profiler_target_availability(loaded, NULL, &image, &bytes, &problem) != GPUFL_OK;
        profiler_target_release(loaded);
    } else {
        failures++;
    }
    free(image);
    CHECK(failures == (strstr(getenv("FAKE_FAULTS"), "DeInitialize") ? 0 : 1));
    CHECK(cupti_first_failure(loaded)[0]);
    CHECK(profiler_target_acquire(loaded, &problem) == GPUFL_OK); /* the next attempt works */
    profiler_target_release(loaded);
}

static void each_call_may_fail_and_is_remembered(void **state)
{
    (void)state;
    static const char *const faults[] = {
#define FAULT(member, symbol, parameter) "fail=" #symbol "@1:26",
        PROFILER_TARGET_ABI_FUNCTIONS(FAULT)
#undef FAULT
            "fail=cuptiProfilerGetCounterAvailability@2:26"};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        in_child(CUPTI_NOW, faults[i], failing_body);
}

static void no_driver_body(void)
{
    struct cupti *loaded = NULL;
    struct problem problem = {""};
    char chip[PROFILER_CHIP_NAME_BYTES];
    CHECK(cupti_load(&loaded, NULL) == GPUFL_OK);
    CHECK(profiler_target_acquire(loaded, &problem) == GPUFL_E_NO_DRIVER);
    CHECK(profiler_target_chip(loaded, 0, chip, &problem) == GPUFL_E_NO_DRIVER);
}

static void without_a_driver_nothing_is_asked_of_it(void **state)
{
    (void)state;
    in_child(CUPTI_NOW, "no_device=1", no_driver_body);
}

int main(void)
{
    environment_clear();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_profiler_is_initialized_once_for_all_its_users),
        cmocka_unit_test(each_reason_of_an_unsupported_device_is_named),
        cmocka_unit_test(each_refusal_says_what_to_do),
        cmocka_unit_test(each_call_may_fail_and_is_remembered),
        cmocka_unit_test(without_a_driver_nothing_is_asked_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
