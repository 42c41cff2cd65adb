/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of a session. job_start and system samples use NVML's numbers, device_limits and all work use CUDA's, and
 * CUDA_VISIBLE_DEVICES makes them differ. They are matched by uuid; the model uses CUDA's numbers only. */
#include "analysis/session_loader.h"

#include <stdlib.h>

enum { devices_max = 1024, migs_max = 256 };

/* The limits in an object; without an object all are unknown. */
static struct device_bounds device_bounds(const struct json_value *object)
{
    return (struct device_bounds){.warp_size = object_u32(object, "warp_size"),
                                  .warps_per_sm_max = object_u32(object, "warps_per_sm_max"),
                                  .blocks_per_sm_max = object_u32(object, "blocks_per_sm_max"),
                                  .regs_per_sm = object_u32(object, "regs_per_sm"),
                                  .regs_per_block_max = object_u32(object, "regs_per_block_max"),
                                  .shared_per_sm = object_u32(object, "shared_per_sm"),
                                  .shared_per_block_max = object_u32(object, "shared_per_block_max"),
                                  .shared_reserved_per_block = object_u32(object, "shared_reserved_per_block"),
                                  .core_clock_khz = object_u32(object, "core_clock_khz"),
                                  .memory_bandwidth_bps = json_get_int(object, "memory_bandwidth_bps", CELL_UNKNOWN)};
}

static struct device_info *device_find(const struct device_list *list, uint32_t id)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].id == id)
            return &list->items[i];
    return NULL;
}

static struct device_info *device_add(struct session_loader *loader, struct device_list *list, uint32_t id)
{
    struct device_info *device = id < DEVICE_UNKNOWN ? device_find(list, id) : NULL;
    if (device || id >= DEVICE_UNKNOWN || list->count >= devices_max ||
        !loader_grow(loader, &list->items, &list->capacity, list->count, sizeof *list->items))
        return device;
    device = &list->items[list->count++];
    *device = (struct device_info){.id = (uint16_t)id,
                                   .telemetry_id = ID_UNKNOWN,
                                   .name = "",
                                   .uuid = "",
                                   .vendor = "",
                                   .compute_major = ID_UNKNOWN,
                                   .compute_minor = ID_UNKNOWN,
                                   .multiprocessors = ID_UNKNOWN,
                                   .limits = device_bounds(NULL)};
    return device;
}

void loader_listed_devices(struct session_loader *loader, const struct json_value *list)
{
    for (const struct json_value *entry = list ? list->child : NULL; entry; entry = entry->next) {
        struct device_info *device = device_add(loader, &loader->listed, object_u32(entry, "id"));
        if (!device)
            continue;
        device->telemetry_id = device->id;
        loader_keep_text(loader, entry, "vendor", &device->vendor);
        loader_keep_text(loader, entry, "name", &device->name);
        loader_keep_text(loader, entry, "uuid", &device->uuid);
        if (json_member(entry, "compute_major")) {
            device->compute_major = object_u32(entry, "compute_major");
            device->compute_minor = object_u32(entry, "compute_minor");
            device->multiprocessors = object_u32(entry, "multi_processor_count");
        }
    }
}

void loader_device_limits(struct session_loader *loader, const struct json_value *object)
{
    struct device_info *device = device_add(loader, &loader->visible, object_u32(object, "device_id"));
    if (!device)
        return;
    device->has_limits = true;
    loader_keep_text(loader, object, "name", &device->name);
    loader_keep_text(loader, object, "uuid", &device->uuid);
    device->compute_major = object_u32(object, "compute_major");
    device->compute_minor = object_u32(object, "compute_minor");
    device->multiprocessors = object_u32(object, "multiprocessors");
    device->limits = device_bounds(object);
}

void loader_mig_device(struct session_loader *loader, const struct json_value *object)
{
    struct mig_place place = {.uuid = loader_member_text(loader, object, "uuid"),
                              .telemetry_id = object_u32(object, "device_id")};
    bool is_known = false; /* the recorder repeats the whole list after a change */
    for (size_t i = 0; i < loader->mig_count; i++)
        is_known |= loader->migs[i].telemetry_id == place.telemetry_id && !strcmp(loader->migs[i].uuid, place.uuid);
    if (is_known || !*place.uuid || loader->mig_count >= migs_max)
        return;
    if (loader_grow(loader, &loader->migs, &loader->mig_capacity, loader->mig_count, sizeof place))
        loader->migs[loader->mig_count++] = place;
}

/* CUDA uses GPU- also for an instance, where NVML uses MIG-. */
static const char *uuid_digits(const char *uuid)
{
    const char *dash = strchr(uuid, '-');
    return dash ? dash + 1 : uuid;
}

/* True if CUDA's GPU is NVML's, or the instance of it that the program uses. */
static bool is_same_gpu(const struct session_loader *loader, const struct device_info *visible,
                        const struct device_info *listed)
{
    if (!*visible->uuid)
        return false;
    if (!strcmp(visible->uuid, listed->uuid))
        return true;
    for (size_t i = 0; i < loader->mig_count; i++)
        if (loader->migs[i].telemetry_id == listed->telemetry_id &&
            !strcmp(uuid_digits(loader->migs[i].uuid), uuid_digits(visible->uuid)))
            return true;
    return false;
}

static void devices_join(struct device_info *visible, struct device_info *listed)
{
    visible->telemetry_id = listed->telemetry_id;
    visible->vendor = listed->vendor;
    visible->name = *visible->name ? visible->name : listed->name;
    visible->uuid = *visible->uuid ? visible->uuid : listed->uuid;
    listed->id = visible->id;
    listed->has_limits = true; /* those of its CUDA entry, which is added to the model */
}

static void devices_join_by_uuid(struct session_loader *loader)
{
    for (size_t i = 0; i < loader->listed.count; i++)
        for (size_t j = 0; j < loader->visible.count && !loader->listed.items[i].has_limits; j++)
            if (is_same_gpu(loader, &loader->visible.items[j], &loader->listed.items[i]))
                devices_join(&loader->visible.items[j], &loader->listed.items[i]);
}

/* If one side has no uuid (AMD's limits, old logs), only the number can be used. */
static void devices_join_by_number(struct session_loader *loader)
{
    for (size_t i = 0; i < loader->listed.count; i++) {
        struct device_info *listed = &loader->listed.items[i];
        struct device_info *visible = listed->has_limits ? NULL : device_find(&loader->visible, listed->telemetry_id);
        if (visible && visible->telemetry_id == ID_UNKNOWN && (!*visible->uuid || !*listed->uuid))
            devices_join(visible, listed);
    }
}

static bool is_number_taken(const struct session_loader *loader, uint16_t number)
{
    for (size_t i = 0; i < loader->listed.count; i++)
        if (loader->listed.items[i].telemetry_id == number)
            return true;
    return device_find(&loader->visible, number) != NULL;
}

/* A GPU that CUDA did not show keeps its number, or if work has that number, gets the next unused one, so that no two
 * GPUs share a track. Limits are recorded for all GPUs that CUDA shows, so the numbers in rows need not be checked; a
 * session loaded without its rows gets the same numbers. */
static void hidden_devices_number(struct session_loader *loader)
{
    uint16_t number = 0;
    for (size_t i = 0; i < loader->listed.count; i++) {
        struct device_info *listed = &loader->listed.items[i];
        if (listed->has_limits || !device_find(&loader->visible, listed->id))
            continue;
        while (is_number_taken(loader, number))
            number++;
        listed->id = number++;
    }
}

static int device_compare(const void *left, const void *right)
{
    const struct device_info *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Lists each GPU once. */
static bool devices_gather(struct session_loader *loader)
{
    struct session_model *model = loader->model;
    size_t count = loader->listed.count + loader->visible.count;
    model->devices = count ? malloc(count * sizeof *model->devices) : NULL;
    if (!count || !model->devices)
        return !count;
    for (size_t i = 0; i < loader->visible.count; i++)
        model->devices[model->device_count++] = loader->visible.items[i];
    for (size_t i = 0; i < loader->listed.count; i++)
        if (!loader->listed.items[i].has_limits)
            model->devices[model->device_count++] = loader->listed.items[i];
    qsort(model->devices, model->device_count, sizeof *model->devices, device_compare);
    return true;
}

static void numbers_translate(const struct metric_table *table, unsigned column, const uint16_t *numbers)
{
    int64_t *ids = table->columns ? table->columns[column] : NULL;
    for (size_t row = 0; ids && row < table->count; row++)
        if (ids[row] >= 0 && ids[row] < DEVICE_UNKNOWN)
            ids[row] = numbers[ids[row]];
}

static bool samples_translate(const struct session_loader *loader)
{
    bool is_same = true;
    for (size_t i = 0; i < loader->listed.count; i++)
        is_same = is_same && loader->listed.items[i].id == loader->listed.items[i].telemetry_id;
    if (is_same)
        return true;
    uint16_t *numbers = malloc(DEVICE_UNKNOWN * sizeof *numbers);
    if (!numbers)
        return false;
    for (uint16_t i = 0; i < DEVICE_UNKNOWN; i++)
        numbers[i] = i;
    for (size_t i = 0; i < loader->listed.count; i++)
        numbers[loader->listed.items[i].telemetry_id] = loader->listed.items[i].id;
    numbers_translate(&loader->model->device_metrics, DEVICE_METRIC_DEVICE_ID, numbers);
    numbers_translate(&loader->model->process_metrics, PROCESS_METRIC_DEVICE_ID, numbers);
    free(numbers);
    return true;
}

bool loader_devices_finish(struct session_loader *loader)
{
    devices_join_by_uuid(loader);
    devices_join_by_number(loader);
    hidden_devices_number(loader);
    return devices_gather(loader) && samples_translate(loader);
}

void loader_devices_free(struct session_loader *loader)
{
    free(loader->listed.items);
    free(loader->visible.items);
    free(loader->migs);
}
