/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as the parts of a request: targets, headers, addresses. Accepted values have the documented
 * properties. */
#include "http/http_parse.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void span_check(const struct http_target *target, struct http_span span, size_t text_size)
{
    if (span.at < target->text || span.at + span.size > target->text + text_size)
        abort();
}

static void target_check(const char *text)
{
    static const char *const patterns[] = {"/", "/api/v1/sessions/{id}", "/{a}/{b}/{c}", "/files/{path...}",
                                           "/{rest...}"};
    struct http_target target;
    struct http_match match;
    if (http_target_parse(&target, text, NULL))
        return;
    const size_t text_size = 2 * strlen(text) + 2;
    for (unsigned i = 0; i < target.segment_count; i++) {
        const struct http_span segment = target.segments[i];
        span_check(&target, segment, text_size);
        if (!segment.size || memchr(segment.at, '/', segment.size) || memchr(segment.at, '\0', segment.size) ||
            (segment.size == 2 && !memcmp(segment.at, "..", 2)))
            abort();
    }
    for (unsigned i = 0; i < target.query_count; i++)
        if (!target.query[i].name[0] || strlen(target.query[i].name) + strlen(target.query[i].value) > strlen(text))
            abort();
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (http_pattern_matches(patterns[i], &target, &match))
            for (unsigned value = 0; value < match.count; value++)
                if (match.values[value].size)
                    span_check(&target, match.values[value], text_size);
    http_target_free(&target);
}

static void pattern_check(const char *text)
{
    struct http_target target;
    struct http_match match;
    if (http_pattern_check(text, NULL) || http_target_parse(&target, "/a/b/c/d/e/f/g/h/i/j", NULL))
        return;
    if (http_pattern_matches(text, &target, &match) && match.count > HTTP_PATTERN_VALUES_MAX)
        abort();
    http_target_free(&target);
}

static void headers_check(const char *text)
{
    char name[HTTP_HOST_SIZE], address_text[HTTP_ADDRESS_TEXT_SIZE];
    struct http_address address;
    uint64_t number;
    const struct http_span token = http_bearer_token(text);
    if (token.size && (token.at < text || token.at + token.size > text + strlen(text)))
        abort();
    if (http_host_parse(text, name) && (!name[0] || strlen(name) > strlen(text)))
        abort();
    if (!http_address_parse(&address, text, NULL))
        http_address_write((const struct sockaddr *)&address.storage, address_text);
    enum http_encoding encoding = http_encoding_choose(text);
    if (encoding != HTTP_IDENTITY && !http_encoding_is_accepted(text, http_encoding_name(encoding)))
        abort();
    http_etag_matches(text, "W/\"v1\"");
    http_origin_is_own(text, "localhost:8080");
    http_size_parse(text, &number);
    if (http_header_name_is_valid(text) && strpbrk(text, " :\r\n"))
        abort();
    if (http_header_value_is_valid(text) && strpbrk(text, "\r\n"))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > HTTP_TARGET_BYTES_MAX + 16)
        return 0;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    target_check(text);
    pattern_check(text);
    headers_check(text);
    free(text);
    return 0;
}
