/* SPDX-License-Identifier: Apache-2.0 */
#include "arrow.h"

#include <errno.h>
#include <stdlib.h>

static const char *const formats[COLUMN_TYPE_COUNT] = {
    [COLUMN_I8] = "c",  [COLUMN_I16] = "s", [COLUMN_I32] = "i",  [COLUMN_I64] = "l",
    [COLUMN_U8] = "C",  [COLUMN_U16] = "S", [COLUMN_U32] = "I",  [COLUMN_U64] = "L",
    [COLUMN_F32] = "f", [COLUMN_F64] = "g", [COLUMN_BOOL] = "b",
};

/* Names are string literals or belong to the catalogue: they outlive every schema. */
static void schema_release(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i] && schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
        free(schema->children[i]);
    }
    free(schema->children);
    if (schema->dictionary && schema->dictionary->release)
        schema->dictionary->release(schema->dictionary);
    free(schema->dictionary);
    schema->release = NULL;
}

static bool column_is_nullable(const struct column *column)
{
    return column->is_categorical || column->nulls || column->type == COLUMN_F32;
}

static struct ArrowSchema *column_schema(const struct column *column)
{
    struct ArrowSchema *schema = calloc(1, sizeof *schema);
    if (!schema)
        return NULL;
    *schema = (struct ArrowSchema){.format = formats[column->type],
                                   .name = column->name,
                                   .flags = column_is_nullable(column) ? ARROW_FLAG_NULLABLE : 0,
                                   .release = schema_release};
    if (!column->is_categorical)
        return schema;
    schema->dictionary = calloc(1, sizeof *schema->dictionary);
    if (!schema->dictionary) {
        free(schema);
        return NULL;
    }
    *schema->dictionary = (struct ArrowSchema){.format = "u", .name = "", .release = schema_release};
    return schema;
}

bool arrow_schema_make(struct ArrowSchema *schema, const struct column_table *table)
{
    *schema = (struct ArrowSchema){.format = "+s", .name = "", .release = schema_release};
    schema->children = calloc(table->column_count ? table->column_count : 1, sizeof *schema->children);
    if (!schema->children)
        return false;
    schema->n_children = table->column_count;
    bool is_done = true;
    for (unsigned i = 0; i < table->column_count; i++) {
        schema->children[i] = column_schema(&table->columns[i]);
        is_done = is_done && schema->children[i];
    }
    if (!is_done)
        schema_release(schema);
    return is_done;
}

/* Memory of an array in addition to the table's. */
struct array_owner {
    struct column_table *table; /* NULL in dictionaries, which hold copies */
    void *owned[2];
    const void *buffers[3];
};

static void array_release(struct ArrowArray *array)
{
    struct array_owner *owner = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i] && array->children[i]->release)
            array->children[i]->release(array->children[i]);
        free(array->children[i]);
    }
    free(array->children);
    if (array->dictionary && array->dictionary->release)
        array->dictionary->release(array->dictionary);
    free(array->dictionary);
    if (owner) {
        free(owner->owned[0]);
        free(owner->owned[1]);
        table_release(owner->table);
        free(owner);
    }
    array->release = NULL;
}

static bool array_start(struct ArrowArray *array, struct column_table *table, size_t length, int64_t buffer_count)
{
    struct array_owner *owner = calloc(1, sizeof *owner);
    *array = (struct ArrowArray){.length = (int64_t)length,
                                 .n_buffers = buffer_count,
                                 .buffers = owner ? owner->buffers : NULL,
                                 .release = array_release,
                                 .private_data = owner};
    if (owner && table)
        owner->table = table_hold(table);
    return owner != NULL;
}

/* Unknown is -1 in a categorical column, NaN in a float column, and marked in nulls otherwise. */
static bool is_unknown(const struct column *column, size_t row)
{
    if (column->nulls)
        return column->nulls[row];
    if (column->type == COLUMN_F32)
        return ((const float *)column->data)[row] != ((const float *)column->data)[row];
    if (!column->is_categorical)
        return false;
    return column->type == COLUMN_I8    ? ((const int8_t *)column->data)[row] < 0
           : column->type == COLUMN_I16 ? ((const int16_t *)column->data)[row] < 0
                                        : ((const int32_t *)column->data)[row] < 0;
}

/* A set bit is a known value; *bits stays NULL if all values are known. false: out of memory. */
static bool validity_make(const struct column *column, size_t count, uint8_t **bits, int64_t *null_count)
{
    *bits = NULL;
    *null_count = 0;
    for (size_t row = 0; column_is_nullable(column) && row < count; row++)
        *null_count += is_unknown(column, row);
    if (!*null_count)
        return true;
    *bits = calloc(count / 8 + 1, 1);
    for (size_t row = 0; *bits && row < count; row++)
        if (!is_unknown(column, row))
            (*bits)[row / 8] |= (uint8_t)(1u << row % 8);
    return *bits != NULL;
}

static uint8_t *bits_pack(const uint8_t *values, size_t count)
{
    uint8_t *bits = calloc(count / 8 + 1, 1);
    for (size_t row = 0; bits && row < count; row++)
        if (values[row])
            bits[row / 8] |= (uint8_t)(1u << row % 8);
    return bits;
}

static bool dictionary_make(struct ArrowArray *array, const struct column *column)
{
    if (!array_start(array, NULL, column->word_count, 3))
        return false;
    struct array_owner *owner = array->private_data;
    size_t size = 0;
    for (size_t i = 0; i < column->word_count; i++)
        size += strlen(column->words[i]);
    int32_t *offsets = size < INT32_MAX ? calloc(column->word_count + 1, sizeof *offsets) : NULL;
    char *texts = malloc(size + 1);
    owner->owned[0] = offsets;
    owner->owned[1] = texts;
    if (!offsets || !texts)
        return false;
    size_t at = 0;
    for (size_t i = 0; i < column->word_count; i++) {
        size_t length = strlen(column->words[i]);
        memcpy(texts + at, column->words[i], length);
        at += length;
        offsets[i + 1] = (int32_t)at;
    }
    owner->buffers[1] = offsets;
    owner->buffers[2] = texts;
    return true;
}

static bool column_array(struct ArrowArray *array, struct column_table *table, const struct column *column)
{
    if (!array_start(array, table, table->row_count, 2))
        return false;
    struct array_owner *owner = array->private_data;
    uint8_t *validity;
    bool is_done = validity_make(column, table->row_count, &validity, &array->null_count);
    owner->buffers[0] = owner->owned[0] = validity;
    owner->buffers[1] = column->data;
    if (is_done && column->type == COLUMN_BOOL) {
        owner->buffers[1] = owner->owned[1] = bits_pack(column->data, table->row_count);
        is_done = owner->owned[1] != NULL;
    }
    if (is_done && column->is_categorical) {
        array->dictionary = calloc(1, sizeof *array->dictionary);
        is_done = array->dictionary && dictionary_make(array->dictionary, column);
    }
    return is_done;
}

static bool batch_make(struct ArrowArray *batch, struct column_table *table)
{
    if (!array_start(batch, NULL, table->row_count, 1))
        return false;
    batch->children = calloc(table->column_count ? table->column_count : 1, sizeof *batch->children);
    if (!batch->children)
        return false;
    batch->n_children = table->column_count;
    for (unsigned i = 0; i < table->column_count; i++) {
        batch->children[i] = calloc(1, sizeof **batch->children);
        if (!batch->children[i] || !column_array(batch->children[i], table, &table->columns[i]))
            return false;
    }
    return true;
}

struct stream_state {
    struct column_table *table;
    bool is_at_end;
    const char *error;
};

static int stream_get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    struct stream_state *state = stream->private_data;
    if (arrow_schema_make(out, state->table))
        return 0;
    state->error = "no memory for the schema";
    return ENOMEM;
}

static int stream_get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct stream_state *state = stream->private_data;
    *out = (struct ArrowArray){0};
    if (state->is_at_end)
        return 0;
    if (!batch_make(out, state->table)) {
        array_release(out);
        state->error = "no memory for the columns";
        return ENOMEM;
    }
    state->is_at_end = true;
    return 0;
}

static const char *stream_get_last_error(struct ArrowArrayStream *stream)
{
    return ((struct stream_state *)stream->private_data)->error;
}

static void stream_release(struct ArrowArrayStream *stream)
{
    struct stream_state *state = stream->private_data;
    table_release(state->table);
    free(state);
    stream->release = NULL;
}

bool arrow_stream_make(struct ArrowArrayStream *stream, struct column_table *table)
{
    struct stream_state *state = calloc(1, sizeof *state);
    if (!state)
        return false;
    state->table = table_hold(table);
    *stream = (struct ArrowArrayStream){.get_schema = stream_get_schema,
                                        .get_next = stream_get_next,
                                        .get_last_error = stream_get_last_error,
                                        .release = stream_release,
                                        .private_data = state};
    return true;
}
