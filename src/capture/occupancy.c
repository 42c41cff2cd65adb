/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/occupancy.h"

#include "code/amdgpu_occupancy.h"

enum {
    COMPUTE_MAJOR_FIRST = 7, /* for other devices the allocation rules are not known */
    COMPUTE_MAJOR_LAST = 12,
    REGISTER_UNIT = 256, /* registers are allocated to a warp in multiples of 256 */
    SUB_PARTITIONS = 4,  /* each with its own quarter of the register file */
    REGS_PER_THREAD_MAX = 256,
    THREADS_PER_BLOCK_MAX = 1024,
};

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static bool has_rules(const struct device_limits *limits, const struct occupancy_input *input)
{
    return limits->is_known && limits->compute_major >= COMPUTE_MAJOR_FIRST &&
           limits->compute_major <= COMPUTE_MAJOR_LAST && limits->warp_size && limits->warps_per_sm_max &&
           limits->blocks_per_sm_max && limits->regs_per_sm && limits->shared_per_sm && input->threads_per_block &&
           input->threads_per_block <= THREADS_PER_BLOCK_MAX && input->regs_per_thread <= REGS_PER_THREAD_MAX;
}

static uint64_t blocks_by_registers(const struct device_limits *limits, const struct occupancy_input *input,
                                    uint64_t warps)
{
    uint64_t regs_per_warp = round_up((uint64_t)input->regs_per_thread * limits->warp_size, REGISTER_UNIT);
    if (!regs_per_warp)
        return UINT32_MAX;
    /* The launch check counts a block as if its warps were spread evenly over the sub-partitions. */
    uint64_t regs_per_block_max = limits->regs_per_block_max ? limits->regs_per_block_max : limits->regs_per_sm;
    if (regs_per_warp * round_up(warps, SUB_PARTITIONS) > regs_per_block_max)
        return 0;
    uint64_t warps_per_partition = limits->regs_per_sm / SUB_PARTITIONS / regs_per_warp;
    return warps_per_partition * SUB_PARTITIONS / warps;
}

static uint64_t blocks_by_shared_memory(const struct device_limits *limits, const struct occupancy_input *input)
{
    uint64_t unit = limits->compute_major >= 8 ? 128 : 256;
    uint64_t bytes = (uint64_t)input->static_shared + input->dyn_shared + limits->shared_reserved_per_block;
    return bytes ? limits->shared_per_sm / round_up(bytes, unit) : UINT32_MAX;
}

static uint32_t basis_points(uint64_t blocks, uint64_t warps, uint64_t warps_max)
{
    uint64_t active = blocks * warps;
    return active >= warps_max ? 10000 : (uint32_t)((active * 10000 + warps_max / 2) / warps_max);
}

struct occupancy occupancy_compute(const struct device_limits *limits, const struct occupancy_input *input)
{
    struct occupancy result = {0};
    if (!has_rules(limits, input))
        return result;
    uint64_t warps = (input->threads_per_block + limits->warp_size - 1) / limits->warp_size;
    /* On a tie the earlier entry is reported. The hardware's fixed limits come first: where they apply, using fewer
     * registers or less shared memory would gain nothing. */
    const struct {
        enum occupancy_limiter limiter;
        uint64_t blocks;
        uint32_t *bp;
    } bounds[] = {
        {LIMITER_WARPS, limits->warps_per_sm_max / warps, &result.warps_bp},
        {LIMITER_BLOCKS, limits->blocks_per_sm_max, &result.blocks_bp},
        {LIMITER_REGISTERS, blocks_by_registers(limits, input, warps), &result.regs_bp},
        {LIMITER_SHARED_MEMORY, blocks_by_shared_memory(limits, input), &result.shared_bp},
    };
    uint64_t blocks = UINT64_MAX;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        *bounds[i].bp = basis_points(bounds[i].blocks, warps, limits->warps_per_sm_max);
        if (bounds[i].blocks < blocks) {
            blocks = bounds[i].blocks;
            result.limiter = bounds[i].limiter;
        }
    }
    /* No block fits, yet the kernel ran: these limits do not apply to this launch. */
    if (!blocks)
        return (struct occupancy){0};
    result.is_known = true;
    result.active_blocks_max = (uint32_t)blocks;
    result.total_bp = basis_points(blocks, warps, limits->warps_per_sm_max);
    return result;
}

static uint32_t wave_basis_points(const struct amdgpu_occupancy *occupancy, uint32_t waves)
{
    uint32_t most = occupancy->waves_max * occupancy->simd_count;
    return waves == AMDGPU_UNKNOWN ? 10000 : basis_points(waves, 1, most);
}

struct occupancy amd_occupancy_compute(const struct amd_occupancy_input *input)
{
    const struct amdgpu_target target = {
        .major = input->gfx_version / 10000,
        .minor = input->gfx_version / 100 % 100,
        .stepping = input->gfx_version % 100,
    };
    const struct amdgpu_demand demand = {
        .vgpr_count = amdgpu_vgpr_total(&target, input->vgprs, input->accum_vgprs),
        .sgpr_count = input->sgprs,
        .wave_size = 64,
        .group_size = input->threads_per_block,
        .lds_bytes = input->lds_bytes,
    };
    if (target.major != 9 || !demand.group_size)
        return (struct occupancy){0};
    struct amdgpu_occupancy found = amdgpu_occupancy(&target, &demand);
    if (found.problem)
        return (struct occupancy){0};
    static const enum occupancy_limiter limiters[] = {
        [AMDGPU_LIMITER_NONE] = LIMITER_WARPS,        [AMDGPU_LIMITER_GROUPS] = LIMITER_BLOCKS,
        [AMDGPU_LIMITER_VGPR] = LIMITER_REGISTERS,    [AMDGPU_LIMITER_SGPR] = LIMITER_REGISTERS,
        [AMDGPU_LIMITER_LDS] = LIMITER_SHARED_MEMORY,
    };
    uint32_t by_registers = found.by_vgpr < found.by_sgpr ? found.by_vgpr : found.by_sgpr;
    uint32_t waves_per_group = (demand.group_size + demand.wave_size - 1) / demand.wave_size;
    uint32_t most = found.waves_max * found.simd_count;
    return (struct occupancy){
        .is_known = true,
        .total_bp = wave_basis_points(&found, found.waves),
        .regs_bp = wave_basis_points(&found, by_registers),
        .shared_bp = wave_basis_points(&found, found.by_lds),
        .warps_bp = wave_basis_points(&found, most / waves_per_group * waves_per_group),
        .blocks_bp = wave_basis_points(&found, found.by_groups),
        .active_blocks_max = found.groups,
        .limiter = limiters[found.limiter],
    };
}
