/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike librocprofiler-sdk.so: six counters, of which one pass holds as
 * many as the fault rocprofiler_counters_max says (all). Each is counted by two
 * parts of the GPU; a value is the dispatch's number times the counter's. */
#include "faults.h"
#include "rocprofiler_fake.h"

#include <stdatomic.h>

enum { PARTS = 2, CONFIGS = 64, EXCEEDS_HW_LIMIT = 38 };

static const char *const names[FAKE_AMD_COUNTERS] = {"GRBM_GUI_ACTIVE", "SQ_WAVES",     "SQ_INSTS_VALU",
                                                     "TCC_HIT_sum",     "TCC_MISS_sum", "FETCH_SIZE"};
static struct {
    size_t count;
    uint64_t counters[FAKE_AMD_COUNTERS];
} configs[CONFIGS];
static atomic_uint config_count;

FAKE_API int rocprofiler_iterate_agent_supported_counters(struct rocprofiler_abi_id agent,
                                                          int (*each)(struct rocprofiler_abi_id,
                                                                      struct rocprofiler_abi_id *, size_t, void *),
                                                          void *user)
{
    struct rocprofiler_abi_id counters[FAKE_AMD_COUNTERS];
    int fault = fault_result("rocprofiler_iterate_agent_supported_counters");
    for (size_t i = 0; i < FAKE_AMD_COUNTERS; i++)
        counters[i].handle = 10 + i;
    return fault ? fault : each(agent, counters, FAKE_AMD_COUNTERS, user);
}

FAKE_API int rocprofiler_query_counter_info(struct rocprofiler_abi_id counter, int version, void *out)
{
    struct rocprofiler_abi_counter_info *info = out;
    if (version != ROCPROFILER_ABI_COUNTER_INFO_VERSION || counter.handle < 10 ||
        counter.handle >= 10 + FAKE_AMD_COUNTERS)
        return 8;
    *info = (struct rocprofiler_abi_counter_info){counter.handle, names[counter.handle - 10], "", "SQ", "", 0};
    return fault_result("rocprofiler_query_counter_info");
}

/* The instance's number holds the counter's and the part's. */
FAKE_API int rocprofiler_query_record_counter_id(uint64_t instance, struct rocprofiler_abi_id *counter)
{
    counter->handle = instance >> 8;
    return fault_result("rocprofiler_query_record_counter_id");
}

FAKE_API int FAKE_CREATE_CONFIG(struct rocprofiler_abi_id agent, struct rocprofiler_abi_id *counters, size_t count,
                                struct rocprofiler_abi_id *config)
{
    (void)agent;
    int fault = fault_result("rocprofiler_create_counter_config");
    if (fault)
        return fault;
    if ((int64_t)count > fault_number("rocprofiler_counters_max", FAKE_AMD_COUNTERS))
        return EXCEEDS_HW_LIMIT;
    unsigned index = atomic_fetch_add(&config_count, 1);
    if (index >= CONFIGS)
        return 1;
    configs[index].count = count;
    for (size_t i = 0; i < count; i++)
        configs[index].counters[i] = counters[i].handle;
    config->handle = index + 1;
    return 0;
}

FAKE_API int FAKE_DESTROY_CONFIG(struct rocprofiler_abi_id config)
{
    return config.handle ? 0 : 1;
}

void fake_count(const struct rocprofiler_abi_dispatch_info *info, uint64_t correlation, uint64_t start, uint64_t end)
{
    const struct rocprofiler_abi_counting_data data = {sizeof data, {correlation, {0}}, 0, 0, *info};
    struct rocprofiler_abi_id config = {0};
    if (!fake_counting_config(&data, &config) || config.handle > CONFIGS)
        return;
    size_t count = configs[config.handle - 1].count;
    const struct rocprofiler_abi_counting_header header = {sizeof header, count * PARTS, {correlation, {0}},
                                                           start,         end,           *info};
    fake_buffer_put_at(FAKE_KIND_COUNTING, ROCPROFILER_ABI_CATEGORY_COUNTERS, ROCPROFILER_ABI_COUNTER_DISPATCH_HEADER,
                       &header, sizeof header, end);
    for (size_t i = 0; i < count * PARTS; i++) {
        uint64_t counter = configs[config.handle - 1].counters[i / PARTS];
        const struct rocprofiler_abi_counter_value value = {
            counter << 8 | i % PARTS, (double)(info->dispatch_id * (counter - 9)) / PARTS, info->dispatch_id, {0}};
        fake_buffer_put_at(FAKE_KIND_COUNTING, ROCPROFILER_ABI_CATEGORY_COUNTERS, ROCPROFILER_ABI_COUNTER_VALUE, &value,
                           sizeof value, end);
    }
}
