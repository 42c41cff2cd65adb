/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry with test functions in NVML's table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/nvml_table.h"

#include <math.h>
#include <string.h>

static struct nvml nvml;
static struct nvml_device device;

/* What the stand-in driver returns. */
static int power_result, power_calls, temperature_result, field_result;
static uint64_t pcie_rx_bytes;
static double gpm_value;
static int gpm_samples;

static int power(void *handle, unsigned *milliwatts)
{
    (void)handle;
    power_calls++;
    *milliwatts = 123456;
    return power_result;
}
static int temperature(void *handle, unsigned sensor, unsigned *celsius)
{
    (void)handle, (void)sensor;
    *celsius = 0; /* a real zero is known */
    return temperature_result;
}
static int energy(void *handle, unsigned long long *millijoules)
{
    (void)handle;
    *millijoules = 5000;
    return 0;
}
static int perf_state(void *handle, unsigned *state)
{
    (void)handle;
    *state = 32;
    return 0;
}
static int fields(void *handle, int count, struct nvml_abi_field *values)
{
    (void)handle;
    for (int i = 0; i < count; i++) {
        values[i].result = field_result;
        values[i].value_type = NVML_ABI_VALUE_ULL;
        values[i].value.as_ull = values[i].field_id == NVML_ABI_FIELD_PCIE_RX_BYTES ? pcie_rx_bytes : 40;
    }
    return 0;
}
static int gpm_support(void *handle, struct nvml_abi_gpm_support *support)
{
    (void)handle;
    support->is_supported = support->version == 1;
    return 0;
}
static int gpm_sample_alloc(void **sample)
{
    static char storage[8];
    *sample = &storage[gpm_samples++];
    return 0;
}
static int gpm_sample_free(void *sample)
{
    assert_non_null(sample);
    gpm_samples--;
    return 0;
}
static int gpm_sample_get(void *handle, void *sample)
{
    (void)handle;
    assert_non_null(sample);
    return 0;
}
static int gpm_metrics_get(struct nvml_abi_gpm_metrics *metrics)
{
    assert_ptr_not_equal(metrics->older, metrics->newer);
    for (unsigned i = 0; i < metrics->metric_count; i++) {
        metrics->metrics[i].result = metrics->metrics[i].metric_id == NVML_ABI_GPM_FP64 ? NVML_ABI_NOT_SUPPORTED : 0;
        metrics->metrics[i].value = gpm_value;
    }
    return 0;
}

static int reset(void **state)
{
    (void)state;
    memset(&nvml, 0, sizeof nvml);
    memset(&device, 0, sizeof device);
    device.handle = &device;
    nvml.devices = &device;
    nvml.device_count = 1;
    power_result = temperature_result = field_result = 0;
    power_calls = gpm_samples = 0;
    pcie_rx_bytes = 0;
    nvml.call.power = power;
    nvml.call.temperature = temperature;
    nvml.call.energy = energy;
    nvml.call.perf_state = perf_state;
    return 0;
}

static bool is_known(const struct gpu_sample *sample, enum gpu_metric metric)
{
    return sample->known >> metric & 1;
}

static void only_what_the_driver_answers_is_known(void **state)
{
    (void)state;
    struct gpu_sample sample;
    nvml_device_sample(&nvml, 0, false, &sample);
    assert_true(is_known(&sample, GPU_POWER_MW));
    assert_int_equal(sample.values[GPU_POWER_MW], 123456);
    assert_true(is_known(&sample, GPU_TEMP_C));
    assert_false(is_known(&sample, GPU_ENERGY_UJ)); /* only with the slow values */
    assert_false(is_known(&sample, GPU_UTIL_PCT));
    assert_false(is_known(&sample, GPU_PERF_STATE)); /* 32 says "unknown" */
    assert_false(sample.is_lost);
    nvml_device_sample(&nvml, 0, true, &sample);
    assert_int_equal(sample.values[GPU_ENERGY_UJ], 5000000);
    nvml_device_sample(&nvml, 1, true, &sample); /* no such device */
    assert_int_equal(sample.known, 0);
}

static void what_is_not_offered_is_asked_for_once(void **state)
{
    (void)state;
    const int refusals[] = {NVML_ABI_NOT_SUPPORTED, NVML_ABI_FUNCTION_NOT_FOUND, NVML_ABI_NO_PERMISSION};
    struct gpu_sample sample;
    for (int i = 0; i < 3; i++) {
        reset(state);
        power_result = refusals[i];
        nvml_device_sample(&nvml, 0, false, &sample);
        nvml_device_sample(&nvml, 0, false, &sample);
        assert_int_equal(power_calls, 1);
        assert_false(is_known(&sample, GPU_POWER_MW));
        assert_true(is_known(&sample, GPU_TEMP_C));
    }
    reset(state);
    power_result = NVML_ABI_UNKNOWN; /* may work the next time */
    nvml_device_sample(&nvml, 0, false, &sample);
    assert_false(is_known(&sample, GPU_POWER_MW));
    power_result = 0;
    nvml_device_sample(&nvml, 0, false, &sample);
    assert_true(is_known(&sample, GPU_POWER_MW));
}

static void a_lost_gpu_is_reported(void **state)
{
    (void)state;
    temperature_result = NVML_ABI_GPU_IS_LOST;
    struct gpu_sample sample;
    nvml_device_sample(&nvml, 0, false, &sample);
    assert_true(sample.is_lost);
    assert_false(is_known(&sample, GPU_TEMP_C));
}

static void a_rate_needs_two_readings_and_survives_one_wrap(void **state)
{
    (void)state;
    struct counter_rate counter = {0};
    uint64_t rate = 0;
    assert_false(counter_rate_next(&counter, 1000, 1000000000, 0, &rate));
    assert_true(counter_rate_next(&counter, 3000, 1500000000, 0, &rate));
    assert_int_equal(rate, 4000);
    assert_false(counter_rate_next(&counter, 3000, 1500000000, 0, &rate)); /* no time passed */
    counter = (struct counter_rate){0xfffffff0u, 0, true};
    assert_true(counter_rate_next(&counter, 0x10, 1000000000, 0, &rate));
    assert_int_equal(rate, 0x20);
    /* A link of 64 GB/s can wrap a 32-bit counter many times in a second, but not in 10 ms. */
    counter = (struct counter_rate){100, 0, true};
    assert_false(counter_rate_next(&counter, 200, 1000000000, 64000000000, &rate));
    assert_true(counter_rate_next(&counter, 300, 1010000000, 64000000000, &rate));
    assert_int_equal(rate, 10000);
    /* A wide counter that decreases was reset. */
    counter = (struct counter_rate){1ull << 40, 0, true};
    assert_false(counter_rate_next(&counter, 5, 1000000000, 0, &rate));
    counter = (struct counter_rate){1ull << 40, 0, true};
    assert_true(counter_rate_next(&counter, (1ull << 40) + 7, 1000000000, 64000000000, &rate));
    assert_int_equal(rate, 7);
}

static void link_rates_come_from_counters_without_gpm(void **state)
{
    (void)state;
    nvml.call.fields = fields;
    struct gpu_sample sample;
    nvml_device_sample(&nvml, 0, false, &sample);
    assert_false(is_known(&sample, GPU_PCIE_RX_BPS));
    assert_int_equal(device.nvlink, NVLINK_DATA_FIELDS);
    pcie_rx_bytes = 1000000;
    nvml_device_sample(&nvml, 0, false, &sample);
    assert_true(is_known(&sample, GPU_PCIE_RX_BPS));
    assert_true(sample.values[GPU_PCIE_RX_BPS] > 0);
    assert_true(is_known(&sample, GPU_PCIE_TX_BPS));
    assert_int_equal(sample.values[GPU_PCIE_TX_BPS], 0); /* measured, and no data was transferred */
    assert_true(is_known(&sample, GPU_NVLINK_RX_BPS));
    reset(state);
    nvml.call.fields = fields;
    field_result = NVML_ABI_NOT_SUPPORTED;
    nvml_device_sample(&nvml, 0, false, &sample);
    assert_int_equal(device.nvlink, NVLINK_ABSENT);
    assert_false(nvml_wants(&device, GPU_PCIE_RX_BPS));
    assert_false(nvml_wants(&device, GPU_TEMP_MEM_C));
}

static void gpm_values_need_samples_far_enough_apart(void **state)
{
    (void)state;
    nvml.call.gpm_support = gpm_support;
    nvml.call.gpm_sample_alloc = gpm_sample_alloc;
    nvml.call.gpm_sample_free = gpm_sample_free;
    nvml.call.gpm_sample_get = gpm_sample_get;
    nvml.call.gpm_metrics_get = gpm_metrics_get;
    gpm_value = 12.345;
    struct gpu_sample sample;
    nvml_device_sample(&nvml, 0, false, &sample);
    device.gpm.older_ns += 1000000000; /* too soon, however slow this machine is */
    nvml_device_sample(&nvml, 0, false, &sample);
    assert_false(is_known(&sample, GPU_SM_ACTIVE_BP));
    device.gpm.older_ns -= 1100000000; /* as if long enough had passed */
    nvml_device_sample(&nvml, 0, false, &sample);
    assert_true(is_known(&sample, GPU_SM_ACTIVE_BP));
    assert_int_equal(sample.values[GPU_SM_ACTIVE_BP], 1235);
    assert_int_equal(sample.values[GPU_PCIE_RX_BPS], (uint64_t)(12.345 * 1048576 + 0.5));
    assert_false(is_known(&sample, GPU_FP64_ACTIVE_BP));
    const double absurd[] = {NAN, -1, 1e300, INFINITY};
    for (int i = 0; i < 4; i++) {
        gpm_value = absurd[i];
        device.gpm.older_ns -= 100000000;
        nvml_device_sample(&nvml, 0, false, &sample);
        assert_false(is_known(&sample, GPU_SM_ACTIVE_BP));
        assert_false(is_known(&sample, GPU_PCIE_RX_BPS));
    }
    gpm_value = 100.004;
    device.gpm.older_ns -= 100000000;
    nvml_device_sample(&nvml, 0, false, &sample);
    assert_int_equal(sample.values[GPU_SM_ACTIVE_BP], 10000);
    /* Too soon for another measurement: the last one, which has just ended, is still valid. */
    gpm_value = 50;
    device.gpm.older_ns += 1000000000;
    nvml_device_sample(&nvml, 0, false, &sample);
    assert_true(is_known(&sample, GPU_SM_ACTIVE_BP));
    assert_int_equal(sample.values[GPU_SM_ACTIVE_BP], 10000);
    assert_false(is_known(&sample, GPU_FP64_ACTIVE_BP));
    nvml_gpm_release(&nvml, &device.gpm);
    assert_int_equal(gpm_samples, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, reset)
    const struct CMUnitTest tests[] = {
        CASE(only_what_the_driver_answers_is_known),
        CASE(what_is_not_offered_is_asked_for_once),
        CASE(a_lost_gpu_is_reported),
        CASE(a_rate_needs_two_readings_and_survives_one_wrap),
        CASE(link_rates_come_from_counters_without_gpm),
        CASE(gpm_values_need_samples_far_enough_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
