/* SPDX-License-Identifier: Apache-2.0 */
/* The binary tables of gpu_metrics: offsets as the kernel's headers have them, written out as numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/amdgpu_metrics.h"
#include "driver/amdgpu_metrics_abi.h"
#include "driver/gpu_sample.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct amd_abi_v1_8) <= AMD_METRICS_BYTES_MAX, "the largest table fits");

static uint8_t table[AMD_METRICS_BYTES_MAX];

static void table_begin(uint16_t size, uint8_t format, uint8_t content)
{
    memset(table, 0xff, sizeof table); /* nothing is known */
    memcpy(table, &size, sizeof size);
    table[2] = format;
    table[3] = content;
}

static void put16(size_t offset, uint16_t value)
{
    memcpy(table + offset, &value, sizeof value);
}

static void put32(size_t offset, uint32_t value)
{
    memcpy(table + offset, &value, sizeof value);
}

static void put64(size_t offset, uint64_t value)
{
    memcpy(table + offset, &value, sizeof value);
}

static struct amd_metrics decode(size_t size)
{
    struct amd_metrics metrics;
    struct problem problem = {""};
    if (amd_metrics_decode(&metrics, table, size, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
    return metrics;
}

static void assert_field(const struct amd_metrics *metrics, enum amd_metrics_field field, uint64_t value)
{
    assert_true(amd_metrics_has(metrics, field));
    assert_int_equal(metrics->values[field], value);
}

static const struct {
    uint16_t size;
    uint8_t format, content;
} versions[] = {{80, 1, 0},  {96, 1, 1},   {104, 1, 2},  {120, 1, 3},  {288, 1, 4}, {360, 1, 5},
                {384, 1, 6}, {1664, 1, 6}, {2208, 1, 7}, {3872, 1, 8}, {120, 2, 0}, {120, 2, 1},
                {128, 2, 2}, {152, 2, 3},  {168, 2, 4},  {264, 3, 0}};
enum { version_count = sizeof versions / sizeof *versions };

static void a_table_without_values_is_all_unknown(void **state)
{
    (void)state;
    for (size_t i = 0; i < version_count; i++) {
        table_begin(versions[i].size, versions[i].format, versions[i].content);
        struct amd_metrics metrics = decode(versions[i].size);
        assert_int_equal(metrics.known, 0);
        assert_int_equal(metrics.format, versions[i].format);
        assert_int_equal(metrics.content, versions[i].content);
    }
}

static void another_size_or_version_is_refused_and_said(void **state)
{
    (void)state;
    struct amd_metrics metrics;
    struct problem problem;
    for (size_t i = 0; i < version_count; i++) {
        table_begin((uint16_t)(versions[i].size + 8), versions[i].format, versions[i].content);
        assert_int_equal(amd_metrics_decode(&metrics, table, sizeof table, &problem), GPUFL_E_UNSUPPORTED);
        assert_non_null(strstr(problem.text, "bytes"));
        table_begin(versions[i].size, versions[i].format, versions[i].content);
        assert_int_equal(amd_metrics_decode(&metrics, table, versions[i].size - 1u, &problem), GPUFL_E_UNSUPPORTED);
    }
    static const uint8_t others[][2] = {{0, 0}, {1, 10}, {2, 5}, {3, 1}, {4, 0}, {255, 255}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        table_begin(120, others[i][0], others[i][1]);
        assert_int_equal(amd_metrics_decode(&metrics, table, sizeof table, &problem), GPUFL_E_UNSUPPORTED);
        assert_non_null(strstr(problem.text, "not known"));
    }
    for (size_t size = 0; size < 4; size++)
        assert_int_equal(amd_metrics_decode(&metrics, table, size, &problem), GPUFL_E_UNSUPPORTED);
}

/* ---- 1.9: unit, type, number and count in 64 bits, and then the values; numbers as in kgd_pp_interface.h ---- */

static size_t list_end;

static void list_begin(int32_t count)
{
    table_begin(0, 1, 9);
    memcpy(table + 4, &count, sizeof count);
    list_end = 8;
}

static void list_add(uint64_t unit, uint64_t type, uint64_t id, const uint64_t *values, uint64_t count)
{
    uint64_t encoding = unit << 24 | type << 20 | id << 10 | count;
    memcpy(table + list_end, &encoding, 8);
    list_end += 8;
    const size_t width = type < 8 ? (size_t)1 << type / 2 : 8;
    for (uint64_t i = 0; i < count; i++, list_end += width)
        memcpy(table + list_end, &values[i], width);
    uint16_t size = (uint16_t)list_end;
    memcpy(table, &size, sizeof size);
}

#define LIST(unit, type, id, ...)                                         \
    do {                                                                  \
        const uint64_t values[] = {__VA_ARGS__};                          \
        list_add(unit, type, id, values, sizeof values / sizeof *values); \
    } while (0)

static void a_list_of_attributes_gives_its_values(void **state)
{
    (void)state;
    list_begin(18);
    LIST(2, 2, 0, 61);        /* hotspot, U16, degrees */
    LIST(2, 2, 1, 54);        /* memory */
    LIST(2, 2, 2, 40);        /* regulator: not ours */
    LIST(3, 2, 3, 553);       /* W */
    LIST(10, 2, 4, 87);       /* gfx activity */
    LIST(10, 2, 5, 0xffff);   /* memory activity: the chip has none */
    LIST(8, 6, 6, 5300);      /* largest bandwidth */
    LIST(0, 6, 7, 65536 * 2); /* energy */
    LIST(0, 4, 10, 11);       /* prochot */
    LIST(0, 4, 11, 12);       /* power */
    LIST(0, 4, 12, 100);      /* thermal: socket, regulator, HBM */
    LIST(0, 4, 13, 20);
    LIST(0, 4, 14, 0xffffffff);
    LIST(8, 6, 23, 4000); /* PCIe */
    LIST(9, 6, 29, 1, 2, 3, UINT64_MAX, 5, 6, 7, 8);
    LIST(9, 6, 30, 10, 20);
    LIST(1, 2, 33, 2100, 0xffff, 2094); /* gfx clocks */
    LIST(1, 2, 37, 1300);
    struct amd_metrics metrics = decode(list_end);
    assert_int_equal(metrics.content, 9);
    assert_field(&metrics, AMD_FIELD_TEMP_HOTSPOT_C, 61);
    assert_field(&metrics, AMD_FIELD_TEMP_MEM_C, 54);
    assert_field(&metrics, AMD_FIELD_POWER_MW, 553000);
    assert_field(&metrics, AMD_FIELD_GFX_ACTIVITY_PCT, 87);
    assert_false(amd_metrics_has(&metrics, AMD_FIELD_MEM_ACTIVITY_PCT));
    assert_field(&metrics, AMD_FIELD_ENERGY_UJ, 2000000);
    assert_field(&metrics, AMD_FIELD_RESIDENCY_PROCHOT, 11);
    assert_field(&metrics, AMD_FIELD_RESIDENCY_POWER, 12);
    assert_field(&metrics, AMD_FIELD_RESIDENCY_THERMAL, 120);
    assert_field(&metrics, AMD_FIELD_PCIE_MBPS, 4000);
    assert_field(&metrics, AMD_FIELD_XGMI_READ_KB, 32);
    assert_field(&metrics, AMD_FIELD_XGMI_WRITE_KB, 30);
    assert_field(&metrics, AMD_FIELD_GFX_MHZ, 2100);
    assert_field(&metrics, AMD_FIELD_MEM_MHZ, 1300);
}

static void an_attribute_of_another_unit_or_sign_is_unknown_and_the_rest_is_read(void **state)
{
    (void)state;
    list_begin(4);
    LIST(7, 2, 0, 61);   /* in a unit that is not known */
    LIST(2, 3, 1, 54);   /* signed */
    LIST(0, 6, 1000, 1); /* an attribute that is not known */
    LIST(3, 4, 3, 700);  /* wider than today */
    struct amd_metrics metrics = decode(list_end);
    assert_int_equal(metrics.known, 1u << AMD_FIELD_POWER_MW);
    assert_field(&metrics, AMD_FIELD_POWER_MW, 700000);
}

static void assert_list_is_refused(const char *why)
{
    struct amd_metrics metrics;
    struct problem problem = {""};
    assert_int_equal(amd_metrics_decode(&metrics, table, list_end, &problem), GPUFL_E_UNSUPPORTED);
    assert_non_null(strstr(problem.text, why));
}

static void a_list_that_does_not_add_up_is_refused(void **state)
{
    (void)state;
    list_begin(2); /* one is not there */
    LIST(2, 2, 0, 61);
    assert_list_is_refused("attribute 2 of 2");
    list_begin(1);
    LIST(2, 2, 0, 61);
    LIST(2, 2, 1, 54); /* one too many */
    assert_list_is_refused("its 1 attributes take 18");
    list_begin(-1);
    LIST(2, 2, 0, 61);
    assert_list_is_refused("its -1 attributes");
    list_begin(1);
    LIST(2, 9, 0, 61); /* no such type */
    assert_list_is_refused("attribute 1 of 1");
    list_begin(1);
    list_add(2, 2, 0, NULL, 0);
    assert_list_is_refused("attribute 1 of 1");
    table_begin(6, 1, 9);
    list_end = 6;
    assert_list_is_refused("says 6 bytes");
    table_begin(400, 1, 9);
    list_end = 300; /* cut off */
    assert_list_is_refused("says 400 bytes and has 300");
}

static void radeon_tables_give_their_values(void **state)
{
    (void)state;
    table_begin(120, 1, 3);
    put16(4, 48);   /* edge */
    put16(6, 59);   /* hotspot */
    put16(8, 70);   /* memory */
    put16(16, 99);  /* gfx activity */
    put16(18, 101); /* memory activity: more than can be */
    put16(22, 300); /* W */
    put64(24, 65536 * 2 + 32768);
    put16(54, 2500); /* current gfx clock */
    put16(58, 1249);
    put16(72, 1800); /* fan */
    put16(106, 901); /* gfx voltage */
    put64(112, 1);
    struct amd_metrics metrics = decode(120);
    assert_field(&metrics, AMD_FIELD_TEMP_EDGE_C, 48);
    assert_field(&metrics, AMD_FIELD_TEMP_HOTSPOT_C, 59);
    assert_field(&metrics, AMD_FIELD_TEMP_MEM_C, 70);
    assert_field(&metrics, AMD_FIELD_GFX_ACTIVITY_PCT, 99);
    assert_false(amd_metrics_has(&metrics, AMD_FIELD_MEM_ACTIVITY_PCT));
    assert_field(&metrics, AMD_FIELD_POWER_MW, 300000);
    assert_field(&metrics, AMD_FIELD_ENERGY_UJ, 2500000);
    assert_field(&metrics, AMD_FIELD_GFX_MHZ, 2500);
    assert_field(&metrics, AMD_FIELD_MEM_MHZ, 1249);
    assert_field(&metrics, AMD_FIELD_FAN_RPM, 1800);
    assert_field(&metrics, AMD_FIELD_GFX_MV, 901);
    assert_field(&metrics, AMD_FIELD_THROTTLE, 1);

    /* The shorter ones must not read what lies behind them. */
    table_begin(96, 1, 1);
    put16(106, 901);
    put64(112, 1);
    put16(4, 48);
    metrics = decode(sizeof table);
    assert_int_equal(metrics.known, 1u << AMD_FIELD_TEMP_EDGE_C);

    table_begin(80, 1, 0);
    put16(16, 33); /* edge, behind the time */
    put32(36, 65536);
    metrics = decode(80);
    assert_field(&metrics, AMD_FIELD_TEMP_EDGE_C, 33);
    assert_field(&metrics, AMD_FIELD_ENERGY_UJ, 1000000);
}

static void instinct_tables_give_their_values(void **state)
{
    static const struct {
        uint16_t size;
        uint8_t content;
        uint16_t energy, mbps, read, write, clocks, memory_clock, prochot; /* offsets; 0: has none */
    } layouts[] = {{288, 4, 24, 72, 104, 168, 240, 280, 0},    {360, 5, 88, 136, 176, 240, 312, 352, 0},
                   {384, 6, 88, 160, 200, 264, 336, 376, 108}, {1664, 6, 16, 88, 128, 192, 264, 304, 36},
                   {2208, 7, 24, 96, 136, 200, 296, 336, 44},  {3872, 8, 24, 96, 136, 200, 296, 336, 44}};
    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        table_begin(layouts[i].size, 1, layouts[i].content);
        put16(4, 61);
        put16(6, 54);
        put16(10, 700);
        put64(layouts[i].energy, UINT64_C(1) << 52); /* a large one must not overflow */
        put64(layouts[i].mbps, 1234);
        for (int link = 0; link < 7; link++) { /* the eighth is absent */
            put64(layouts[i].read + 8u * (size_t)link, 10);
            put64(layouts[i].write + 8u * (size_t)link, 20);
        }
        put16(layouts[i].clocks, 1900);
        put16(layouts[i].clocks + 6u, 2100);
        put16(layouts[i].memory_clock, 1300);
        for (int counter = 0; counter < 5 && layouts[i].prochot; counter++)
            put32(layouts[i].prochot + 4u * (size_t)counter, 100u * (unsigned)counter);
        struct amd_metrics metrics = decode(layouts[i].size);
        assert_field(&metrics, AMD_FIELD_TEMP_HOTSPOT_C, 61);
        assert_field(&metrics, AMD_FIELD_TEMP_MEM_C, 54);
        assert_false(amd_metrics_has(&metrics, AMD_FIELD_TEMP_EDGE_C));
        assert_field(&metrics, AMD_FIELD_POWER_MW, 700000);
        assert_field(&metrics, AMD_FIELD_ENERGY_UJ, (UINT64_C(1) << 36) * 1000000);
        assert_field(&metrics, AMD_FIELD_PCIE_MBPS, 1234);
        assert_field(&metrics, AMD_FIELD_XGMI_READ_KB, 70);
        assert_field(&metrics, AMD_FIELD_XGMI_WRITE_KB, 140);
        assert_field(&metrics, AMD_FIELD_GFX_MHZ, 2100);
        assert_field(&metrics, AMD_FIELD_MEM_MHZ, 1300);
        if (!layouts[i].prochot) {
            assert_false(amd_metrics_has(&metrics, AMD_FIELD_RESIDENCY_POWER));
            continue;
        }
        assert_field(&metrics, AMD_FIELD_RESIDENCY_PROCHOT, 0);
        assert_field(&metrics, AMD_FIELD_RESIDENCY_POWER, 100);
        assert_field(&metrics, AMD_FIELD_RESIDENCY_THERMAL, 200 + 300 + 400);
    }
}

static void apu_tables_give_what_is_certain(void **state)
{
    (void)state;
    table_begin(152, 2, 3);
    put16(4, 4200); /* degrees or hundredths: not certain */
    put16(76, 700);
    put16(80, 1600);
    put64(120, 2);
    struct amd_metrics metrics = decode(152);
    assert_false(amd_metrics_has(&metrics, AMD_FIELD_TEMP_EDGE_C));
    assert_field(&metrics, AMD_FIELD_GFX_MHZ, 700);
    assert_field(&metrics, AMD_FIELD_MEM_MHZ, 1600);
    assert_field(&metrics, AMD_FIELD_THROTTLE, 2);

    table_begin(120, 2, 1);
    put64(120, 2); /* behind the table */
    metrics = decode(sizeof table);
    assert_false(amd_metrics_has(&metrics, AMD_FIELD_THROTTLE));

    table_begin(168, 2, 4);
    put16(4, 4299);
    put16(28, 1234); /* hundredths of a percent */
    put16(40, 15000);
    put16(156, 911);
    metrics = decode(168);
    assert_field(&metrics, AMD_FIELD_TEMP_EDGE_C, 42);
    assert_field(&metrics, AMD_FIELD_GFX_ACTIVITY_PCT, 12);
    assert_field(&metrics, AMD_FIELD_POWER_MW, 15000);
    assert_field(&metrics, AMD_FIELD_GFX_MV, 911);

    table_begin(264, 3, 0);
    put16(4, 5001);
    put16(42, 33);
    put32(112, 22000);
    put16(174, 900);
    put32(228, 5);
    metrics = decode(264);
    assert_field(&metrics, AMD_FIELD_TEMP_EDGE_C, 50);
    assert_field(&metrics, AMD_FIELD_GFX_ACTIVITY_PCT, 33);
    assert_field(&metrics, AMD_FIELD_POWER_MW, 22000);
    assert_field(&metrics, AMD_FIELD_GFX_MHZ, 900);
    assert_field(&metrics, AMD_FIELD_RESIDENCY_PROCHOT, 5);
}

static void random_bytes_do_no_harm(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        struct amd_metrics metrics;
        size_t version = (size_t)round % version_count;
        size_t size = versions[version].size - (round % 7 == 0);
        uint8_t *bytes = malloc(size); /* a separate allocation, so that a sanitizer sees reads beyond it */
        assert_non_null(bytes);
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
        if (round % 3) {
            memcpy(bytes, &versions[version].size, 2);
            bytes[2] = versions[version].format;
            bytes[3] = versions[version].content;
        }
        if (round % 5 == 0) { /* as a list, whose first attributes can be read */
            bytes[2] = 1;
            bytes[3] = 9;
            for (size_t at = 8; at + 16 < size && at < 80; at += 16)
                memcpy(bytes + at, (const uint8_t[8]){1, 0x0c, 0x60, (uint8_t)round}, 8);
        }
        if (amd_metrics_decode(&metrics, bytes, size, NULL) == GPUFL_OK &&
            amd_metrics_has(&metrics, AMD_FIELD_GFX_ACTIVITY_PCT))
            assert_in_range(metrics.values[AMD_FIELD_GFX_ACTIVITY_PCT], 0, 100);
        free(bytes);
    }
}

static void limits_of_the_driver_become_reasons(void **state)
{
    (void)state;
    assert_int_equal(amd_throttle_reasons(0), 0);
    assert_int_equal(amd_throttle_reasons(1 << 1), GPU_THROTTLE_SOFTWARE_POWER_CAP);
    assert_int_equal(amd_throttle_reasons(1 << 17), GPU_THROTTLE_CURRENT_LIMIT);
    assert_int_equal(amd_throttle_reasons(UINT64_C(1) << 36), GPU_THROTTLE_SOFTWARE_THERMAL);
    assert_int_equal(amd_throttle_reasons(UINT64_C(1) << 47), GPU_THROTTLE_HARDWARE_THERMAL);
    assert_int_equal(amd_throttle_reasons(UINT64_C(1) << 57), GPU_THROTTLE_HARDWARE);
    assert_int_equal(amd_throttle_reasons(1 | UINT64_C(1) << 36),
                     GPU_THROTTLE_SOFTWARE_POWER_CAP | GPU_THROTTLE_SOFTWARE_THERMAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_without_values_is_all_unknown),
        cmocka_unit_test(another_size_or_version_is_refused_and_said),
        cmocka_unit_test(a_list_of_attributes_gives_its_values),
        cmocka_unit_test(an_attribute_of_another_unit_or_sign_is_unknown_and_the_rest_is_read),
        cmocka_unit_test(a_list_that_does_not_add_up_is_refused),
        cmocka_unit_test(radeon_tables_give_their_values),
        cmocka_unit_test(instinct_tables_give_their_values),
        cmocka_unit_test(apu_tables_give_what_is_certain),
        cmocka_unit_test(random_bytes_do_no_harm),
        cmocka_unit_test(limits_of_the_driver_become_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
