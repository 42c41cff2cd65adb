/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the look-alike driver, NVML and fake_app that other tests rely on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fakes/fake_client.h"

#include <time.h>

static void no_device_body(void)
{
    CHECK(cu.init(0) == FAKE_NO_DEVICE && nvml.init() == NVML_ABI_DRIVER_NOT_LOADED);
    CHECK(cupti.enable(10) == CUPTI_ABI_UNKNOWN);
}

static void lost_body(void)
{
    unsigned watts;
    void *device;
    CHECK(cu.init(0) == FAKE_SUCCESS && launch(SHORT_KERNEL, NULL) == FAKE_UNKNOWN);
    CHECK(nvml.init() == 0 && nvml.device_handle(0, &device) == 0);
    CHECK(nvml.power(device, &watts) == NVML_ABI_GPU_IS_LOST);
}

static void forked_body(void)
{
    CHECK(cu.init(0) == FAKE_SUCCESS);
    trace_start();
    launches(1);
    pid_t child = fork();
    if (child == 0)
        _exit(launch(SHORT_KERNEL, NULL) == FAKE_NOT_INITIALIZED && cupti.flush_all(1) == CUPTI_ABI_NOT_INITIALIZED
                  ? 0
                  : 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void a_missing_a_lost_and_an_inherited_gpu_cannot_be_used(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "no_device=1", no_device_body);
    in_child("libcupti.so.13", "lost_gpu_after_ms=0", lost_body);
    in_child("libcupti.so.13", "", forked_body);
}

static void management_body(void)
{
    void *device, *older, *newer;
    char text[96];
    int value;
    unsigned count = 0;
    struct nvml_abi_memory memory;
    struct nvml_abi_process processes[8];
    struct nvml_abi_field fields[2] = {{.field_id = NVML_ABI_FIELD_MEMORY_TEMP}, {.field_id = 9999}};
    static struct nvml_abi_gpm_metrics metrics;
    setenv("FAKE_GPU_COUNT", "2", 1);
    CHECK(nvml.device_count(&count) == NVML_ABI_UNINITIALIZED);
    CHECK(nvml.init() == 0 && nvml.device_count(&count) == 0 && count == 2);
    CHECK(nvml.device_handle(2, &device) == NVML_ABI_INVALID_ARGUMENT && nvml.device_handle(1, &device) == 0);
    CHECK(nvml.name(device, text, sizeof text) == 0 && strcmp(text, "NVIDIA H200") == 0);
    CHECK(nvml.driver_version(text, sizeof text) == 0 && strcmp(text, "580.159.04") == 0);
    CHECK(nvml.uuid(device, text, sizeof text) == 0 && strncmp(text, "GPU-97a2cf6e-", 13) == 0 && strlen(text) == 40);
    CHECK(nvml.memory(device, &memory) == 0 && memory.total == 143771ull << 20 && memory.used < memory.total);
    count = 8;
    CHECK(nvml.processes(device, &count, processes) == 0 && count == 2 && processes[0].pid == (unsigned)getpid());
    CHECK(nvml.fields(device, 2, fields) == 0 && fields[0].result == 0 && fields[1].result == NVML_ABI_NOT_SUPPORTED);
    CHECK(nvml.gpm_sample_alloc(&older) == 0 && nvml.gpm_sample_alloc(&newer) == 0);
    CHECK(nvml.gpm_sample_get(device, older) == 0);
    nanosleep(&(struct timespec){0, 1000000}, NULL);
    CHECK(nvml.gpm_sample_get(device, newer) == 0);
    metrics.version = metrics.metric_count = 1;
    metrics.older = older;
    metrics.newer = newer;
    metrics.metrics[0].metric_id = NVML_ABI_GPM_SM_UTIL;
    CHECK(nvml.gpm_metrics_get(&metrics) == 0 && metrics.metrics[0].value > 0 && metrics.metrics[0].value <= 100);
    CHECK(nvml.gpm_sample_free(older) == 0 && nvml.gpm_sample_free(newer) == 0);
    CHECK(cu.device_count(&value) == FAKE_NOT_INITIALIZED && cu.init(0) == 0 && cu.device_count(&value) == 0 &&
          value == 2);
    CHECK(cu.device_attribute(&value, CUDA_ABI_MULTIPROCESSORS, 1) == 0 && value == 132);
}

static void management_answers_like_two_h200(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", management_body);
}

static void injected_program_counts_what_it_launched(void **state)
{
    (void)state;
    char directory[] = "/tmp/gpufl-fakes-XXXXXX", out[64], line[512], command[2048];
    assert_non_null(mkdtemp(directory));
    snprintf(out, sizeof out, "%s/probe", directory);
    snprintf(command, sizeof command,
             "CUDA_INJECTION64_PATH=%s/libprobe_inject.so NVTX_INJECTION64_PATH=%s/libprobe_inject.so "
             "FAKE_PROBE_CUPTI=%s/libcupti.so.13 FAKE_PROBE_OUT=%s %s/fake_app --threads 4 --streams 4 --launches 500 "
             "--scopes --nvtx --copies --graphs --sync-every 100 --fork --exit 7",
             FAKES_DIR, FAKES_DIR, FAKES_DIR, out, FAKES_DIR);
    FILE *program = popen(command, "r");
    assert_non_null(program);
    assert_non_null(fgets(line, sizeof line, program));
    /* Per thread: 500 launches, 5 graphs of 3; 10 times 3 copies and a memset; 5 waits and one at the end. */
    assert_string_equal(line, "kernels=2060 copies=120 memsets=40 syncs=24 graph_launches=20 errors=0\n");
    int status = pclose(program);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    FILE *file = fopen(out, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_non_null(strstr(line, "injections=1 kernels=2060 copies=120 memsets=40 syncs=24 "));
    assert_non_null(strstr(line, " dropped=0 pushes=284 pops=284\n"));
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
    unlink(out);
    rmdir(directory);
}

int main(void)
{
    environment_clear();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_a_lost_and_an_inherited_gpu_cannot_be_used),
        cmocka_unit_test(management_answers_like_two_h200),
        cmocka_unit_test(injected_program_counts_what_it_launched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
