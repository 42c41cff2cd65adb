/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages from the command table: on a terminal in a pager, else as roff. */
#include "analysis/message.h"
#include "base/environment.h"
#include "cli/command.h"
#include "cli/pager.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Text with the characters that roff would take for its own escaped. */
static void put_text(const char *text)
{
    bool is_line_start = true;
    for (; *text; text++) {
        if (*text == '\n' && text[1] == '\n') {
            fputs("\n.PP\n", stdout);
            text++;
            is_line_start = true;
            continue;
        }
        if (is_line_start && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        is_line_start = *text == '\n';
    }
}

static void put_header(const char *title)
{
    fputs(".TH ", stdout);
    for (const char *c = title; *c; c++)
        putchar(toupper((unsigned char)*c));
    printf(" 1 \"\" \"gpufl %s\" \"gpufl manual\"\n", GPUFL_VERSION_STRING);
}

static void put_option_name(const struct option_info *option)
{
    fputs("\\fB\\-\\-", stdout);
    put_text(option->name);
    fputs("\\fR", stdout);
    if (option->value_name)
        printf(" \\fI%s\\fR", option->value_name);
}

static void put_option(const struct option_info *option)
{
    fputs(".TP\n", stdout);
    if (option->letter)
        printf("\\fB\\-%c\\fR, ", option->letter);
    put_option_name(option);
    putchar('\n');
    put_text(option->summary);
    for (const char *const *choice = option->choices; choice && *choice; choice++)
        printf("%s%s", choice == option->choices ? ":\n" : ", ", *choice);
    fputs(".\n", stdout);
}

static void print_command_page(const struct command *command)
{
    char title[64];
    snprintf(title, sizeof title, "gpufl-%s", command->name);
    put_header(title);
    printf(".SH NAME\ngpufl\\-%s \\- ", command->name);
    put_text(command->summary);
    printf("\n.SH SYNOPSIS\n\\fBgpufl %s\\fR", command->name);
    for (const struct option_info *option = command->options; option->name; option++) {
        fputs(" [", stdout);
        put_option_name(option);
        putchar(']');
    }
    putchar(' ');
    put_text(command->usage);
    fputs("\n.SH DESCRIPTION\n", stdout);
    put_text(command->about);
    putchar('\n');
    if (command->options->name)
        fputs(".SH OPTIONS\n", stdout);
    for (const struct option_info *option = command->options; option->name; option++)
        put_option(option);
    fputs(".SH EXAMPLE\n.nf\n", stdout);
    put_text(command->example);
    fputs("\n.fi\n.SH SEE ALSO\n\\fBgpufl\\fR(1)\n", stdout);
}

static void print_main_page(void)
{
    put_header("gpufl");
    fputs(".SH NAME\ngpufl \\- record what a GPU did, and for which part of a program\n"
          ".SH SYNOPSIS\n\\fBgpufl\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...]\n.SH COMMANDS\n",
          stdout);
    for (const struct command *command = command_table; command->name; command++) {
        printf(".TP\n\\fBgpufl\\-%s\\fR(1)\n", command->name);
        put_text(command->summary);
        putchar('\n');
    }
    fputs(
        ".SH EXIT STATUS\n0: good. 1: the answer is no. 2: the command line is wrong. 3: the environment is. "
        "\\fBgpufl trace\\fR returns the status of the program that it ran.\n"
        ".SH ENVIRONMENT\n.TP\nGPUFL_DISABLED\nrecord nothing. Off: 0, false, no, off, or not set. Any other value than 1, true, yes or on is reported, and counts as on.\n"
        ".TP\nGPUFL_INJECT_LIB\nthe recorder to load, when it is not where it was installed.\n"
        ".TP\nNO_COLOR\nset to anything: no colour.\n"
        ".SH EXAMPLES\n.nf\n",
        stdout);
    for (const struct command *command = command_table; command->name; command++) {
        put_text(command->example);
        putchar('\n');
    }
    fputs(".fi\n", stdout);
}

/* NULL: the page of gpufl itself. */
static void print_page(const struct command *command)
{
    if (command)
        print_command_page(command);
    else
        print_main_page();
}

/* Where there is no `man`. */
static void print_text(const struct command *command, int columns)
{
    if (!command) {
        help_print(stdout);
        return;
    }
    message_wrap(stdout, command->about, 0, columns);
    fputs("\n", stdout);
    help_print_command(stdout, command);
}

/* `man` formats the page and starts MANPAGER, PAGER or less; without it, they show plain text. */
static void show_page(const struct command *command)
{
    struct pager pager;
    int columns = terminal_columns(STDOUT_FILENO, 80); /* later it is the pager's pipe */
    if (pager_start(&pager, (const char *const[]){"man", "-l", "-", NULL})) {
        print_page(command);
        pager_finish(&pager);
        return;
    }
    static const char *const names[] = {"MANPAGER", "PAGER"};
    static const char *const programs[] = {"less", "more"};
    bool is_started = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !is_started; i++) {
        const char *words = getenv(names[i]);
        is_started = words && *words && pager_start(&pager, (const char *const[]){"sh", "-c", words, NULL});
    }
    for (size_t i = 0; i < sizeof programs / sizeof *programs && !is_started; i++)
        is_started = pager_start(&pager, (const char *const[]){programs[i], NULL});
    print_text(command, columns);
    if (is_started)
        pager_finish(&pager);
}

int command_man(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("man", argc, argv, &arguments);
    if (code >= 0)
        return code;
    const struct command *command = NULL;
    if (arguments.operand_count && !(command = command_find_or_explain("gpufl man", arguments.operands[0])))
        return EXIT_USAGE;
    if (isatty(STDOUT_FILENO))
        show_page(command);
    else
        print_page(command);
    return EXIT_GOOD;
}
