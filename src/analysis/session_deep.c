/* SPDX-License-Identifier: Apache-2.0 */
/* Adds samples, counters, windows and metrics of the deep engines to the model. */
#include "analysis/session_loader.h"
#include "analysis/statistics.h"
#include "format/counter_members.h"

#include <math.h>
#include <stdlib.h>

enum {
    samples_max = 16 * 1024 * 1024,
    windows_max = 1024 * 1024,
    metric_events_max = 1024 * 1024,
    metric_values_max = 32 * 1024 * 1024,
    untimed_max = 64 * 1024 * 1024,
    configs_max = 1024,
    pm_columns_max = 4096,
    certain_bp = 10000
};

struct place_key {
    uint64_t cubin_crc;
    uint32_t function_id, pc_offset, metric_id, kind;
};
struct scoped_key {
    uint32_t path_id, function_id, metric_id;
};

/* The index of the key's row: an existing one, or the next free one (*is_new). SIZE_MAX: limit exceeded. */
static size_t key_index(struct session_loader *loader, struct intern *keys, const void *key, size_t size, bool *is_new)
{
    uint32_t id = keys->count < samples_max ? intern_id(keys, key, size, is_new) : intern_find(keys, key, size);
    if (id)
        return id - 1;
    if (keys->count < samples_max)
        loader->status = GPUFL_E_NO_MEMORY;
    else
        loader->model->deep.left_out++;
    return SIZE_MAX;
}

static void code_sample_add(struct session_loader *loader, const struct code_sample *sample)
{
    struct session_deep *deep = &loader->model->deep;
    struct place_key key = {.cubin_crc = sample->cubin_crc,
                            .function_id = sample->function_id,
                            .pc_offset = sample->pc_offset,
                            .metric_id = sample->metric_id,
                            .kind = sample->kind};
    bool is_new = false;
    size_t at = key_index(loader, &loader->deep.places, &key, sizeof key, &is_new);
    if (at == SIZE_MAX)
        return;
    if (is_new) {
        if (loader_grow(loader, &deep->samples, &loader->deep.sample_capacity, at, sizeof *sample)) {
            deep->samples[at] = *sample;
            deep->sample_count = at + 1;
        }
        return;
    }
    struct code_sample *row = &deep->samples[at];
    row->value = sum_saturated_u64(row->value, sample->value);
    if (!row->source_line) {
        row->source_file_id = sample->source_file_id;
        row->source_line = sample->source_line;
    }
}

static void scope_sample_add(struct session_loader *loader, const struct code_sample *sample, uint32_t path_id,
                             int64_t confidence_bp)
{
    struct session_deep *deep = &loader->model->deep;
    struct scoped_key key = {path_id, sample->function_id, sample->metric_id};
    bool is_new = false;
    size_t at = key_index(loader, &loader->deep.scoped, &key, sizeof key, &is_new);
    if (at == SIZE_MAX)
        return;
    if (is_new) {
        if (!loader_grow(loader, &deep->scope_samples, &loader->deep.scope_sample_capacity, at,
                         sizeof *deep->scope_samples))
            return;
        deep->scope_samples[at] = (struct scope_sample){
            .path_id = path_id, .function_id = sample->function_id, .metric_id = sample->metric_id};
        deep->scope_sample_count = at + 1;
    }
    struct scope_sample *row = &deep->scope_samples[at];
    row->value = sum_saturated_u64(row->value, sample->value);
    if (confidence_bp < 0 || confidence_bp > certain_bp)
        row->undecided = sum_saturated_u64(row->undecided, sample->value);
    else
        row->weighted += (double)sample->value * (double)confidence_bp / certain_bp;
    if (confidence_bp == certain_bp)
        row->certain = sum_saturated_u64(row->certain, sample->value);
}

/* Uses the row's own path id, which is cheaper; otherwise the path of its scope instance. */
static uint32_t row_path(struct session_loader *loader, const struct batch_view *view, uint32_t row)
{
    uint32_t path_id = cell_u32(view, PROFILE_SAMPLE_SCOPE_NAME_ID, row, 0);
    if (path_id)
        return path_id;
    uint32_t scope = loader_row_scope(loader, view, PROFILE_SAMPLE_SCOPE_ID, row);
    bool is_known = scope != ID_UNKNOWN && scope + 1 != loader->unknown_scope;
    return is_known ? loader->model->scopes[scope].path_id : 0;
}

static void profile_rows(struct session_loader *loader, const struct batch_view *view)
{
    struct session_model *model = loader->model;
    for (uint32_t row = 0; row < view->row_count && loader->status == GPUFL_OK; row++) {
        int64_t value = cell(view, PROFILE_SAMPLE_METRIC_VALUE, row),
                kind = cell(view, PROFILE_SAMPLE_SAMPLE_KIND, row);
        int64_t pc = cell(view, PROFILE_SAMPLE_PC_OFFSET, row), start_ns;
        if (value == CELL_UNKNOWN || kind < 0 || kind >= SAMPLE_KIND_COUNT || pc < 0 || pc > UINT32_MAX) {
            model->invalid_rows++;
            continue;
        }
        int64_t interval_ns = cell(view, PROFILE_SAMPLE_INTERVAL_NS, row);
        /* Line maps of v1 have timestamps of another clock. */
        if (kind != SAMPLE_LINE && !loader_times_ok(loader, view->base_time_ns, cell(view, PROFILE_SAMPLE_DT_NS, row),
                                                    interval_ns == CELL_UNKNOWN ? 0 : interval_ns, &start_ns))
            continue;
        struct code_sample sample = {
            .cubin_crc = cell_u64(view, PROFILE_SAMPLE_CUBIN_CRC, row),
            .value = (uint64_t)value,
            .function_id = cell_u32(view, PROFILE_SAMPLE_FUNCTION_ID, row, 0),
            .pc_offset = (uint32_t)pc,
            .metric_id = kind == SAMPLE_LINE ? 0 : cell_u32(view, PROFILE_SAMPLE_METRIC_ID, row, 0),
            .source_file_id = cell_u32(view, PROFILE_SAMPLE_SOURCE_FILE_ID, row, 0),
            .source_line = cell_u32(view, PROFILE_SAMPLE_SOURCE_LINE, row, 0),
            .kind = (uint8_t)kind,
        };
        code_sample_add(loader, &sample);
        if (kind == SAMPLE_PC)
            scope_sample_add(loader, &sample, row_path(loader, view, row),
                             cell(view, PROFILE_SAMPLE_CONFIDENCE_BP, row));
    }
}

static struct pm_column *pm_column_find(struct session_loader *loader, uint16_t device, const char *metric)
{
    struct session_deep *deep = &loader->model->deep;
    for (size_t i = 0; i < deep->pm_count; i++) {
        size_t at = (loader->deep.last_pm + 1 + i) % deep->pm_count;
        if (deep->pm[at].device == device && deep->pm[at].metric == metric) {
            loader->deep.last_pm = at;
            return &deep->pm[at];
        }
    }
    if (deep->pm_count >= pm_columns_max) {
        deep->left_out++;
        return NULL;
    }
    if (!loader_grow(loader, &deep->pm, &loader->deep.pm_capacity, deep->pm_count, sizeof *deep->pm))
        return NULL;
    loader->deep.last_pm = deep->pm_count;
    deep->pm[deep->pm_count] = (struct pm_column){.device = device, .metric = metric};
    return &deep->pm[deep->pm_count++];
}

static bool pm_column_grow(struct session_loader *loader, struct pm_column *column)
{
    size_t capacity = column->capacity;
    if (!loader_grow(loader, &column->times_ns, &capacity, column->count, sizeof *column->times_ns))
        return false;
    capacity = column->capacity;
    if (!loader_grow(loader, &column->values, &capacity, column->count, sizeof *column->values))
        return false;
    column->capacity = capacity;
    return true;
}

static void pm_rows(struct session_loader *loader, const struct batch_view *view)
{
    for (uint32_t row = 0; row < view->row_count && loader->status == GPUFL_OK; row++) {
        int64_t bits = cell(view, PM_SAMPLE_VALUE, row), time_ns;
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!view->columns[PM_SAMPLE_VALUE].present || !isfinite(value)) {
            loader->model->invalid_rows++;
            continue;
        }
        if (!loader_times_ok(loader, view->base_time_ns, cell(view, PM_SAMPLE_DT_NS, row), 0, &time_ns))
            continue;
        const char *metric =
            session_text(loader->model, DICTIONARY_METRIC, cell_u32(view, PM_SAMPLE_METRIC_ID, row, 0));
        struct pm_column *column =
            pm_column_find(loader, cell_device(view, PM_SAMPLE_DEVICE_ID, row), metric ? metric : "");
        if (!column || !pm_column_grow(loader, column))
            continue;
        column->times_ns[column->count] = time_ns;
        column->values[column->count++] = value;
    }
}

static void untimed_rows(struct session_loader *loader, const struct batch_view *view)
{
    struct session_deep *deep = &loader->model->deep;
    for (uint32_t row = 0; row < view->row_count; row++) {
        struct untimed_launch launch = {
            .kernel_id = cell_u32(view, LAUNCH_KERNEL_ID, row, 0),
            .corr_id = cell_u32(view, LAUNCH_CORR_ID, row, 0),
            .thread_id = cell_u32(view, LAUNCH_THREAD_ID, row, ID_UNKNOWN),
            .window_id = cell_u32(view, LAUNCH_WINDOW_ID, row, 0),
        };
        if (!loader_times_ok(loader, view->base_time_ns, cell(view, LAUNCH_DT_NS, row), 0, &launch.time_ns))
            continue;
        launch.scope = loader_row_scope(loader, view, LAUNCH_SCOPE_ID, row);
        if (deep->untimed_count >= untimed_max)
            deep->left_out++;
        else if (loader_grow(loader, &deep->untimed, &loader->deep.untimed_capacity, deep->untimed_count,
                             sizeof launch))
            deep->untimed[deep->untimed_count++] = launch;
        else
            return;
    }
}

void loader_deep_rows(struct session_loader *loader, const struct batch_view *view)
{
    if (view->info->type == RECORD_PROFILE_SAMPLE_BATCH)
        profile_rows(loader, view);
    else if (view->info->type == RECORD_PM_SAMPLE_BATCH)
        pm_rows(loader, view);
    else if (view->info->type == RECORD_LAUNCH_EVENT_BATCH)
        untimed_rows(loader, view);
}

/* v1 lists everything that ran in a window; gpufl names one source. */
static const char *window_source(struct session_loader *loader, const struct json_value *object)
{
    const char *source = loader_member_text(loader, object, "source");
    if (*source)
        return source;
    struct bytes joined = {0};
    const struct json_value *engines = json_member(object, "engines");
    for (const struct json_value *entry = engines && engines->kind == JSON_ARRAY ? engines->child : NULL; entry;
         entry = entry->next)
        if (entry->kind == JSON_STRING && joined.size < 256) {
            if (joined.size)
                bytes_append_text(&joined, "+");
            bytes_append(&joined, entry->text, entry->text_size);
        }
    source = loader_text(loader, joined.data, joined.size);
    bytes_free(&joined);
    return source;
}

static void window_record(struct session_loader *loader, const struct json_value *object)
{
    struct session_deep *deep = &loader->model->deep;
    int64_t start_ns = json_get_int(object, "start_ns", -1), end_ns = json_get_int(object, "end_ns", -1), duration_ns;
    if (__builtin_sub_overflow(end_ns, start_ns, &duration_ns))
        duration_ns = -1;
    if (!loader_times_ok(loader, start_ns, 0, duration_ns, &start_ns))
        return;
    uint32_t id = object_u32(object, "window_id");
    uint64_t scope_id = 0;
    object_u64(object, "scope_id", &scope_id);
    uint32_t scope = scope_id ? loader_scope_find(loader, scope_id) : ID_UNKNOWN;
    struct deep_window window = {
        .start_ns = start_ns,
        .end_ns = end_ns,
        .id = id == ID_UNKNOWN ? 0 : id,
        .path_id = scope == ID_UNKNOWN ? 0 : loader->model->scopes[scope].path_id,
        .launches = json_get_int(object, "launches_covered", CELL_UNKNOWN),
        .source = window_source(loader, object),
        .name = loader_member_text(loader, object, "name"),
        .close_reason = loader_member_text(loader, object, "close_reason"),
    };
    if (window.launches < 0)
        window.launches = CELL_UNKNOWN;
    if (deep->window_count >= windows_max)
        deep->left_out++;
    else if (loader_grow(loader, &deep->windows, &loader->deep.window_capacity, deep->window_count, sizeof window))
        deep->windows[deep->window_count++] = window;
}

static int64_t known_int(const struct json_value *object, const char *key)
{
    int64_t value = json_get_int(object, key, CELL_UNKNOWN);
    return value < 0 ? CELL_UNKNOWN : value;
}

static void sampling_record(struct session_loader *loader, const struct json_value *object)
{
    struct session_deep *deep = &loader->model->deep;
    struct sampling_config config = {
        .device = known_int(object, "device_id"),
        .context = known_int(object, "context_id"),
        .period_cycles = known_int(object, "period_cycles"),
        .rate_hz = known_int(object, "target_rate_hz"),
        .buffer_bytes = known_int(object, "hardware_buffer_bytes"),
        .mode = loader_member_text(loader, object, "mode"),
    };
    if (deep->sampling_count >= configs_max)
        deep->left_out++;
    else if (loader_grow(loader, &deep->sampling, &loader->deep.sampling_capacity, deep->sampling_count, sizeof config))
        deep->sampling[deep->sampling_count++] = config;
}

/* Converts a list of names, or of objects with a name, to text. */
static const char *names_text(struct session_loader *loader, const struct json_value *list, uint32_t *count)
{
    enum { names_bytes_max = 4096 };
    struct bytes joined = {0};
    for (const struct json_value *entry = list && list->kind == JSON_ARRAY ? list->child : NULL; entry;
         entry = entry->next, (*count)++) {
        const char *name = entry->kind == JSON_STRING ? entry->text : json_get_text(entry, "name", "");
        if (!*name || joined.size > names_bytes_max)
            continue;
        bytes_append_text(&joined, joined.size ? ", " : "");
        bytes_append_text(&joined, name);
    }
    const char *text = loader_text(loader, joined.data, joined.size);
    bytes_free(&joined);
    return text;
}

static void counter_record(struct session_loader *loader, const struct json_value *object, bool is_pm)
{
    struct session_deep *deep = &loader->model->deep;
    struct counter_config config = {.device = known_int(object, "device_id"),
                                    .interval_us = known_int(object, "interval_us"),
                                    .is_pm = is_pm,
                                    .preset = loader_member_text(loader, object, "preset")};
    names_text(loader, json_member(object, is_pm ? "metrics" : "configured_metrics"), &config.configured);
    config.skipped_names = names_text(loader, json_member(object, "skipped_metrics"), &config.skipped);
    if (deep->counter_count >= configs_max)
        deep->left_out++;
    else if (loader_grow(loader, &deep->counters, &loader->deep.counter_capacity, deep->counter_count, sizeof config))
        deep->counters[deep->counter_count++] = config;
}

static bool value_add(struct session_loader *loader, const char *name, double value)
{
    struct session_deep *deep = &loader->model->deep;
    if (deep->metric_value_count >= metric_values_max) {
        deep->left_out++;
        return false;
    }
    if (!loader_grow(loader, &deep->metric_values, &loader->deep.metric_value_capacity, deep->metric_value_count,
                     sizeof *deep->metric_values))
        return false;
    deep->metric_values[deep->metric_value_count++] =
        (struct metric_value){loader_text(loader, name, strlen(name)), value};
    return true;
}

static bool is_number(const struct json_value *value)
{
    return value && (value->kind == JSON_INT || value->kind == JSON_DOUBLE) && isfinite(value->number);
}

/* gpufl's metrics have names; v1 has a fixed list in which -1 means no value. */
static void event_values(struct session_loader *loader, const struct json_value *object)
{
    const struct json_value *metrics = json_member(object, "metrics");
    if (metrics && metrics->kind == JSON_OBJECT) {
        for (const struct json_value *entry = metrics->child; entry; entry = entry->next)
            if (is_number(entry) && !value_add(loader, entry->key, entry->number))
                return;
        return;
    }
    for (size_t i = 0; i < COUNTER_MEMBER_COUNT; i++) {
        const struct json_value *value = json_member(object, counter_members[i]);
        if (is_number(value) && value->number >= 0 && !value_add(loader, counter_members[i], value->number))
            return;
    }
}

static void metric_record(struct session_loader *loader, const struct json_value *object, bool is_kernel)
{
    struct session_deep *deep = &loader->model->deep;
    uint32_t device = object_u32(object, "device_id");
    struct metric_event event = {
        .start_ns = TIME_UNKNOWN,
        .end_ns = TIME_UNKNOWN,
        .metric_set = loader_member_text(loader, object, "metric_set"),
        .reason = loader_member_text(loader, object, "reason"),
        .passes_needed = known_int(object, is_kernel ? "passes" : "passes_needed"),
        .passes_collected = known_int(object, "passes_collected"),
        .instances = known_int(object, "instances"),
        .value_first = deep->metric_value_count,
        .device = device < DEVICE_UNKNOWN ? (uint16_t)device : DEVICE_UNKNOWN,
        .is_kernel = is_kernel,
    };
    event.name = loader_member_text(loader, object, is_kernel ? "kernel_name" : "user_scope");
    if (!*event.name)
        event.name = loader_member_text(loader, object, is_kernel ? "range_name" : "name");
    if (object_time(object, is_kernel ? "ts_ns" : "start_ns", &event.start_ns))
        loader_saw(loader, event.start_ns, event.start_ns);
    if (object_time(object, "end_ns", &event.end_ns))
        loader_saw(loader, event.end_ns, event.end_ns);
    if (deep->metric_event_count >= metric_events_max) {
        deep->left_out++;
        return;
    }
    event_values(loader, object);
    event.value_count = deep->metric_value_count - event.value_first;
    if (loader_grow(loader, &deep->metric_events, &loader->deep.metric_event_capacity, deep->metric_event_count,
                    sizeof event))
        deep->metric_events[deep->metric_event_count++] = event;
}

bool loader_deep_record(struct session_loader *loader, enum record_type type, const struct json_value *object)
{
    if (type == RECORD_DEEP_WINDOW_EVENT)
        window_record(loader, object);
    else if (type == RECORD_PC_SAMPLING_CONFIG)
        sampling_record(loader, object);
    else if (type == RECORD_SASS_CONFIG || type == RECORD_PM_SAMPLING_CONFIG)
        counter_record(loader, object, type == RECORD_PM_SAMPLING_CONFIG);
    else if (type == RECORD_PERF_METRIC_EVENT || type == RECORD_KERNEL_PERF_METRIC_EVENT)
        metric_record(loader, object, type == RECORD_KERNEL_PERF_METRIC_EVENT);
    else
        return false;
    return true;
}

void loader_deep_free(struct session_loader *loader)
{
    intern_free(&loader->deep.places);
    intern_free(&loader->deep.scoped);
}

void session_deep_free(struct session_deep *deep)
{
    for (size_t i = 0; i < deep->object_count; i++)
        free(deep->objects[i].data);
    for (size_t i = 0; i < deep->pm_count; i++) {
        free(deep->pm[i].times_ns);
        free(deep->pm[i].values);
    }
    free(deep->source_lines);
    void *const arrays[] = {deep->samples,         deep->scope_samples, deep->windows, deep->sampling, deep->counters,
                            deep->metric_events,   deep->metric_values, deep->untimed, deep->objects,  deep->listings,
                            deep->listing_entries, deep->sources,       deep->pm};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
}
