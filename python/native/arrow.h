/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a table through the Arrow C data and C stream interfaces, without a library:
 * https://arrow.apache.org/docs/format/CDataInterface.html. Values are not
 * copied; only validity bitmaps and dictionaries are allocated. The consumer may
 * release the stream and its arrays on any thread. */
#ifndef GPUFL_PYTHON_ARROW_H
#define GPUFL_PYTHON_ARROW_H

#include "column.h"

#define ARROW_FLAG_NULLABLE 2

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

/* A stream of one batch that holds the table. false: no memory. */
bool arrow_stream_make(struct ArrowArrayStream *stream, struct column_table *table);
bool arrow_schema_make(struct ArrowSchema *schema, const struct column_table *table);

#endif
