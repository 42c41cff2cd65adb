/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes for the document reader: accepted input must be accepted again after the writer has written it. */
#include "format/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void scalar_write(const struct json_value *value, struct bytes *out)
{
    switch (value->kind) {
    case JSON_STRING:
        json_string(out, value->text, value->text_size);
        break;
    case JSON_INT:
        if (value->integer == 0)
            json_double(out, value->number); /* only `number` keeps the sign of -0 */
        else if (value->is_unsigned)
            json_uint(out, (uint64_t)value->integer);
        else
            json_int(out, value->integer);
        break;
    case JSON_DOUBLE:
        json_double(out, value->number);
        break;
    case JSON_NULL:
        json_text(out, NULL);
        break;
    default:
        json_bool(out, value->kind == JSON_TRUE);
        break;
    }
}

/* Depth is bounded by the reader. */
static void value_write(const struct json_value *value, struct bytes *out)
{
    if (value->kind != JSON_ARRAY && value->kind != JSON_OBJECT) {
        scalar_write(value, out);
        return;
    }
    uint32_t count = 0;
    bytes_append_char(out, value->kind == JSON_ARRAY ? '[' : '{');
    for (const struct json_value *member = value->child; member; member = member->next, count++) {
        if (count)
            bytes_append_char(out, ',');
        if (value->kind == JSON_OBJECT) {
            json_string(out, member->key, member->key_size);
            bytes_append_char(out, ':');
        }
        value_write(member, out);
    }
    bytes_append_char(out, value->kind == JSON_ARRAY ? ']' : '}');
    if (count != value->count)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_document document, again;
    struct json_error error = {0};
    if (json_parse(&document, (const char *)data, size, &error) != GPUFL_OK) {
        if (error.line == 0 || error.column == 0 || !error.text[0])
            abort();
        return 0;
    }
    struct bytes first = {0}, second = {0};
    value_write(document.root, &first);
    if (json_parse(&again, first.data, first.size, NULL) != GPUFL_OK)
        abort();
    value_write(again.root, &second);
    if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0)
        abort();
    json_free(&document);
    json_free(&again);
    bytes_free(&first);
    bytes_free(&second);
    return 0;
}
