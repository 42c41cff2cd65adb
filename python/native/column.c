/* SPDX-License-Identifier: Apache-2.0 */
#include "column.h"

#include <stdlib.h>

const unsigned char column_widths[COLUMN_TYPE_COUNT] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 1};

void session_share_release(struct session_share *share)
{
    if (share && atomic_fetch_sub(&share->references, 1) == 1) {
        session_free(share->model);
        free(share);
    }
}

struct column_table *table_make(struct session_share *share, size_t row_count)
{
    struct column_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    atomic_init(&table->references, 1);
    atomic_fetch_add(&share->references, 1);
    table->share = share;
    table->row_count = row_count;
    return table;
}

struct column_table *table_hold(struct column_table *table)
{
    atomic_fetch_add(&table->references, 1);
    return table;
}

void table_release(struct column_table *table)
{
    if (!table || atomic_fetch_sub(&table->references, 1) != 1)
        return;
    for (unsigned i = 0; i < table->column_count; i++) {
        free(table->columns[i].owned);
        free(table->columns[i].nulls);
        free(table->columns[i].words);
    }
    intern_free(&table->owned_words);
    session_share_release(table->share);
    free(table);
}

const struct column *table_column(const struct column_table *table, const char *name)
{
    for (unsigned i = 0; i < table->column_count; i++)
        if (!strcmp(table->columns[i].name, name))
            return &table->columns[i];
    return NULL;
}

static struct column *column_new(struct column_table *table, const char *name, enum column_type type)
{
    if (table->column_count == TABLE_COLUMNS_MAX || table->has_failed) {
        table->has_failed = true;
        return NULL;
    }
    struct column *column = &table->columns[table->column_count++];
    column->name = name;
    column->type = type;
    return column;
}

void *table_add_room(struct column_table *table, const char *name, enum column_type type)
{
    struct column *column = column_new(table, name, type);
    if (!column)
        return NULL;
    column->data = column->owned = calloc(table->row_count ? table->row_count : 1, column_widths[type]);
    table->has_failed = !column->owned;
    return column->owned;
}

void *table_add_nullable_room(struct column_table *table, const char *name, enum column_type type, uint8_t **nulls)
{
    void *room = table_add_room(table, name, type);
    if (!room)
        return NULL;
    /* Zeroed pages take no memory until written. */
    struct column *column = &table->columns[table->column_count - 1];
    *nulls = column->nulls = calloc(table->row_count ? table->row_count : 1, 1);
    table->has_failed = !column->nulls;
    return column->nulls ? room : NULL;
}

static void rows_copy(void *out, const struct rows *rows, size_t width, size_t count)
{
    const char *from = rows->first;
    char *to = out;
    for (size_t i = 0; i < count; i++, from += rows->stride, to += width)
        memcpy(to, from, width);
}

void table_add(struct column_table *table, const char *name, enum column_type type, struct rows rows)
{
    size_t width = column_widths[type];
    if (rows.stride == width && rows.first) {
        struct column *column = column_new(table, name, type);
        if (column)
            column->data = rows.first;
        return;
    }
    void *room = table_add_room(table, name, type);
    if (room && rows.first)
        rows_copy(room, &rows, width, table->row_count);
}

#define MARK_UNKNOWN(type)                  \
    do {                                    \
        const type *values = column->data;  \
        for (size_t i = 0; i < count; i++)  \
            if (values[i] == (type)unknown) \
                nulls[i] = 1;               \
    } while (0)

void table_add_nullable(struct column_table *table, const char *name, enum column_type type, struct rows rows,
                        int64_t unknown)
{
    size_t count = table->row_count;
    table_add(table, name, type, rows);
    if (table->has_failed)
        return;
    struct column *column = &table->columns[table->column_count - 1];
    uint8_t *nulls = column->nulls = calloc(count ? count : 1, 1);
    if (!nulls) {
        table->has_failed = true;
        return;
    }
    if (!rows.first) {
        memset(nulls, 1, count);
        return;
    }
    switch (column_widths[type]) {
    case 1:
        MARK_UNKNOWN(uint8_t);
        for (size_t i = 0; column->owned && i < count; i++)
            ((uint8_t *)column->owned)[i] &= (uint8_t)(nulls[i] - 1); /* a bool is 0 or 1, even if it is unknown */
        break;
    case 2:
        MARK_UNKNOWN(uint16_t);
        break;
    case 4:
        MARK_UNKNOWN(uint32_t);
        break;
    default:
        MARK_UNKNOWN(uint64_t);
        break;
    }
}

/* The narrowest type that holds all indices. */
static enum column_type index_type(size_t word_count)
{
    return word_count <= INT8_MAX ? COLUMN_I8 : word_count <= INT16_MAX ? COLUMN_I16 : COLUMN_I32;
}

static void index_write(void *room, enum column_type type, size_t row, int32_t index)
{
    if (type == COLUMN_I8)
        ((int8_t *)room)[row] = (int8_t)index;
    else if (type == COLUMN_I16)
        ((int16_t *)room)[row] = (int16_t)index;
    else
        ((int32_t *)room)[row] = index;
}

/* One word for each id that occurs; ids with the same text share a word. codes[id]: on input 1 if the id occurs, on
 * output the index of its word. */
static const char **words_collect(int32_t *codes, const char *const *texts, uint32_t id_count, size_t *word_count)
{
    struct intern seen = {0};
    const char **words = malloc(((size_t)id_count + 1) * sizeof *words);
    size_t count = 0;
    for (uint32_t id = 0; words && id < id_count; id++) {
        const char *text = texts[id];
        if (!codes[id] || !text || !*text) {
            codes[id] = -1;
            continue;
        }
        bool is_new;
        uint32_t at = intern_id(&seen, text, strlen(text), &is_new);
        if (!at) {
            free(words);
            words = NULL;
            break;
        }
        if (is_new)
            words[count++] = text;
        codes[id] = (int32_t)at - 1;
    }
    intern_free(&seen);
    *word_count = count;
    return words;
}

static uint32_t id_at(const struct rows *ids, size_t width, size_t row)
{
    const char *at = (const char *)ids->first + row * ids->stride;
    if (width == 1)
        return *(const uint8_t *)at;
    uint32_t id;
    memcpy(&id, at, sizeof id);
    return id;
}

static void codes_write(struct column_table *table, const char *name, struct rows ids, size_t width,
                        const char *const *texts, uint32_t id_count)
{
    int32_t *codes = calloc((size_t)id_count + 1, sizeof *codes);
    for (size_t row = 0; codes && row < table->row_count; row++) {
        uint32_t id = id_at(&ids, width, row);
        codes[id < id_count ? id : id_count] = 1;
    }
    size_t word_count = 0;
    const char **words = codes ? words_collect(codes, texts, id_count, &word_count) : NULL;
    void *room = words ? table_add_room(table, name, index_type(word_count)) : NULL;
    if (!room) {
        free(words);
        free(codes);
        table->has_failed = true;
        return;
    }
    codes[id_count] = -1;
    struct column *column = &table->columns[table->column_count - 1];
    column->is_categorical = true;
    column->words = words;
    column->word_count = word_count;
    for (size_t row = 0; row < table->row_count; row++) {
        uint32_t id = id_at(&ids, width, row);
        index_write(room, column->type, row, codes[id < id_count ? id : id_count]);
    }
    free(codes);
}

void table_add_ids(struct column_table *table, const char *name, struct rows ids, const char *const *texts,
                   uint32_t id_count)
{
    static const uint32_t none;
    if (!ids.first)
        ids = (struct rows){&none, 0};
    codes_write(table, name, ids, sizeof(uint32_t), texts, ids.first == &none ? 0 : id_count);
}

void table_add_dictionary(struct column_table *table, const char *name, struct rows ids, enum dictionary dictionary)
{
    const struct dictionary_table *texts = &table->share->model->dictionaries[dictionary];
    table_add_ids(table, name, ids, texts->texts, texts->count);
}

void table_add_words(struct column_table *table, const char *name, struct rows small_ids, const char *enumeration)
{
    const char *texts[UINT8_MAX + 1];
    for (unsigned i = 0; i <= UINT8_MAX; i++)
        texts[i] = schema_word(enumeration, (long)i);
    /* The schema has a word "unknown", which is a missing value here. */
    if (texts[0] && !strcmp(texts[0], "unknown"))
        texts[0] = NULL;
    codes_write(table, name, small_ids, sizeof(uint8_t), texts, UINT8_MAX + 1);
}

void table_add_texts(struct column_table *table, const char *name, struct rows texts)
{
    struct intern seen = {0};
    size_t count = table->row_count;
    int32_t *codes = malloc((count + 1) * sizeof *codes);
    const char **words = malloc((count + 1) * sizeof *words);
    bool is_done = codes && words;
    for (size_t row = 0; is_done && row < count; row++) {
        const char *text;
        memcpy(&text, (const char *)texts.first + row * texts.stride, sizeof text);
        bool is_new = false;
        uint32_t at = text && *text ? intern_id(&seen, text, strlen(text), &is_new) : 0;
        is_done = at || !text || !*text;
        if (is_new)
            words[at - 1] = text;
        codes[row] = (int32_t)at - 1;
    }
    enum column_type type = index_type(seen.count);
    void *room = is_done ? table_add_room(table, name, type) : NULL;
    if (room) {
        struct column *column = &table->columns[table->column_count - 1];
        column->is_categorical = true;
        column->words = words;
        column->word_count = seen.count;
        words = NULL;
        for (size_t row = 0; row < count; row++)
            index_write(room, type, row, codes[row]);
    }
    table->has_failed = !room;
    intern_free(&seen);
    free(codes);
    free(words);
}
