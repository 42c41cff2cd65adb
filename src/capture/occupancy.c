/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/occupancy.h"

enum {
    COMPUTE_MAJOR_FIRST = 7, /* outside of these the allocation rules are not known to us */
    COMPUTE_MAJOR_LAST = 12,
    REGISTER_UNIT = 256, /* registers are handed to a warp in units of this many */
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
    /* The launch check counts a block as if all sub-partitions held equally many of its warps. */
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
    /* On a tie the earlier one is named. The hardware's fixed ceilings come first: where they bind, using
     * fewer registers or less shared memory would gain nothing. */
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
    /* No block fits, yet the kernel ran: the limits are not this launch's. */
    if (!blocks)
        return (struct occupancy){0};
    result.is_known = true;
    result.active_blocks_max = (uint32_t)blocks;
    result.total_bp = basis_points(blocks, warps, limits->warps_per_sm_max);
    return result;
}
