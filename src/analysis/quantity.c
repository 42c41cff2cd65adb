/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/quantity.h"

#include <math.h>
#include <stdio.h>

/* Three significant digits after rounding: 999.6 becomes 1000, which the caller prints in the next unit. */
static void three_digits(char *out, size_t size, double value)
{
    if (value < 9.995)
        snprintf(out, size, "%.2f", value);
    else if (value < 99.95)
        snprintf(out, size, "%.1f", value);
    else
        snprintf(out, size, "%.0f", value);
}

static struct quantity scaled(double value, double step, const char *const *units, unsigned unit_count)
{
    struct quantity quantity;
    unsigned unit = 0;
    while (unit + 1 < unit_count && value >= (step == 1000 ? 999.5 : 1023.5)) {
        value /= step;
        unit++;
    }
    char digits[24];
    if (unit == 0 || value > 99999) /* an integer, or beyond the largest unit */
        snprintf(digits, sizeof digits, value > 99999 ? "%.3g" : "%.0f", value);
    else
        three_digits(digits, sizeof digits, value);
    snprintf(quantity.text, sizeof quantity.text, "%s %s", digits, units[unit]);
    return quantity;
}

struct quantity quantity_time(double ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    if (ns < 999.5e9)
        return scaled(ns, 1000, units, 4);
    struct quantity quantity;
    char digits[24];
    bool is_hours = ns >= 7200e9;
    double value = is_hours ? ns / 3600e9 : ns / 60e9;
    if (value > 99999)
        snprintf(digits, sizeof digits, "%.3g", value);
    else
        three_digits(digits, sizeof digits, value);
    snprintf(quantity.text, sizeof quantity.text, "%s %s", digits, is_hours ? "h" : "min");
    return quantity;
}

struct quantity quantity_bytes(double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    return scaled(bytes, 1000, units, 6);
}

struct quantity quantity_memory(double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return scaled(bytes, 1024, units, 5);
}

struct quantity quantity_rate(double bytes_per_s)
{
    static const char *const units[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
    return scaled(bytes_per_s, 1000, units, 5);
}

struct quantity quantity_count(uint64_t count)
{
    char digits[24];
    size_t size = (size_t)(digits_u64(digits, count) - digits), at = 0;
    struct quantity quantity;
    for (size_t i = 0; i < size; i++) {
        if (i && (size - i) % 3 == 0)
            quantity.text[at++] = ',';
        quantity.text[at++] = digits[i];
    }
    quantity.text[at] = '\0';
    return quantity;
}

struct quantity quantity_percent(double fraction)
{
    struct quantity quantity;
    if (fraction > 0 && fraction < 0.0005)
        snprintf(quantity.text, sizeof quantity.text, "<0.1 %%");
    else
        snprintf(quantity.text, sizeof quantity.text, "%.1f %%", fraction * 100);
    return quantity;
}

/* The size of the valid UTF-8 sequence at text, 0 if there is none. */
static size_t decode(const unsigned char *text, size_t size, uint32_t *code)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (text[0] < 0x80) {
        *code = text[0];
        return 1;
    }
    size_t length = (text[0] & 0xe0) == 0xc0 ? 2 : (text[0] & 0xf0) == 0xe0 ? 3 : (text[0] & 0xf8) == 0xf0 ? 4 : 0;
    if (!length || length > size)
        return 0;
    *code = text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (text[i] & 0x3f);
    }
    bool is_bad = *code < least[length] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000);
    return is_bad ? 0 : length;
}

/* True for characters that could move the cursor, change colours, or reorder surrounding text. */
static bool is_hostile(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
           (code >= 0xfff9 && code <= 0xfffb) || (code >= 0xe0000 && code <= 0xe0fff);
}

void text_escape(struct bytes *out, const char *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + size;
    while (at < end) {
        uint32_t code;
        size_t length = decode(at, (size_t)(end - at), &code);
        if (length && !is_hostile(code)) {
            bytes_append(out, at, length);
        } else {
            length = length ? length : 1;
            for (size_t i = 0; i < length; i++)
                bytes_append_format(out, "\\x%02x", at[i]);
        }
        at += length;
    }
}

static unsigned code_columns(uint32_t code)
{
    bool is_combining = (code >= 0x300 && code <= 0x36f) || (code >= 0xfe00 && code <= 0xfe0f);
    bool is_wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
                   (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
                   (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
                   (code >= 0x1f300 && code <= 0x1faff) || (code >= 0x20000 && code <= 0x3fffd);
    return is_combining ? 0 : is_wide ? 2 : 1;
}

/* Size in bytes of the longest prefix that fits into `columns`. */
static size_t fitting(const char *text, size_t size, size_t columns)
{
    size_t at = 0;
    while (at < size) {
        uint32_t code = 0;
        size_t length = decode((const unsigned char *)text + at, size - at, &code);
        unsigned width = code_columns(code);
        if (width > columns)
            break;
        columns -= width;
        at += length ? length : 1;
    }
    return at;
}

size_t text_columns(const char *text, size_t size)
{
    size_t columns = 0;
    for (size_t at = 0; at < size;) {
        uint32_t code = 0;
        size_t length = decode((const unsigned char *)text + at, size - at, &code);
        columns += code_columns(code);
        at += length ? length : 1;
    }
    return columns;
}

void text_cut(struct bytes *out, const char *text, size_t size, size_t columns)
{
    text_cut_behind(out, text, size, columns, 0);
}

void text_cut_behind(struct bytes *out, const char *text, size_t size, size_t columns, size_t least)
{
    enum { tail_min = 6 };
    struct bytes whole = {0};
    text_escape(&whole, text, size);
    size_t width = text_columns(whole.data, whole.size);
    if (!columns || width <= columns) {
        bytes_append(out, whole.data, whole.size);
    } else {
        size_t kept = columns - 1, front = kept / 2 + kept % 2;
        if (least > front && least + tail_min <= kept)
            front = least;
        size_t head = fitting(whole.data, whole.size, front);
        /* Skip just enough columns from the left for the rest to fit. */
        size_t tail = fitting(whole.data, whole.size, width - (kept - front));
        if (text_columns(whole.data + tail, whole.size - tail) > kept - front)
            tail += fitting(whole.data + tail, whole.size - tail, 2);
        bytes_append(out, whole.data, head);
        bytes_append_text(out, "…");
        bytes_append(out, whole.data + tail, whole.size - tail);
    }
    out->failed = out->failed || whole.failed;
    bytes_free(&whole);
}

void text_bar(struct bytes *out, double fraction, unsigned cells)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    unsigned units = (unsigned)lround(fraction * cells * 8);
    for (unsigned i = 0; i < units / 8; i++)
        bytes_append_text(out, "█");
    bytes_append_text(out, eighths[units % 8]);
}
