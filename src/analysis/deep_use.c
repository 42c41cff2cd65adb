/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/deep_use.h"

#include "analysis/metric_text.h"
#include "analysis/statistics.h"

#include <math.h>
#include <stdlib.h>

struct group_key {
    const char *name; /* interned by the model: equal texts have the same address */
    uint64_t place;   /* device and kind */
};

static bool column_add(struct metric_group *group, const struct metric_value *value)
{
    size_t index = 0;
    while (index < group->column_count && group->columns[index].name != value->name)
        index++;
    if (index == group->column_count) {
        if (group->column_count == group->column_capacity) {
            size_t capacity = group->column_capacity * 2 + 8;
            struct metric_column *grown = realloc(group->columns, capacity * sizeof *grown);
            if (!grown)
                return false;
            group->columns = grown;
            group->column_capacity = capacity;
        }
        group->columns[group->column_count++] =
            (struct metric_column){.name = value->name, .min = value->value, .max = value->value};
    }
    struct metric_column *column = &group->columns[index];
    column->count++;
    column->mean += (value->value - column->mean) / (double)column->count;
    column->min = value->value < column->min ? value->value : column->min;
    column->max = value->value > column->max ? value->value : column->max;
    return true;
}

static bool group_add(struct metric_group *group, const struct session_deep *deep, const struct metric_event *event)
{
    if (!group->results++) {
        group->name = event->name;
        group->metric_set = "";
        group->reason = "";
        group->device = event->device;
        group->is_kernel = event->is_kernel;
    }
    if (*event->metric_set)
        group->metric_set = event->metric_set;
    group->passes_needed = event->passes_needed;
    group->passes_collected = event->passes_collected;
    group->instances = event->instances;
    if (!event->value_count) {
        group->incomplete++;
        group->reason = event->reason;
    }
    for (size_t i = 0; i < event->value_count; i++)
        if (!column_add(group, &deep->metric_values[event->value_first + i]))
            return false;
    return true;
}

static int group_compare(const void *left, const void *right)
{
    const struct metric_group *a = left, *b = right;
    if (a->is_kernel != b->is_kernel)
        return a->is_kernel ? 1 : -1;
    double a_ns = metric_group_time_ns(a), b_ns = metric_group_time_ns(b);
    if (isfinite(a_ns) != isfinite(b_ns))
        return isfinite(a_ns) ? -1 : 1;
    if (isfinite(a_ns) && (a_ns > b_ns || a_ns < b_ns))
        return a_ns > b_ns ? -1 : 1;
    if (a->results != b->results)
        return a->results > b->results ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order ? order : a->device < b->device ? -1 : a->device > b->device;
}

static bool groups_make(struct deep_use *use, const struct session_deep *deep)
{
    struct intern keys = {0};
    bool is_done = true;
    size_t capacity = 0;
    for (size_t i = 0; is_done && i < deep->metric_event_count; i++) {
        const struct metric_event *event = &deep->metric_events[i];
        struct group_key key = {event->name, (uint64_t)event->device << 1 | event->is_kernel};
        uint32_t id = intern_id(&keys, &key, sizeof key, NULL);
        if (id > capacity) {
            size_t wanted = capacity * 2 + 16;
            struct metric_group *grown = realloc(use->groups, wanted * sizeof *grown);
            is_done = grown != NULL;
            if (!grown)
                break;
            memset(grown + capacity, 0, (wanted - capacity) * sizeof *grown);
            use->groups = grown;
            capacity = wanted;
        }
        use->group_count = id > use->group_count ? id : use->group_count;
        is_done = id && group_add(&use->groups[id - 1], deep, event);
    }
    intern_free(&keys);
    if (is_done && use->group_count)
        qsort(use->groups, use->group_count, sizeof *use->groups, group_compare);
    return is_done;
}

static int window_compare(const void *left, const void *right)
{
    const struct deep_window *a = left, *b = right;
    int order = strcmp(a->source, b->source);
    if (!order && a->start_ns != b->start_ns)
        order = a->start_ns < b->start_ns ? -1 : 1;
    return order ? order : a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static int window_use_compare(const void *left, const void *right)
{
    const struct window_use *a = left, *b = right;
    if (a->covered_ns != b->covered_ns)
        return a->covered_ns > b->covered_ns ? -1 : 1;
    return strcmp(a->source, b->source);
}

static bool windows_make(struct deep_use *use, const struct session_deep *deep)
{
    size_t count = deep->window_count, sources = 0;
    struct deep_window *windows = malloc((count + 1) * sizeof *windows);
    if (!windows)
        return false;
    if (count)
        memcpy(windows, deep->windows, count * sizeof *windows);
    qsort(windows, count, sizeof *windows, window_compare);
    for (size_t i = 0; i < count; i++)
        sources += !i || strcmp(windows[i].source, windows[i - 1].source) != 0;
    use->windows = calloc(sources + 1, sizeof *use->windows);
    int64_t covered_to = INT64_MIN;
    for (size_t i = 0; use->windows && i < count; i++) {
        const struct deep_window *window = &windows[i];
        if (!i || strcmp(window->source, windows[i - 1].source) != 0) {
            use->windows[use->window_use_count++].source = window->source;
            covered_to = INT64_MIN;
        }
        struct window_use *sum = &use->windows[use->window_use_count - 1];
        int64_t from = window->start_ns > covered_to ? window->start_ns : covered_to;
        if (window->end_ns > from) {
            sum->covered_ns = sum_saturated(sum->covered_ns, window->end_ns - from);
            covered_to = window->end_ns;
        }
        sum->windows++;
        sum->invalid += !strcmp(window->close_reason, "counts_invalid");
        if (window->launches == CELL_UNKNOWN)
            sum->has_unknown_launches = true;
        else
            sum->launches = sum_saturated_u64(sum->launches, (uint64_t)window->launches);
    }
    free(windows);
    if (use->windows)
        qsort(use->windows, use->window_use_count, sizeof *use->windows, window_use_compare);
    return use->windows != NULL;
}

/* As configured for that device; 0: not in the log. */
static int64_t pm_interval_ns(const struct session_deep *deep, uint16_t device)
{
    for (size_t i = deep->counter_count; i-- > 0;) {
        const struct counter_config *config = &deep->counters[i];
        if (config->is_pm && config->interval_us > 0 && config->interval_us < INT64_MAX / 1000 &&
            (config->device == device || config->device == CELL_UNKNOWN))
            return config->interval_us * 1000;
    }
    return 0;
}

gpufl_status deep_pm_use(const struct session_deep *deep, const struct pm_column *column, struct pm_use *use)
{
    const struct pm_series series = {column->metric, column->device, column->count, column->times_ns, column->values};
    return pm_use_of(&series, pm_interval_ns(deep, column->device), 0, use);
}

gpufl_status deep_use_make(struct deep_use *use, const struct session_model *model)
{
    memset(use, 0, sizeof *use);
    if (groups_make(use, &model->deep) && windows_make(use, &model->deep))
        return GPUFL_OK;
    deep_use_free(use);
    return GPUFL_E_NO_MEMORY;
}

void deep_use_free(struct deep_use *use)
{
    for (size_t i = 0; i < use->group_count; i++)
        free(use->groups[i].columns);
    free(use->groups);
    free(use->windows);
    memset(use, 0, sizeof *use);
}
