/* SPDX-License-Identifier: Apache-2.0 */
/* JSON. Three parts share one lexer: a writer for the log's lines and for --json output (the only one in the product);
 * a strict, bounded document reader for configuration and single records; and (batch.h) a scanner for the rows of batch
 * lines. Strict means RFC 8259: no comments, no trailing commas, valid UTF-8, bounded depth. Every error has line,
 * column and what was expected. */
#ifndef GPUFL_FORMAT_JSON_H
#define GPUFL_FORMAT_JSON_H

#include "base/bytes.h"
#include "base/status.h"

/* Writer. Appends to bytes; strings are escaped, invalid UTF-8 becomes U+FFFD. */
void json_string(struct bytes *out, const char *text, size_t size);
void json_text(struct bytes *out, const char *text); /* NULL writes null */
void json_int(struct bytes *out, int64_t value);
void json_uint(struct bytes *out, uint64_t value);
void json_double(struct bytes *out, double value); /* shortest that reads back; non-finite: null */
void json_bool(struct bytes *out, bool value);
/* ,"key": or {"key": (a comma is written unless the last byte is { or [ or :) */
void json_key(struct bytes *out, const char *key);

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_INT, JSON_DOUBLE, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_value {
    enum json_kind kind;
    uint32_t line, column; /* of the value's first byte, from 1 */
    uint32_t count;        /* members of an array or object */
    uint32_t key_size, text_size;
    const char *key;  /* of a member of an object; NUL-terminated, decoded */
    const char *text; /* of a string; NUL-terminated, decoded */
    int64_t integer;  /* JSON_INT; values above INT64_MAX keep their bits with is_unsigned */
    double number;    /* JSON_INT and JSON_DOUBLE */
    bool is_unsigned;
    const struct json_value *child; /* first member */
    const struct json_value *next;  /* next sibling */
};

struct json_error {
    uint32_t line, column;
    char text[160];
};

struct json_document {
    const struct json_value *root;
    struct json_block *blocks; /* owned */
};

/* Parses exactly one value (surrounding white space is allowed). On failure the document is empty and error (may be
 * NULL) is filled. GPUFL_E_LIMIT: the text is too long, or its values need more memory than json_memory_max of its
 * size. */
NODISCARD gpufl_status json_parse(struct json_document *document, const char *text, size_t size,
                                  struct json_error *error);
void json_free(struct json_document *document);
/* The memory limit for the values of a text of this size. */
size_t json_memory_max(size_t size);

/* Lookups that accept NULL; a missing member, or one of another type, gives the fallback. */
const struct json_value *json_member(const struct json_value *object, const char *key);
int64_t json_get_int(const struct json_value *object, const char *key, int64_t fallback);
const char *json_get_text(const struct json_value *object, const char *key, const char *fallback);
bool json_get_bool(const struct json_value *object, const char *key, bool fallback);

#endif
