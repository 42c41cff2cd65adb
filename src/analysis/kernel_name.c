/* SPDX-License-Identifier: Apache-2.0 */
/* Shortens kernel names. C++ kernels have names of hundreds of characters, mostly namespaces and parameter lists; the
 * function and its template arguments distinguish them, so these are kept. */
#include "analysis/quantity.h"

#include <ctype.h>
#include <string.h>

/* Index after the bracket that closes the one at `at`; size if none does. */
static size_t behind_group(const char *name, size_t size, size_t at)
{
    size_t depth = 0;
    for (; at < size; at++) {
        depth += name[at] == '(' || name[at] == '{';
        depth -= name[at] == ')' || name[at] == '}';
        if (!depth)
            return at + 1;
    }
    return size;
}

/* The end of the template argument at `at`: its comma or closing angle bracket. */
static size_t argument_end(const char *name, size_t size, size_t at)
{
    size_t depth = 0;
    while (at < size) {
        char c = name[at];
        if (c == '(' || c == '{') {
            at = behind_group(name, size, at);
            continue;
        }
        if (!depth && (c == ',' || c == '>'))
            break;
        depth += c == '<';
        depth -= c == '>' && depth;
        at++;
    }
    return at;
}

static void drop_last_word(struct bytes *out)
{
    while (out->size && (isalnum((unsigned char)out->data[out->size - 1]) || out->data[out->size - 1] == '_'))
        out->size--;
}

/* "at::native::f<g(int)::{lambda()#1}, std::array<char*, 2ul> >(int)" becomes "f<g, array<char*, 2ul>>". */
static void simplify(struct bytes *out, const char *name, size_t size)
{
    static const char anonymous[] = "(anonymous namespace)::";
    enum { anonymous_size = sizeof anonymous - 1 };
    for (size_t at = 0; at < size;) {
        if (size - at >= anonymous_size && !memcmp(name + at, anonymous, anonymous_size)) {
            at += anonymous_size;
        } else if (name[at] == '(' || name[at] == '{') {
            at = behind_group(name, size, at);
            /* Names inside a function (lambdas, operators) add nothing after its name. */
            if (size - at >= 2 && name[at] == ':')
                at = argument_end(name, size, at);
        } else if (size - at >= 2 && name[at] == ':' && name[at + 1] == ':') {
            drop_last_word(out);
            at += 2;
        } else if (name[at] == ' ' && at + 1 < size && name[at + 1] == '>') {
            at++;
        } else {
            bytes_append_char(out, name[at++]);
        }
    }
}

/* Columns of the function's name, including the bracket that opens its template arguments. */
static size_t function_columns(const struct bytes *simple)
{
    const char *bracket = memchr(simple->data, '<', simple->size);
    return bracket ? text_columns(simple->data, (size_t)(bracket - simple->data) + 1) : 0;
}

void text_kernel_name_as(struct bytes *out, const char *name, size_t size, enum kernel_name_form form, size_t columns)
{
    if (size > 5 && !memcmp(name, "void ", 5)) {
        name += 5;
        size -= 5;
    }
    struct bytes simple = {0};
    if (form != KERNEL_NAME_WHOLE && columns && text_columns(name, size) > columns)
        simplify(&simple, name, size);
    columns = form == KERNEL_NAME_CUT ? columns : 0;
    if (simple.size)
        text_cut_behind(out, simple.data, simple.size, columns, function_columns(&simple));
    else if (size)
        text_cut(out, name, size, columns);
    else
        bytes_append_text(out, "(unnamed)");
    bytes_free(&simple);
}

void text_kernel_name(struct bytes *out, const char *name, size_t size, size_t columns)
{
    text_kernel_name_as(out, name, size, KERNEL_NAME_CUT, columns);
}
