/* SPDX-License-Identifier: Apache-2.0 */
#include "base/exposition.h"

#include <math.h>
#include <strings.h>

static const char openmetrics_type[] = "application/openmetrics-text";

/* The weight of one media range in thousandths: 300 for "text/plain;version=0.0.4;q=0.3". Without a valid q: 1000. */
static int media_weight(const char *at, const char *end)
{
    for (; at < end; at++) {
        if (*at != ';')
            continue;
        const char *name = at + 1;
        while (name < end && *name == ' ')
            name++;
        if (end - name < 3 || (name[0] != 'q' && name[0] != 'Q') || name[1] != '=')
            continue;
        /* q is 0 or 1 with up to three decimals; strtod would depend on the locale. */
        int weight = name[2] == '1' ? 1000 : 0, place = 100;
        const char *digit = name + 4;
        bool has_decimals = name + 3 < end && name[3] == '.';
        for (; has_decimals && digit < end && *digit >= '0' && *digit <= '9' && place; digit++, place /= 10)
            weight += (*digit - '0') * place;
        return weight;
    }
    return 1000;
}

enum exposition_format exposition_choose(const char *accept)
{
    int openmetrics = 0, text = 0;
    for (const char *at = accept ? accept : ""; *at;) {
        at += strspn(at, " \t,");
        const char *end = at + strcspn(at, ",");
        size_t size = strcspn(at, ";, \t");
        int weight = media_weight(at, end);
        if (size == strlen(openmetrics_type) && !strncasecmp(at, openmetrics_type, size))
            openmetrics = weight;
        else if ((size == 10 && !strncasecmp(at, "text/plain", size)) ||
                 (size == 3 && !strncmp(at, "*/*", size) && weight > text))
            text = weight;
        at = end;
    }
    return openmetrics > 0 && openmetrics >= text ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT;
}

const char *exposition_content_type(enum exposition_format format)
{
    return format == EXPOSITION_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                            : "text/plain; version=0.0.4; charset=utf-8";
}

void exposition_begin(struct exposition *page, struct bytes *out, enum exposition_format format)
{
    *page = (struct exposition){.out = out, .format = format};
}

void exposition_family(struct exposition *page, const char *name, enum exposition_kind kind, const char *help)
{
    page->name = name;
    page->kind = kind;
    page->help = help;
    page->is_declared = false;
}

/* OpenMetrics names a counter's family without the suffix of its samples. */
static size_t family_name_size(const struct exposition *page)
{
    static const char suffix[] = "_total";
    size_t size = strlen(page->name), suffix_size = sizeof suffix - 1;
    bool has_suffix = size > suffix_size && !strcmp(page->name + size - suffix_size, suffix);
    return page->format == EXPOSITION_OPENMETRICS && page->kind == EXPOSITION_COUNTER && has_suffix ? size - suffix_size
                                                                                                    : size;
}

static void declare(struct exposition *page)
{
    static const char *const kinds[] = {"gauge", "counter", "histogram"};
    if (page->is_declared)
        return;
    page->is_declared = true;
    size_t size = family_name_size(page);
    bytes_append_text(page->out, "# HELP ");
    bytes_append(page->out, page->name, size);
    bytes_append_char(page->out, ' ');
    for (const char *at = page->help; *at; at++) {
        bool is_escaped = *at == '\\' || *at == '\n' || (*at == '"' && page->format == EXPOSITION_OPENMETRICS);
        if (is_escaped)
            bytes_append_char(page->out, '\\');
        bytes_append_char(page->out, *at == '\n' ? 'n' : *at);
    }
    bytes_append_text(page->out, "\n# TYPE ");
    bytes_append(page->out, page->name, size);
    bytes_append_format(page->out, " %s\n", kinds[page->kind]);
}

static void append_number(struct bytes *out, double value)
{
    if (isnan(value))
        bytes_append_text(out, "NaN");
    else if (isinf(value))
        bytes_append_text(out, value > 0 ? "+Inf" : "-Inf");
    else
        bytes_append_double(out, value);
}

static void sample_begin(struct exposition *page, const char *suffix, const char *labels)
{
    declare(page);
    bytes_append_text(page->out, page->name);
    bytes_append_text(page->out, suffix);
    if (*labels) {
        bytes_append_char(page->out, '{');
        bytes_append_text(page->out, labels);
        bytes_append_char(page->out, '}');
    }
    bytes_append_char(page->out, ' ');
}

static void append_uint(struct bytes *out, uint64_t value)
{
    char digits[24];
    bytes_append(out, digits, (size_t)(digits_u64(digits, value) - digits));
}

void exposition_sample(struct exposition *page, const char *labels, double value)
{
    sample_begin(page, "", labels);
    append_number(page->out, value);
    bytes_append_char(page->out, '\n');
}

void exposition_sample_uint(struct exposition *page, const char *labels, uint64_t value)
{
    sample_begin(page, "", labels);
    append_uint(page->out, value);
    bytes_append_char(page->out, '\n');
}

void exposition_histogram(struct exposition *page, const char *labels, const double *bounds, const uint64_t *counts,
                          size_t bound_count, double sum)
{
    uint64_t count = 0;
    declare(page);
    for (size_t i = 0; i <= bound_count; i++) {
        count += counts[i];
        bytes_append_format(page->out, "%s_bucket{%s%sle=\"", page->name, labels, *labels ? "," : "");
        append_number(page->out, i < bound_count ? bounds[i] : (double)INFINITY);
        bytes_append_text(page->out, "\"} ");
        append_uint(page->out, count);
        bytes_append_char(page->out, '\n');
    }
    sample_begin(page, "_sum", labels);
    append_number(page->out, sum);
    bytes_append_char(page->out, '\n');
    sample_begin(page, "_count", labels);
    append_uint(page->out, count);
    bytes_append_char(page->out, '\n');
}

void exposition_end(struct exposition *page)
{
    if (page->format == EXPOSITION_OPENMETRICS)
        bytes_append_text(page->out, "# EOF\n");
}

/* The size of the UTF-8 character at text; 0: not a valid character (including surrogates and overlong forms). */
static size_t character_size(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (text[0] < 0x80)
        return 1;
    size_t size = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    uint32_t code = text[0] & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0; /* also at the terminating NUL */
        code = code << 6 | (text[i] & 0x3f);
    }
    return code >= least[size] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? size : 0;
}

void exposition_label(struct bytes *labels, const char *name, const char *value)
{
    if (labels->size)
        bytes_append_char(labels, ',');
    bytes_append_text(labels, name);
    bytes_append_text(labels, "=\"");
    for (const char *at = value; *at;) {
        size_t size = character_size((const unsigned char *)at);
        if (*at == '\n')
            bytes_append_text(labels, "\\n");
        else if (*at == '"' || *at == '\\')
            bytes_append(labels, (const char[]){'\\', *at}, 2);
        else if (size)
            bytes_append(labels, at, size);
        else
            bytes_append_char(labels, '?');
        at += size ? size : 1;
    }
    bytes_append_char(labels, '"');
}
