/* SPDX-License-Identifier: Apache-2.0 */
/* The lexer of the document reader and the batch scanner (private to src/format). A pull parser for one JSON text:
 * json_lex_next returns one event at a time and checks commas, names, colons and nesting, so that its users need no
 * separate grammar. Owns nothing; points into the text. */
#ifndef GPUFL_FORMAT_JSON_LEX_H
#define GPUFL_FORMAT_JSON_LEX_H

#include "format/json.h"

#define JSON_DEPTH_MAX 64
#define JSON_NUMBER_SIZE_MAX 1024

struct json_lexer {
    const char *start, *at, *end;
    const char *line_start;
    uint32_t line;
    unsigned depth;
    uint64_t objects; /* bit 0: the innermost open value is an object; bit 1: the one around it; ... */
    bool is_first;    /* no member of the innermost open value has been read */
    const char *reason_at;
    char reason[120]; /* why parsing failed, at reason_at */
};

struct json_span {
    const char *text; /* raw; for strings without the quotes */
    size_t size;
    bool has_escape;
};

struct json_number {
    bool is_integer; /* written without fraction and exponent, and fits */
    bool is_negative;
    uint64_t magnitude; /* of an integer */
    double value;
};

enum json_event { JSON_EVENT_FAILED, JSON_EVENT_SCALAR, JSON_EVENT_OPEN, JSON_EVENT_CLOSE };

struct json_token {
    enum json_kind kind;
    bool has_key;
    struct json_span key;
    struct json_span text; /* strings */
    struct json_number number;
    const char *start; /* the value's first byte */
    uint32_t line, column;
};

void json_lex_init(struct json_lexer *lexer, const char *text, size_t size);
enum json_event json_lex_next(struct json_lexer *lexer, struct json_token *token);
/* After JSON_EVENT_OPEN: reads up to and including the matching close. */
bool json_lex_skip_rest(struct json_lexer *lexer);
void json_lex_space(struct json_lexer *lexer);
/* After white space: consumes `c`, or fails with "expected <what>". */
bool json_lex_expect(struct json_lexer *lexer, char c, const char *what);
bool json_lex_number(struct json_lexer *lexer, struct json_number *number);
/* Sets the reason (only the first time) and returns false. */
bool json_lex_fail(struct json_lexer *lexer, const char *at, const char *format, ...) PRINTF_LIKE(3, 4);

/* Length of the valid UTF-8 sequence at `at`, 0: invalid. */
size_t utf8_sequence_size(const char *at, const char *end);
/* Writes the code point (at most 4 bytes) and returns the end. */
char *utf8_put(char *out, uint32_t code);
/* Decodes the escapes of a span that the lexer accepted; out has room for span->size bytes. Returns the end. */
char *json_unescape(char *out, const struct json_span *span);

#endif
