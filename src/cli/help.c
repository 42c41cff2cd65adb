/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/message.h"
#include "cli/command.h"
#include "cli/terminal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void command_error(const char *name, const char *format, ...)
{
    char *text = NULL;
    fflush(stdout);
    va_list args;
    va_start(args, format);
    int size = vasprintf(&text, format, args);
    va_end(args);
    if (size >= 0)
        message_print(stderr, "gpufl %s: %s", name, text);
    free(size >= 0 ? text : NULL);
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

/* Two examples and the spaces before each are 80 columns. */
enum { EXAMPLE_COLUMNS = 38, PIPE_COLUMNS = 100, OPTION_INDENT = 27, SUMMARY_INDENT = 12 };

static int columns_of(FILE *out)
{
    return terminal_columns(fileno(out), PIPE_COLUMNS);
}

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

/* Short ones first and two to a line where that fits, so that the help stays one screen. */
static void print_examples(FILE *out)
{
    const struct command *left = NULL;
    bool is_narrow = columns_of(out) < 2 * (2 + EXAMPLE_COLUMNS);
    for (const struct command *command = command_table; command->name; command++) {
        if (!example_is_short(command) || example_is_plain(command))
            continue;
        if (is_narrow)
            fprintf(out, "  %s\n", command->example);
        else if (left)
            fprintf(out, "  %-*s  %s\n", EXAMPLE_COLUMNS, left->example, command->example);
        left = left || is_narrow ? NULL : command;
    }
    if (left)
        fprintf(out, "  %s\n", left->example);
    for (const struct command *command = command_table; command->name; command++)
        if (!example_is_short(command))
            fprintf(out, "  %s\n", command->example);
}

void help_print(FILE *out)
{
    char line[160];
    message_write(out, "gpufl records what a GPU did, and for which part of a program.\n", 0);
    fputs("\nusage: gpufl COMMAND [OPTION...]\n\n", out);
    for (const struct command *command = command_table; command->name; command++) {
        snprintf(line, sizeof line, "  %-11s %s\n", command->name, command->summary);
        message_write(out, line, SUMMARY_INDENT);
    }
    fputc('\n', out);
    message_write(out, "`gpufl COMMAND --help` shows a command's options. For example:\n", 0);
    fputc('\n', out);
    print_examples(out);
}

/* "-o, --output DIR" in one column and text in the other. */
static void print_option_line(FILE *out, const char *left, const char *text)
{
    char line[256];
    if (strlen(left) > OPTION_INDENT - 3) {
        fprintf(out, "  %s\n", left);
        left = "";
    }
    snprintf(line, sizeof line, "  %-*s %s\n", OPTION_INDENT - 3, left, text);
    if (*left)
        message_write(out, line, OPTION_INDENT - 2);
    else
        message_write(out, line, 0);
}

static void print_option(FILE *out, const struct option_info *option)
{
    char left[64], choices[160] = "";
    int size = option->letter ? snprintf(left, sizeof left, "-%c, --%s", option->letter, option->name)
                              : snprintf(left, sizeof left, "    --%s", option->name);
    if (option->value_name && size > 0 && (size_t)size < sizeof left)
        snprintf(left + size, sizeof left - (size_t)size, " %s", option->value_name);
    print_option_line(out, left, option->summary);
    if (option->kind != OPTION_CHOICE || strcasecmp(option->value_name, option->name) != 0)
        return;
    for (const char *const *choice = option->choices; *choice; choice++) {
        size_t used = strlen(choices);
        snprintf(choices + used, sizeof choices - used, "%s%s", used ? ", " : "", *choice);
    }
    print_option_line(out, "", choices);
}

/* One word of a usage line; on a new line where it would not fit. */
static void put_word(FILE *out, const char *word, int indent, int *column)
{
    int size = (int)strlen(word);
    if (*column + 1 + size > columns_of(out)) {
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
    for (const char *word = command->usage; *word;) {
        char text[64];
        size_t size = strcspn(word, " ");
        snprintf(text, sizeof text, "%.*s", (int)size, word);
        put_word(out, text, indent, &column);
        word += size + strspn(word + size, " ");
    }
    fputc('\n', out);
}

void help_print_command(FILE *out, const struct command *command)
{
    message_print(out, "gpufl %s: %s", command->name, command->summary);
    fputs("\nusage: ", out);
    help_print_usage(out, command, (int)strlen("usage: "));
    if (command->options->name)
        fputc('\n', out);
    for (const struct option_info *option = command->options; option->name; option++)
        print_option(out, option);
    bool is_wide = strlen("example: ") + strlen(command->example) > (size_t)columns_of(out);
    fprintf(out, "\nexample:%s%s\n", is_wide ? "\n  " : " ", command->example);
}

int command_parse(const char *name, int argc, char **argv, struct arguments *arguments)
{
    const struct command *command = command_find(name);
    if (!command)
        return EXIT_USAGE;
    struct problem problem = {""};
    if (arguments_parse(arguments, command->options, command->stops_at_operand, argc, argv, &problem) != GPUFL_OK) {
        bool has_next_step = strstr(problem.text, "did you mean") != NULL;
        command_error(name, "%s%s%s%s", problem.text, has_next_step ? "" : "\n  options: gpufl ",
                      has_next_step ? "" : name, has_next_step ? "" : " --help");
        return EXIT_USAGE;
    }
    if (arguments->wants_help) {
        help_print_command(stdout, command);
        return EXIT_GOOD;
    }
    int count = command->stops_at_operand ? arguments->rest_count : arguments->operand_count;
    if (count < command->operand_min) {
        command_error(name, "%s is missing\n  usage: gpufl %s%s %s\n  example: %s", command->operand, name,
                      command->options->name ? " [OPTION...]" : "", command->usage, command->example);
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
