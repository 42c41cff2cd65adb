/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write_sums.h"

#include "logfile/row_counts.h"

#include <stdio.h>
#include <stdlib.h>

void write_sums_init(struct write_sums *sums)
{
    *sums = (struct write_sums){0};
    sums->facts.start_ns = sums->facts.first_ns = sums->facts.last_ns = sums->facts.expected_rows = CELL_UNKNOWN;
}

void write_sums_free(struct write_sums *sums)
{
    free(sums->kernels);
    free(sums->kernel_slots);
    free(sums->names);
    bytes_free(&sums->names_text);
    free(sums->metrics);
    free(sums->metric_slots);
    free(sums->samples);
    free(sums->facts.gpus);
    *sums = (struct write_sums){0};
}

size_t write_sums_bytes(const struct write_sums *sums)
{
    return sums->kernel_capacity * sizeof *sums->kernels + sums->kernel_slot_count * sizeof *sums->kernel_slots +
           sums->name_capacity * sizeof *sums->names + sums->names_text.capacity +
           sums->metric_capacity * sizeof *sums->metrics + sums->metric_slot_count * sizeof *sums->metric_slots +
           sums->sample_capacity * sizeof *sums->samples;
}

/* Grows an array for one more element. NULL: no memory; the old array is still valid. */
static void *array_grow(void *array, size_t *capacity, size_t count, size_t width)
{
    if (count < *capacity)
        return array;
    size_t wanted = *capacity ? *capacity * 2 : 8;
    void *grown = realloc(array, wanted * width);
    if (grown)
        *capacity = wanted;
    return grown;
}

static void facts_saw(struct session_facts *facts, int64_t first_ns, int64_t last_ns)
{
    if (facts->first_ns == CELL_UNKNOWN || first_ns < facts->first_ns)
        facts->first_ns = first_ns;
    if (facts->last_ns == CELL_UNKNOWN || last_ns > facts->last_ns)
        facts->last_ns = last_ns;
}

static int64_t object_time(const struct json_value *object)
{
    int64_t time_ns = json_get_int(object, "ts_ns", -1);
    return time_ns > 0 && time_ns <= INT64_MAX / 2 ? time_ns : CELL_UNKNOWN;
}

/* Truncates only between whole characters. */
static void text_keep(char *out, size_t room, const char *text)
{
    size_t size = strlen(text);
    if (!size)
        return;
    if (size >= room)
        for (size = room - 1; size && ((unsigned char)text[size] & 0xc0) == 0x80;)
            size--;
    memcpy(out, text, size);
    out[size] = '\0';
}

static bool gpus_take(struct session_facts *facts, const struct json_value *list)
{
    for (const struct json_value *entry = list && list->kind == JSON_ARRAY ? list->child : NULL; entry;
         entry = entry->next) {
        int64_t device_id = json_get_int(entry, "id", json_get_int(entry, "device_id", -1));
        const char *uuid = json_get_text(entry, "uuid", "");
        if (device_id < 0 || !*uuid)
            continue;
        size_t i = 0;
        while (i < facts->gpu_count && facts->gpus[i].device_id != device_id)
            i++;
        if (i == FACT_GPUS_MAX || i < facts->gpu_count)
            continue;
        struct gpu_fact *grown = array_grow(facts->gpus, &facts->gpu_capacity, facts->gpu_count, sizeof *grown);
        if (!grown)
            return false;
        facts->gpus = grown;
        facts->gpus[facts->gpu_count++] = (struct gpu_fact){.device_id = device_id};
        text_keep(facts->gpus[i].uuid, sizeof facts->gpus[i].uuid, uuid);
        text_keep(facts->gpus[i].name, sizeof facts->gpus[i].name, json_get_text(entry, "name", ""));
    }
    return true;
}

static void loss_add(struct session_facts *facts, const char *reason, int64_t count, bool is_total)
{
    unsigned i = 0;
    while (i < facts->loss_count && (facts->losses[i].is_total != is_total ||
                                     strncmp(facts->losses[i].reason, reason, sizeof facts->losses[i].reason - 1) != 0))
        i++;
    if (i == FACT_LOSSES_MAX)
        i--; /* keep the count: the last entry collects the reasons that exceed the limit */
    struct loss_fact *loss = &facts->losses[i];
    if (i == facts->loss_count) {
        facts->loss_count++;
        *loss = (struct loss_fact){.is_total = is_total};
        snprintf(loss->reason, sizeof loss->reason, "%s", reason);
    }
    if (count < 0)
        loss->has_unknown = true;
    else if (is_total)
        loss->count = count > loss->count ? count : loss->count;
    else
        sum_add_ns(&loss->count, count);
}

static void expected_rows_take(struct session_facts *facts, const struct json_value *object)
{
    struct row_counts counts = {0};
    uint64_t rows;
    row_counts_take(&counts, object);
    if (row_counts_batches(&counts, &rows) && rows <= INT64_MAX && (int64_t)rows > facts->expected_rows)
        facts->expected_rows = (int64_t)rows;
}

static void shutdown_take(struct session_facts *facts, const struct json_value *object)
{
    expected_rows_take(facts, object);
    facts->has_ended = true;
    facts->has_crashed |= json_get_bool(object, "crashed", false) || json_get_bool(object, "signaled", false);
    const struct json_value *lost = json_member(object, "lost");
    for (const struct json_value *entry = lost && lost->kind == JSON_OBJECT ? lost->child : NULL; entry;
         entry = entry->next)
        if (entry->kind == JSON_INT && entry->integer > 0)
            loss_add(facts, entry->key, entry->integer, true);
}

static bool names_take(struct write_sums *sums, const struct json_value *object)
{
    const struct json_value *names = json_member(object, dictionary_catalogue[DICTIONARY_KERNEL].name);
    for (const struct json_value *entry = names && names->kind == JSON_OBJECT ? names->child : NULL; entry;
         entry = entry->next) {
        char *end;
        unsigned long long id = strtoull(entry->key, &end, 10);
        if (entry->kind != JSON_STRING || *end || !id || id >= KERNEL_ID_MAX)
            continue;
        struct kernel_name *grown = array_grow(sums->names, &sums->name_capacity, sums->name_count, sizeof *grown);
        if (!grown)
            return false;
        sums->names = grown;
        sums->names[sums->name_count++] =
            (struct kernel_name){.kernel_id = (uint32_t)id, .size = entry->text_size, .at = sums->names_text.size};
        bytes_append(&sums->names_text, entry->text, entry->text_size);
    }
    return !sums->names_text.failed;
}

bool write_sums_record(struct write_sums *sums, enum record_type type, const struct json_value *object)
{
    struct session_facts *facts = &sums->facts;
    int64_t time_ns = object_time(object);
    if (time_ns != CELL_UNKNOWN)
        facts_saw(facts, time_ns, time_ns);
    switch (type) {
    case RECORD_JOB_START:
        text_keep(facts->app, sizeof facts->app, json_get_text(object, "app", ""));
        text_keep(facts->host, sizeof facts->host, json_get_text(object, "hostname", ""));
        text_keep(facts->kind, sizeof facts->kind, json_get_text(object, "session_kind", ""));
        text_keep(facts->engine, sizeof facts->engine, json_get_text(object, "profiling_engine", ""));
        facts->start_ns = time_ns != CELL_UNKNOWN ? time_ns : facts->start_ns;
        return gpus_take(facts, json_member(object, "devices")) &&
               gpus_take(facts, json_member(object, "gpu_static_devices")) &&
               gpus_take(facts, json_member(object, "cuda_static_devices"));
    case RECORD_SHUTDOWN:
        shutdown_take(facts, object);
        return true;
    case RECORD_LOSS:
        loss_add(facts, json_get_text(object, "reason", ""), json_get_int(object, "count", -1), false);
        return true;
    case RECORD_DICTIONARY_UPDATE:
        return names_take(sums, object);
    default:
        return true;
    }
}

/* ---- kernels ---- */

static size_t hash_of(uint64_t key)
{
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static size_t kernel_hash(const struct write_sums *sums, size_t index)
{
    return hash_of(sums->kernels[index].kernel_id);
}

static size_t metric_key(enum record_type type, int64_t device_id, int64_t minute)
{
    return hash_of((uint64_t)minute * 1031 + (uint64_t)device_id * 64 + (uint64_t)type);
}

static size_t metric_hash(const struct write_sums *sums, size_t index)
{
    const struct metric_sum *sum = &sums->metrics[index];
    return metric_key(sum->type, sum->device_id, sum->minute);
}

/* Keeps the hash table at most half full. */
static bool slots_grow(const struct write_sums *sums, uint32_t **slots, size_t *slot_count, size_t item_count,
                       size_t (*hash)(const struct write_sums *, size_t))
{
    if (item_count * 2 < *slot_count)
        return true;
    size_t count = *slot_count ? *slot_count * 2 : 256;
    uint32_t *grown = calloc(count, sizeof *grown);
    if (!grown)
        return false;
    for (size_t i = 0; i < item_count; i++) {
        size_t at = hash(sums, i) & (count - 1);
        while (grown[at])
            at = (at + 1) & (count - 1);
        grown[at] = (uint32_t)i + 1;
    }
    free(*slots);
    *slots = grown;
    *slot_count = count;
    return true;
}

static struct kernel_sum *kernel_find(struct write_sums *sums, uint32_t kernel_id)
{
    if (!slots_grow(sums, &sums->kernel_slots, &sums->kernel_slot_count, sums->kernel_count, kernel_hash))
        return NULL;
    size_t mask = sums->kernel_slot_count - 1, at = hash_of(kernel_id) & mask;
    for (; sums->kernel_slots[at]; at = (at + 1) & mask)
        if (sums->kernels[sums->kernel_slots[at] - 1].kernel_id == kernel_id)
            return &sums->kernels[sums->kernel_slots[at] - 1];
    struct kernel_sum *grown = array_grow(sums->kernels, &sums->kernel_capacity, sums->kernel_count, sizeof *grown);
    if (!grown)
        return NULL;
    sums->kernels = grown;
    sums->kernel_slots[at] = (uint32_t)sums->kernel_count + 1;
    struct kernel_sum *sum = &sums->kernels[sums->kernel_count++];
    *sum = (struct kernel_sum){.kernel_id = kernel_id, .min_ns = INT64_MAX};
    return sum;
}

static bool kernels_add(struct write_sums *sums, const struct row_buffer *rows)
{
    const int64_t *ids = rows->present >> KERNEL_KERNEL_ID & 1 ? rows->columns[KERNEL_KERNEL_ID] : NULL;
    if (!(rows->present >> KERNEL_DURATION_NS & 1))
        return true;
    for (uint32_t row = 0; row < rows->row_count; row++) {
        int64_t start_ns, end_ns, id = ids ? ids[row] : 0;
        if (!row_times(rows, row, &start_ns, &end_ns))
            continue;
        struct kernel_sum *sum = kernel_find(sums, id > 0 && id < KERNEL_ID_MAX ? (uint32_t)id : 0);
        if (!sum)
            return false;
        int64_t duration_ns = end_ns - start_ns;
        sum->count++;
        sum_add_ns(&sum->total_ns, duration_ns);
        sum->min_ns = duration_ns < sum->min_ns ? duration_ns : sum->min_ns;
        sum->max_ns = duration_ns > sum->max_ns ? duration_ns : sum->max_ns;
        sum->sum_squares += (double)duration_ns * (double)duration_ns;
        sum->histogram[histogram_bin(duration_ns)]++;
        sums->facts.kernels++;
        sum_add_ns(&sums->facts.kernel_ns, duration_ns);
    }
    return true;
}

/* ---- metrics ---- */

static struct metric_sum *metric_find(struct write_sums *sums, enum record_type type, int64_t device_id, int64_t minute)
{
    if (!slots_grow(sums, &sums->metric_slots, &sums->metric_slot_count, sums->metric_count, metric_hash))
        return NULL;
    size_t mask = sums->metric_slot_count - 1, at = metric_key(type, device_id, minute) & mask;
    for (; sums->metric_slots[at]; at = (at + 1) & mask) {
        struct metric_sum *sum = &sums->metrics[sums->metric_slots[at] - 1];
        if (sum->type == type && sum->device_id == device_id && sum->minute == minute)
            return sum;
    }
    struct metric_sum *grown = array_grow(sums->metrics, &sums->metric_capacity, sums->metric_count, sizeof *grown);
    if (!grown)
        return NULL;
    sums->metrics = grown;
    sums->metric_slots[at] = (uint32_t)sums->metric_count + 1;
    struct metric_sum *sum = &sums->metrics[sums->metric_count++];
    *sum = (struct metric_sum){.type = type, .device_id = device_id, .minute = minute};
    return sum;
}

void metric_cell_add(struct metric_cell *cell, const struct metric_cell *other)
{
    if (!other->count)
        return;
    if (!cell->count || other->min < cell->min)
        cell->min = other->min;
    if (!cell->count || other->max > cell->max)
        cell->max = other->max;
    cell->sum += other->sum;
    cell->count += other->count;
}

static bool sample_keep(struct write_sums *sums, const struct row_buffer *rows, uint32_t row, int64_t device_id,
                        int64_t time_ns)
{
    size_t i = 0;
    while (i < sums->sample_count &&
           (sums->samples[i].type != rows->info->type || sums->samples[i].device_id != device_id))
        i++;
    if (i == sums->sample_count) {
        struct metric_sample *grown =
            array_grow(sums->samples, &sums->sample_capacity, sums->sample_count, sizeof *grown);
        if (!grown)
            return false;
        sums->samples = grown;
        sums->samples[sums->sample_count++] =
            (struct metric_sample){.type = rows->info->type, .device_id = device_id, .cells = {CELL_UNKNOWN}};
    }
    struct metric_sample *sample = &sums->samples[i];
    if (sample->cells[0] > time_ns)
        return true;
    for (unsigned c = 0; c < rows->info->column_count && c < ROW_COLUMNS_MAX; c++)
        sample->cells[c] = rows->present >> c & 1 ? rows->columns[c][row] : CELL_UNKNOWN;
    return true;
}

static bool metrics_add(struct write_sums *sums, const struct row_buffer *rows)
{
    int device_column = record_column_find(rows->info, "device_id", 9);
    for (uint32_t row = 0; row < rows->row_count; row++) {
        int64_t time_ns, end_ns, device_id = CELL_UNKNOWN;
        if (!row_times(rows, row, &time_ns, &end_ns))
            continue;
        if (device_column >= 0) {
            device_id = rows->present >> device_column & 1 ? rows->columns[device_column][row] : -1;
            if (device_id < 0 || device_id >= FACT_GPUS_MAX)
                continue;
        }
        struct metric_sum *sum = metric_find(sums, rows->info->type, device_id, time_ns / MINUTE_NS);
        if (!sum || !sample_keep(sums, rows, row, device_id, time_ns))
            return false;
        for (unsigned c = 0; c < rows->info->column_count && c < ROW_COLUMNS_MAX; c++) {
            int64_t value = rows->present >> c & 1 ? rows->columns[c][row] : CELL_UNKNOWN;
            if ((int)c == rows->time_column || (int)c == device_column || value == CELL_UNKNOWN)
                continue;
            const struct metric_cell one = {.min = value, .max = value, .sum = (double)value, .count = 1};
            metric_cell_add(&sum->cells[c], &one);
        }
    }
    return true;
}

bool write_sums_rows(struct write_sums *sums, const struct row_buffer *rows)
{
    int64_t min_ns, max_ns;
    if (row_buffer_span(rows, &min_ns, &max_ns))
        facts_saw(&sums->facts, min_ns, max_ns);
    switch (rows->info->type) {
    case RECORD_KERNEL_EVENT_BATCH:
        return kernels_add(sums, rows);
    case RECORD_DEVICE_METRIC_BATCH:
    case RECORD_HOST_METRIC_BATCH:
        return metrics_add(sums, rows);
    default:
        return true;
    }
}

void metric_cells_encode(const struct metric_cell *cells, unsigned column_count, struct bytes *out)
{
    for (unsigned i = 0; i < column_count; i++) {
        if (!cells[i].count)
            continue;
        varint_append(out, i);
        varint_append(out, cells[i].count);
        varint_append(out, zigzag(cells[i].min));
        varint_append(out, (uint64_t)cells[i].max - (uint64_t)cells[i].min);
        bytes_append(out, &cells[i].sum, sizeof cells[i].sum);
    }
}

gpufl_status metric_cells_add(struct metric_cell *cells, const void *data, size_t size, const int *order,
                              unsigned order_count)
{
    const uint8_t *at = data, *end = at ? at + size : NULL;
    while (at < end) {
        uint64_t column, min, range;
        struct metric_cell cell = {0};
        if (!varint_read(&at, end, &column) || !varint_read(&at, end, &cell.count) || !varint_read(&at, end, &min) ||
            !varint_read(&at, end, &range) || (size_t)(end - at) < sizeof cell.sum || column >= order_count)
            return GPUFL_E_DAMAGED;
        memcpy(&cell.sum, at, sizeof cell.sum);
        at += sizeof cell.sum;
        cell.min = unzigzag(min);
        cell.max = (int64_t)((uint64_t)cell.min + range);
        if (order[column] >= 0)
            metric_cell_add(&cells[order[column]], &cell);
    }
    return GPUFL_OK;
}

bool metric_cells_deliver(enum record_type type, int64_t minute, const struct metric_cell *cells,
                          store_metric_fn on_metric, void *user)
{
    const struct record_info *info = &record_catalogue[type];
    for (unsigned c = 0; c < info->column_count && c < ROW_COLUMNS_MAX; c++) {
        if (!cells[c].count)
            continue;
        const struct store_metric metric = {.minute_ns = minute * MINUTE_NS,
                                            .type = type,
                                            .column = c,
                                            .min = cells[c].min,
                                            .max = cells[c].max,
                                            .mean = cells[c].sum / (double)cells[c].count,
                                            .count = cells[c].count};
        if (!on_metric(user, &metric))
            return false;
    }
    return true;
}
