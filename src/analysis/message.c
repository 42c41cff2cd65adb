/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/message.h"

#include "analysis/quantity.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int terminal_columns(int fd, int fallback)
{
    struct winsize size;
    if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col;
    return fallback;
}

/* How much of a line to print before its next break: up to the last space within the columns, or the whole first word. */
static size_t piece_of(const char *text, size_t size, size_t columns)
{
    size_t fits = 0;
    for (size_t at = 1; at <= size; at++) {
        if (at < size && text[at] != ' ')
            continue;
        if (fits && text_columns(text, at) > columns)
            break;
        fits = at;
    }
    return fits;
}

static void line_write(FILE *out, const char *text, size_t size, size_t columns, size_t indent)
{
    size_t lead = 0;
    while (lead < size && text[lead] == ' ')
        lead++;
    size_t used = lead;
    fprintf(out, "%*s", (int)lead, "");
    for (size_t at = lead; at < size;) {
        size_t room = columns > used ? columns - used : 1;
        size_t piece = piece_of(text + at, size - at, room);
        fwrite(text + at, 1, piece, out);
        for (at += piece; at < size && text[at] == ' ';)
            at++;
        used = lead + indent;
        if (at < size)
            fprintf(out, "\n%*s", (int)used, "");
    }
    fputc('\n', out);
}

void message_wrap(FILE *out, const char *text, int indent, int columns)
{
    while (*text) {
        size_t size = strcspn(text, "\n");
        if (!columns || text_columns(text, size) <= (size_t)columns)
            fprintf(out, "%.*s\n", (int)size, text);
        else
            line_write(out, text, size, (size_t)columns, (size_t)indent);
        text += size + (text[size] == '\n');
    }
}

void message_write(FILE *out, const char *text, int indent)
{
    message_wrap(out, text, indent, terminal_columns(fileno(out), 0));
}

void message_print(FILE *out, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int size = vasprintf(&text, format, args);
    va_end(args);
    if (size < 0)
        return;
    message_write(out, text, MESSAGE_INDENT);
    free(text);
}
