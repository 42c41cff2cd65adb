/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "capture/occupancy.h"

#if defined(__has_include)
#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define HAS_ORACLE 1
#elif __has_include("/usr/local/cuda/include/cuda_occupancy.h")
#include "/usr/local/cuda/include/cuda_occupancy.h"
#define HAS_ORACLE 1
#endif
#endif

static struct device_limits limits_of(uint32_t major, uint32_t minor, uint32_t warps, uint32_t blocks,
                                      uint32_t shared_kib, uint32_t reserved)
{
    return (struct device_limits){
        .compute_major = major,
        .compute_minor = minor,
        .multiprocessors = 100,
        .warp_size = 32,
        .warps_per_sm_max = warps,
        .blocks_per_sm_max = blocks,
        .regs_per_sm = 65536,
        .regs_per_block_max = 65536,
        .shared_per_sm = shared_kib * 1024,
        .shared_per_block_max = shared_kib * 1024 - reserved,
        .shared_reserved_per_block = reserved,
        .is_known = true,
    };
}

static struct device_limits h200(void)
{
    return limits_of(9, 0, 64, 32, 228, 1024);
}

static void known_h200_configurations_have_their_occupancy(void **state)
{
    (void)state;
    static const struct {
        struct occupancy_input input;
        uint32_t blocks, total_bp, regs_bp, shared_bp, warps_bp, blocks_bp;
        enum occupancy_limiter limiter;
    } cases[] = {
        /* 256 threads, 32 registers: full */
        {{256, 32, 0, 0}, 8, 10000, 10000, 10000, 10000, 10000, LIMITER_WARPS},
        /* 128 registers: 4096 per warp, 4 warps per sub-partition */
        {{256, 128, 0, 0}, 2, 2500, 2500, 10000, 10000, 10000, LIMITER_REGISTERS},
        /* 255 registers: 8192 after rounding, 2 warps per sub-partition */
        {{32, 255, 0, 0}, 8, 1250, 1250, 10000, 10000, 5000, LIMITER_REGISTERS},
        /* one warp per block: the block slots bind */
        {{32, 16, 0, 0}, 32, 5000, 10000, 10000, 10000, 5000, LIMITER_BLOCKS},
        /* 227 KiB dynamic plus the reserved KiB is the whole multiprocessor */
        {{128, 32, 0, 232448}, 1, 625, 10000, 625, 10000, 10000, LIMITER_SHARED_MEMORY},
        /* 48 KiB static + 1 KiB reserved: 4 blocks in 228 KiB */
        {{256, 32, 49152, 0}, 4, 5000, 10000, 5000, 10000, 10000, LIMITER_SHARED_MEMORY},
        /* 33 threads are two warps */
        {{33, 32, 0, 0}, 32, 10000, 10000, 10000, 10000, 10000, LIMITER_WARPS},
        /* 768 threads: 2 blocks of 24 warps in 64 */
        {{768, 32, 0, 0}, 2, 7500, 7500, 10000, 7500, 10000, LIMITER_WARPS},
        /* a kernel may use no register */
        {{1024, 0, 0, 0}, 2, 10000, 10000, 10000, 10000, 10000, LIMITER_WARPS},
    };
    struct device_limits limits = h200();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct occupancy result = occupancy_compute(&limits, &cases[i].input);
        assert_true(result.is_known);
        assert_int_equal(result.active_blocks_max, cases[i].blocks);
        assert_int_equal(result.total_bp, cases[i].total_bp);
        assert_int_equal(result.regs_bp, cases[i].regs_bp);
        assert_int_equal(result.shared_bp, cases[i].shared_bp);
        assert_int_equal(result.warps_bp, cases[i].warps_bp);
        assert_int_equal(result.blocks_bp, cases[i].blocks_bp);
        assert_int_equal(result.limiter, cases[i].limiter);
    }
}

static void what_is_not_known_is_said_to_be_unknown(void **state)
{
    (void)state;
    struct occupancy_input input = {256, 32, 0, 0};
    struct device_limits limits = h200();
    limits.is_known = false;
    assert_false(occupancy_compute(&limits, &input).is_known);
    limits = h200();
    limits.regs_per_sm = 0;
    assert_false(occupancy_compute(&limits, &input).is_known);
    limits = h200();
    limits.compute_major = 13;
    assert_false(occupancy_compute(&limits, &input).is_known);
    limits.compute_major = 6;
    assert_false(occupancy_compute(&limits, &input).is_known);
}

static void absurd_launches_are_unknown_and_harmless(void **state)
{
    (void)state;
    static const struct occupancy_input inputs[] = {
        {0, 32, 0, 0},
        {1025, 32, 0, 0},
        {UINT32_MAX, 1, 0, 0},
        {256, 257, 0, 0},
        {1024, 255, 0, 0},
        {256, 32, UINT32_MAX, UINT32_MAX},
        {256, 32, 0, 228 * 1024},
        {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
    };
    struct device_limits limits = h200();
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        struct occupancy result = occupancy_compute(&limits, &inputs[i]);
        assert_false(result.is_known);
        assert_int_equal(result.limiter, LIMITER_UNKNOWN);
        assert_int_equal(result.total_bp, 0);
    }
}

#ifdef HAS_ORACLE
static cudaOccResult oracle_compute(const struct device_limits *limits, const struct occupancy_input *input)
{
    cudaOccDeviceProp properties = {
        .computeMajor = (int)limits->compute_major,
        .computeMinor = (int)limits->compute_minor,
        .maxThreadsPerBlock = 1024,
        .maxThreadsPerMultiprocessor = (int)(limits->warps_per_sm_max * 32),
        .regsPerBlock = (int)limits->regs_per_block_max,
        .regsPerMultiprocessor = (int)limits->regs_per_sm,
        .warpSize = 32,
        .sharedMemPerBlock = 49152,
        .sharedMemPerMultiprocessor = limits->shared_per_sm,
        .numSms = 100,
        .sharedMemPerBlockOptin = limits->shared_per_block_max,
        .reservedSharedMemPerBlock = limits->shared_reserved_per_block,
    };
    cudaOccFuncAttributes attributes = {
        .maxThreadsPerBlock = 1024,
        .numRegs = (int)input->regs_per_thread,
        .sharedSizeBytes = input->static_shared,
        .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
        .maxDynamicSharedSizeBytes = limits->shared_per_block_max,
    };
    cudaOccDeviceState device_state = {0};
    device_state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
    cudaOccResult result = {0};
    assert_int_equal(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &device_state,
                                                             (int)input->threads_per_block, input->dyn_shared),
                     CUDA_OCC_SUCCESS);
    return result;
}

static unsigned oracle_factor(enum occupancy_limiter limiter)
{
    switch (limiter) {
    case LIMITER_REGISTERS:
        return OCC_LIMIT_REGISTERS;
    case LIMITER_SHARED_MEMORY:
        return OCC_LIMIT_SHARED_MEMORY;
    case LIMITER_WARPS:
        return OCC_LIMIT_WARPS;
    case LIMITER_BLOCKS:
        return OCC_LIMIT_BLOCKS;
    default:
        return 0;
    }
}

static void compare_with_oracle(const struct device_limits *limits, const struct occupancy_input *input)
{
    struct occupancy result = occupancy_compute(limits, input);
    cudaOccResult expected = oracle_compute(limits, input);
    int blocks = result.is_known ? (int)result.active_blocks_max : 0;
    if (blocks != expected.activeBlocksPerMultiprocessor)
        fail_msg("cc %u.%u, %u threads, %u regs, %u+%u B: %d blocks, expected %d", limits->compute_major,
                 limits->compute_minor, input->threads_per_block, input->regs_per_thread, input->static_shared,
                 input->dyn_shared, blocks, expected.activeBlocksPerMultiprocessor);
    if (result.is_known)
        assert_true(expected.limitingFactors & oracle_factor(result.limiter));
}

static void every_configuration_agrees_with_the_toolkit(void **state)
{
    (void)state;
    const struct device_limits devices[] = {
        limits_of(7, 0, 64, 32, 96, 0),      limits_of(7, 5, 32, 16, 64, 0),      limits_of(8, 0, 64, 32, 164, 1024),
        limits_of(8, 6, 48, 16, 100, 1024),  limits_of(8, 9, 48, 24, 100, 1024),  h200(),
        limits_of(10, 0, 64, 32, 228, 1024), limits_of(12, 0, 48, 24, 100, 1024),
    };
    static const uint32_t threads[] = {1,   32,  33,  64,  96,  128, 160, 192, 224,  256,
                                       320, 352, 384, 480, 512, 640, 768, 896, 1000, 1024};
    static const uint32_t regs[] = {0,  1,  8,  16, 24,  31,  32,  33,  40,  48, 56,
                                    64, 72, 80, 96, 104, 128, 168, 200, 232, 255};
    static const uint32_t shared[] = {0,     1,     127,   128,   129,    1024,   3000,  8192,
                                      16384, 30000, 49152, 65536, 100000, 166912, 232448};
    unsigned compared = 0;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
            for (size_t r = 0; r < sizeof regs / sizeof *regs; r++)
                for (size_t s = 0; s < sizeof shared / sizeof *shared; s++) {
                    uint32_t bytes = shared[s];
                    uint32_t static_bytes = bytes <= 49152 && s % 2 ? bytes / 3 : 0;
                    if (bytes > devices[d].shared_per_block_max)
                        continue;
                    struct occupancy_input input = {threads[t], regs[r], static_bytes, bytes - static_bytes};
                    compare_with_oracle(&devices[d], &input);
                    compared++;
                }
    assert_true(compared > 20000);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_h200_configurations_have_their_occupancy),
        cmocka_unit_test(what_is_not_known_is_said_to_be_unknown),
        cmocka_unit_test(absurd_launches_are_unknown_and_harmless),
#ifdef HAS_ORACLE
        cmocka_unit_test(every_configuration_agrees_with_the_toolkit),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
