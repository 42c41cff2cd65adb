/* SPDX-License-Identifier: Apache-2.0 */
/* Counters per dispatch: selects the requested ones that the GPU supports in one pass, and combines the values over
 * the GPU's parts. */
#include "driver/rocprofiler_table.h"

#include <stdio.h>
#include <string.h>

enum { pending_max = 256, gfx10 = 10 };

/* A block counts a few events at a time: GRBM 2, SQ 8, TCP 4, TCC and its successor GL2C 4 (aqlprofile's block
 * tables). FETCH_SIZE needs two or three of TCC's and all of GL2C's, WRITE_SIZE two, hits and misses one each. */
static const struct {
    const char *set, *gfx9, *gfx10;
} sets[] = {
    {"overview", "GRBM_GUI_ACTIVE,SQ_WAVES,SQ_BUSY_CYCLES,SQ_INSTS_VALU,TCC_HIT_sum,TCC_MISS_sum",
     "GRBM_GUI_ACTIVE,SQ_WAVES,SQ_BUSY_CYCLES,SQ_INSTS_VALU,GL2C_HIT_sum,GL2C_MISS_sum"},
    {"compute", "GRBM_GUI_ACTIVE,SQ_WAVES,SQ_BUSY_CYCLES,SQ_INSTS_VALU,SQ_INSTS_SALU,SQ_INSTS_LDS,SQ_INSTS_SMEM",
     "GRBM_GUI_ACTIVE,SQ_WAVES,SQ_BUSY_CYCLES,SQ_INSTS_VALU,SQ_INSTS_SALU,SQ_INSTS_LDS,SQ_INSTS_SMEM"},
    {"memory", "GRBM_GUI_ACTIVE,FETCH_SIZE,TCP_TOTAL_CACHE_ACCESSES_sum", "GRBM_GUI_ACTIVE,FETCH_SIZE"},
    {"occupancy", "GRBM_GUI_ACTIVE,SQ_WAVES,SQ_BUSY_CYCLES,SQ_WAVE_CYCLES",
     "GRBM_GUI_ACTIVE,SQ_WAVES,SQ_BUSY_CYCLES,SQ_WAVE_CYCLES"},
};

uint32_t rocprofiler_counter_count(const struct rocprofiler *rocprofiler)
{
    return rocprofiler->counting.count;
}

const char *rocprofiler_counter_name(const struct rocprofiler *rocprofiler, uint32_t index)
{
    return rocprofiler->counting.names[index];
}

/* ---- the choice ---- */

static bool is_left_out(const char *text, const char *name, size_t size)
{
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        if (length == size && !memcmp(at, name, size))
            return true;
        at += length;
        at += strspn(at, ", ");
    }
    return false;
}

/* Named once, even if several GPUs lack it. */
static void leave_out(struct rocprofiler *rocprofiler, const char *name, size_t size)
{
    static const char more[] = ", and more";
    char *text = rocprofiler->result.left_out;
    size_t used = strlen(text), capacity = sizeof rocprofiler->result.left_out - strlen(more);
    if (is_left_out(text, name, size) || (used >= strlen(more) && !strcmp(text + used - strlen(more), more)))
        return;
    if (used + 2 + size < capacity)
        snprintf(text + used, capacity - used, "%s%.*s", used ? ", " : "", (int)size, name);
    else
        memcpy(text + used, more, sizeof more);
}

static void want(struct rocprofiler *rocprofiler, uint32_t agent, const char *name, size_t size)
{
    struct rocprofiler_counting *counting = &rocprofiler->counting;
    uint32_t index = 0;
    if (!size)
        return;
    while (index < counting->count &&
           (strlen(counting->names[index]) != size || memcmp(counting->names[index], name, size) != 0))
        index++;
    if (index == DISPATCH_COUNTERS_MAX || size >= sizeof counting->names[0]) {
        leave_out(rocprofiler, name, size);
        return;
    }
    if (index == counting->count)
        snprintf(counting->names[counting->count++], sizeof counting->names[0], "%.*s", (int)size, name);
    counting->agents[agent].wanted |= 1u << index;
}

static void want_list(struct rocprofiler *rocprofiler, uint32_t agent, const char *list, bool with_sets)
{
    bool is_newer = rocprofiler->agents[agent].gfx_target_version / 10000 >= gfx10;
    while (*list) {
        list += strspn(list, ", ");
        size_t size = strcspn(list, ", ");
        const char *names = NULL;
        for (size_t i = 0; with_sets && i < sizeof sets / sizeof *sets; i++)
            if (strlen(sets[i].set) == size && !memcmp(sets[i].set, list, size))
                names = is_newer ? sets[i].gfx10 : sets[i].gfx9;
        if (names)
            want_list(rocprofiler, agent, names, false);
        else
            want(rocprofiler, agent, list, size);
        list += size;
    }
}

struct counter_search {
    struct rocprofiler *rocprofiler;
    uint32_t agent;
};

static int on_counters(struct rocprofiler_abi_id agent, struct rocprofiler_abi_id *counters, size_t count, void *user)
{
    (void)agent;
    const struct counter_search *search = user;
    struct rocprofiler_counting *counting = &search->rocprofiler->counting;
    for (size_t i = 0; i < count; i++) {
        struct rocprofiler_abi_counter_info info = {0};
        if (search->rocprofiler->call.counter_info(counters[i], ROCPROFILER_ABI_COUNTER_INFO_VERSION, &info) ||
            !info.name)
            continue;
        for (uint32_t wanted = 0; wanted < counting->count; wanted++)
            if ((counting->agents[search->agent].wanted >> wanted & 1) && !strcmp(info.name, counting->names[wanted])) {
                counting->agents[search->agent].counters[wanted] = counters[i];
                counting->agents[search->agent].known |= 1u << wanted;
            }
    }
    return ROCPROFILER_ABI_SUCCESS;
}

static int create_config(const struct rocprofiler *rocprofiler, uint64_t agent, struct rocprofiler_abi_id *counters,
                         size_t count, struct rocprofiler_abi_id *config)
{
    const struct rocprofiler_table *call = &rocprofiler->call;
    const struct rocprofiler_abi_id id = {agent};
    return call->create_config_1 ? call->create_config_1(id, counters, count, config)
                                 : call->create_config_0(id, counters, count, config);
}

static void destroy_config(const struct rocprofiler *rocprofiler, struct rocprofiler_abi_id config)
{
    const struct rocprofiler_table *call = &rocprofiler->call;
    if (config.handle && call->destroy_config_1)
        (void)call->destroy_config_1(config);
    else if (config.handle && call->destroy_config_0)
        (void)call->destroy_config_0(config);
}

/* One by one: a counter that the GPU cannot count together with the earlier ones is left out and named. */
static void plan_agent(struct rocprofiler *rocprofiler, uint32_t agent, struct problem *problem)
{
    struct rocprofiler_counting *counting = &rocprofiler->counting;
    const uint64_t handle = rocprofiler->agent_handles[agent];
    struct counter_search search = {rocprofiler, agent};
    if (rocprofiler_status(
            rocprofiler, "rocprofiler_iterate_agent_supported_counters",
            rocprofiler->call.iterate_counters((struct rocprofiler_abi_id){handle}, on_counters, &search), problem))
        return;
    struct rocprofiler_abi_id taken[DISPATCH_COUNTERS_MAX], config = {0};
    uint32_t known = counting->agents[agent].known;
    size_t count = 0;
    for (uint32_t i = 0; i < counting->count; i++) {
        struct rocprofiler_abi_id wider = {0};
        if (!(counting->agents[agent].wanted >> i & 1))
            continue;
        if (known >> i & 1) {
            taken[count] = counting->agents[agent].counters[i];
            if (!rocprofiler_status(rocprofiler, "rocprofiler_create_counter_config",
                                    create_config(rocprofiler, handle, taken, count + 1, &wider), problem)) {
                destroy_config(rocprofiler, config);
                config = wider;
                count++;
                continue;
            }
            counting->agents[agent].known &= ~(1u << i);
        }
        leave_out(rocprofiler, counting->names[i], strlen(counting->names[i]));
    }
    counting->agents[agent].config = config;
}

/* Called before a dispatch, on the program's thread. */
static void on_dispatch(struct rocprofiler_abi_counting_data data, struct rocprofiler_abi_id *config,
                        union rocprofiler_abi_user_data *user_data, void *user)
{
    (void)user_data;
    struct rocprofiler *rocprofiler = user;
    uint32_t agent = rocprofiler_agent_index(rocprofiler, data.info.agent_id);
    if (agent == ROCPROFILER_AGENTS_MAX || !rocprofiler->counting.agents[agent].config.handle)
        return;
    *config = rocprofiler->counting.agents[agent].config;
    rocprofiler_awaited_start(&rocprofiler->awaited[ROCPROFILER_AWAITED_COUNTERS], data.info.dispatch_id);
}

static int configure_service(const struct rocprofiler *rocprofiler)
{
    const struct rocprofiler_table *call = &rocprofiler->call;
    int (*service)(struct rocprofiler_abi_id, struct rocprofiler_abi_id, rocprofiler_abi_counting_callback, void *) =
        call->counting_service_1     ? call->counting_service_1
        : call->counting_service_0_6 ? call->counting_service_0_6
                                     : call->counting_service_0;
    void *user = (void *)(uintptr_t)rocprofiler;
    return service(rocprofiler->counter_context, rocprofiler->buffers[LANE_COUNTERS], on_dispatch, user);
}

static bool has_functions(const struct rocprofiler_table *call)
{
    return call->iterate_counters && call->counter_info && call->record_counter &&
           (call->create_config_0 || call->create_config_1) &&
           (call->counting_service_0 || call->counting_service_0_6 || call->counting_service_1);
}

void rocprofiler_configure_counting(struct rocprofiler *rocprofiler, const char *names)
{
    struct problem *problem = &rocprofiler->result.counters_problem;
    memset(&rocprofiler->counting, 0, sizeof rocprofiler->counting);
    if (!has_functions(&rocprofiler->call)) {
        problem_set(problem, GPUFL_E_UNSUPPORTED, "%s has no dispatch counting service", rocprofiler->library.path);
        return;
    }
    bool has_config = false;
    for (uint32_t i = 0; i < rocprofiler->agent_count; i++)
        want_list(rocprofiler, i, *names ? names : "overview", true);
    for (uint32_t i = 0; i < rocprofiler->agent_count; i++) {
        plan_agent(rocprofiler, i, problem);
        has_config |= rocprofiler->counting.agents[i].config.handle != 0;
    }
    if (!has_config) {
        if (!problem->text[0])
            problem_set(problem, GPUFL_E_UNSUPPORTED, "the GPU has none of the counters: %s",
                        rocprofiler->result.left_out);
        return;
    }
    struct rocprofiler_abi_id *context = &rocprofiler->counter_context, *buffer = &rocprofiler->buffers[LANE_COUNTERS];
    if (rocprofiler_status(rocprofiler, "rocprofiler_create_context", rocprofiler->call.create_context(context),
                           problem) ||
        !rocprofiler_make_buffer(rocprofiler, *context, LANE_COUNTERS, problem) ||
        rocprofiler_status(rocprofiler, "rocprofiler_configure_buffer_dispatch_counting_service",
                           configure_service(rocprofiler), problem)) {
        buffer->handle = 0;
        return;
    }
    problem->text[0] = '\0'; /* refused counters are in left_out */
    rocprofiler->configured |= ROCPROFILER_COUNTERS;
}

/* ---- values, on their buffer's thread ---- */

static struct pending {
    struct counters_activity counters;
    uint32_t agent;
    uint64_t left; /* records that have not arrived yet; 0: free */
} pending[pending_max];

static void finish(struct rocprofiler *rocprofiler, struct pending *item)
{
    struct activity activity = {.kind = ACTIVITY_COUNTERS, .u.counters = item->counters};
    rocprofiler->sink.on_activities(LANE_COUNTERS, &activity, 1);
    (void)rocprofiler_awaited_deliver(&rocprofiler->awaited[ROCPROFILER_AWAITED_COUNTERS], 0);
    item->left = 0;
}

static void on_header(struct rocprofiler *rocprofiler, const struct rocprofiler_abi_counting_header *header)
{
    if (header->size < offsetof(struct rocprofiler_abi_counting_header, info.reserved)) {
        atomic_fetch_add(&rocprofiler->dropped, 1);
        (void)rocprofiler_awaited_deliver(&rocprofiler->awaited[ROCPROFILER_AWAITED_COUNTERS], 0);
        return;
    }
    uint32_t agent = rocprofiler_agent_index(rocprofiler, header->info.agent_id);
    struct pending *item = &pending[header->info.dispatch_id % pending_max];
    if (header->info.dispatch_id <= rocprofiler->awaited[ROCPROFILER_AWAITED_COUNTERS].earlier_id)
        return;
    item->left = 0; /* a slot still in use belongs to a dispatch whose values are incomplete after 256 others, and a
                     * partial sum is useless */
    if (!header->num_records || agent == ROCPROFILER_AGENTS_MAX)
        return;
    const struct rocprofiler_kernel *kernel = rocprofiler_kernel_find(rocprofiler, header->info.kernel_id);
    item->agent = agent;
    item->left = header->num_records;
    item->counters = (struct counters_activity){
        .start_ns = rocprofiler_wall_ns(rocprofiler, header->start),
        .end_ns = rocprofiler_wall_ns(rocprofiler, header->end),
        .dispatch_id = header->info.dispatch_id,
        .name = kernel ? kernel->name : NULL,
        .device_id = rocprofiler->agents[agent].device_id,
        .correlation_id = (uint32_t)header->correlation.internal,
    };
}

/* Each XCC of an MI300 has a GRBM, and all count the same cycles: AMD's own formulas say
 * reduce(GRBM_GUI_ACTIVE,max). Other counters that come in parts (per shader engine, per cache channel) are summed,
 * in AMD's formulas and here. */
static bool is_maximum(const char *name)
{
    static const char block[] = "GRBM_";
    return !strncmp(name, block, strlen(block));
}

static void combine(struct counters_activity *counters, uint32_t index, const char *name, double value)
{
    double *sum = &counters->values[index];
    bool is_first = !(counters->known >> index & 1);
    *sum = is_first || (is_maximum(name) && value > *sum) ? value : is_maximum(name) ? *sum : *sum + value;
    counters->known |= 1u << index;
}

static void on_value(struct rocprofiler *rocprofiler, const struct rocprofiler_abi_counter_value *value)
{
    struct pending *item = &pending[value->dispatch_id % pending_max];
    struct rocprofiler_abi_id counter = {0};
    if (!item->left || item->counters.dispatch_id != value->dispatch_id)
        return; /* without its header, or from an earlier trace: its dispatch is counted as one with missing counters */
    if (rocprofiler->call.record_counter(value->id, &counter) == ROCPROFILER_ABI_SUCCESS) {
        for (uint32_t i = 0; i < rocprofiler->counting.count; i++)
            if ((rocprofiler->counting.agents[item->agent].known >> i & 1) &&
                rocprofiler->counting.agents[item->agent].counters[i].handle == counter.handle)
                combine(&item->counters, i, rocprofiler->counting.names[i], value->value);
    }
    if (--item->left == 0)
        finish(rocprofiler, item);
}

void rocprofiler_counting_records(struct rocprofiler *rocprofiler, struct rocprofiler_abi_header **headers,
                                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct rocprofiler_abi_header *header = headers[i];
        if (!header || !header->payload)
            continue;
        if (header->category != ROCPROFILER_ABI_CATEGORY_COUNTERS)
            atomic_fetch_add(&rocprofiler->unknown, 1);
        else if (header->kind == ROCPROFILER_ABI_COUNTER_DISPATCH_HEADER)
            on_header(rocprofiler, header->payload);
        else if (header->kind == ROCPROFILER_ABI_COUNTER_VALUE)
            on_value(rocprofiler, header->payload);
        else
            atomic_fetch_add(&rocprofiler->unknown, 1);
    }
    rocprofiler->sink.on_activities(LANE_COUNTERS, NULL, 0);
}

void rocprofiler_counting_end(void)
{
    for (int i = 0; i < pending_max; i++)
        pending[i].left = 0;
}
