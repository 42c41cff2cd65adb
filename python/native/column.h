/* SPDX-License-Identifier: Apache-2.0 */
/* Columnar tables, the source of DataFrames and Arrow streams. Independent of
 * Python. A table is filled by one thread and immutable afterwards; it is
 * reference-counted, so that every reader of its arrays (NumPy, an Arrow
 * consumer, on any thread) keeps the arrays and the session alive. */
#ifndef GPUFL_PYTHON_COLUMN_H
#define GPUFL_PYTHON_COLUMN_H

#include "analysis/session.h"

#include <stdatomic.h>

enum column_type {
    COLUMN_I8,
    COLUMN_I16,
    COLUMN_I32,
    COLUMN_I64,
    COLUMN_U8,
    COLUMN_U16,
    COLUMN_U32,
    COLUMN_U64,
    COLUMN_F32,
    COLUMN_F64,
    COLUMN_BOOL, /* one byte, 0 or 1 */
    COLUMN_TYPE_COUNT
};
extern const unsigned char column_widths[COLUMN_TYPE_COUNT];

struct column {
    const char *name; /* lives as long as the program */
    enum column_type type;
    bool is_categorical;
    const void *data;   /* row_count values; of a categorical column, indexes into words, -1: unknown */
    void *owned;        /* data, if not owned by the model; else NULL */
    uint8_t *nulls;     /* owned; 1: the value is unknown. NULL: none is, or unknown values are -1 or NaN */
    const char **words; /* owned array; the texts belong to the model, the program, or owned_words */
    size_t word_count;
};

/* A loaded session, shared by its tables. */
struct session_share {
    atomic_size_t references;
    struct session_model *model;
};
void session_share_release(struct session_share *share);

enum { TABLE_COLUMNS_MAX = 64 };
struct column_table {
    atomic_size_t references;
    struct session_share *share; /* counted */
    size_t row_count;
    unsigned column_count;
    bool has_failed; /* memory ran out while it was filled */
    struct column columns[TABLE_COLUMNS_MAX];
    struct intern owned_words;
};
struct column_table *table_make(struct session_share *share, size_t row_count); /* NULL: no memory */
struct column_table *table_hold(struct column_table *table);
void table_release(struct column_table *table);

/* The location of a column's values: a member of an array of structs, or an array. */
struct rows {
    const void *first;
    size_t stride;
};

/* Adds a column; memory that runs out sets has_failed. The next two share the array where it is dense. unknown: the
 * value that means so, sign-extended as in the model. */
void table_add(struct column_table *table, const char *name, enum column_type type, struct rows rows);
void table_add_nullable(struct column_table *table, const char *name, enum column_type type, struct rows rows,
                        int64_t unknown);
/* Memory for row_count values of a new column, to be filled by the caller; NULL: out of memory. */
void *table_add_room(struct column_table *table, const char *name, enum column_type type);
/* The same with *nulls, zeroed. */
void *table_add_nullable_room(struct column_table *table, const char *name, enum column_type type, uint8_t **nulls);

/* Categorical columns. ids: uint32_t or uint8_t below id_count; texts[id] NULL or "": unknown. Categories are the texts that occur,
 * in order of their first id, each once. */
void table_add_ids(struct column_table *table, const char *name, struct rows ids, const char *const *texts,
                   uint32_t id_count);
/* ids of one of the model's dictionaries. */
void table_add_dictionary(struct column_table *table, const char *name, struct rows ids, enum dictionary dictionary);
void table_add_words(struct column_table *table, const char *name, struct rows small_ids, const char *enumeration);
/* rows of const char *, all of the model's or the program's; equal texts need not be equal pointers. */
void table_add_texts(struct column_table *table, const char *name, struct rows texts);

const struct column *table_column(const struct column_table *table, const char *name);

#endif
