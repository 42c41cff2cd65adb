/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

void command_error(const char *name, const char *format, ...)
{
    fflush(stdout);
    fprintf(stderr, "gpufl %s: ", name);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void shell_word_append(struct bytes *out, const char *word)
{
    bool is_plain = true;
    for (const char *c = word; *c; c++)
        is_plain = is_plain && ((unsigned char)*c >= 0x80 || isalnum((unsigned char)*c) || strchr("_-./+:,@%=", *c));
    bytes_append_text(out, is_plain ? "" : "'");
    for (const char *c = word; *c; c++) {
        if (*c == '\'')
            bytes_append_text(out, "'\\''");
        else
            bytes_append_char(out, *c);
    }
    bytes_append_text(out, is_plain ? "" : "'");
}

enum { EXAMPLE_COLUMNS = 46 };

/* `gpufl top` says no more than the list of commands does. */
static bool example_is_plain(const struct command *command)
{
    const char *space = strrchr(command->example, ' ');
    return strncmp(command->example, "gpufl ", 6) == 0 && space && strcmp(space + 1, command->name) == 0;
}

static bool example_is_short(const struct command *command)
{
    return strlen(command->example) <= EXAMPLE_COLUMNS;
}

/* Short ones first and two to a line, so that the help stays one screen. */
static void print_examples(FILE *out)
{
    const struct command *left = NULL;
    for (const struct command *command = command_table; command->name; command++) {
        if (!example_is_short(command) || example_is_plain(command))
            continue;
        if (left)
            fprintf(out, "  %-*s  %s\n", EXAMPLE_COLUMNS, left->example, command->example);
        left = left ? NULL : command;
    }
    if (left)
        fprintf(out, "  %s\n", left->example);
    for (const struct command *command = command_table; command->name; command++)
        if (!example_is_short(command))
            fprintf(out, "  %s\n", command->example);
}

void help_print(FILE *out)
{
    fputs("gpufl records what a GPU did, and for which part of a program.\n\nusage: gpufl COMMAND [OPTION...]\n\n",
          out);
    for (const struct command *command = command_table; command->name; command++)
        fprintf(out, "  %-11s %s\n", command->name, command->summary);
    fputs("\n`gpufl COMMAND --help` shows a command's options. For example:\n\n", out);
    print_examples(out);
}

static void print_option(FILE *out, const struct option_info *option)
{
    char left[64];
    int size = option->letter ? snprintf(left, sizeof left, "-%c, --%s", option->letter, option->name)
                              : snprintf(left, sizeof left, "    --%s", option->name);
    if (option->value_name && size > 0 && (size_t)size < sizeof left)
        snprintf(left + size, sizeof left - (size_t)size, " %s", option->value_name);
    fprintf(out, "  %-24s %s\n", left, option->summary);
    if (option->kind == OPTION_CHOICE && strcasecmp(option->value_name, option->name) == 0) {
        fprintf(out, "  %-24s ", "");
        for (const char *const *choice = option->choices; *choice; choice++)
            fprintf(out, "%s%s", choice == option->choices ? "" : ", ", *choice);
        fputc('\n', out);
    }
}

/* One word of a usage line; on a new line where it would not fit. */
static void put_word(FILE *out, const char *word, int indent, int *column)
{
    int size = (int)strlen(word);
    if (*column + 1 + size > 100) {
        fprintf(out, "\n%*s", indent, "");
        *column = indent;
    } else {
        fputc(' ', out);
        (*column)++;
    }
    fputs(word, out);
    *column += size;
}

void help_print_usage(FILE *out, const struct command *command, int indent)
{
    int column = indent + fprintf(out, "gpufl %s", command->name);
    for (const struct option_info *option = command->options; option->name; option++) {
        char word[64], name[40];
        if (option->letter)
            snprintf(name, sizeof name, "-%c", option->letter);
        else
            snprintf(name, sizeof name, "--%s", option->name);
        snprintf(word, sizeof word, "[%s%s%s]", name, option->value_name ? " " : "",
                 option->value_name ? option->value_name : "");
        put_word(out, word, indent, &column);
    }
    if (command->usage[0])
        put_word(out, command->usage, indent, &column);
    fputc('\n', out);
}

void help_print_command(FILE *out, const struct command *command)
{
    fprintf(out, "gpufl %s: %s\n\nusage: ", command->name, command->summary);
    help_print_usage(out, command, (int)strlen("usage: "));
    if (command->options->name)
        fputc('\n', out);
    for (const struct option_info *option = command->options; option->name; option++)
        print_option(out, option);
    fprintf(out, "\nexample: %s\n", command->example);
}

int command_parse(const char *name, int argc, char **argv, struct arguments *arguments)
{
    const struct command *command = command_find(name);
    if (!command)
        return EXIT_USAGE;
    struct problem problem = {""};
    if (arguments_parse(arguments, command->options, command->stops_at_operand, argc, argv, &problem) != GPUFL_OK) {
        command_error(name, "%s", problem.text);
        return EXIT_USAGE;
    }
    if (arguments->wants_help) {
        help_print_command(stdout, command);
        return EXIT_GOOD;
    }
    int count = command->stops_at_operand ? arguments->rest_count : arguments->operand_count;
    if (count < command->operand_min) {
        command_error(name, "%s is missing\n  example: %s", command->operand, command->example);
        fputs("  usage: ", stderr);
        help_print_usage(stderr, command, (int)strlen("  usage: "));
        return EXIT_USAGE;
    }
    if (command->operand_max >= 0 && count > command->operand_max) {
        const char *extra = arguments->operands[command->operand_max];
        if (command->operand_max == 1)
            command_error(name, "takes one %s; '%s' is one too many", command->operand, extra);
        else if (command->operand_max)
            command_error(name, "takes at most %d operands; '%s' is one too many", command->operand_max, extra);
        else
            command_error(name, "takes no operand, but got '%s'", extra);
        return EXIT_USAGE;
    }
    return -1;
}
