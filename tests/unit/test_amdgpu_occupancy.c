/* SPDX-License-Identifier: Apache-2.0 */
/* Waves per SIMD, compared with AMD's published tables (CDNA 2 and GCN register pressure) and the allocation
 * granularities in LLVM's AMDGPU backend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture/occupancy.h"
#include "code/amdgpu_occupancy.h"

static const uint32_t none = AMDGPU_UNKNOWN;

static struct amdgpu_occupancy occupancy_of(const char *name, struct amdgpu_demand demand)
{
    struct amdgpu_target target;
    assert_true(amdgpu_target_parse(name, &target));
    return amdgpu_occupancy(&target, &demand);
}

/* Limited by registers only. */
static uint32_t waves_of(const char *name, uint32_t wave_size, uint32_t vgprs, uint32_t sgprs)
{
    struct amdgpu_occupancy occupancy =
        occupancy_of(name, (struct amdgpu_demand){.vgpr_count = vgprs, .sgpr_count = sgprs, .wave_size = wave_size});
    assert_null(occupancy.problem);
    assert_int_equal(occupancy.waves % occupancy.simd_count, 0);
    assert_int_equal(occupancy.groups, none);
    assert_int_equal(occupancy.by_lds, none);
    return occupancy.waves / occupancy.simd_count;
}

static void vector_registers_limit_waves_as_in_the_tables(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        uint32_t wave_size, vgprs, waves;
    } cases[] = {
        {"gfx90a", 64, 1, 8},     {"gfx90a", 64, 64, 8},    {"gfx90a", 64, 65, 7},   {"gfx90a", 64, 72, 7},
        {"gfx90a", 64, 80, 6},    {"gfx90a", 64, 96, 5},    {"gfx90a", 64, 128, 4},  {"gfx90a", 64, 168, 3},
        {"gfx90a", 64, 169, 2},   {"gfx90a", 64, 256, 2},   {"gfx90a", 64, 257, 1},  {"gfx90a", 64, 512, 1},
        {"gfx942", 64, 128, 4},   {"gfx906", 64, 24, 10},   {"gfx906", 64, 25, 9},   {"gfx906", 64, 28, 9},
        {"gfx906", 64, 32, 8},    {"gfx906", 64, 36, 7},    {"gfx906", 64, 40, 6},   {"gfx906", 64, 48, 5},
        {"gfx906", 64, 64, 4},    {"gfx906", 64, 84, 3},    {"gfx906", 64, 128, 2},  {"gfx906", 64, 256, 1},
        {"gfx1010", 32, 48, 20},  {"gfx1010", 32, 56, 18},  {"gfx1010", 64, 24, 20}, {"gfx1030", 32, 64, 16},
        {"gfx1030", 32, 65, 12},  {"gfx1030", 32, 128, 8},  {"gfx1030", 32, 256, 4}, {"gfx1030", 64, 128, 4},
        {"gfx1100", 32, 96, 16},  {"gfx1100", 32, 120, 12}, {"gfx1100", 32, 192, 8}, {"gfx1100", 32, 256, 5},
        {"gfx1151", 32, 120, 12}, {"gfx1102", 32, 120, 8},  {"gfx1100", 64, 96, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (waves_of(cases[i].target, cases[i].wave_size, cases[i].vgprs, 16) != cases[i].waves)
            fail_msg("%s, %u registers: %u waves, not %u", cases[i].target, cases[i].vgprs,
                     waves_of(cases[i].target, cases[i].wave_size, cases[i].vgprs, 16), cases[i].waves);
}

static void scalar_registers_limit_waves_of_gfx9_only(void **state)
{
    (void)state;
    assert_int_equal(waves_of("gfx906", 64, 4, 80), 10);
    assert_int_equal(waves_of("gfx906", 64, 4, 96), 8);
    assert_int_equal(waves_of("gfx906", 64, 4, 102), 7);
    assert_int_equal(waves_of("gfx90a", 64, 4, 96), 8);
    assert_int_equal(waves_of("gfx90a", 64, 4, 102), 7);
    assert_int_equal(waves_of("gfx1100", 32, 4, none), 16);
    struct amdgpu_occupancy occupancy =
        occupancy_of("gfx90a", (struct amdgpu_demand){.vgpr_count = 4, .sgpr_count = 102, .wave_size = 64});
    assert_int_equal(occupancy.limiter, AMDGPU_LIMITER_SGPR);
}

static void launches_are_counted_in_whole_work_groups(void **state)
{
    (void)state;
    /* VGPRs, SGPRs, wave size, work-items, LDS, WGP mode; work-groups, waves, limiter */
    static const struct {
        const char *target;
        struct amdgpu_demand demand;
        uint32_t groups, waves;
        enum amdgpu_limiter limiter;
    } cases[] = {
        {"gfx90a", {32, 16, 64, 256, 0, false}, 8, 32, AMDGPU_LIMITER_NONE},
        {"gfx90a", {128, 16, 64, 256, 0, false}, 4, 16, AMDGPU_LIMITER_VGPR},
        {"gfx90a", {32, 16, 64, 256, 32 << 10, false}, 2, 8, AMDGPU_LIMITER_LDS},
        {"gfx90a", {32, 16, 64, 256, (32 << 10) + 1, false}, 1, 4, AMDGPU_LIMITER_LDS},
        {"gfx90a", {32, 16, 64, 64, 0, false}, 32, 32, AMDGPU_LIMITER_NONE},
        /* 13 waves of 832 work-items: two work-groups of 32 waves leave six slots empty. */
        {"gfx90a", {32, 16, 64, 832, 0, false}, 2, 26, AMDGPU_LIMITER_GROUPS},
        /* Two waves each, but only 16 slots for work-groups. */
        {"gfx906", {16, 16, 64, 128, 0, false}, 16, 32, AMDGPU_LIMITER_GROUPS},
        {"gfx906", {16, 16, 64, 64, 0, false}, 40, 40, AMDGPU_LIMITER_NONE},
        {"gfx1030", {32, AMDGPU_UNKNOWN, 32, 256, 32 << 10, true}, 4, 32, AMDGPU_LIMITER_LDS},
        {"gfx1030", {32, AMDGPU_UNKNOWN, 32, 256, 32 << 10, false}, 2, 16, AMDGPU_LIMITER_LDS},
        {"gfx1030", {32, AMDGPU_UNKNOWN, 32, 256, 100, true}, 8, 64, AMDGPU_LIMITER_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct amdgpu_occupancy occupancy = occupancy_of(cases[i].target, cases[i].demand);
        assert_null(occupancy.problem);
        if (occupancy.groups != cases[i].groups || occupancy.waves != cases[i].waves ||
            occupancy.limiter != cases[i].limiter)
            fail_msg("case %zu: %u work-groups, %u waves, limited by %s", i, occupancy.groups, occupancy.waves,
                     amdgpu_limiter_name(occupancy.limiter));
    }
}

static void unknown_occupancy_has_a_reason_and_no_number(void **state)
{
    (void)state;
    static const struct {
        const char *target, *words;
        struct amdgpu_demand demand;
    } cases[] = {
        {"gfx1201", "rules of this target", {32, 16, 32, 256, 0, false}},
        {"gfx11-generic", "rules of this target", {32, 16, 32, 256, 0, false}},
        {"gfx803", "rules of this target", {32, 16, 64, 256, 0, false}},
        {"gfx90a", "rules of this target", {32, 16, 32, 256, 0, false}},
        {"gfx90a", "how many registers", {AMDGPU_UNKNOWN, 16, 64, 256, 0, false}},
        {"gfx90a", "how many registers", {32, AMDGPU_UNKNOWN, 64, 256, 0, false}},
        {"gfx90a", "not one that this target can run", {32, 16, 64, 4096, 0, false}},
        {"gfx950", "hands out LDS", {32, 16, 64, 256, 1024, false}},
        {"gfx90a", "no work-group", {32, 16, 64, 256, 65 << 10, false}},
        {"gfx90a", "no work-group", {512, 16, 64, 1024, 0, false}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct amdgpu_occupancy occupancy = occupancy_of(cases[i].target, cases[i].demand);
        if (!occupancy.problem || !strstr(occupancy.problem, cases[i].words))
            fail_msg("case %zu: %s", i, occupancy.problem ? occupancy.problem : "is known");
        assert_int_equal(occupancy.waves, 0);
    }
    assert_null(occupancy_of("gfx950", (struct amdgpu_demand){32, 16, 64, 256, 0, false}).problem);
}

static void accumulation_registers_count_where_they_share_a_file(void **state)
{
    (void)state;
    struct amdgpu_target cdna1, cdna2;
    assert_true(amdgpu_target_parse("gfx908", &cdna1) && amdgpu_target_parse("gfx90a", &cdna2));
    assert_int_equal(amdgpu_vgpr_total(&cdna1, 30, 64), 64);
    assert_int_equal(amdgpu_vgpr_total(&cdna2, 30, 64), 96);
    assert_int_equal(amdgpu_vgpr_total(&cdna2, 30, 0), 30);
}

static void launches_on_gfx9_have_their_occupancy_in_the_log(void **state)
{
    (void)state;
    struct amd_occupancy_input input = {90010, 256, 128, 0, 16, 0};
    struct occupancy occupancy = amd_occupancy_compute(&input);
    assert_true(occupancy.is_known);
    assert_int_equal(occupancy.total_bp, 5000);
    assert_int_equal(occupancy.regs_bp, 5000);
    assert_int_equal(occupancy.shared_bp, 10000);
    assert_int_equal(occupancy.warps_bp, 10000);
    assert_int_equal(occupancy.blocks_bp, 10000);
    assert_int_equal(occupancy.active_blocks_max, 4);
    assert_int_equal(occupancy.limiter, LIMITER_REGISTERS);
    input = (struct amd_occupancy_input){90402, 256, 64, 64, 16, 32 << 10};
    occupancy = amd_occupancy_compute(&input);
    assert_int_equal(occupancy.total_bp, 2500);
    assert_int_equal(occupancy.regs_bp, 5000);
    assert_int_equal(occupancy.shared_bp, 2500);
    assert_int_equal(occupancy.limiter, LIMITER_SHARED_MEMORY);
    input = (struct amd_occupancy_input){90006, 128, 16, 0, 16, 0};
    occupancy = amd_occupancy_compute(&input);
    assert_int_equal(occupancy.total_bp, 8000);
    assert_int_equal(occupancy.limiter, LIMITER_BLOCKS);
    /* Its waves may have 32 or 64 work-items: the launch does not contain the size. */
    input.gfx_version = 100300;
    assert_false(amd_occupancy_compute(&input).is_known);
    input = (struct amd_occupancy_input){90010, 0, 128, 0, 16, 0};
    assert_false(amd_occupancy_compute(&input).is_known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vector_registers_limit_waves_as_in_the_tables),
        cmocka_unit_test(scalar_registers_limit_waves_of_gfx9_only),
        cmocka_unit_test(launches_are_counted_in_whole_work_groups),
        cmocka_unit_test(unknown_occupancy_has_a_reason_and_no_number),
        cmocka_unit_test(accumulation_registers_count_where_they_share_a_file),
        cmocka_unit_test(launches_on_gfx9_have_their_occupancy_in_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
