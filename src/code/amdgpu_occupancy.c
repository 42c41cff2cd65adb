/* SPDX-License-Identifier: Apache-2.0 */
#include "code/amdgpu_occupancy.h"

/* The resources of a SIMD and its CU. */
struct rules {
    uint32_t waves_max;
    uint32_t vgprs, vgpr_unit; /* per work-item of the demanded wave size */
    uint32_t sgprs, sgpr_unit; /* 0: every wave has all of them */
    uint32_t simds;
    uint32_t groups_max; /* with more than one wave each */
    uint32_t lds_bytes, lds_unit;
};

static uint32_t round_up(uint32_t value, uint32_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static bool rules_gfx9(const struct amdgpu_target *target, struct rules *rules)
{
    bool is_unified = amdgpu_is_unified(target);
    *rules = (struct rules){
        .waves_max = is_unified ? 8 : 10,
        .vgprs = is_unified ? 512 : 256,
        .vgpr_unit = is_unified ? 8 : 4,
        .sgprs = 800,
        .sgpr_unit = 16,
        .simds = 4,
        .groups_max = 16,
        .lds_bytes = target->minor == 5 ? 0 : 64 << 10, /* gfx950: 160 KiB, in undocumented units */
        .lds_unit = 512,
    };
    return true;
}

static bool rules_rdna(const struct amdgpu_target *target, const struct amdgpu_demand *demand, struct rules *rules)
{
    bool is_first = target->major == 10 && target->minor == 1;
    /* These targets have 1.5 times the vector registers of related ones. */
    bool is_large = target->major == 11 &&
                    ((target->minor == 0 && target->stepping <= 1) || (target->minor == 5 && target->stepping == 1));
    uint32_t items_share = demand->wave_size / 32; /* twice the work-items, half the registers for each */
    uint32_t vgprs = is_large ? 1536 : 1024, vgpr_unit = is_large ? 24 : is_first ? 8 : 16;
    *rules = (struct rules){
        .waves_max = is_first ? 20 : 16,
        .vgprs = vgprs / items_share,
        .vgpr_unit = vgpr_unit / items_share,
        .simds = demand->is_wgp_mode ? 4 : 2,
        .groups_max = demand->is_wgp_mode ? 32 : 16,
        .lds_bytes = (demand->is_wgp_mode ? 128u : 64u) << 10,
        .lds_unit = is_first ? 512 : 1024,
    };
    return true;
}

static bool rules_find(const struct amdgpu_target *target, const struct amdgpu_demand *demand, struct rules *rules)
{
    if (target->is_generic)
        return false;
    if (target->major == 9 && demand->wave_size == 64)
        return rules_gfx9(target, rules);
    bool is_rdna = (target->major == 10 && (target->minor == 1 || target->minor == 3)) || target->major == 11;
    return is_rdna && (demand->wave_size == 32 || demand->wave_size == 64) && rules_rdna(target, demand, rules);
}

uint32_t amdgpu_vgpr_total(const struct amdgpu_target *target, uint32_t vector_count, uint32_t accumulation_count)
{
    if (amdgpu_is_unified(target))
        return accumulation_count ? round_up(vector_count, 4) + accumulation_count : vector_count;
    return vector_count > accumulation_count ? vector_count : accumulation_count;
}

/* Waves per SIMD. */
static uint32_t waves_by_registers(uint32_t total, uint32_t unit, uint32_t count, uint32_t waves_max)
{
    uint32_t waves = total / round_up(count ? count : 1, unit);
    return waves < waves_max ? waves : waves_max;
}

static void limit(struct amdgpu_occupancy *result, enum amdgpu_limiter limiter, uint32_t waves, uint32_t *by)
{
    *by = waves;
    /* On a tie the earlier limiter is kept: fixed hardware limits come before those that the program can change. */
    if (waves < result->waves) {
        result->waves = waves;
        result->limiter = limiter;
    }
}

/* Limits waves to whole work-groups. */
static void groups_limit(struct amdgpu_occupancy *result, const struct rules *rules, const struct amdgpu_demand *demand)
{
    uint32_t waves_per_group = (demand->group_size + demand->wave_size - 1) / demand->wave_size;
    uint32_t groups_max = waves_per_group > 1 ? rules->groups_max : rules->waves_max * rules->simds;
    uint32_t fitting = rules->waves_max * rules->simds / waves_per_group;
    uint32_t groups = fitting < groups_max ? fitting : groups_max;
    limit(result, AMDGPU_LIMITER_GROUPS, groups * waves_per_group, &result->by_groups);
    result->by_vgpr = result->by_vgpr / waves_per_group * waves_per_group;
    limit(result, AMDGPU_LIMITER_VGPR, result->by_vgpr, &result->by_vgpr);
    if (rules->sgprs) {
        result->by_sgpr = result->by_sgpr / waves_per_group * waves_per_group;
        limit(result, AMDGPU_LIMITER_SGPR, result->by_sgpr, &result->by_sgpr);
    }
    if (demand->lds_bytes) {
        uint32_t by_lds = rules->lds_bytes / round_up(demand->lds_bytes, rules->lds_unit);
        uint32_t most = rules->waves_max * rules->simds;
        uint32_t waves = by_lds < most ? by_lds * waves_per_group : most;
        limit(result, AMDGPU_LIMITER_LDS, waves < most ? waves : most, &result->by_lds);
    }
    result->groups = result->waves / waves_per_group;
}

static struct amdgpu_occupancy unknown(const char *problem)
{
    return (struct amdgpu_occupancy){.problem = problem};
}

struct amdgpu_occupancy amdgpu_occupancy(const struct amdgpu_target *target, const struct amdgpu_demand *demand)
{
    enum { VGPRS_MAX = 512, SGPRS_MAX = 128, GROUP_MAX = 1024, LDS_MAX = 160 << 10 };
    struct rules rules;
    if (!rules_find(target, demand, &rules))
        return unknown("the allocation rules of this target are not known");
    if (demand->vgpr_count > VGPRS_MAX || (rules.sgprs && demand->sgpr_count > SGPRS_MAX))
        return unknown("the code does not say how many registers it takes");
    if (demand->group_size > GROUP_MAX || demand->lds_bytes > LDS_MAX)
        return unknown("the launch is not one that this target can run");
    if (demand->group_size && demand->lds_bytes && !rules.lds_bytes)
        return unknown("how this target hands out LDS is not known");
    const uint32_t none = AMDGPU_UNKNOWN;
    struct amdgpu_occupancy result = {
        .waves_max = rules.waves_max,
        .simd_count = rules.simds,
        .waves = rules.waves_max * rules.simds,
        .by_vgpr = none,
        .by_sgpr = none,
        .by_lds = none,
        .by_groups = none,
        .groups = none,
    };
    uint32_t by_vgpr = waves_by_registers(rules.vgprs, rules.vgpr_unit, demand->vgpr_count, rules.waves_max);
    uint32_t by_sgpr = rules.waves_max;
    if (rules.sgprs)
        by_sgpr = waves_by_registers(rules.sgprs, rules.sgpr_unit, demand->sgpr_count, rules.waves_max);
    if (demand->group_size) {
        result.by_vgpr = by_vgpr * rules.simds;
        result.by_sgpr = rules.sgprs ? by_sgpr * rules.simds : none;
        groups_limit(&result, &rules, demand);
    } else {
        limit(&result, AMDGPU_LIMITER_VGPR, by_vgpr * rules.simds, &result.by_vgpr);
        if (rules.sgprs)
            limit(&result, AMDGPU_LIMITER_SGPR, by_sgpr * rules.simds, &result.by_sgpr);
    }
    return result.waves ? result : unknown("no work-group of it fits");
}

const char *amdgpu_limiter_name(enum amdgpu_limiter limiter)
{
    static const char *const names[] = {"none", "work-groups", "VGPRs", "SGPRs", "LDS"};
    return names[limiter];
}

struct amdgpu_demand amdgpu_kernel_demand(const struct amdgpu_kernel *kernel)
{
    uint64_t group_size = (uint64_t)kernel->group_size[0] * kernel->group_size[1];
    group_size = group_size <= UINT32_MAX ? group_size * kernel->group_size[2] : UINT32_MAX;
    return (struct amdgpu_demand){
        .vgpr_count = kernel->vgpr_count,
        .sgpr_count = kernel->sgpr_count,
        .wave_size = kernel->wave_size,
        .group_size = group_size < UINT32_MAX ? (uint32_t)group_size : UINT32_MAX,
        .lds_bytes = kernel->lds_bytes,
        .is_wgp_mode = kernel->is_wgp_mode,
    };
}
