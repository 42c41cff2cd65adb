/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/sass_results.h"

#include "base/clock.h"
#include "format/json.h"

#include <stdlib.h>
#include <string.h>

enum { symbol_bytes_max = 2 << 20, sample_kind_sass = 1 };

static void names_append(struct bytes *line, const char *name)
{
    if (line->data[line->size - 1] != '[')
        bytes_append_char(line, ',');
    json_text(line, name);
}

void sass_device_write(const struct sass_device *device, struct recorder *recorder, bool is_lazy, const char *mode)
{
    struct bytes *line = recorder_begin(recorder, RECORD_SASS_CONFIG);
    bytes_append_format(line, ",\"ts_ns\":%lld,\"device_id\":%u,\"configured_metrics\":[", (long long)clock_log_ns(),
                        device->id);
    for (size_t i = 0; i < device->choice.count && !line->failed; i++)
        names_append(line, device->list.metrics[device->choice.chosen[i]].name);
    bytes_append_text(line, "],\"skipped_metrics\":[");
    for (size_t i = 0; i < device->choice.skipped_count && !line->failed; i++)
        names_append(line, device->choice.skipped[i]);
    bytes_append_text(line, "],\"lazy_patching\":");
    json_bool(line, is_lazy);
    if (mode) {
        json_key(line, "mode");
        json_text(line, mode);
    }
    recorder_end(recorder, RECORD_SASS_CONFIG);
}

static bool budget_take(struct sass_budget *budget, size_t bytes)
{
    if (atomic_fetch_add(&budget->used, bytes) + bytes <= budget->max)
        return true;
    atomic_fetch_sub(&budget->used, bytes);
    return false;
}

/* The symbol texts have a separate limit, which is taken from the budget in full until their size is known. */
static size_t unsettled_bytes(void)
{
    return sizeof(struct sass_results) + symbol_bytes_max;
}

struct sass_results *sass_results_make(struct sass_budget *budget, const struct sass_device *device,
                                       const struct gpu_context *context)
{
    if (!budget_take(budget, unsettled_bytes()))
        return NULL;
    struct sass_results *results = calloc(1, sizeof *results);
    if (!results) {
        atomic_fetch_sub(&budget->used, unsettled_bytes());
        return NULL;
    }
    results->budget = budget;
    results->taken_bytes = unsettled_bytes();
    results->device = device;
    results->context = *context;
    results->symbols.text_bytes_max = symbol_bytes_max;
    return results;
}

void sass_results_free(struct sass_results *results)
{
    if (!results)
        return;
    atomic_fetch_sub(&results->budget->used, results->taken_bytes);
    intern_free(&results->symbols);
    free(results->cells);
    free(results);
}

static bool cells_grow(struct sass_results *results)
{
    size_t capacity = results->capacity ? results->capacity * 2 : 1024;
    size_t more_bytes = (capacity - results->capacity) * sizeof *results->cells;
    if (!budget_take(results->budget, more_bytes))
        return false;
    struct sass_cell *grown = realloc(results->cells, capacity * sizeof *grown);
    if (!grown) {
        atomic_fetch_sub(&results->budget->used, more_bytes);
        return false;
    }
    results->cells = grown;
    results->capacity = capacity;
    results->taken_bytes += more_bytes;
    return true;
}

void sass_results_add(struct sass_results *results, const struct sass_count *count)
{
    const struct sass_device *device = results->device;
    if (!count->metric_id && !count->value)
        return; /* a slot that CUPTI did not fill */
    size_t i = 0;
    while (i < device->choice.count && device->list.metrics[device->choice.chosen[i]].id != count->metric_id)
        i++;
    uint32_t symbol = intern_id(&results->symbols, count->symbol, strlen(count->symbol), NULL);
    if (i == device->choice.count || !symbol || (results->count == results->capacity && !cells_grow(results))) {
        results->refused++;
        return;
    }
    results->cells[results->count++] = (struct sass_cell){.symbol = symbol,
                                                          .cubin_crc = count->cubin_crc,
                                                          .function_index = count->function_index,
                                                          .pc_offset = count->pc_offset,
                                                          .metric = device->choice.chosen[i],
                                                          .value = count->value};
}

static int order(uint32_t left, uint32_t right)
{
    return (left > right) - (left < right);
}

static int instruction_compare(const struct sass_cell *left, const struct sass_cell *right)
{
    int by_symbol = order(left->symbol, right->symbol), by_cubin = order(left->cubin_crc, right->cubin_crc);
    int by_function = order(left->function_index, right->function_index);
    return by_symbol     ? by_symbol
           : by_cubin    ? by_cubin
           : by_function ? by_function
                         : order(left->pc_offset, right->pc_offset);
}

static int cell_compare(const void *left, const void *right)
{
    const struct sass_cell *a = left, *b = right;
    int by_instruction = instruction_compare(a, b);
    return by_instruction ? by_instruction : order(a->metric, b->metric);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void cells_add_up(struct sass_results *results)
{
    struct sass_cell *cells = results->cells;
    size_t kept = 0;
    for (size_t i = 0; i < results->count; i++) {
        if (kept && cell_compare(&cells[kept - 1], &cells[i]) == 0)
            cells[kept - 1].value = sum(cells[kept - 1].value, cells[i].value);
        else
            cells[kept++] = cells[i];
    }
    results->count = kept;
}

/* Results may wait long for the collector, so unused memory is freed. */
static void results_trim(struct sass_results *results)
{
    if (results->count && results->count < results->capacity) {
        struct sass_cell *trimmed = realloc(results->cells, results->count * sizeof *trimmed);
        if (trimmed) {
            results->cells = trimmed;
            results->capacity = results->count;
        }
    }
    size_t needed_bytes =
        sizeof *results + results->capacity * sizeof *results->cells + intern_bytes(&results->symbols);
    if (needed_bytes >= results->taken_bytes)
        return;
    atomic_fetch_sub(&results->budget->used, results->taken_bytes - needed_bytes);
    results->taken_bytes = needed_bytes;
}

static void cells_choose(struct sass_results *results)
{
    const struct sass_metric *metrics = results->device->list.metrics;
    struct sass_cell *cells = results->cells;
    size_t kept = 0;
    for (size_t first = 0, end; first < results->count; first = end) {
        bool is_counted = false, has_value = false;
        for (end = first; end < results->count && instruction_compare(&cells[first], &cells[end]) == 0; end++) {
            has_value |= cells[end].value != 0;
            if (strcmp(metrics[cells[end].metric].name, SASS_METRIC_EXECUTED) == 0) {
                is_counted = true;
                results->executed = sum(results->executed, cells[end].value);
            }
        }
        if (is_counted && !has_value) {
            results->not_executed++;
            continue;
        }
        memmove(&cells[kept], &cells[first], (end - first) * sizeof *cells);
        kept += end - first;
    }
    results->count = kept;
}

void sass_results_settle(struct sass_results *results)
{
    if (results->count) {
        qsort(results->cells, results->count, sizeof *results->cells, cell_compare);
        cells_add_up(results);
        cells_choose(results);
    }
    results_trim(results);
}

void sass_results_write(const struct sass_results *results, struct recorder *recorder, struct names *names)
{
    const struct sass_metric *metrics = results->device->list.metrics;
    uint32_t metric_ids[SASS_METRICS_MAX] = {0};
    uint32_t symbol = 0, function_id = 0;
    for (size_t i = 0; i < results->count; i++) {
        const struct sass_cell *cell = &results->cells[i];
        if (cell->symbol != symbol) {
            symbol = cell->symbol;
            function_id = names_function(names, intern_text(&results->symbols, symbol));
        }
        if (!metric_ids[cell->metric])
            metric_ids[cell->metric] = names_metric(names, metrics[cell->metric].name);
        int64_t *row = recorder_row(recorder, RECORD_PROFILE_SAMPLE_BATCH, results->start_ns);
        row[PROFILE_SAMPLE_DEVICE_ID] = results->context.device_id;
        row[PROFILE_SAMPLE_FUNCTION_ID] = function_id;
        row[PROFILE_SAMPLE_PC_OFFSET] = cell->pc_offset;
        row[PROFILE_SAMPLE_METRIC_ID] = metric_ids[cell->metric];
        row[PROFILE_SAMPLE_METRIC_VALUE] = (int64_t)cell->value;
        row[PROFILE_SAMPLE_SAMPLE_KIND] = sample_kind_sass;
        row[PROFILE_SAMPLE_CUBIN_CRC] = cell->cubin_crc;
        row[PROFILE_SAMPLE_CONTEXT_ID] = results->context.id;
        row[PROFILE_SAMPLE_INTERVAL_NS] = results->end_ns - results->start_ns;
        row[PROFILE_SAMPLE_INSTANCES] = CELL_UNKNOWN;
        row[PROFILE_SAMPLE_CONFIDENCE_BP] = CELL_UNKNOWN;
        row[PROFILE_SAMPLE_WINDOW_ID] = results->window_id;
    }
}
