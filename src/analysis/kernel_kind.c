/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a name into lower-case words and looks for the pattern of the first rule that matches. Patterns are grouped by
 * their first character, so a word is compared with a few of them only. */
#include "analysis/kernel_kind.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { name_bytes_max = 8192, words_max = 1024 };

struct pattern {
    uint16_t rank; /* of its rule: the lowest one decides */
    uint8_t kind;
    const char *words;
};

static const struct pattern patterns[] = {
#define KERNEL_PATTERN(rank, kind, words) {rank, KIND_##kind, words},
#include "analysis/kernel_kinds.inc"
#undef KERNEL_PATTERN
};

static const char *const names[] = {
#define KERNEL_KIND(id, name, label) name,
#include "analysis/kernel_kinds.inc"
#undef KERNEL_KIND
};

static const char *const labels[] = {
#define KERNEL_KIND(id, name, label) label,
#include "analysis/kernel_kinds.inc"
#undef KERNEL_KIND
};

const char *kernel_kind_name(enum kernel_kind kind)
{
    return names[kind];
}

const char *kernel_kind_label(enum kernel_kind kind)
{
    return labels[kind];
}

/* The words of a name, each of them `sizes[i]` bytes at `starts[i]` of text. */
struct words {
    char text[name_bytes_max];
    uint16_t starts[words_max], sizes[words_max];
    size_t count;
};

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}
static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static bool is_word_part(char c)
{
    return is_lower(c) || is_upper(c) || is_digit(c);
}

/* Whether a word begins at `at`, which belongs to one, as the byte before it does. */
static bool has_border(const char *name, size_t size, size_t at)
{
    char before = name[at - 1], here = name[at];
    if (is_digit(before))
        return !is_digit(here);
    if (!is_upper(here))
        return false;
    return is_lower(before) || (is_upper(before) && at + 1 < size && is_lower(name[at + 1]));
}

/* Mangled names have the length of each identifier before it: the offset at which the identifier ends that the digits at
 * `at` announce; 0: they announce none. A digit of a literal ("Li128E") follows "L" and a lower-case letter. */
static size_t identifier_end(const char *name, size_t size, size_t at)
{
    size_t length = 0, from = at;
    if (at >= 2 && is_lower(name[at - 1]) && name[at - 2] == 'L')
        return 0;
    for (; from < size && is_digit(name[from]) && length < size; from++)
        length = length * 10 + (size_t)(name[from] - '0');
    return length && length <= size - from ? from + length : 0;
}

static void words_make(struct words *words, const char *name, size_t size)
{
    bool is_mangled = size > 2 && name[0] == '_' && name[1] == 'Z', is_open = false;
    size_t end = 0; /* of the identifier, in a mangled name */
    words->count = 0;
    for (size_t at = 0; at < size; at++) {
        if (is_mangled && at >= end && is_digit(name[at]) && (at == 0 || !is_digit(name[at - 1])))
            end = identifier_end(name, size, at);
        if (!is_word_part(name[at])) {
            is_open = false;
            continue;
        }
        if (!is_open || (is_mangled && at == end) || has_border(name, size, at)) {
            if (words->count == words_max)
                return;
            words->starts[words->count] = (uint16_t)at;
            words->sizes[words->count++] = 0;
            is_open = true;
        }
        words->text[at] = (char)(is_upper(name[at]) ? name[at] - 'A' + 'a' : name[at]);
        words->sizes[words->count - 1]++;
    }
}

/* Compares a word with the pattern's word at *pattern and moves past that one. */
static bool word_fits(const struct words *words, size_t word, const char **pattern)
{
    const char *from = *pattern, *end = strchrnul(from, ' ');
    *pattern = *end ? end + 1 : end;
    bool is_prefix = end[-1] == '*';
    size_t size = (size_t)(end - from) - is_prefix;
    return (is_prefix ? words->sizes[word] >= size : words->sizes[word] == size) &&
           !memcmp(words->text + words->starts[word], from, size);
}

/* Words that follow each other, up to "..." or the end of the pattern; *next: what comes after "...". */
static bool part_fits(const struct words *words, size_t *word, const char *pattern, const char **next)
{
    size_t at = *word;
    while (*pattern && *pattern != '.') {
        if (at == words->count || !word_fits(words, at, &pattern))
            return false;
        at++;
    }
    *word = at;
    *next = *pattern ? pattern + strlen("... ") : pattern;
    return true;
}

/* The rest of a pattern behind "...": the earliest place of each part leaves the most room for the parts after it. */
static bool rest_fits(const struct words *words, size_t word, const char *pattern)
{
    while (*pattern) {
        for (; word < words->count; word++)
            if (part_fits(words, &word, pattern, &pattern))
                break;
        if (word == words->count && *pattern)
            return false;
    }
    return true;
}

enum { pattern_count = sizeof patterns / sizeof *patterns };

/* The first pattern that begins with the character or a later one. */
static size_t group_start(char first)
{
    size_t low = 0, high = pattern_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (patterns[middle].words[0] < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum kernel_kind kernel_kind_of(const char *name)
{
    struct words words;
    /* The rest of a pattern that is missing after the first place of its beginning is missing after the others too. */
    bool is_settled[pattern_count] = {false};
    unsigned best = UINT16_MAX;
    enum kernel_kind kind = KIND_UNKNOWN;
    words_make(&words, name ? name : "", name ? strnlen(name, name_bytes_max) : 0);
    for (size_t word = 0; word < words.count; word++) {
        char first = words.text[words.starts[word]];
        for (size_t i = group_start(first); i < pattern_count && patterns[i].words[0] == first; i++) {
            size_t behind = word;
            const char *rest;
            if (patterns[i].rank >= best)
                break;
            if (is_settled[i] || !part_fits(&words, &behind, patterns[i].words, &rest))
                continue;
            is_settled[i] = true;
            if (rest_fits(&words, behind, rest)) {
                best = patterns[i].rank;
                kind = patterns[i].kind;
            }
        }
    }
    return kind;
}
