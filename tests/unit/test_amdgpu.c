/* SPDX-License-Identifier: Apache-2.0 */
/* AMD's GPUs, from directory trees laid out like /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fakes/amd_tree.h"
#include "driver/amdgpu.h"
#include "driver/amdgpu_table.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MI300X "0000:c1:00.0"
#define RX7900 "0000:03:00.0"

static char root[64];
static struct amdgpu *amdgpu;
static int read_error; /* errno of reads; 0: they succeed */

/* Replaces libc's, so that a GPU can vanish while its files are open. */
ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
    if (read_error) {
        errno = read_error;
        return -1;
    }
    return syscall(SYS_pread64, fd, bytes, size, offset);
}

static int setup(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/gpufl-test-amd-XXXXXX");
    assert_non_null(mkdtemp(root));
    setenv("GPUFL_SYSFS_ROOT", root, 1);
    setenv("GPUFL_ROCM_SMI_PATH", FAKES_DIR "/librocm_smi64.so.7", 1);
    unsetenv("FAKE_ROCM_SMI_SLOT");
    read_error = 0;
    amdgpu = NULL;
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
    read_error = 0;
    amdgpu_close(amdgpu);
    return nftw(root, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static void open_tree(void)
{
    struct problem problem = {""};
    if (amdgpu_open(&amdgpu, true, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
}

static void assert_metric(const struct gpu_sample *sample, enum gpu_metric metric, uint64_t value)
{
    if (!gpu_sample_knows(sample, metric))
        fail_msg("metric %d is not known", metric);
    assert_int_equal(sample->values[metric], value);
}

static void without_a_card_there_is_no_driver_and_the_place_is_said(void **state)
{
    (void)state;
    struct problem problem = {""};
    assert_int_equal(amdgpu_open(&amdgpu, true, &problem), GPUFL_E_NO_DRIVER);
    assert_non_null(strstr(problem.text, root));
    /* Another vendor's card, and one with another driver. */
    assert_true(amd_tree_add(root, AMD_TREE_RX7900, 0, RX7900));
    assert_true(amd_tree_text(root, "sys/class/drm/card0/device/vendor", "0x8086\n"));
    assert_int_equal(amdgpu_open(&amdgpu, true, &problem), GPUFL_E_NO_DRIVER);
    assert_true(amd_tree_text(root, "sys/class/drm/card0/device/vendor", "0x1002\n"));
    assert_true(
        amd_tree_text(root, "sys/class/drm/card0/device/uevent", "DRIVER=vfio-pci\nPCI_SLOT_NAME=" RX7900 "\n"));
    assert_int_equal(amdgpu_open(&amdgpu, true, &problem), GPUFL_E_NO_DRIVER);
    char longer[600];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    setenv("GPUFL_SYSFS_ROOT", longer, 1);
    assert_int_equal(amdgpu_open(&amdgpu, true, &problem), GPUFL_E_INVALID);
    amdgpu = NULL;
}

static void gpus_are_listed_by_place_with_what_is_known_of_them(void **state)
{
    (void)state;
    struct gpu_device_info info;
    assert_true(amd_tree_add(root, AMD_TREE_MI300X, 0, MI300X)); /* the first card is not the first on the bus */
    assert_true(amd_tree_add(root, AMD_TREE_RX7900, 1, RX7900));
    assert_true(amd_tree_add(root, AMD_TREE_APU, 12, "0000:e5:00.0"));
    open_tree();
    assert_int_equal(amdgpu_device_count(amdgpu), 3);
    assert_string_equal(amdgpu_driver_version(amdgpu), "6.12.12");

    assert_true(amdgpu_device_describe(amdgpu, 0, &info));
    assert_string_equal(info.pci_bus_id, RX7900);
    assert_string_equal(info.name, "AMD Radeon RX 7900 XTX"); /* by chip and revision */
    assert_string_equal(info.architecture, "gfx1100");
    assert_int_equal(info.multiprocessors, 96);

    assert_true(amdgpu_device_describe(amdgpu, 1, &info));
    assert_int_equal(info.vendor, GPU_VENDOR_AMD);
    assert_string_equal(info.name, "AMD Instinct MI300X OAM"); /* from the board */
    assert_string_equal(info.uuid, "GPU-6b7be00c63c4b000");
    assert_string_equal(info.architecture, "gfx942");
    assert_int_equal(info.multiprocessors, 304);
    assert_int_equal(info.warp_size, 64);
    assert_int_equal(info.lds_bytes, 65536);
    assert_int_equal(info.memory_total_bytes, 206141652992);
    assert_int_equal(info.pcie_lanes, 16);
    assert_int_equal(info.pcie_lanes_max, 16);

    assert_true(amdgpu_device_describe(amdgpu, 2, &info));
    assert_string_equal(info.name, "Strix [Radeon 880M / 890M]"); /* from pci.ids, of the right vendor */
    assert_string_equal(info.uuid, "PCI-0000:e5:00.0");           /* it has no unique id */
    assert_string_equal(info.architecture, "");
    assert_false(amdgpu_device_describe(amdgpu, 3, &info));
}

static void an_instinct_tells_junction_energy_links_and_errors(void **state)
{
    (void)state;
    struct gpu_sample sample;
    assert_true(amd_tree_add(root, AMD_TREE_MI300X, 0, MI300X));
    open_tree();
    amdgpu_device_sample(amdgpu, 0, true, &sample);
    assert_string_equal(amdgpu_device_metrics_problem(amdgpu, 0), "");
    assert_metric(&sample, GPU_UTIL_PCT, 87); /* from the file, not the table */
    assert_metric(&sample, GPU_MEM_UTIL_PCT, 41);
    assert_metric(&sample, GPU_TEMP_C, 61); /* no edge sensor, so the junction */
    assert_metric(&sample, GPU_TEMP_JUNCTION_C, 61);
    assert_metric(&sample, GPU_TEMP_MEM_C, 54);
    assert_false(gpu_sample_knows(&sample, GPU_TEMP_EDGE_C));
    assert_metric(&sample, GPU_POWER_MW, 553000);
    assert_metric(&sample, GPU_POWER_LIMIT_MW, 750000);
    assert_metric(&sample, GPU_ENERGY_UJ, UINT64_C(1048576) * 1000000);
    assert_metric(&sample, GPU_MEM_USED_BYTES, UINT64_C(64) << 30);
    assert_metric(&sample, GPU_MEM_TOTAL_BYTES, 206141652992);
    assert_metric(&sample, GPU_CLOCK_SM_MHZ, 2094);
    assert_metric(&sample, GPU_CLOCK_GFX_MHZ, 2094);
    assert_metric(&sample, GPU_CLOCK_MEM_MHZ, 1300);
    assert_metric(&sample, GPU_PCIE_BPS, 100000000); /* 800 Mb/s */
    assert_metric(&sample, GPU_ECC_CORRECTED, 8);
    assert_metric(&sample, GPU_ECC_UNCORRECTED, 1);
    assert_false(gpu_sample_knows(&sample, GPU_FAN_RPM));
    assert_false(gpu_sample_knows(&sample, GPU_XGMI_READ_BPS)); /* needs two readings */
    assert_false(gpu_sample_knows(&sample, GPU_THROTTLE_REASONS));

    amdgpu_device_sample(amdgpu, 0, false, &sample);
    assert_metric(&sample, GPU_XGMI_READ_BPS, 0);
    assert_metric(&sample, GPU_THROTTLE_REASONS, 0);            /* no counter moved */
    assert_false(gpu_sample_knows(&sample, GPU_ECC_CORRECTED)); /* a slow one */
    assert_true(amd_tree_text(root, "sys/class/drm/card0/device/gpu_busy_percent", "3\n"));
    amdgpu_device_sample(amdgpu, 0, false, &sample);
    assert_metric(&sample, GPU_UTIL_PCT, 3); /* the open file shows the current value */
}

static void a_counter_that_moves_is_a_reason_for_lower_clocks(void **state)
{
    (void)state;
    struct gpu_sample sample;
    char table[4096];
    const char *path = "sys/class/drm/card0/device/gpu_metrics";
    assert_true(amd_tree_add(root, AMD_TREE_MI300X, 0, MI300X));
    open_tree();
    amdgpu_device_sample(amdgpu, 0, false, &sample);
    char whole[200];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    FILE *file = fopen(whole, "rb");
    assert_non_null(file);
    size_t size = fread(table, 1, sizeof table, file);
    fclose(file);
    assert_int_equal(size, 2208);
    table[48]++;  /* the power limit's counter */
    table[136]++; /* kilobytes over the first link */
    assert_true(amd_tree_write(root, path, table, size));
    amdgpu_device_sample(amdgpu, 0, false, &sample);
    assert_metric(&sample, GPU_THROTTLE_REASONS, GPU_THROTTLE_SOFTWARE_POWER_CAP);
    assert_true(gpu_sample_knows(&sample, GPU_XGMI_READ_BPS));
    assert_true(sample.values[GPU_XGMI_READ_BPS] > 0);
    table[136] = 0; /* after a reset it counts from zero: no rate, and no huge one */
    table[137] = 0;
    assert_true(amd_tree_write(root, path, table, size));
    amdgpu_device_sample(amdgpu, 0, false, &sample);
    assert_false(gpu_sample_knows(&sample, GPU_XGMI_READ_BPS));
}

static void a_radeon_tells_its_fan_voltage_and_three_temperatures(void **state)
{
    (void)state;
    struct gpu_sample sample;
    assert_true(amd_tree_add(root, AMD_TREE_RX7900, 0, RX7900));
    open_tree();
    amdgpu_device_sample(amdgpu, 0, false, &sample);
    assert_metric(&sample, GPU_TEMP_C, 48);
    assert_metric(&sample, GPU_TEMP_EDGE_C, 48);
    assert_metric(&sample, GPU_TEMP_JUNCTION_C, 59);
    assert_metric(&sample, GPU_TEMP_MEM_C, 70);
    assert_metric(&sample, GPU_FAN_RPM, 1234);
    assert_metric(&sample, GPU_FAN_PCT, 40);
    assert_metric(&sample, GPU_VOLTAGE_MV, 893);
    assert_metric(&sample, GPU_POWER_MW, 98000);
    assert_metric(&sample, GPU_ENERGY_UJ, 3000000);
    assert_metric(&sample, GPU_CLOCK_MEM_MHZ, 1249); /* from the table: there is no freq2 */
    assert_metric(&sample, GPU_THROTTLE_REASONS, GPU_THROTTLE_SOFTWARE_POWER_CAP | GPU_THROTTLE_SOFTWARE_THERMAL);
    assert_false(gpu_sample_knows(&sample, GPU_PCIE_BPS));
}

static void an_apu_tells_what_it_has(void **state)
{
    (void)state;
    struct gpu_sample sample;
    assert_true(amd_tree_add(root, AMD_TREE_APU, 1, "0000:e5:00.0"));
    open_tree();
    amdgpu_device_sample(amdgpu, 0, true, &sample);
    assert_metric(&sample, GPU_TEMP_C, 43);
    assert_metric(&sample, GPU_VOLTAGE_MV, 701); /* of the GPU cores, not of the north bridge */
    assert_metric(&sample, GPU_POWER_MW, 15250); /* no hwmon sensor, so the table's value */
    assert_metric(&sample, GPU_CLOCK_GFX_MHZ, 800);
    assert_false(gpu_sample_knows(&sample, GPU_ENERGY_UJ));
    assert_false(gpu_sample_knows(&sample, GPU_ECC_CORRECTED));
    assert_int_equal(amdgpu_device_processes(amdgpu, 0, NULL, 0), 0);
}

static void rocm_smi_is_asked_for_what_the_files_lack(void **state)
{
    (void)state;
    struct gpu_sample sample;
    setenv("FAKE_ROCM_SMI_SLOT", "0000:e5:00.0", 1);
    assert_true(amd_tree_add(root, AMD_TREE_APU, 1, "0000:e5:00.0"));
    open_tree();
    amdgpu_device_sample(amdgpu, 0, false, &sample);
    assert_false(gpu_sample_knows(&sample, GPU_ENERGY_UJ)); /* not with the fast values */
    amdgpu_device_sample(amdgpu, 0, true, &sample);
    assert_metric(&sample, GPU_ENERGY_UJ, 15250000);
    assert_metric(&sample, GPU_ECC_CORRECTED, 11);
    assert_metric(&sample, GPU_ECC_UNCORRECTED, 2);
    amdgpu_close(amdgpu);
    assert_int_equal(amdgpu_open(&amdgpu, false, NULL), GPUFL_OK); /* not in the user's process */
    amdgpu_device_sample(amdgpu, 0, true, &sample);
    assert_false(gpu_sample_knows(&sample, GPU_ENERGY_UJ));
}

/* Each partition is a device: the first has the values of the GPU's files, the others KFD's values. */
static void check_partitions(bool in_function)
{
    struct gpu_sample sample;
    struct gpu_process processes[4];
    assert_true(amd_tree_add(root, AMD_TREE_MI300X, 0, MI300X));
    assert_true(amd_tree_add(root, AMD_TREE_RX7900, 1, RX7900));
    assert_true(amd_tree_divide(root, 0, MI300X, 4, in_function));
    assert_true(amd_tree_kfd_process(root, 77, amd_tree_partition_id(0, 2), 1 << 20));
    open_tree();
    assert_int_equal(amdgpu_device_count(amdgpu), 5); /* the Radeon is first on the bus */
    for (uint32_t i = 0; i < 4; i++) {
        struct gpu_device_info info;
        char name[64], uuid[64];
        assert_true(amdgpu_device_describe(amdgpu, 1 + i, &info));
        snprintf(name, sizeof name, "AMD Instinct MI300X OAM, partition %u", i);
        snprintf(uuid, sizeof uuid, i ? "GPU-6b7be00c63c4b000/%u" : "GPU-6b7be00c63c4b000", i);
        assert_string_equal(info.name, name);
        assert_string_equal(info.uuid, uuid);
        assert_string_equal(info.pci_bus_id, MI300X);
        assert_string_equal(info.architecture, "gfx942");
        assert_int_equal(info.multiprocessors, 76);
        assert_true(info.is_partition);
        assert_int_equal(info.partition, i);
        amdgpu_device_sample(amdgpu, 1 + i, true, &sample);
        assert_false(sample.is_lost);
        assert_int_equal(gpu_sample_knows(&sample, GPU_POWER_MW), i == 0);
        assert_int_equal(gpu_sample_knows(&sample, GPU_UTIL_PCT), i == 0);
        assert_int_equal(gpu_sample_knows(&sample, GPU_ECC_CORRECTED), i == 0);
        assert_metric(&sample, GPU_MEM_TOTAL_BYTES, i ? 206141652992ull / 4 : 206141652992ull);
        assert_string_equal(amdgpu_device_metrics_problem(amdgpu, 1 + i), "");
        assert_int_equal(amdgpu_device_processes(amdgpu, 1 + i, processes, 4), i == 2);
    }
}

static void partitions_are_devices(void **state)
{
    (void)state;
    check_partitions(false);
}

static void partitions_that_are_numbered_as_functions_are_devices(void **state)
{
    (void)state;
    check_partitions(true);
}

static void a_table_of_another_version_costs_only_itself(void **state)
{
    (void)state;
    struct gpu_sample sample;
    assert_true(amd_tree_add(root, AMD_TREE_RX7900, 0, RX7900));
    assert_true(amd_tree_write(root, "sys/class/drm/card0/device/gpu_metrics", "\x78\x00\x01\x0a", 4));
    open_tree();
    amdgpu_device_sample(amdgpu, 0, false, &sample);
    assert_string_equal(amdgpu_device_metrics_problem(amdgpu, 0), "gpu_metrics has version 1.10, which is not known");
    assert_metric(&sample, GPU_POWER_MW, 98000);
    assert_false(gpu_sample_knows(&sample, GPU_ENERGY_UJ));
    assert_metric(&sample, GPU_CLOCK_MEM_MHZ, 1249); /* from the list of levels */
}

static void a_lost_gpu_is_lost_and_a_sleeping_one_is_not(void **state)
{
    (void)state;
    struct gpu_sample sample;
    assert_true(amd_tree_add(root, AMD_TREE_RX7900, 0, RX7900));
    open_tree();
    read_error = EPERM; /* during a reset */
    amdgpu_device_sample(amdgpu, 0, true, &sample);
    assert_false(sample.is_lost);
    assert_int_equal(sample.known, UINT64_C(1) << GPU_MEM_TOTAL_BYTES);
    read_error = 0;
    amdgpu_device_sample(amdgpu, 0, true, &sample);
    assert_metric(&sample, GPU_UTIL_PCT, 12); /* and it is still used */

    assert_true(amd_tree_text(root, "sys/class/drm/card0/device/power/runtime_status", "suspended\n"));
    amdgpu_device_sample(amdgpu, 0, true, &sample);
    assert_int_equal(sample.known, UINT64_C(1) << GPU_MEM_TOTAL_BYTES); /* nothing that would wake it */
    assert_false(sample.is_lost);

    read_error = ENODEV;
    amdgpu_device_sample(amdgpu, 0, true, &sample);
    assert_true(sample.is_lost);
    assert_int_equal(sample.known, 0);
}

static void what_no_driver_shows_does_no_harm(void **state)
{
    (void)state;
    struct gpu_sample sample;
    struct gpu_device_info info;
    assert_true(amd_tree_add(root, AMD_TREE_BROKEN, 0, "0000:01:00.0"));
    assert_true(amd_tree_text(root, "sys/class/drm/cardX/device/vendor", "0x1002\n"));
    assert_true(amd_tree_text(root, "sys/class/drm/card7/device/vendor", "0x1002\n")); /* no uevent */
    open_tree();
    assert_int_equal(amdgpu_device_count(amdgpu), 1);
    assert_true(amdgpu_device_describe(amdgpu, 0, &info));
    assert_string_equal(info.name, "");
    assert_string_equal(info.uuid, "PCI-0000:01:00.0");
    for (int i = 0; i < 3; i++) {
        amdgpu_device_sample(amdgpu, 0, true, &sample);
        assert_int_equal(sample.known, 0);
        assert_false(sample.is_lost);
    }
    assert_non_null(strstr(amdgpu_device_metrics_problem(amdgpu, 0), "bytes"));
}

static void processes_come_from_kfd_and_from_open_files(void **state)
{
    (void)state;
    struct gpu_process processes[8];
    assert_true(amd_tree_add(root, AMD_TREE_MI300X, 0, MI300X));
    assert_true(amd_tree_add(root, AMD_TREE_RX7900, 1, RX7900));
    assert_true(amd_tree_kfd_process(root, 4000, amd_tree_gpu_id(0), UINT64_C(3) << 30));
    assert_true(amd_tree_kfd_process(root, 4001, amd_tree_gpu_id(0), 0)); /* computes on another GPU */
    assert_true(amd_tree_drm_process(root, 4000, 5, 9, MI300X, 1024));    /* less than KFD's number, and part of it */
    assert_true(amd_tree_drm_process(root, 5000, 7, 3, RX7900, 2048));
    assert_true(amd_tree_drm_process(root, 5000, 8, 3, RX7900, 2048)); /* the same client again */
    assert_true(amd_tree_drm_process(root, 5000, 9, 4, RX7900, 1000));
    assert_true(amd_tree_text(root, "proc/self/fd/3", "")); /* no number, no process */
    open_tree();
    assert_int_equal(amdgpu_device_processes(amdgpu, 0, processes, 8), 1);
    assert_int_equal(processes[0].pid, 5000);
    assert_int_equal(processes[0].used_bytes, (2048 + 1000) * 1024);
    assert_int_equal(amdgpu_device_processes(amdgpu, 1, processes, 8), 1);
    assert_int_equal(processes[0].pid, 4000);
    assert_int_equal(processes[0].used_bytes, UINT64_C(3) << 30);
    assert_int_equal(amdgpu_device_processes(amdgpu, 0, processes, 0), 1); /* counted, not written */
    assert_int_equal(amdgpu_device_processes(amdgpu, 2, processes, 8), -1);
}

static void texts_are_read_strictly(void **state)
{
    (void)state;
    uint64_t number = 7, corrected = 1, uncorrected = 2;
    assert_true(amd_number_parse("0x1002\n", &number) && number == 0x1002);
    assert_true(amd_number_parse("12 \n", &number) && number == 12);
    static const char *const wrong[] = {"", "-1", "0x", "12a", "1 2", "99999999999999999999", " 5"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(amd_number_parse(wrong[i], &number));
    assert_true(amd_dpm_parse("0: 500Mhz \n1: 2100MHz *\n", &number) && number == 2100);
    assert_false(amd_dpm_parse("0: 500Mhz\n", &number));
    assert_false(amd_dpm_parse("0: fast *\n", &number));
    assert_false(amd_ras_parse("ue: 18446744073709551615\n", &corrected, &uncorrected));
    assert_true(amd_property_find("simd_count 4\nsimd_per_cu 2\n", "simd_per_cu", &number) && number == 2);
    assert_false(amd_property_find("simd_count_x 4\n", "simd_count", &number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_card_there_is_no_driver_and_the_place_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(gpus_are_listed_by_place_with_what_is_known_of_them, setup, teardown),
        cmocka_unit_test_setup_teardown(an_instinct_tells_junction_energy_links_and_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(a_counter_that_moves_is_a_reason_for_lower_clocks, setup, teardown),
        cmocka_unit_test_setup_teardown(a_radeon_tells_its_fan_voltage_and_three_temperatures, setup, teardown),
        cmocka_unit_test_setup_teardown(an_apu_tells_what_it_has, setup, teardown),
        cmocka_unit_test_setup_teardown(rocm_smi_is_asked_for_what_the_files_lack, setup, teardown),
        cmocka_unit_test_setup_teardown(partitions_are_devices, setup, teardown),
        cmocka_unit_test_setup_teardown(partitions_that_are_numbered_as_functions_are_devices, setup, teardown),
        cmocka_unit_test_setup_teardown(a_table_of_another_version_costs_only_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lost_gpu_is_lost_and_a_sleeping_one_is_not, setup, teardown),
        cmocka_unit_test_setup_teardown(what_no_driver_shows_does_no_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(processes_come_from_kfd_and_from_open_files, setup, teardown),
        cmocka_unit_test(texts_are_read_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
