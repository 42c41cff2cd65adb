/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the gpufl program. One const table (commands.c) holds names, options, usage and examples; help, shell
 * completion and manual pages are printed from it, so that they cannot disagree. Single-threaded unless a file
 * says so. */
#ifndef GPUFL_CLI_COMMAND_H
#define GPUFL_CLI_COMMAND_H

#include "base/bytes.h"
#include "cli/arguments.h"

#include <stdio.h>

enum exit_code {
    EXIT_GOOD = 0,
    EXIT_ANSWER_NO = 1, /* verify found a gap, doctor found a problem */
    EXIT_USAGE = 2,
    EXIT_ENVIRONMENT = 3, /* no such session, no memory, not permitted, ... */
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL_BASE = 128 /* trace: plus the signal's number */
};

struct command {
    const char *name;
    const char *summary; /* one line, no full stop */
    const char *usage;   /* what follows the options, which are taken from their table */
    const char *example; /* a whole command line */
    const char *about;   /* paragraphs of the manual page, separated by an empty line */
    const struct option_info *options;
    const char *operand;               /* what an operand is called in messages, e.g. "DIR"; NULL: takes none */
    int operand_min, operand_max;      /* operand_max < 0: any number */
    bool stops_at_operand;             /* the first operand starts another program's command line */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
};

extern const struct command command_table[];          /* ends with name NULL */
const struct command *command_find(const char *name); /* NULL: none */
/* NULL-terminated. */
const char *const *command_names(void);
/* The command of this name, or the one that other tools call so. NULL after an error that names the nearest, printed after
 * `who`: "gpufl" or "gpufl man". */
const struct command *command_find_or_explain(const char *who, const char *word);

/* Parses the command's line. Returns -1 to go on; else the exit code, with help or the error already printed. */
int command_parse(const char *name, int argc, char **argv, struct arguments *arguments);
/* Prints "gpufl <name>: <text>" to stderr. */
void command_error(const char *name, const char *format, ...) PRINTF_LIKE(2, 3);
/* A word of a command line that is to be pasted into a shell, in quotes where it needs them. */
void shell_word_append(struct bytes *out, const char *word);

void help_print(FILE *out);                                        /* `gpufl` alone */
void help_print_command(FILE *out, const struct command *command); /* `gpufl <name> --help` */

/* "gpufl <name> [--option VALUE]... operands" in lines that fit the terminal, or 100 columns; `indent` spaces start all but the first. */
void help_print_usage(FILE *out, const struct command *command, int indent);

int command_trace(int argc, char **argv);
int command_cost(int argc, char **argv);
int command_ls(int argc, char **argv);
int command_report(int argc, char **argv);
int command_view(int argc, char **argv);
int command_mcp(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_export(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_seal(int argc, char **argv);
int command_disassemble(int argc, char **argv);
int command_upload(int argc, char **argv);
int command_agent(int argc, char **argv);
int command_monitor(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_top(int argc, char **argv);
int command_metrics(int argc, char **argv);
int command_info(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_demo(int argc, char **argv);
int command_version(int argc, char **argv);
int command_completion(int argc, char **argv);
int command_man(int argc, char **argv);

#endif
