/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "capture/gpu_rows.h"
#include "format/batch.h"
#include "format/json.h"

static void set(struct gpu_sample *sample, enum gpu_metric metric, uint64_t value)
{
    sample->known |= UINT64_C(1) << metric;
    sample->values[metric] = value;
}

static void an_empty_sample_is_a_row_of_unknowns(void **state)
{
    (void)state;
    struct gpu_sample sample = {0};
    int64_t row[DEVICE_METRIC_COLUMN_COUNT];
    gpu_row_fill(row, 77, 3, &sample);
    assert_int_equal(row[DEVICE_METRIC_DT_NS], 77);
    assert_int_equal(row[DEVICE_METRIC_DEVICE_ID], 3);
    for (int i = DEVICE_METRIC_GPU_UTIL; i < DEVICE_METRIC_COLUMN_COUNT; i++)
        assert_int_equal(row[i], CELL_UNKNOWN);
}

static void every_metric_reaches_its_own_column(void **state)
{
    (void)state;
    for (int metric = 0; metric < GPU_METRIC_COUNT; metric++) {
        struct gpu_sample sample = {0};
        set(&sample, (enum gpu_metric)metric, UINT64_C(5) << 20);
        int64_t row[DEVICE_METRIC_COLUMN_COUNT];
        gpu_row_fill(row, 0, 0, &sample);
        int known = 0;
        for (int i = DEVICE_METRIC_GPU_UTIL; i < DEVICE_METRIC_COLUMN_COUNT; i++)
            known += row[i] != CELL_UNKNOWN;
        assert_int_equal(known, 1);
    }
}

static void values_have_the_units_of_the_columns(void **state)
{
    (void)state;
    struct gpu_sample sample = {0};
    set(&sample, GPU_UTIL_PCT, 0); /* known and zero is not unknown */
    set(&sample, GPU_MEM_USED_BYTES, UINT64_C(141) << 30);
    set(&sample, GPU_PCIE_RX_BPS, 1000);
    set(&sample, GPU_PCIE_TX_BPS, 234);
    set(&sample, GPU_ENERGY_UJ, UINT64_C(5000000000000));
    int64_t row[DEVICE_METRIC_COLUMN_COUNT];
    gpu_row_fill(row, 0, 0, &sample);
    assert_int_equal(row[DEVICE_METRIC_GPU_UTIL], 0);
    assert_int_equal(row[DEVICE_METRIC_USED_MIB], 141 * 1024);
    assert_int_equal(row[DEVICE_METRIC_PCIE_BW_BPS], 1234);
    assert_int_equal(row[DEVICE_METRIC_ENERGY_UJ], 5000000000000);
}

static void absurd_values_are_unknown(void **state)
{
    (void)state;
    struct gpu_sample sample = {.known = UINT64_MAX};
    memset(sample.values, 0xff, sizeof sample.values);
    int64_t row[DEVICE_METRIC_COLUMN_COUNT];
    gpu_row_fill(row, 0, 0, &sample);
    for (int i = DEVICE_METRIC_GPU_UTIL; i < DEVICE_METRIC_COLUMN_COUNT; i++)
        if (i != DEVICE_METRIC_USED_MIB && i != DEVICE_METRIC_TOTAL_MIB)
            assert_int_equal(row[i], CELL_UNKNOWN);
}

static struct gpu_device_info h200(void)
{
    return (struct gpu_device_info){.index = 1,
                                    .name = "NVIDIA H200",
                                    .uuid = "GPU-\"quoted\"",
                                    .pci_bus_id = "00000000:1B:00.0",
                                    .architecture = "Hopper",
                                    .compute_major = 9};
}

static void the_sample_object_is_v1s(void **state)
{
    (void)state;
    struct gpu_device_info info = h200();
    struct gpu_sample sample = {0};
    set(&sample, GPU_MEM_USED_BYTES, UINT64_C(100) << 20);
    set(&sample, GPU_MEM_TOTAL_BYTES, UINT64_C(1000) << 20);
    set(&sample, GPU_THROTTLE_REASONS, 0x80);
    set(&sample, GPU_POWER_MW, 500000);
    struct bytes out = {0};
    gpu_sample_json(&out, &info, &sample);
    struct json_document document;
    assert_int_equal(json_parse(&document, out.data, out.size, NULL), GPUFL_OK);
    assert_int_equal(document.root->count, 19);
    assert_int_equal(json_get_int(document.root, "id", -1), 1);
    assert_string_equal(json_get_text(document.root, "uuid", ""), "GPU-\"quoted\"");
    assert_string_equal(json_get_text(document.root, "vendor", ""), "NVIDIA");
    assert_int_equal(json_get_int(document.root, "pci_bus", -1), 0x1b);
    assert_int_equal(json_get_int(document.root, "free_mib", -1), 900);
    assert_int_equal(json_get_int(document.root, "power_mw", -1), 500000);
    assert_int_equal(json_get_int(document.root, "throttle_pwr", -1), 1);
    assert_int_equal(json_get_int(document.root, "throttle_therm", -1), 0);
    assert_int_equal(json_member(document.root, "temp_c")->kind, JSON_NULL);
    json_free(&document);

    bytes_clear(&out);
    info.pci_bus_id[0] = '\0';
    gpu_sample_json(&out, &info, NULL);
    assert_int_equal(json_parse(&document, out.data, out.size, NULL), GPUFL_OK);
    assert_int_equal(json_member(document.root, "pci_bus")->kind, JSON_NULL);
    assert_int_equal(json_member(document.root, "throttle_pwr")->kind, JSON_NULL);
    assert_int_equal(json_member(document.root, "used_mib")->kind, JSON_NULL);
    json_free(&document);
    bytes_free(&out);
}

static void the_static_object_is_v1s(void **state)
{
    (void)state;
    struct gpu_device_info info = h200();
    struct bytes out = {0};
    gpu_static_json(&out, &info);
    struct json_document document;
    assert_int_equal(json_parse(&document, out.data, out.size, NULL), GPUFL_OK);
    assert_int_equal(document.root->count, 12);
    assert_string_equal(json_get_text(document.root, "architecture", ""), "Hopper");
    assert_int_equal(json_get_int(document.root, "compute_major", -1), 9);
    assert_int_equal(json_get_int(document.root, "compute_minor", -1), 0);
    assert_int_equal(json_member(document.root, "warp_size")->kind, JSON_NULL);
    json_free(&document);
    bytes_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_sample_is_a_row_of_unknowns),
        cmocka_unit_test(every_metric_reaches_its_own_column),
        cmocka_unit_test(values_have_the_units_of_the_columns),
        cmocka_unit_test(absurd_values_are_unknown),
        cmocka_unit_test(the_sample_object_is_v1s),
        cmocka_unit_test(the_static_object_is_v1s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
