/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of a session: numbered as in NVML in job_start and in samples, as in CUDA in everything that ran. */
#include "golden_session.h"

#include <dirent.h>
#include <unistd.h>

#define TIME0 "1000000000000"
#define JOB(devices)                                                                                        \
    "{\"version\":1,\"type\":\"job_start\",\"session_id\":\"s\",\"pid\":7,\"app\":\"app\",\"ts_ns\":" TIME0 \
    ",\"devices\":[" devices "]}\n"
#define GPU(number, uuid_) "{\"id\":" #number ",\"name\":\"" uuid_ " by NVML\",\"uuid\":\"" uuid_ "\",\"vendor\":\"V\"}"
#define LIMITS(number, uuid_)                                                                                    \
    "{\"version\":1,\"type\":\"device_limits\",\"session_id\":\"s\",\"device_id\":" #number ",\"name\":\"" uuid_ \
    " by CUDA\",\"uuid\":\"" uuid_ "\",\"multiprocessors\":4}\n"
#define METRICS(rows)                                                                      \
    "{\"version\":1,\"type\":\"device_metric_batch\",\"session_id\":\"s\",\"batch_id\":1," \
    "\"base_time_ns\":" TIME0 ",\"columns\":[\"dt_ns\",\"device_id\",\"gpu_util\"],\"rows\":[" rows "]}\n"

/* A session of these two channels. */
static struct session_model *load(const char *system, const char *device)
{
    char dir[64] = "/tmp/gpufl-devices-XXXXXX", path[128];
    const char *const channels[][2] = {{"system", system}, {"device", device}};
    struct session_model *model;
    struct problem problem = {""};
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        snprintf(path, sizeof path, "%s/%s.log", dir, channels[i][0]);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(channels[i][1], file);
        fclose(file);
    }
    if (session_load(&model, dir, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
    DIR *listing = opendir(dir);
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        unlinkat(dirfd(listing), entry->d_name, 0);
    closedir(listing);
    rmdir(dir);
    return model;
}

static uint16_t number_of(const struct session_model *model, const char *uuid)
{
    uint16_t number = DEVICE_UNKNOWN;
    for (size_t i = 0; i < model->device_count; i++) {
        if (strcmp(model->devices[i].uuid, uuid) != 0)
            continue;
        assert_int_equal(number, DEVICE_UNKNOWN); /* each once */
        number = model->devices[i].id;
    }
    return number;
}

static int64_t util_of(const struct session_model *model, uint16_t number)
{
    int64_t util = CELL_UNKNOWN;
    for (size_t row = 0; row < model->device_metrics.count; row++) {
        if (model->device_metrics.columns[DEVICE_METRIC_DEVICE_ID][row] != number)
            continue;
        int64_t value = model->device_metrics.columns[DEVICE_METRIC_GPU_UTIL][row];
        assert_true(util == CELL_UNKNOWN || util == value); /* of one GPU */
        util = value;
    }
    return util;
}

static void a_masked_session_shows_the_samples_of_the_gpu_that_ran(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("masked_gpu");
    const struct session_model *model = golden.model;
    assert_int_equal(model->device_count, 2);
    assert_int_equal(number_of(model, "GPU-B"), 0);
    assert_int_equal(model->kernels.device[0], 0);
    assert_int_equal(util_of(model, 0), 99);
    uint16_t idle = number_of(model, "GPU-A");
    assert_true(idle != 0 && idle != DEVICE_UNKNOWN);
    assert_int_equal(util_of(model, idle), 0);
    assert_string_equal(session_device(model, idle)->name, "NVIDIA A100");
    assert_string_equal(session_device(model, 0)->name, "NVIDIA H200");
    assert_string_equal(session_device(model, 0)->vendor, "NVIDIA");
    assert_int_equal(golden.analysis.processes[0].pid, 4711);
    assert_int_equal(golden.analysis.processes[0].device, 0);
    assert_int_equal(golden.analysis.processes[1].device, idle);
    golden_unload(&golden);
}

static void the_report_lists_each_gpu_once(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("masked_gpu");
    struct bytes out = {0};
    assert_int_equal(report_json(golden.model, &(struct report_options){0}, &out), GPUFL_OK);
    static const char gpus[] =
        "\"gpus\":[{\"device\":0,\"name\":\"NVIDIA H200\",\"uuid\":\"GPU-B\",\"compute_capability\":\"9.0\","
        "\"multiprocessors\":132},{\"device\":2,\"name\":\"NVIDIA A100\",\"uuid\":\"GPU-A\","
        "\"compute_capability\":null,\"multiprocessors\":null}]";
    assert_non_null(strstr(bytes_text(&out), gpus));
    assert_non_null(strstr(bytes_text(&out), "\"system\":[{\"device\":0,\"samples\":3,\"gpu_util\":{\"mean\":99"));
    bytes_free(&out);
    golden_unload(&golden);
}

static void gpus_in_another_order_are_found_by_their_uuid(void **state)
{
    (void)state;
    struct session_model *model = load(JOB(GPU(0, "A") "," GPU(1, "B")) METRICS("[0,0,10],[0,1,20]"),
                                       JOB(GPU(0, "A") "," GPU(1, "B")) LIMITS(0, "B") LIMITS(1, "A"));
    assert_int_equal(model->device_count, 2);
    assert_int_equal(util_of(model, number_of(model, "A")), 10);
    assert_int_equal(util_of(model, number_of(model, "B")), 20);
    assert_int_equal(number_of(model, "B"), 0);
    assert_int_equal(session_device(model, 0)->telemetry_id, 1);
    session_free(model);
}

static void a_gpu_that_cuda_does_not_list_has_a_unique_number(void **state)
{
    (void)state;
    const char *system =
        JOB(GPU(0, "A") "," GPU(1, "B") "," GPU(2, "C")) METRICS("[0,0,10],[0,1,20],[0,2,30],[0,7,70]");
    struct session_model *model = load(system, LIMITS(0, "B"));
    assert_int_equal(model->device_count, 3);
    assert_int_equal(number_of(model, "B"), 0);
    assert_int_equal(number_of(model, "C"), 2); /* nobody else has its number */
    assert_int_equal(number_of(model, "A"), 3); /* neither NVML's nor CUDA's number of another */
    assert_int_equal(util_of(model, 0), 20);
    assert_int_equal(util_of(model, 2), 30);
    assert_int_equal(util_of(model, 3), 10);
    assert_int_equal(util_of(model, 7), 70); /* nothing is known of a GPU that is not listed */
    assert_int_equal(session_device(model, 3)->telemetry_id, 0);
    session_free(model);
}

static void without_a_uuid_on_one_side_numbers_stay(void **state)
{
    (void)state;
    struct session_model *model =
        load(JOB(GPU(0, "A") "," GPU(1, "")) METRICS("[0,0,10],[0,1,20]"), LIMITS(0, "") LIMITS(1, "B"));
    assert_int_equal(model->device_count, 2);
    assert_int_equal(number_of(model, "A"), 0);
    assert_int_equal(number_of(model, "B"), 1);
    assert_string_equal(session_device(model, 1)->name, "B by CUDA");
    assert_string_equal(session_device(model, 1)->vendor, "V");
    assert_int_equal(session_device(model, 1)->multiprocessors, 4);
    assert_int_equal(util_of(model, 0), 10);
    assert_int_equal(util_of(model, 1), 20);
    session_free(model);
    model = load(JOB(GPU(0, "A") "," GPU(1, "B")) METRICS("[0,0,10],[0,1,20]"), "");
    assert_int_equal(model->device_count, 2);
    assert_int_equal(util_of(model, number_of(model, "B")), 20);
    assert_int_equal(number_of(model, "B"), 1);
    session_free(model);
}

/* AMD's limits have no uuid and use telemetry's number. */
static void amd_gpus_keep_their_numbers_beside_masked_ones(void **state)
{
    (void)state;
    struct session_model *model =
        load(JOB(GPU(0, "A") "," GPU(1, "B") "," GPU(2, "amd")) METRICS("[0,0,10],[0,1,20],[0,2,30]"),
             LIMITS(0, "B") LIMITS(2, ""));
    assert_int_equal(model->device_count, 3);
    assert_int_equal(number_of(model, "amd"), 2);
    assert_int_equal(util_of(model, 2), 30);
    assert_int_equal(util_of(model, 0), 20);
    assert_int_equal(util_of(model, number_of(model, "A")), 10);
    session_free(model);
}

/* CUDA shows the instance, NVML samples the GPU that it is a part of. */
static void samples_of_a_partitioned_gpu_go_to_its_instance(void **state)
{
    (void)state;
    const char *system = JOB(GPU(0, "GPU-a0") "," GPU(
        1,
        "GPU-b0")) "{\"version\":1,\"type\":\"mig_device\",\"session_id\":\"s\",\"ts_ns\":" TIME0
                   ",\"device_id\":1,\"gpu_instance_id\":1,\"compute_instance_id\":0,\"uuid\":\"MIG-c0\",\"name\":\"MIG\"}\n" //
        METRICS("[0,0,10],[0,1,20]");
    struct session_model *model = load(system, LIMITS(0, "GPU-c0"));
    assert_int_equal(model->device_count, 2);
    assert_int_equal(number_of(model, "GPU-c0"), 0);
    assert_int_equal(util_of(model, 0), 20);
    assert_int_equal(util_of(model, number_of(model, "GPU-a0")), 10);
    session_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_masked_session_shows_the_samples_of_the_gpu_that_ran),
        cmocka_unit_test(the_report_lists_each_gpu_once),
        cmocka_unit_test(gpus_in_another_order_are_found_by_their_uuid),
        cmocka_unit_test(a_gpu_that_cuda_does_not_list_has_a_unique_number),
        cmocka_unit_test(without_a_uuid_on_one_side_numbers_stay),
        cmocka_unit_test(amd_gpus_keep_their_numbers_beside_masked_ones),
        cmocka_unit_test(samples_of_a_partitioned_gpu_go_to_its_instance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
