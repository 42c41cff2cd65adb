/* SPDX-License-Identifier: Apache-2.0 */
#include "store/scope_sums.h"

#include "store/row_buffer.h"

#include <stdlib.h>

enum { INSTANCES_MAX = 8 << 20, PATH_ID_MAX = 4 * 1024 * 1024, PATH_UNKNOWN = PATH_ID_MAX };
enum { EVENT_BEGIN, EVENT_END, EVENT_CONTINUATION_OPEN, EVENT_CONTINUATION_CLOSE };

struct scope_entry {
    uint64_t id; /* 0: free */
    int64_t begin_ns, end_ns;
    uint32_t path_id;
};

struct scope_reading {
    struct scope_sums *sums;
    struct intern ids; /* path id -> index + 1 into sums->items */
    struct scope_entry *entries;
    size_t entry_count, slot_count;
    gpufl_status status;
};

static size_t slot_of(const struct scope_entry *entries, size_t slot_count, uint64_t id)
{
    size_t at = id * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (slot_count - 1);
    while (entries[at].id && entries[at].id != id)
        at = (at + 1) & (slot_count - 1);
    return at;
}

static struct scope_entry *entry_make(struct scope_reading *reading, uint64_t id)
{
    if (reading->entry_count * 2 >= reading->slot_count) {
        size_t slot_count = reading->slot_count ? reading->slot_count * 2 : 4096;
        struct scope_entry *grown = reading->entry_count < INSTANCES_MAX ? calloc(slot_count, sizeof *grown) : NULL;
        if (!grown) {
            reading->status = reading->entry_count < INSTANCES_MAX ? GPUFL_E_NO_MEMORY : GPUFL_E_LIMIT;
            return NULL;
        }
        for (size_t i = 0; i < reading->slot_count; i++)
            if (reading->entries[i].id)
                grown[slot_of(grown, slot_count, reading->entries[i].id)] = reading->entries[i];
        free(reading->entries);
        reading->entries = grown;
        reading->slot_count = slot_count;
    }
    struct scope_entry *entry = &reading->entries[slot_of(reading->entries, reading->slot_count, id)];
    if (!entry->id) {
        *entry = (struct scope_entry){.id = id, .begin_ns = CELL_UNKNOWN, .end_ns = CELL_UNKNOWN};
        reading->entry_count++;
    }
    return entry;
}

static struct store_scope *scope_of(struct scope_reading *reading, uint32_t path_id)
{
    struct scope_sums *sums = reading->sums;
    bool is_new = false;
    uint32_t index = intern_id(&reading->ids, &path_id, sizeof path_id, &is_new);
    if (index && is_new && sums->count == sums->capacity) {
        size_t capacity = sums->capacity ? sums->capacity * 2 : 64;
        struct store_scope *grown = realloc(sums->items, capacity * sizeof *grown);
        if (!grown)
            index = 0;
        else
            sums->items = grown, sums->capacity = capacity;
    }
    if (!index) {
        reading->status = GPUFL_E_NO_MEMORY;
        return NULL;
    }
    if (is_new)
        sums->items[sums->count++] =
            (struct store_scope){.path_id = path_id, .path = path_id == PATH_UNKNOWN ? "(unknown)" : ""};
    return &sums->items[index - 1];
}

static int64_t view_cell(const struct batch_view *view, unsigned column, uint32_t row)
{
    return view->columns[column].present ? view->columns[column].cells[row] : CELL_UNKNOWN;
}

static bool view_time(const struct batch_view *view, unsigned column, uint32_t row, int64_t *time_ns)
{
    return !__builtin_add_overflow(view->base_time_ns, view_cell(view, column, row), time_ns) && *time_ns >= 0 &&
           *time_ns <= ROW_TIME_MAX_NS;
}

static void scope_rows(struct scope_reading *reading, const struct batch_view *view)
{
    for (uint32_t row = 0; row < view->row_count && !reading->status; row++) {
        int64_t id = view_cell(view, SCOPE_SCOPE_INSTANCE_ID, row), event = view_cell(view, SCOPE_EVENT_TYPE, row);
        int64_t name_id = view_cell(view, SCOPE_NAME_ID, row), time_ns;
        if (id == CELL_UNKNOWN || !id || event < EVENT_BEGIN || event > EVENT_CONTINUATION_CLOSE ||
            !view_time(view, SCOPE_DT_NS, row, &time_ns))
            continue;
        struct scope_entry *entry = entry_make(reading, (uint64_t)id);
        if (!entry)
            return;
        bool is_opening = event == EVENT_BEGIN || event == EVENT_CONTINUATION_OPEN;
        if (is_opening && entry->begin_ns == CELL_UNKNOWN)
            entry->begin_ns = time_ns;
        if (!is_opening) {
            int64_t original_ns = view_cell(view, SCOPE_ORIGINAL_START_NS, row);
            entry->end_ns = time_ns;
            if (entry->begin_ns == CELL_UNKNOWN && original_ns > 0 && original_ns <= time_ns)
                entry->begin_ns = original_ns;
        }
        if (is_opening || !entry->path_id)
            entry->path_id = name_id > 0 && name_id < PATH_ID_MAX ? (uint32_t)name_id : 0;
    }
}

/* 0: outside all scopes, also if the column is missing (v1), which leaves the scope unknown. */
static uint32_t path_of_kernel(const struct scope_reading *reading, const struct batch_view *view, int64_t id)
{
    if (!id || !view->columns[KERNEL_SCOPE_ID].present)
        return 0;
    if (id == CELL_UNKNOWN || !reading->slot_count)
        return PATH_UNKNOWN;
    const struct scope_entry *entry = &reading->entries[slot_of(reading->entries, reading->slot_count, (uint64_t)id)];
    return entry->id ? entry->path_id : PATH_UNKNOWN;
}

static void kernel_rows(struct scope_reading *reading, const struct batch_view *view)
{
    int64_t last_id = 0;
    struct store_scope *scope = scope_of(reading, 0);
    for (uint32_t row = 0; row < view->row_count && scope; row++) {
        int64_t id = view_cell(view, KERNEL_SCOPE_ID, row), duration_ns = view_cell(view, KERNEL_DURATION_NS, row);
        int64_t start_ns;
        if (!view_time(view, KERNEL_DT_NS, row, &start_ns) || duration_ns < 0 || duration_ns >= ROW_TIME_MAX_NS)
            continue;
        if (id != last_id) { /* rows come in runs of one scope */
            scope = scope_of(reading, path_of_kernel(reading, view, id));
            last_id = id;
        }
        if (!scope)
            return;
        scope->kernels++;
        sum_add_ns(&scope->kernel_ns, duration_ns);
    }
}

static bool on_rows(void *user, const struct log_line *line)
{
    struct scope_reading *reading = user;
    if (line->type == RECORD_SCOPE_EVENT_BATCH)
        scope_rows(reading, line->batch);
    else if (line->type == RECORD_KERNEL_EVENT_BATCH)
        kernel_rows(reading, line->batch);
    return !reading->status;
}

static bool on_dictionary(void *user, const struct log_line *line)
{
    struct scope_reading *reading = user;
    const struct json_value *names =
        line->object ? json_member(line->object, dictionary_catalogue[DICTIONARY_SCOPE_NAME].name) : NULL;
    for (const struct json_value *entry = names && names->kind == JSON_OBJECT ? names->child : NULL; entry;
         entry = entry->next) {
        unsigned long long id = strtoull(entry->key, NULL, 10);
        uint32_t path_id = id && id < PATH_ID_MAX ? (uint32_t)id : 0;
        uint32_t index =
            path_id && entry->kind == JSON_STRING ? intern_find(&reading->ids, &path_id, sizeof path_id) : 0;
        if (!index)
            continue;
        uint32_t text = intern_id(&reading->sums->paths, entry->text, entry->text_size, NULL);
        if (!text && entry->text_size) {
            reading->status = GPUFL_E_NO_MEMORY;
            return false;
        }
        reading->sums->items[index - 1].path = intern_text(&reading->sums->paths, text);
    }
    return true;
}

static void entries_sum(struct scope_reading *reading)
{
    for (size_t i = 0; i < reading->slot_count && !reading->status; i++) {
        const struct scope_entry *entry = &reading->entries[i];
        struct store_scope *scope = entry->id ? scope_of(reading, entry->path_id) : NULL;
        if (!scope)
            continue;
        scope->calls++;
        scope->open_calls += entry->end_ns == CELL_UNKNOWN;
        if (entry->begin_ns != CELL_UNKNOWN && entry->end_ns > entry->begin_ns)
            sum_add_ns(&scope->wall_ns, entry->end_ns - entry->begin_ns);
    }
}

static int scope_compare(const void *left, const void *right)
{
    const struct store_scope *a = left, *b = right;
    return a->path_id < b->path_id ? -1 : a->path_id > b->path_id;
}

gpufl_status scope_sums_make(struct store *store, const char *session_id, struct scope_sums *sums,
                             struct problem *problem)
{
    struct scope_reading reading = {.sums = sums};
    *sums = (struct scope_sums){0};
    /* Reads scopes, then kernels, then the names in use. */
    struct store_range scopes = {.session_id = session_id}, kernels = scopes, names = scopes;
    record_set_add(&scopes.types, RECORD_SCOPE_EVENT_BATCH);
    record_set_add(&kernels.types, RECORD_KERNEL_EVENT_BATCH);
    kernels.columns = UINT64_C(1) << KERNEL_DT_NS | UINT64_C(1) << KERNEL_DURATION_NS | UINT64_C(1) << KERNEL_SCOPE_ID;
    record_set_add(&names.types, RECORD_DICTIONARY_UPDATE);
    gpufl_status status = store_read(store, &scopes, on_rows, &reading, problem);
    if (!status && !reading.status)
        status = store_read(store, &kernels, on_rows, &reading, problem);
    if (!status)
        entries_sum(&reading);
    if (!status && !reading.status)
        status = store_read(store, &names, on_dictionary, &reading, problem);
    if (!status && reading.status)
        status = problem_set(problem, reading.status, "session %s: %s", session_id,
                             reading.status == GPUFL_E_LIMIT ? "too many scopes for sums by path"
                                                             : "no memory for sums of scopes");
    if (!status && sums->count)
        qsort(sums->items, sums->count, sizeof *sums->items, scope_compare);
    free(reading.entries);
    intern_free(&reading.ids);
    if (status)
        scope_sums_free(sums);
    return status;
}

void scope_sums_free(struct scope_sums *sums)
{
    free(sums->items);
    intern_free(&sums->paths);
    *sums = (struct scope_sums){0};
}
