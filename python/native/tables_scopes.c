/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of scopes, and of threads that worked for scopes of others. */
#include "tables.h"

#include <stdlib.h>
#include <string.h>

#define FIELD(array, member) ((struct rows){(array) ? (const void *)&(array)[0].member : NULL, sizeof *(array)})
#define DENSE(array) ((struct rows){(array), sizeof *(array)})

/* The last part of each scope's path. */
static void add_scope_names(struct column_table *table)
{
    const struct session_model *model = table->share->model;
    const char **names = calloc(model->scope_count + 1, sizeof *names);
    for (size_t i = 0; names && i < model->scope_count; i++) {
        const char *path = session_text(model, DICTIONARY_SCOPE_NAME, model->scopes[i].path_id);
        const char *bar = path ? strrchr(path, '|') : NULL;
        names[i] = bar ? bar + 1 : path;
    }
    if (names)
        table_add_texts(table, "name", DENSE(names));
    else
        table->has_failed = true;
    free(names);
}

static void add_scope_durations(struct column_table *table)
{
    const struct session_model *model = table->share->model;
    uint8_t *is_unknown = NULL;
    int64_t *durations = table_add_nullable_room(table, "duration_ns", COLUMN_I64, &is_unknown);
    for (size_t i = 0; durations && i < model->scope_count; i++) {
        const struct scope_instance *scope = &model->scopes[i];
        is_unknown[i] = scope->begin_ns == TIME_UNKNOWN || scope->end_ns == TIME_UNKNOWN;
        durations[i] = is_unknown[i] ? 0 : scope->end_ns - scope->begin_ns;
    }
}

static void add_scope_kinds(struct column_table *table)
{
    static const char *const kinds[] = {"scope", "operator", "library"};
    table_add_ids(table, "kind", FIELD(table->share->model->scopes, kind), kinds, 3);
}

struct column_table *table_scope_events(struct session_share *share)
{
    const struct session_model *model = share->model;
    const struct scope_instance *scopes = model->scopes;
    struct column_table *table = table_make(share, model->scope_count);
    if (!table)
        return NULL;
    add_scope_names(table);
    table_add_dictionary(table, "path", FIELD(scopes, path_id), DICTIONARY_SCOPE_NAME);
    table_add_dictionary(table, "tag", FIELD(scopes, tag_id), DICTIONARY_TAG);
    table_add_nullable(table, "begin_ns", COLUMN_I64, FIELD(scopes, begin_ns), TIME_UNKNOWN);
    table_add_nullable(table, "end_ns", COLUMN_I64, FIELD(scopes, end_ns), TIME_UNKNOWN);
    add_scope_durations(table);
    table_add_nullable(table, "thread_id", COLUMN_U32, FIELD(scopes, thread_id), ID_UNKNOWN);
    table_add(table, "depth", COLUMN_U16, FIELD(scopes, depth));
    table_add_nullable(table, "parent_row", COLUMN_U32, FIELD(scopes, parent), ID_UNKNOWN);
    table_add_nullable(table, "repeat", COLUMN_U32, FIELD(scopes, repeat), 0);
    table_add(table, "warmup", COLUMN_U32, FIELD(scopes, warmup));
    table_add_words(table, "source", FIELD(scopes, source), "scope_source");
    add_scope_kinds(table);
    table_add(table, "scope_instance_id", COLUMN_U64, FIELD(scopes, id));
    return table;
}

struct column_table *table_adoptions(struct session_share *share)
{
    const struct scope_adoption *adoptions = share->model->adoptions;
    struct column_table *table = table_make(share, share->model->adoption_count);
    if (!table)
        return NULL;
    table_add_scope(table, FIELD(adoptions, scope));
    table_add(table, "start_ns", COLUMN_I64, FIELD(adoptions, start_ns));
    table_add(table, "duration_ns", COLUMN_I64, FIELD(adoptions, duration_ns));
    table_add_nullable(table, "thread_id", COLUMN_U32, FIELD(adoptions, thread_id), ID_UNKNOWN);
    table_add_words(table, "origin", FIELD(adoptions, origin), "adoption_origin");
    return table;
}
