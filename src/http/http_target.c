/* SPDX-License-Identifier: Apache-2.0 */
#include "format/json_lex.h"
#include "http/http_parse.h"

#include <stdlib.h>
#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Characters that RFC 3986 allows unencoded in a path or query, and a few that clients send anyway. */
static bool is_target_char(char c)
{
    return c > ' ' && c <= '~' && !strchr("\"<>\\^`{|}#", c);
}

/* Decodes one part in place; returns the end of the text, or NULL if the encoding is invalid. */
static char *part_decode(char *at, char *end, bool plus_is_space)
{
    char *out = at;
    const char *start = at;
    while (at < end) {
        char c = *at++;
        if (c == '%') {
            int high = at < end ? hex_value(at[0]) : -1, low = at + 1 < end ? hex_value(at[1]) : -1;
            if (high < 0 || low < 0)
                return NULL;
            c = (char)(high << 4 | low);
            at += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        *out++ = c;
    }
    for (const char *check = start; check < out;) {
        size_t size = (unsigned char)*check < ' ' || *check == 0x7F ? 0 : utf8_sequence_size(check, out);
        if (!size)
            return NULL;
        check += size;
    }
    return out;
}

static gpufl_status segment_add(struct http_target *target, char *at, char *end, struct problem *problem)
{
    if (target->segment_count == HTTP_SEGMENTS_MAX)
        return problem_set(problem, GPUFL_E_LIMIT, "the path has more than %d parts", HTTP_SEGMENTS_MAX);
    char *stop = part_decode(at, end, false);
    if (!stop)
        return problem_set(problem, GPUFL_E_INVALID, "the path has an invalid percent-encoding");
    size_t size = (size_t)(stop - at);
    bool is_dots = (size == 1 && at[0] == '.') || (size == 2 && at[0] == '.' && at[1] == '.');
    if (!size || is_dots || memchr(at, '/', size) || memchr(at, '\\', size))
        return problem_set(problem, GPUFL_E_INVALID, "the path has an empty part, '.', '..' or an encoded slash");
    target->segments[target->segment_count++] = (struct http_span){at, size};
    return GPUFL_OK;
}

static gpufl_status path_parse(struct http_target *target, char *at, char *end, struct problem *problem)
{
    char *out = at;
    while (at < end) {
        char *start = at + 1; /* after its slash */
        char *stop = memchr(start, '/', (size_t)(end - start));
        stop = stop ? stop : end;
        if (start == end && target->segment_count == 0)
            break; /* "/" */
        gpufl_status status = segment_add(target, start, stop, problem);
        if (status)
            return status;
        /* Decoded parts are stored next to each other, so that the value of {rest...} is one string. */
        struct http_span *segment = &target->segments[target->segment_count - 1];
        memmove(out, segment->at, segment->size);
        segment->at = out;
        out += segment->size;
        *out++ = '/';
        at = stop;
    }
    return GPUFL_OK;
}

static gpufl_status query_parse(struct http_target *target, char *at, char *end, struct problem *problem)
{
    while (at < end) {
        char *stop = memchr(at, '&', (size_t)(end - at));
        stop = stop ? stop : end;
        char *equals = memchr(at, '=', (size_t)(stop - at));
        if (at < stop) {
            if (target->query_count == HTTP_QUERY_MAX)
                return problem_set(problem, GPUFL_E_LIMIT, "the query has more than %d parameters", HTTP_QUERY_MAX);
            char *name_end = part_decode(at, equals ? equals : stop, true);
            char *value_end = equals ? part_decode(equals + 1, stop, true) : NULL;
            if (!name_end || name_end == at || (equals && !value_end))
                return problem_set(problem, GPUFL_E_INVALID,
                                   "parameter %u of the query has an invalid percent-encoding",
                                   target->query_count + 1);
            *name_end = '\0';
            if (value_end)
                *value_end = '\0';
            target->query[target->query_count++] = (struct http_pair){at, equals ? equals + 1 : name_end};
        }
        at = stop + (stop < end);
    }
    return GPUFL_OK;
}

gpufl_status http_target_parse(struct http_target *target, const char *text, struct problem *problem)
{
    memset(target, 0, sizeof *target);
    size_t size = strlen(text);
    if (size > HTTP_TARGET_BYTES_MAX)
        return problem_set(problem, GPUFL_E_LIMIT, "the URL is longer than %d bytes", HTTP_TARGET_BYTES_MAX);
    if (text[0] != '/')
        return problem_set(problem, GPUFL_E_INVALID, "the request's target is not a path");
    for (const char *at = text; *at; at++)
        if (!is_target_char(*at))
            return problem_set(problem, GPUFL_E_INVALID, "byte %zu of the URL must be percent-encoded",
                               (size_t)(at - text) + 1);
    /* One copy stays unchanged, one is decoded in place; the byte between them ends the query's last value. */
    target->text = malloc(2 * size + 2);
    if (!target->text)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the URL");
    memcpy(target->text, text, size + 1);
    char *at = target->text + size + 1, *end = at + size;
    memcpy(at, text, size + 1);
    char *question = memchr(at, '?', size);
    char *path_end = question ? question : end;
    target->path = (struct http_span){target->text, (size_t)(path_end - at)};
    gpufl_status status = path_parse(target, at, path_end, problem);
    if (!status && question)
        status = query_parse(target, question + 1, end, problem);
    if (status)
        http_target_free(target);
    return status;
}

void http_target_free(struct http_target *target)
{
    free(target->text);
    memset(target, 0, sizeof *target);
}

/* The next part of the pattern, without its slash; empty at the end. */
static struct http_span pattern_next(const char **pattern)
{
    const char *at = **pattern == '/' ? *pattern + 1 : *pattern;
    size_t size = strcspn(at, "/");
    *pattern = at + size;
    return (struct http_span){at, size};
}

enum part_kind { PART_LITERAL, PART_VALUE, PART_REST };

static enum part_kind part_kind_of(struct http_span part, struct http_span *name)
{
    if (part.size < 3 || part.at[0] != '{' || part.at[part.size - 1] != '}')
        return PART_LITERAL;
    *name = (struct http_span){part.at + 1, part.size - 2};
    if (name->size <= 3 || memcmp(name->at + name->size - 3, "...", 3) != 0)
        return PART_VALUE;
    name->size -= 3;
    return PART_REST;
}

gpufl_status http_pattern_check(const char *pattern, struct problem *problem)
{
    unsigned values = 0;
    bool is_good = pattern[0] == '/';
    for (const char *at = pattern; is_good && *at && strcmp(pattern, "/") != 0;) {
        struct http_span name = {"", 0}, part = pattern_next(&at);
        enum part_kind kind = part_kind_of(part, &name);
        struct http_span word = kind == PART_LITERAL ? part : name;
        values += kind != PART_LITERAL;
        is_good = word.size && (kind == PART_LITERAL || !memchr(word.at, '.', word.size)) &&
                  !memchr(word.at, '{', word.size) && !memchr(word.at, '}', word.size) && (kind != PART_REST || !*at) &&
                  values <= HTTP_PATTERN_VALUES_MAX;
    }
    if (!is_good)
        return problem_set(problem, GPUFL_E_INVALID, "'%.200s' is not a valid path pattern", pattern);
    return GPUFL_OK;
}

bool http_pattern_matches(const char *pattern, const struct http_target *target, struct http_match *match)
{
    unsigned next = 0;
    match->count = 0;
    for (const char *at = pattern; *at && strcmp(at, "/") != 0;) {
        struct http_span name, part = pattern_next(&at);
        enum part_kind kind = part_kind_of(part, &name);
        if (kind == PART_REST) {
            struct http_span rest = {"", 0};
            if (next < target->segment_count) {
                const struct http_span *last = &target->segments[target->segment_count - 1];
                rest.at = target->segments[next].at;
                rest.size = (size_t)(last->at + last->size - rest.at);
            }
            match->names[match->count] = name;
            match->values[match->count++] = rest;
            return true;
        }
        if (next == target->segment_count)
            return false;
        struct http_span segment = target->segments[next++];
        if (kind == PART_VALUE) {
            match->names[match->count] = name;
            match->values[match->count++] = segment;
        } else if (segment.size != part.size || memcmp(segment.at, part.at, part.size) != 0) {
            return false;
        }
    }
    return next == target->segment_count;
}
