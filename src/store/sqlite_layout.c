/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: read once and cached by the store, created by the writer. Their number is limited where segments are made
 * (segment_columns.h), not here: whatever a database contains can be read. */
#include "store/sqlite_store.h"

#include <stdlib.h>

/* Index of the layout with that number, or where it would be inserted. The caller holds the store's mutex. */
static size_t layout_place(const struct sqlite_store *store, int64_t layout)
{
    size_t first = 0, end = store->layout_count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (store->layouts[middle]->layout < layout)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static struct layout *layout_find(struct sqlite_store *store, int64_t layout)
{
    pthread_mutex_lock(&store->mutex);
    size_t place = layout_place(store, layout);
    bool is_there = place < store->layout_count && store->layouts[place]->layout == layout;
    struct layout *found = is_there ? store->layouts[place] : NULL;
    pthread_mutex_unlock(&store->mutex);
    return found;
}

static bool layouts_reserve(struct sqlite_store *store)
{
    if (store->layout_count < store->layout_capacity)
        return true;
    size_t capacity = store->layout_capacity ? store->layout_capacity * 2 : 64;
    struct layout **grown = realloc(store->layouts, capacity * sizeof *grown);
    if (!grown)
        return false;
    store->layouts = grown;
    store->layout_capacity = capacity;
    return true;
}

/* Passes ownership to the store. If another reader was faster, its layout is kept and returned. NULL: no memory. */
static struct layout *layout_keep(struct sqlite_store *store, struct layout *layout)
{
    struct layout *kept = NULL;
    pthread_mutex_lock(&store->mutex);
    size_t place = layout_place(store, layout->layout);
    if (place < store->layout_count && store->layouts[place]->layout == layout->layout) {
        kept = store->layouts[place];
    } else if (layouts_reserve(store)) {
        memmove(store->layouts + place + 1, store->layouts + place,
                (store->layout_count - place) * sizeof *store->layouts);
        store->layouts[place] = kept = layout;
        store->layout_count++;
    }
    pthread_mutex_unlock(&store->mutex);
    if (kept != layout)
        free(layout);
    return kept;
}

gpufl_status layout_get(struct sqlite_store *store, struct connection *reader, int64_t layout,
                        const struct layout **out, struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = false;
    *out = layout_find(store, layout);
    if (*out)
        return GPUFL_OK;
    gpufl_status status =
        statement_open(reader, &statement, problem,
                       "SELECT name, columns FROM layout JOIN record_type USING(type) WHERE layout=?", "i", layout);
    if (!status)
        status = statement_next(reader, statement, &has_row, problem);
    if (status)
        return status;
    if (!has_row)
        return problem_set(problem, GPUFL_E_DAMAGED, "a segment has an unknown layout");
    struct layout *parsed = layout_parse(layout, row_text(statement, 0), row_text(statement, 1));
    sqlite3_reset(statement);
    *out = parsed ? layout_keep(store, parsed) : NULL;
    return *out ? GPUFL_OK : problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the layouts of segments");
}

static gpufl_status layout_insert(struct connection *connection, struct made_layout *made, struct problem *problem)
{
    const char *name = layout_type_name(made->type);
    char names[LAYOUT_NAMES_MAX];
    layout_names(made->type, made->columns, names);
    gpufl_status status = statement_run(connection, problem,
                                        "INSERT INTO record_type(name) VALUES(?1) ON CONFLICT DO NOTHING", "t", name);
    if (!status)
        status = statement_integer(connection, &made->type_id, NULL, problem,
                                   "SELECT type FROM record_type WHERE name=?", "t", name);
    if (!status)
        status = statement_run(connection, problem,
                               "INSERT INTO layout(type, columns) VALUES(?1, ?2) ON CONFLICT DO NOTHING", "it",
                               made->type_id, names);
    if (!status)
        status =
            statement_integer(connection, &made->layout, NULL, problem,
                              "SELECT layout FROM layout WHERE type=?1 AND columns=?2", "it", made->type_id, names);
    return status;
}

gpufl_status layout_make(struct sqlite_store *store, struct connection *connection, enum record_type type,
                         uint64_t columns, int64_t *layout, int64_t *type_id, struct problem *problem)
{
    unsigned i = 0;
    while (i < store->made_layout_count &&
           (store->made_layouts[i].type != type || store->made_layouts[i].columns != columns))
        i++;
    if (i == store->made_layout_count) {
        struct made_layout made = {.type = type, .columns = columns};
        gpufl_status status = layout_insert(connection, &made, problem);
        if (status)
            return status;
        i = i < MADE_LAYOUTS_MAX ? i : 0;
        store->made_layout_count = i + 1;
        store->made_layouts[i] = made;
    }
    *layout = store->made_layouts[i].layout;
    *type_id = store->made_layouts[i].type_id;
    return GPUFL_OK;
}
