/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/launches.h"

#include "base/demangle.h"
#include "base/intern_cache.h"
#include "capture/occupancy.h"
#include "format/json.h"

#include <stdlib.h>
#include <string.h>

enum {
    name_cache_slots = 4096,
    text_bytes_max = 8 << 20,
    config_bytes_max = 8 << 20, /* about 65,000 configurations; an evicted one is written again when it is reused */
    devices_max = 64
};

struct launch_key { /* no padding: compared and hashed as bytes */
    uint64_t local_total;
    uint32_t kernel_id, device_id;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t regs, static_shared, dyn_shared, shared_executed, local_per_thread;
    uint32_t sgprs, accum_vgprs, gfx_version, cache_config, source, zero;
};

struct name_slot { /* CUPTI passes the same pointer for the same kernel: checked before hashing the name */
    const char *name;
    uint32_t kernel_id;
    uint32_t last_launch_id;
};

struct launches {
    struct recorder *recorder;
    struct cuda *cuda;
    struct intern_cache symbols, configs;
    struct bytes text;
    struct device_limits devices[devices_max];
    bool has_limits;
    struct name_slot names[name_cache_slots];
};

gpufl_status launches_make(struct launches **out, struct recorder *recorder)
{
    struct launches *launches = calloc(1, sizeof *launches);
    if (!launches)
        return GPUFL_E_NO_MEMORY;
    launches->recorder = recorder;
    launches->symbols.bytes_max = text_bytes_max;
    launches->configs.bytes_max = config_bytes_max;
    *out = launches;
    return GPUFL_OK;
}

void launches_free(struct launches *launches)
{
    if (!launches)
        return;
    intern_cache_free(&launches->symbols);
    intern_cache_free(&launches->configs);
    bytes_free(&launches->text);
    free(launches);
}

size_t launches_bytes(const struct launches *launches)
{
    return sizeof *launches + intern_cache_bytes(&launches->symbols) + intern_cache_bytes(&launches->configs);
}

uint32_t launches_name(struct launches *launches, const char *symbol)
{
    bool is_new;
    size_t size = strlen(symbol);
    uint32_t kernel_id = intern_cache_id(&launches->symbols, symbol, size, &is_new);
    if (!kernel_id) {
        recorder_lose(launches->recorder, LOSS_KERNEL_NAMES, 1);
        return 0;
    }
    if (is_new) {
        demangle(symbol, &launches->text);
        recorder_define(launches->recorder, DICTIONARY_KERNEL, kernel_id, launches->text.data, launches->text.size);
        recorder_define(launches->recorder, DICTIONARY_KERNEL_SYMBOL, kernel_id, symbol, size);
    }
    return kernel_id;
}

const char *launches_symbol(const struct launches *launches, uint32_t kernel_id)
{
    const struct intern_entry *symbol = intern_cache_entry(&launches->symbols, kernel_id);
    return symbol ? symbol->text : "";
}

static struct name_slot *name_find(struct launches *launches, const char *name)
{
    struct name_slot *slot = &launches->names[((uintptr_t)name >> 3) * 2654435761u % name_cache_slots];
    /* The text is compared too: addresses are reused after a module is unloaded. */
    if (slot->name == name && !strcmp(launches_symbol(launches, slot->kernel_id), name)) {
        intern_cache_use(&launches->symbols, slot->kernel_id);
        return slot;
    }
    uint32_t kernel_id = launches_name(launches, name);
    if (!kernel_id)
        return NULL;
    *slot = (struct name_slot){name, kernel_id, 0};
    return slot;
}

static void write_limits(struct launches *launches, const struct device_limits *limits)
{
    struct bytes *line = recorder_begin(launches->recorder, RECORD_DEVICE_LIMITS);
    bytes_append_format(line, ",\"device_id\":%u,\"name\":", limits->device_id);
    json_text(line, limits->name);
    bytes_append_text(line, ",\"uuid\":");
    json_text(line, limits->uuid);
    const struct {
        const char *key;
        uint64_t value;
    } members[] = {
        {"compute_major", limits->compute_major},
        {"compute_minor", limits->compute_minor},
        {"multiprocessors", limits->multiprocessors},
        {"warp_size", limits->warp_size},
        {"warps_per_sm_max", limits->warps_per_sm_max},
        {"blocks_per_sm_max", limits->blocks_per_sm_max},
        {"regs_per_sm", limits->regs_per_sm},
        {"regs_per_block_max", limits->regs_per_block_max},
        {"shared_per_sm", limits->shared_per_sm},
        {"shared_per_block_max", limits->shared_per_block_max},
        {"shared_reserved_per_block", limits->shared_reserved_per_block},
        {"memory_bandwidth_bps", limits->memory_bandwidth_bps},
        {"core_clock_khz", limits->core_clock_khz},
        {"l2_bytes", limits->l2_bytes},
        {"memory_bytes", limits->memory_bytes},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_key(line, members[i].key);
        json_uint(line, members[i].value);
    }
    recorder_end(launches->recorder, RECORD_DEVICE_LIMITS);
}

bool launches_have_limits(struct launches *launches)
{
    if (launches->has_limits)
        return true;
    if (!launches->cuda && cuda_load(&launches->cuda, false, NULL) != GPUFL_OK)
        return false;
    int count = cuda_device_count(launches->cuda);
    for (int id = 0; id < count && id < devices_max; id++) {
        struct device_limits *limits = &launches->devices[id];
        if (cuda_device_limits(launches->cuda, (uint32_t)id, limits) != GPUFL_OK)
            limits->is_known = false;
        if (limits->is_known)
            write_limits(launches, limits);
        launches->has_limits = true;
    }
    return launches->has_limits;
}

static const struct device_limits *limits_of(struct launches *launches, uint32_t device_id)
{
    bool is_known = launches_have_limits(launches) && device_id < devices_max && launches->devices[device_id].is_known;
    return is_known ? &launches->devices[device_id] : NULL;
}

static struct occupancy nvidia_occupancy_of(struct launches *launches, const struct launch_key *key)
{
    const struct device_limits *limits = limits_of(launches, key->device_id);
    const struct occupancy_input input = {key->block[0] * key->block[1] * key->block[2], key->regs, key->static_shared,
                                          key->dyn_shared};
    return limits ? occupancy_compute(limits, &input) : (struct occupancy){0};
}

static struct occupancy amd_occupancy_of(const struct launch_key *key)
{
    const struct amd_occupancy_input input = {
        .gfx_version = key->gfx_version,
        .threads_per_block = key->block[0] * key->block[1] * key->block[2],
        .vgprs = key->regs,
        .accum_vgprs = key->accum_vgprs,
        .sgprs = key->sgprs,
        .lds_bytes = key->static_shared + key->dyn_shared,
    };
    return key->gfx_version ? amd_occupancy_compute(&input) : (struct occupancy){0};
}

static void write_config(struct launches *launches, uint32_t launch_id, const struct launch_key *key)
{
    int64_t *row = recorder_row(launches->recorder, RECORD_LAUNCH_CONFIG_BATCH, 0);
    row[LAUNCH_CONFIG_LAUNCH_ID] = launch_id;
    row[LAUNCH_CONFIG_KERNEL_ID] = key->kernel_id;
    row[LAUNCH_CONFIG_DEVICE_ID] = key->device_id;
    for (int axis = 0; axis < 3; axis++) {
        row[LAUNCH_CONFIG_GRID_X + axis] = key->grid[axis];
        row[LAUNCH_CONFIG_BLOCK_X + axis] = key->block[axis];
        row[LAUNCH_CONFIG_CLUSTER_X + axis] = key->cluster[axis];
    }
    row[LAUNCH_CONFIG_NUM_REGS] = key->regs;
    row[LAUNCH_CONFIG_STATIC_SHARED] = key->static_shared;
    row[LAUNCH_CONFIG_DYN_SHARED] = key->dyn_shared;
    row[LAUNCH_CONFIG_SHARED_EXECUTED] = key->shared_executed;
    row[LAUNCH_CONFIG_LOCAL_PER_THREAD] = key->local_per_thread;
    row[LAUNCH_CONFIG_LOCAL_TOTAL] = (int64_t)key->local_total;
    row[LAUNCH_CONFIG_CACHE_CONFIG] = key->cache_config;
    bool is_amd = key->source == ACTIVITY_FROM_ROCPROFILER;
    row[LAUNCH_CONFIG_SGPRS] = is_amd ? key->sgprs : CELL_UNKNOWN;
    row[LAUNCH_CONFIG_ACCUM_VGPRS] = is_amd ? key->accum_vgprs : CELL_UNKNOWN;
    const struct occupancy occupancy = is_amd ? amd_occupancy_of(key) : nvidia_occupancy_of(launches, key);
    row[LAUNCH_CONFIG_OCCUPANCY_BP] = occupancy.is_known ? occupancy.total_bp : CELL_UNKNOWN;
    row[LAUNCH_CONFIG_OCCUPANCY_REGS_BP] = occupancy.is_known ? occupancy.regs_bp : CELL_UNKNOWN;
    row[LAUNCH_CONFIG_OCCUPANCY_SHARED_BP] = occupancy.is_known ? occupancy.shared_bp : CELL_UNKNOWN;
    row[LAUNCH_CONFIG_OCCUPANCY_WARPS_BP] = occupancy.is_known ? occupancy.warps_bp : CELL_UNKNOWN;
    row[LAUNCH_CONFIG_OCCUPANCY_BLOCKS_BP] = occupancy.is_known ? occupancy.blocks_bp : CELL_UNKNOWN;
    row[LAUNCH_CONFIG_ACTIVE_BLOCKS_MAX] = occupancy.is_known ? occupancy.active_blocks_max : CELL_UNKNOWN;
    row[LAUNCH_CONFIG_LIMITER] = occupancy.limiter;
}

void launches_identify(struct launches *launches, enum activity_source source, const struct kernel_activity *kernel,
                       uint32_t *kernel_id, uint32_t *launch_id)
{
    *kernel_id = *launch_id = 0;
    struct name_slot *slot = name_find(launches, kernel->name ? kernel->name : "(unnamed kernel)");
    if (!slot)
        return;
    struct launch_key key;
    memset(&key, 0, sizeof key);
    key.local_total = kernel->local_total_bytes;
    key.kernel_id = slot->kernel_id;
    key.device_id = kernel->device_id;
    memcpy(key.grid, kernel->grid, sizeof key.grid);
    memcpy(key.block, kernel->block, sizeof key.block);
    memcpy(key.cluster, kernel->cluster, sizeof key.cluster);
    key.regs = kernel->regs;
    key.static_shared = kernel->static_shared;
    key.dyn_shared = kernel->dyn_shared;
    key.shared_executed = kernel->shared_executed;
    key.local_per_thread = kernel->local_per_thread;
    key.sgprs = kernel->sgprs;
    key.accum_vgprs = kernel->accum_vgprs;
    key.gfx_version = kernel->gfx_version;
    key.source = source;
    key.cache_config = kernel->cache_requested | (uint32_t)kernel->cache_executed << 4;
    *kernel_id = slot->kernel_id;
    /* Most launches repeat the kernel's last configuration. */
    const struct intern_entry *last = intern_cache_entry(&launches->configs, slot->last_launch_id);
    if (last && !memcmp(last->text, &key, sizeof key)) {
        intern_cache_use(&launches->configs, slot->last_launch_id);
        *launch_id = slot->last_launch_id;
        return;
    }
    bool is_new;
    *launch_id = intern_cache_id(&launches->configs, &key, sizeof key, &is_new);
    if (!*launch_id)
        recorder_lose(launches->recorder, LOSS_LAUNCH_CONFIGS, 1);
    else if (is_new)
        write_config(launches, *launch_id, &key);
    slot->last_launch_id = *launch_id;
}
