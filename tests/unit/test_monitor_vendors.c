/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry and pages of hosts with AMD's GPUs, with and without NVIDIA's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fakes/amd_tree.h"
#include "capture/gpu_rows.h"
#include "format/batch.h"
#include "format/json.h"
#include "monitor/otlp.h"
#include "monitor/prometheus.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];
static struct gpu_telemetry gpu;
static struct monitor_view view;

static int setup(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/gpufl-test-vendors-XXXXXX");
    assert_non_null(mkdtemp(root));
    setenv("GPUFL_SYSFS_ROOT", root, 1);
    setenv("GPUFL_NVML_PATH", FAKES_DIR "/libnvidia-ml.so.1", 1);
    setenv("FAKE_GPU_COUNT", "2", 1);
    memset(&gpu, 0, sizeof gpu);
    monitor_view_init(&view);
    snprintf(view.hostname, sizeof view.hostname, "h");
    return 0;
}

static int entry_remove(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static int teardown(void **state)
{
    (void)state;
    gpu_telemetry_close(&gpu);
    monitor_view_free(&view);
    return nftw(root, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static void tree_make(void)
{
    assert_true(amd_tree_add(root, AMD_TREE_MI300X, 0, "0000:c1:00.0"));
    assert_true(amd_tree_add(root, AMD_TREE_RX7900, 1, "0000:03:00.0"));
}

static void telemetry_open(unsigned vendors)
{
    struct problem problem = {""};
    if (gpu_telemetry_open(&gpu, (struct gpu_choice){.vendors = vendors}, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
}

static void sample_all(void)
{
    for (uint32_t i = 0; i < gpu.device_count; i++)
        (void)gpu_telemetry_sample(&gpu, i, true);
}

/* The GPUs' part of the page, which depends on neither time nor machine. */
static void assert_page_is(const char *golden)
{
    struct host_sample host = host_sample_unknown();
    struct bytes page = {0}, part = {0};
    monitor_view_update(&view, &gpu, &host, NULL);
    prometheus_page(&page, &view, &(struct prometheus_options){EXPOSITION_TEXT, false});
    assert_false(page.failed);
    for (const char *line = bytes_text(&page), *end; *line; line = end) {
        end = line + strcspn(line, "\n") + 1;
        bool is_of_gpus = strstr(line, "gpufl_gpu_") && strstr(line, "gpufl_gpu_") < end;
        if (is_of_gpus)
            bytes_append(&part, line, (size_t)(end - line));
    }
    char path[512], *expected = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, SOURCE_DIR "/tests/golden/%s", golden);
    FILE *file = fopen(path, "r");
    if (file && getdelim(&expected, &size, '\0', file) < 0)
        expected[0] = '\0';
    if (file)
        fclose(file);
    if (!expected || strcmp(expected, bytes_text(&part)) != 0) {
        char made[512];
        snprintf(made, sizeof made, BUILD_DIR "/tests/%s", golden);
        FILE *copy = fopen(made, "w");
        if (copy) {
            fputs(bytes_text(&part), copy);
            fclose(copy);
        }
        fail_msg("the page is not %s; it is in %s", path, made);
    }
    free(expected);
    bytes_free(&page);
    bytes_free(&part);
}

static void the_page_of_amd_gpus_is_golden(void **state)
{
    (void)state;
    tree_make();
    telemetry_open(GPU_VENDORS_ALL & ~(1u << GPU_VENDOR_NVIDIA));
    sample_all();
    sample_all(); /* rates need two samples */
    assert_page_is("monitor_amd.prom");
}

static void the_page_of_a_mixed_host_is_golden(void **state)
{
    (void)state;
    tree_make();
    setenv("FAKE_GPU_COUNT", "1", 1);
    telemetry_open(GPU_VENDORS_ALL);
    sample_all();
    sample_all();
    /* The look-alike's numbers vary; these replace them. */
    struct gpu_sample *h200 = &gpu.devices[0].sample;
    memset(h200, 0, sizeof *h200);
    gpu_sample_set(h200, GPU_UTIL_PCT, 93);
    gpu_sample_set(h200, GPU_POWER_MW, 612345);
    gpu_sample_set(h200, GPU_CLOCK_SM_MHZ, 1980);
    gpu_sample_set(h200, GPU_SM_ACTIVE_BP, 8700);
    gpu_sample_set(h200, GPU_NVLINK_RX_BPS, 12345);
    gpu_sample_set(h200, GPU_THROTTLE_REASONS, GPU_THROTTLE_IDLE);
    assert_page_is("monitor_mixed.prom");
}

static void amd_gpus_have_no_dcgm_names(void **state)
{
    (void)state;
    struct host_sample host = host_sample_unknown();
    struct bytes page = {0};
    tree_make();
    telemetry_open(1u << GPU_VENDOR_AMD);
    sample_all();
    monitor_view_update(&view, &gpu, &host, NULL);
    prometheus_page(&page, &view, &(struct prometheus_options){EXPOSITION_TEXT, true});
    assert_non_null(strstr(bytes_text(&page), "gpufl_gpu_power_watts{"));
    assert_null(strstr(bytes_text(&page), "UUID="));
    bytes_clear(&page);
    otlp_request(&page, &view);
    assert_non_null(strstr(bytes_text(&page), "{\"key\":\"hw.vendor\",\"value\":{\"stringValue\":\"AMD\"}}"));
    bytes_free(&page);
}

static void nvidias_gpus_come_first_and_a_vendor_can_be_excluded(void **state)
{
    (void)state;
    struct problem problem = {""};
    tree_make();
    telemetry_open(GPU_VENDORS_ALL);
    assert_int_equal(gpu.device_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(gpu.devices[i].info.index, i);
        assert_int_equal(gpu.devices[i].info.driver_index, i % 2);
        assert_int_equal(gpu.devices[i].info.vendor, i < 2 ? GPU_VENDOR_NVIDIA : GPU_VENDOR_AMD);
    }
    assert_string_equal(gpu.devices[2].info.pci_bus_id, "0000:03:00.0");
    assert_string_equal(gpu_telemetry_driver_version(&gpu, GPU_VENDOR_AMD), "6.12.12");
    gpu_telemetry_close(&gpu);
    telemetry_open(1u << GPU_VENDOR_NVIDIA);
    assert_int_equal(gpu.device_count, 2);
    assert_false(gpu_telemetry_has(&gpu, GPU_VENDOR_AMD));
    gpu_telemetry_close(&gpu);
    telemetry_open(1u << GPU_VENDOR_AMD);
    assert_int_equal(gpu.device_count, 2);
    assert_int_equal(gpu.devices[0].info.index, 0);
    gpu_telemetry_close(&gpu);
    setenv("GPUFL_SYSFS_ROOT", "/nonexistent", 1);
    assert_int_equal(gpu_telemetry_open(&gpu, (struct gpu_choice){.vendors = 1u << GPU_VENDOR_AMD}, &problem),
                     GPUFL_E_NO_DRIVER);
    assert_non_null(strstr(problem.text, "no AMD GPU"));
    assert_int_equal(gpu.device_count, 0);
}

static void a_driver_that_disappears_does_not_change_the_numbers_of_other_gpus(void **state)
{
    (void)state;
    struct problem problem = {""};
    tree_make();
    telemetry_open(GPU_VENDORS_ALL);
    sample_all();
    gpu_telemetry_drop(&gpu, GPU_VENDOR_NVIDIA);
    assert_int_equal(gpu.device_count, 4);
    assert_false(gpu_telemetry_sample(&gpu, 0, false));
    assert_true(gpu_telemetry_sample(&gpu, 3, false));
    assert_string_equal(gpu.devices[3].info.name, "AMD Instinct MI300X OAM");
    assert_int_equal(gpu_telemetry_reopen(&gpu, GPU_VENDOR_NVIDIA, &problem), GPUFL_OK);
    assert_int_equal(gpu.device_count, 4);
    assert_true(gpu_telemetry_sample(&gpu, 0, false));
    assert_true(gpu.devices[3].sample.known != 0); /* this GPU is not affected */
}

static void an_amd_gpu_that_vanishes_keeps_its_number(void **state)
{
    (void)state;
    struct problem problem = {""};
    char card[128], away[128];
    tree_make();
    telemetry_open(1u << GPU_VENDOR_AMD);
    sample_all();
    snprintf(card, sizeof card, "%s/sys/class/drm/card1", root);
    snprintf(away, sizeof away, "%s/away", root);
    assert_int_equal(rename(card, away), 0);
    assert_false(gpu_telemetry_sample(&gpu, 0, true));
    assert_true(gpu_telemetry_sample(&gpu, 1, true));
    assert_int_equal(gpu_telemetry_reopen(&gpu, GPU_VENDOR_AMD, &problem), GPUFL_OK);
    assert_int_equal(gpu.device_count, 2);
    assert_string_equal(gpu.devices[1].info.pci_bus_id, "0000:c1:00.0");
    assert_false(gpu_telemetry_sample(&gpu, 0, true)); /* still lost */
    assert_true(gpu_telemetry_sample(&gpu, 1, true));
    assert_int_equal(rename(away, card), 0);
    assert_int_equal(gpu_telemetry_reopen(&gpu, GPU_VENDOR_AMD, &problem), GPUFL_OK);
    assert_true(gpu_telemetry_sample(&gpu, 0, true));
    assert_int_equal(gpu.devices[0].sample.values[GPU_UTIL_PCT], 12);
    /* A new GPU changes the list. */
    assert_true(amd_tree_add(root, AMD_TREE_APU, 2, "0000:01:00.0"));
    assert_int_equal(gpu_telemetry_reopen(&gpu, GPU_VENDOR_AMD, &problem), GPUFL_OK);
    assert_int_equal(gpu.device_count, 3);
    assert_string_equal(gpu.devices[0].info.pci_bus_id, "0000:01:00.0");
}

static unsigned open_files(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void a_forked_child_closes_the_files(void **state)
{
    (void)state;
    tree_make();
    unsigned before = open_files();
    telemetry_open(1u << GPU_VENDOR_AMD);
    assert_true(open_files() > before);
    gpu_telemetry_abandon(&gpu);
    assert_int_equal(open_files(), before);
    assert_int_equal(gpu.device_count, 0);
}

static void amd_metrics_reach_the_log(void **state)
{
    (void)state;
    int64_t row[DEVICE_METRIC_COLUMN_COUNT];
    struct bytes out = {0};
    struct json_document document;
    tree_make();
    telemetry_open(1u << GPU_VENDOR_AMD);
    sample_all();
    gpu_row_fill(row, 0, 0, &gpu.devices[0].sample);
    assert_int_equal(row[DEVICE_METRIC_FAN_RPM], 1234);
    assert_int_equal(row[DEVICE_METRIC_FAN_SPEED_PCT], 40);
    assert_int_equal(row[DEVICE_METRIC_TEMP_EDGE_C], 48);
    assert_int_equal(row[DEVICE_METRIC_TEMP_JUNCTION_C], 59);
    assert_int_equal(row[DEVICE_METRIC_VOLTAGE_MV], 893);
    assert_int_equal(row[DEVICE_METRIC_CLOCK_SM], 2371);
    assert_int_equal(row[DEVICE_METRIC_SM_ACTIVE_BP], CELL_UNKNOWN);
    gpu_row_fill(row, 0, 1, &gpu.devices[1].sample);
    assert_int_equal(row[DEVICE_METRIC_PCIE_BW_BPS], 100000000);
    assert_int_equal(row[DEVICE_METRIC_PCIE_RX_BPS], CELL_UNKNOWN);
    assert_int_equal(row[DEVICE_METRIC_ECC_CORRECTED], 8);
    gpu_static_json(&out, &gpu.devices[1].info);
    assert_int_equal(json_parse(&document, out.data, out.size, NULL), GPUFL_OK);
    assert_string_equal(json_get_text(document.root, "vendor", ""), "AMD");
    assert_string_equal(json_get_text(document.root, "architecture", ""), "gfx942");
    assert_int_equal(json_get_int(document.root, "multi_processor_count", -1), 304);
    assert_int_equal(json_get_int(document.root, "warp_size", -1), 64);
    assert_int_equal(json_member(document.root, "compute_major")->kind, JSON_NULL);
    json_free(&document);
    bytes_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_page_of_amd_gpus_is_golden, setup, teardown),
        cmocka_unit_test_setup_teardown(the_page_of_a_mixed_host_is_golden, setup, teardown),
        cmocka_unit_test_setup_teardown(amd_gpus_have_no_dcgm_names, setup, teardown),
        cmocka_unit_test_setup_teardown(nvidias_gpus_come_first_and_a_vendor_can_be_excluded, setup, teardown),
        cmocka_unit_test_setup_teardown(a_driver_that_disappears_does_not_change_the_numbers_of_other_gpus, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_amd_gpu_that_vanishes_keeps_its_number, setup, teardown),
        cmocka_unit_test_setup_teardown(a_forked_child_closes_the_files, setup, teardown),
        cmocka_unit_test_setup_teardown(amd_metrics_reach_the_log, setup, teardown),
    };
    setenv("FAKE_MACHINE", "0", 1); /* the golden page has its UUID */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
