/* SPDX-License-Identifier: Apache-2.0 */
#include "format/json.h"
#include "format/json_lex.h"

#include <stdio.h>
#include <stdlib.h>

#define DOCUMENT_SIZE_MAX ((size_t)256 << 20)
#define BLOCK_SIZE_FIRST ((size_t)4096)
#define BLOCK_SIZE_LARGEST ((size_t)1 << 20)

struct json_block {
    struct json_block *next;
    size_t size, used;
    _Alignas(max_align_t) char data[];
};

struct builder {
    struct json_document *document;
    struct json_lexer lexer;
    struct {
        struct json_value *value, *last;
    } open[JSON_DEPTH_MAX];
    struct json_value *root;
    size_t arena_size, arena_size_max;
    gpufl_status status; /* why the arena could not allocate */
};

/* A byte of text can require 40 bytes of values, so that a highly compressible text could exhaust its reader's memory.
 * Listings of instructions, the densest of our records, require 9 and have at most 8 MiB; longer texts consist mostly
 * of strings. */
size_t json_memory_max(size_t size)
{
    const size_t mib = 1 << 20;
    return size < 8 * mib ? 16 * mib + 10 * size : 80 * mib + 2 * size;
}

static void *arena_take(struct builder *builder, size_t size)
{
    struct json_document *document = builder->document;
    size = (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
    struct json_block *block = document->blocks;
    if (!block || block->size - block->used < size) {
        size_t block_size = block ? block->size * 2 : BLOCK_SIZE_FIRST;
        if (block_size > BLOCK_SIZE_LARGEST)
            block_size = BLOCK_SIZE_LARGEST;
        if (block_size < size)
            block_size = size;
        bool is_over = block_size > builder->arena_size_max - builder->arena_size;
        struct json_block *fresh = is_over ? NULL : malloc(sizeof *fresh + block_size);
        if (!fresh) {
            builder->status = is_over ? GPUFL_E_LIMIT : GPUFL_E_NO_MEMORY;
            return NULL;
        }
        builder->arena_size += block_size;
        *fresh = (struct json_block){.next = block, .size = block_size};
        document->blocks = block = fresh;
    }
    void *taken = block->data + block->used;
    block->used += size;
    return taken;
}

static const char *span_copy(struct builder *builder, const struct json_span *span, uint32_t *size)
{
    char *copy = arena_take(builder, span->size + 1);
    if (!copy)
        return NULL;
    char *end = copy + span->size;
    if (span->has_escape)
        end = json_unescape(copy, span);
    else
        memcpy(copy, span->text, span->size);
    *end = '\0';
    *size = (uint32_t)(end - copy);
    return copy;
}

static struct json_value *value_make(struct builder *builder, const struct json_token *token)
{
    struct json_value *value = arena_take(builder, sizeof *value);
    if (!value)
        return NULL;
    *value = (struct json_value){.kind = token->kind, .line = token->line, .column = token->column};
    if (token->has_key) {
        value->key = span_copy(builder, &token->key, &value->key_size);
        if (!value->key)
            return NULL;
    }
    if (token->kind == JSON_STRING) {
        value->text = span_copy(builder, &token->text, &value->text_size);
        if (!value->text)
            return NULL;
    } else if (token->kind == JSON_INT || token->kind == JSON_DOUBLE) {
        value->number = token->number.value;
        if (token->kind == JSON_INT) {
            uint64_t magnitude = token->number.magnitude;
            value->is_unsigned = !token->number.is_negative && magnitude > INT64_MAX;
            value->integer = (int64_t)(token->number.is_negative ? 0 - magnitude : magnitude);
        }
    }
    return value;
}

static void value_attach(struct builder *builder, unsigned depth, struct json_value *value)
{
    if (depth == 0) {
        builder->root = value;
        return;
    }
    struct json_value *parent = builder->open[depth - 1].value;
    if (builder->open[depth - 1].last)
        builder->open[depth - 1].last->next = value;
    else
        parent->child = value;
    builder->open[depth - 1].last = value;
    parent->count++;
}

static gpufl_status document_build(struct builder *builder)
{
    struct json_lexer *lexer = &builder->lexer;
    struct json_token token;
    do {
        unsigned depth = lexer->depth;
        enum json_event event = json_lex_next(lexer, &token);
        if (event == JSON_EVENT_FAILED)
            return GPUFL_E_DAMAGED;
        if (event == JSON_EVENT_CLOSE)
            continue;
        struct json_value *value = value_make(builder, &token);
        if (!value) {
            json_lex_fail(lexer, token.start,
                          builder->status == GPUFL_E_LIMIT ? "document has too many values" : "out of memory");
            return builder->status;
        }
        value_attach(builder, depth, value);
        if (event == JSON_EVENT_OPEN) {
            builder->open[depth].value = value;
            builder->open[depth].last = NULL;
        }
    } while (lexer->depth > 0);
    json_lex_space(lexer);
    if (lexer->at != lexer->end) {
        json_lex_fail(lexer, lexer->at, "unexpected text after the value");
        return GPUFL_E_DAMAGED;
    }
    return GPUFL_OK;
}

gpufl_status json_parse(struct json_document *document, const char *text, size_t size, struct json_error *error)
{
    *document = (struct json_document){0};
    struct builder builder = {.document = document, .arena_size_max = json_memory_max(size)};
    json_lex_init(&builder.lexer, text, size);
    gpufl_status status = GPUFL_E_LIMIT;
    if (size > DOCUMENT_SIZE_MAX)
        json_lex_fail(&builder.lexer, text, "document larger than %zu MiB", DOCUMENT_SIZE_MAX >> 20);
    else
        status = document_build(&builder);
    if (status == GPUFL_OK) {
        document->root = builder.root;
        return GPUFL_OK;
    }
    json_free(document);
    if (error) {
        error->line = builder.lexer.line;
        error->column = (uint32_t)(builder.lexer.reason_at - builder.lexer.line_start) + 1;
        snprintf(error->text, sizeof error->text, "%s", builder.lexer.reason);
    }
    return status;
}

void json_free(struct json_document *document)
{
    struct json_block *block = document->blocks;
    while (block) {
        struct json_block *next = block->next;
        free(block);
        block = next;
    }
    *document = (struct json_document){0};
}

const struct json_value *json_member(const struct json_value *object, const char *key)
{
    if (!object || object->kind != JSON_OBJECT)
        return NULL;
    size_t size = strlen(key);
    for (const struct json_value *member = object->child; member; member = member->next)
        if (member->key_size == size && !memcmp(member->key, key, size))
            return member;
    return NULL;
}

int64_t json_get_int(const struct json_value *object, const char *key, int64_t fallback)
{
    const struct json_value *member = json_member(object, key);
    return member && member->kind == JSON_INT && !member->is_unsigned ? member->integer : fallback;
}

const char *json_get_text(const struct json_value *object, const char *key, const char *fallback)
{
    const struct json_value *member = json_member(object, key);
    return member && member->kind == JSON_STRING ? member->text : fallback;
}

bool json_get_bool(const struct json_value *object, const char *key, bool fallback)
{
    const struct json_value *member = json_member(object, key);
    if (!member || (member->kind != JSON_TRUE && member->kind != JSON_FALSE))
        return fallback;
    return member->kind == JSON_TRUE;
}
