/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike librocprofiler-sdk.so: counters. A pass holds as many events of a
 * block as the hardware counts at a time (aqlprofile's gfx9 and gfx10 block
 * tables: GRBM 2, SQ 8, TCP 4, TCC and GL2C 4); which events a counter needs is
 * in rocprofiler-sdk's counter_defs.yaml. A counter's value is the dispatch's
 * number times the counter's factor. Counters of SQ and GRBM come in two parts:
 * those of SQ add up to the value, those of GRBM are the value and half of it. */
#include "faults.h"
#include "rocprofiler_fake.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 2, CONFIGS = 64, COUNTERS_MAX = 16, FIRST = 10, EXCEEDS_HW_LIMIT = 38 };
enum block { GRBM, SQ, TCP, TCC, GL2C, BLOCKS };
static const uint32_t block_events[BLOCKS] = {2, 8, 4, 4, 4};
enum { GFX9 = 1, GFX10 = 2 };

static const struct counter {
    const char *name;
    enum block block;
    uint32_t events; /* bit per event of the block */
    uint32_t factor, generations;
} counters[] = {
    {"GRBM_GUI_ACTIVE", GRBM, 1, 1, GFX9 | GFX10},
    {"SQ_WAVES", SQ, 1, 2, GFX9 | GFX10},
    {"SQ_INSTS_VALU", SQ, 2, 3, GFX9 | GFX10},
    {"TCC_HIT_sum", TCC, 1, 4, GFX9},
    {"TCC_MISS_sum", TCC, 2, 5, GFX9},
    {"FETCH_SIZE", TCC, 4 | 8 | 16, 6, GFX9},
    {"WRITE_SIZE", TCC, 32 | 64, 7, GFX9},
    {"SQ_BUSY_CYCLES", SQ, 4, 8, GFX9 | GFX10},
    {"SQ_INSTS_SALU", SQ, 8, 9, GFX9 | GFX10},
    {"SQ_INSTS_LDS", SQ, 16, 10, GFX9 | GFX10},
    {"SQ_INSTS_SMEM", SQ, 32, 11, GFX9 | GFX10},
    {"SQ_WAVE_CYCLES", SQ, 64, 12, GFX9 | GFX10},
    {"TCP_TOTAL_CACHE_ACCESSES_sum", TCP, 1, 13, GFX9},
    {"GL2C_HIT_sum", GL2C, 1, 4, GFX10},
    {"GL2C_MISS_sum", GL2C, 2, 5, GFX10},
    {"FETCH_SIZE", GL2C, 4 | 8 | 16 | 32, 6, GFX10},
    {"WRITE_SIZE", GL2C, 64 | 128, 7, GFX10},
};
enum { COUNTER_COUNT = sizeof counters / sizeof *counters };
static struct {
    size_t count;
    uint64_t counters[COUNTERS_MAX];
} configs[CONFIGS];
static atomic_uint config_count;

static const struct counter *counter_of(uint64_t handle)
{
    return handle >= FIRST && handle < FIRST + COUNTER_COUNT ? &counters[handle - FIRST] : NULL;
}

FAKE_API int rocprofiler_iterate_agent_supported_counters(struct rocprofiler_abi_id agent,
                                                          int (*each)(struct rocprofiler_abi_id,
                                                                      struct rocprofiler_abi_id *, size_t, void *),
                                                          void *user)
{
    struct rocprofiler_abi_id found[COUNTER_COUNT];
    size_t count = 0;
    int fault = fault_result("rocprofiler_iterate_agent_supported_counters");
    uint32_t generation = fake_gfx_version((uint32_t)(agent.handle - FAKE_AMD_GPU)) < 100000 ? GFX9 : GFX10;
    for (size_t i = 0; i < COUNTER_COUNT; i++)
        if (counters[i].generations & generation)
            found[count++].handle = FIRST + i;
    return fault ? fault : each(agent, found, count, user);
}

FAKE_API int rocprofiler_query_counter_info(struct rocprofiler_abi_id counter, int version, void *out)
{
    struct rocprofiler_abi_counter_info *info = out;
    if (version != ROCPROFILER_ABI_COUNTER_INFO_VERSION || !counter_of(counter.handle))
        return 8;
    *info = (struct rocprofiler_abi_counter_info){counter.handle, counter_of(counter.handle)->name, "", "", "", 0};
    return fault_result("rocprofiler_query_counter_info");
}

/* The instance's number holds the counter's and the part's. */
FAKE_API int rocprofiler_query_record_counter_id(uint64_t instance, struct rocprofiler_abi_id *counter)
{
    counter->handle = instance >> 8;
    return fault_result("rocprofiler_query_record_counter_id");
}

static bool fits(const struct rocprofiler_abi_id *wanted, size_t count)
{
    uint32_t events[BLOCKS] = {0};
    for (size_t i = 0; i < count; i++)
        events[counter_of(wanted[i].handle)->block] |= counter_of(wanted[i].handle)->events;
    for (int block = 0; block < BLOCKS; block++)
        if ((uint32_t)__builtin_popcount(events[block]) > block_events[block])
            return false;
    return count <= COUNTERS_MAX;
}

FAKE_API int FAKE_CREATE_CONFIG(struct rocprofiler_abi_id agent, struct rocprofiler_abi_id *wanted, size_t count,
                                struct rocprofiler_abi_id *config)
{
    (void)agent;
    int fault = fault_result(NAME_OF(FAKE_CREATE_CONFIG));
    if (fault)
        return fault;
    if (!fits(wanted, count))
        return EXCEEDS_HW_LIMIT;
    unsigned index = atomic_fetch_add(&config_count, 1);
    if (index >= CONFIGS)
        return 1;
    configs[index].count = count;
    for (size_t i = 0; i < count; i++)
        configs[index].counters[i] = wanted[i].handle;
    config->handle = index + 1;
    return 0;
}

FAKE_API int FAKE_DESTROY_CONFIG(struct rocprofiler_abi_id config)
{
    int fault = fault_result(NAME_OF(FAKE_DESTROY_CONFIG));
    return fault ? fault : config.handle ? 0 : 1;
}

static size_t parts_of(const struct counter *counter)
{
    return counter->block == GRBM || counter->block == SQ ? PARTS : 1;
}

void fake_count(const struct rocprofiler_abi_dispatch_info *info, uint64_t correlation, uint64_t start, uint64_t end)
{
    const struct rocprofiler_abi_counting_data data = {sizeof data, {correlation, {0}}, 0, 0, *info};
    struct rocprofiler_abi_id config = {0};
    if (!fake_counting_config(&data, &config) || config.handle > CONFIGS)
        return;
    size_t count = configs[config.handle - 1].count, records = 0;
    for (size_t i = 0; i < count; i++)
        records += parts_of(counter_of(configs[config.handle - 1].counters[i]));
    const struct rocprofiler_abi_counting_header header = {sizeof header, records, {correlation, {0}},
                                                           start,         end,     *info};
    fake_buffer_put_at(FAKE_KIND_COUNTING, ROCPROFILER_ABI_CATEGORY_COUNTERS, ROCPROFILER_ABI_COUNTER_DISPATCH_HEADER,
                       &header, sizeof header, end);
    for (size_t i = 0; i < count; i++) {
        uint64_t handle = configs[config.handle - 1].counters[i];
        const struct counter *counter = counter_of(handle);
        double whole = (double)(info->dispatch_id * counter->factor);
        for (size_t part = 0; part < parts_of(counter); part++) {
            bool is_whole = parts_of(counter) == 1 || (counter->block == GRBM && part == 0);
            const struct rocprofiler_abi_counter_value value = {
                handle << 8 | part, is_whole ? whole : whole / PARTS, info->dispatch_id, {0}};
            fake_buffer_put_at(FAKE_KIND_COUNTING, ROCPROFILER_ABI_CATEGORY_COUNTERS, ROCPROFILER_ABI_COUNTER_VALUE,
                               &value, sizeof value, end);
        }
    }
}
