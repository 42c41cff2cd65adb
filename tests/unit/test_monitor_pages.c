/* SPDX-License-Identifier: Apache-2.0 */
/* The pages rendered from a view of invented GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/batch.h"
#include "format/json.h"
#include "monitor/otlp.h"
#include "monitor/prometheus.h"

#include <stdio.h>
#include <stdlib.h>

static struct monitor_view view;
static struct gpu_telemetry gpu;

static void know(struct gpu_sample *sample, enum gpu_metric metric, uint64_t value)
{
    sample->known |= 1ull << metric;
    sample->values[metric] = value;
}

static void gpu_make(uint32_t index, const char *uuid, const char *name)
{
    struct gpu_device *device = &gpu.devices[index];
    memset(device, 0, sizeof *device);
    device->info.index = index;
    snprintf(device->info.uuid, sizeof device->info.uuid, "%s", uuid);
    snprintf(device->info.name, sizeof device->info.name, "%s", name);
    device->process_count = -1;
}

static int setup(void **state)
{
    (void)state;
    gpu = (struct gpu_telemetry){.devices = calloc(2, sizeof(struct gpu_device)), .device_count = 2};
    assert_non_null(gpu.devices);
    gpu_make(0, "GPU-a", "Fast \"one\"");
    gpu_make(1, "GPU-b", "Other");
    monitor_view_init(&view);
    snprintf(view.hostname, sizeof view.hostname, "h");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    monitor_view_free(&view);
    free(gpu.devices);
    return 0;
}

static struct bytes page_make(bool with_dcgm_names, enum exposition_format format)
{
    struct bytes page = {0};
    prometheus_page(&page, &view, &(struct prometheus_options){format, with_dcgm_names});
    assert_false(page.failed);
    return page;
}

static void update(void)
{
    struct host_sample host = host_sample_unknown();
    monitor_view_update(&view, &gpu, &host, NULL);
}

static void assert_has(struct bytes *page, const char *line)
{
    const char *found = strstr(bytes_text(page), line);
    if (!found || (found != page->data && found[-1] != '\n'))
        fail_msg("no line '%s' in\n%s", line, bytes_text(page));
}

static void values_have_base_units_and_what_is_unknown_is_absent(void **state)
{
    (void)state;
    know(&gpu.devices[0].sample, GPU_UTIL_PCT, 7);
    know(&gpu.devices[0].sample, GPU_POWER_MW, 123456);
    know(&gpu.devices[0].sample, GPU_ENERGY_UJ, 5000001);
    know(&gpu.devices[0].sample, GPU_CLOCK_SM_MHZ, 1980);
    know(&gpu.devices[0].sample, GPU_MEM_USED_BYTES, (141ull << 30) + 1);
    know(&gpu.devices[0].sample, GPU_SM_ACTIVE_BP, 9999);
    know(&gpu.devices[0].sample, GPU_ECC_CORRECTED, 0); /* a known zero is shown */
    know(&gpu.devices[0].sample, GPU_THROTTLE_REASONS, 0x44);
    update();
    struct bytes page = page_make(false, EXPOSITION_TEXT);
#define FAST "{gpu=\"0\",uuid=\"GPU-a\",name=\"Fast \\\"one\\\"\",host=\"h\""
    assert_has(&page, "gpufl_gpu_utilization_ratio" FAST "} 0.07\n");
    assert_has(&page, "gpufl_gpu_power_watts" FAST "} 123.456\n");
    assert_has(&page, "gpufl_gpu_energy_joules_total" FAST "} 5.000001\n");
    assert_has(&page, "gpufl_gpu_clock_hertz" FAST ",clock=\"sm\"} 1980000000\n");
    assert_has(&page, "gpufl_gpu_memory_used_bytes" FAST "} 151397597185\n");
    assert_has(&page, "gpufl_gpu_sm_active_ratio" FAST "} 0.9999\n");
    assert_has(&page, "gpufl_gpu_ecc_errors_total" FAST ",type=\"corrected\"} 0\n");
    assert_has(&page, "gpufl_gpu_clock_event" FAST ",reason=\"software_power_cap\"} 1\n");
    assert_has(&page, "gpufl_gpu_clock_event" FAST ",reason=\"hardware_thermal\"} 1\n");
    assert_has(&page, "gpufl_gpu_clock_event" FAST ",reason=\"idle\"} 0\n");
    assert_has(&page, "gpufl_gpu_up" FAST "} 1\n");
    assert_has(&page, "gpufl_gpu_up{gpu=\"1\",uuid=\"GPU-b\",name=\"Other\",host=\"h\"} 0\n");
    assert_null(strstr(bytes_text(&page), "fan_speed"));
    assert_null(strstr(bytes_text(&page), "uncorrected"));
    assert_null(strstr(bytes_text(&page), "gpufl_host_"));
    assert_null(strstr(bytes_text(&page), "DCGM"));
    bytes_free(&page);
}

static void a_slow_value_is_valid_until_the_next_one_or_until_the_gpu_is_lost(void **state)
{
    (void)state;
    know(&gpu.devices[1].sample, GPU_ENERGY_UJ, 2000000);
    know(&gpu.devices[1].sample, GPU_TEMP_C, 40);
    update();
    memset(&gpu.devices[1].sample, 0, sizeof gpu.devices[1].sample);
    know(&gpu.devices[1].sample, GPU_POWER_MW, 1000);
    update(); /* a tick without the slow values */
    struct bytes page = page_make(false, EXPOSITION_TEXT);
#define OTHER "{gpu=\"1\",uuid=\"GPU-b\",name=\"Other\",host=\"h\""
    assert_has(&page, "gpufl_gpu_energy_joules_total" OTHER "} 2\n");
    assert_null(strstr(bytes_text(&page), "temperature")); /* a fast value does not */
    bytes_free(&page);
    memset(&gpu.devices[1].sample, 0, sizeof gpu.devices[1].sample);
    gpu.devices[1].is_lost = true;
    update();
    page = page_make(false, EXPOSITION_TEXT);
    assert_has(&page, "gpufl_gpu_up" OTHER "} 0\n");
    assert_null(strstr(bytes_text(&page), "energy"));
    bytes_free(&page);
}

static void without_a_driver_the_gpus_are_down_and_have_no_values(void **state)
{
    (void)state;
    know(&gpu.devices[0].sample, GPU_POWER_MW, 1000);
    update();
    monitor_view_xid(&view, 0, 79);
    struct gpu_telemetry none = {0};
    struct host_sample host = host_sample_unknown();
    monitor_view_update(&view, &none, &host, NULL);
    struct bytes page = page_make(false, EXPOSITION_TEXT);
    assert_has(&page, "gpufl_gpu_up" FAST "} 0\n");
    assert_has(&page, "gpufl_monitor_driver_up 0\n");
    assert_has(&page, "gpufl_gpu_xid_errors_total" FAST ",xid=\"79\"} 1\n");
    assert_null(strstr(bytes_text(&page), "power"));
    bytes_free(&page);
    /* Only one GPU comes back, with another index: it keeps its counts. */
    struct gpu_telemetry back = {.devices = gpu.devices, .device_count = 1};
    monitor_view_xid(&view, 0, 79);
    monitor_view_update(&view, &back, &host, NULL);
    page = page_make(false, EXPOSITION_TEXT);
    assert_has(&page, "gpufl_gpu_xid_errors_total" FAST ",xid=\"79\"} 2\n");
    assert_null(strstr(bytes_text(&page), "GPU-b"));
    bytes_free(&page);
}

static void processes_and_mig_instances_have_their_labels(void **state)
{
    (void)state;
    struct gpu_device *device = &gpu.devices[0];
    device->process_count = 2;
    device->processes[0] = (struct gpu_process){.pid = 1u << 30, .used_bytes = 77, .has_used_bytes = true};
    device->processes[1] = (struct gpu_process){.pid = 2};
    device->mig_count = 1;
    device->migs[0].info =
        (struct gpu_mig_info){.gpu_instance_id = 7, .compute_instance_id = 1, .uuid = "MIG-x", .name = "1g"};
    know(&device->migs[0].sample, GPU_MEM_USED_BYTES, 5);
    know(&device->sample, GPU_TEMP_C, 40);
    struct process_table *table = malloc(sizeof *table);
    process_table_init(table, "/nonexistent");
    struct host_sample host = host_sample_unknown();
    host.cpu_pct_x100 = 1250;
    host.ram_used_mib = 3;
    monitor_view_update(&view, &gpu, &host, table);
    free(table);
    struct bytes page = page_make(false, EXPOSITION_OPENMETRICS);
    assert_has(&page, "gpufl_gpu_process_memory_used_bytes" FAST
                      ",pid=\"1073741824\",process=\"\",container=\"\",pod_uid=\"\",gpu_instance=\"\"} 77\n");
    assert_null(strstr(bytes_text(&page), "pid=\"2\"")); /* its memory use is unknown */
    assert_has(&page,
               "gpufl_mig_memory_used_bytes" FAST ",gpu_instance=\"7\",compute_instance=\"1\",mig_uuid=\"MIG-x\","
               "mig_name=\"1g\"} 5\n");
    assert_has(&page, "gpufl_host_cpu_utilization_ratio{host=\"h\"} 0.125\n");
    assert_has(&page, "gpufl_host_memory_used_bytes{host=\"h\"} 3145728\n");
    assert_has(&page, "# EOF\n");
    bytes_free(&page);
}

static void dcgm_names_have_dcgms_units(void **state)
{
    (void)state;
    know(&gpu.devices[0].sample, GPU_POWER_MW, 123456);
    know(&gpu.devices[0].sample, GPU_MEM_USED_BYTES, 1ull << 30);
    know(&gpu.devices[0].sample, GPU_MEM_TOTAL_BYTES, 4ull << 30);
    know(&gpu.devices[0].sample, GPU_SM_ACTIVE_BP, 5000);
    update();
    struct bytes page = page_make(true, EXPOSITION_TEXT);
#define DCGM \
    "{gpu=\"0\",UUID=\"GPU-a\",pci_bus_id=\"\",device=\"nvidia0\",modelName=\"Fast \\\"one\\\"\",Hostname=\"h\"}"
    assert_has(&page, "DCGM_FI_DEV_POWER_USAGE" DCGM " 123.456\n");
    assert_has(&page, "DCGM_FI_DEV_FB_USED" DCGM " 1024\n");
    assert_has(&page, "DCGM_FI_DEV_FB_FREE" DCGM " 3072\n");
    assert_has(&page, "DCGM_FI_PROF_SM_ACTIVE" DCGM " 0.5\n");
    assert_has(&page, "DCGM_FI_DEV_XID_ERRORS" DCGM " 0\n");
    assert_has(&page, "gpufl_gpu_power_watts" FAST "} 123.456\n");
    bytes_free(&page);
}

static const struct json_value *metric_find(const struct json_value *metrics, const char *name)
{
    for (const struct json_value *metric = metrics ? metrics->child : NULL; metric; metric = metric->next)
        if (!strcmp(json_get_text(metric, "name", ""), name))
            return metric;
    return NULL;
}

static void otlp_follows_the_conventions_for_hardware(void **state)
{
    (void)state;
    know(&gpu.devices[0].sample, GPU_UTIL_PCT, 50);
    know(&gpu.devices[1].sample, GPU_ENERGY_UJ, 3000000);
    update();
    struct bytes out = {0};
    struct json_document document;
    struct json_error error;
    otlp_request(&out, &view);
    if (json_parse(&document, out.data, out.size, &error) != GPUFL_OK)
        fail_msg("%u: %s", error.column, error.text);
    const struct json_value *resource = json_member(document.root, "resourceMetrics")->child;
    const struct json_value *metrics = json_member(json_member(resource, "scopeMetrics")->child, "metrics");
    const struct json_value *busy = metric_find(metrics, "hw.gpu.utilization");
    const struct json_value *points = json_member(json_member(busy, "gauge"), "dataPoints");
    assert_int_equal(points->count, 1);
    assert_true(json_member(points->child, "asDouble")->number == 0.5);
    const struct json_value *first = json_member(points->child, "attributes")->child;
    assert_string_equal(json_get_text(first, "key", ""), "hw.id");
    assert_string_equal(json_get_text(json_member(first, "value"), "stringValue", ""), "GPU-a");
    const struct json_value *sum = json_member(metric_find(metrics, "hw.energy"), "sum");
    assert_true(json_get_bool(sum, "isMonotonic", false));
    assert_int_equal(json_get_int(sum, "aggregationTemporality", 0), 2);
    assert_int_equal(json_member(json_member(metric_find(metrics, "hw.status"), "sum"), "dataPoints")->count, 4);
    assert_null(metric_find(metrics, "hw.power")); /* no GPU reports it */
    json_free(&document);
    bytes_free(&out);
}

static void an_otlp_address_without_a_path_gets_the_default_path(void **state)
{
    (void)state;
    char server[64], path[64];
    struct problem problem;
    assert_int_equal(otlp_url_split("http://c:4318", server, sizeof server, path, sizeof path, &problem), GPUFL_OK);
    assert_string_equal(server, "http://c:4318");
    assert_string_equal(path, "/v1/metrics");
    assert_int_equal(otlp_url_split("https://c/a/b", server, sizeof server, path, sizeof path, &problem), GPUFL_OK);
    assert_string_equal(server, "https://c");
    assert_string_equal(path, "/a/b");
    assert_int_equal(otlp_url_split("https://c/", server, sizeof server, path, sizeof path, &problem), GPUFL_OK);
    assert_string_equal(path, "/v1/metrics");
    static const char *const wrong[] = {"", "c:4318", "http://", "http:///v1/metrics"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(otlp_url_split(wrong[i], server, sizeof server, path, sizeof path, &problem), GPUFL_E_INVALID);
}

static void a_slow_value_that_could_not_be_read_again_is_unknown(void **state)
{
    (void)state;
    struct process_table *table = malloc(sizeof *table);
    struct host_sample host = host_sample_unknown();
    struct gpu_device *device = &gpu.devices[0];
    process_table_init(table, "/nonexistent");
    know(&device->sample, GPU_TEMP_C, 40);
    know(&device->sample, GPU_ENERGY_UJ, 5000);
    monitor_view_update(&view, &gpu, &host, table);
    device->sample.known &= ~(UINT64_C(1) << GPU_ENERGY_UJ);
    update(); /* between two readings of slow values the last one stays valid */
    assert_true(gpu_sample_knows(&view.gpus[0].sample, GPU_ENERGY_UJ));
    monitor_view_update(&view, &gpu, &host, table);
    assert_false(gpu_sample_knows(&view.gpus[0].sample, GPU_ENERGY_UJ));
    free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_have_base_units_and_what_is_unknown_is_absent, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slow_value_is_valid_until_the_next_one_or_until_the_gpu_is_lost, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(without_a_driver_the_gpus_are_down_and_have_no_values, setup, teardown),
        cmocka_unit_test_setup_teardown(processes_and_mig_instances_have_their_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(dcgm_names_have_dcgms_units, setup, teardown),
        cmocka_unit_test_setup_teardown(otlp_follows_the_conventions_for_hardware, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slow_value_that_could_not_be_read_again_is_unknown, setup, teardown),
        cmocka_unit_test(an_otlp_address_without_a_path_gets_the_default_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
