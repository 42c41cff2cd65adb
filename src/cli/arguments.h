/* SPDX-License-Identifier: Apache-2.0 */
/* The one parser of command lines: a const table of options in, values out. Strings are borrowed from argv, which is
 * left as it is. Reads --name VALUE, --name=VALUE, -n VALUE, -nVALUE, grouped letters and "--"; --help and -h always
 * exist. */
#ifndef GPUFL_CLI_ARGUMENTS_H
#define GPUFL_CLI_ARGUMENTS_H

#include "base/status.h"

enum option_kind {
    OPTION_FLAG,
    OPTION_TEXT,
    OPTION_NUMBER,
    OPTION_CHOICE,
    /* Text that completion can look up on this machine. */
    OPTION_CHIP,
    OPTION_METRICS, /* names of sets and metrics of the range profiler, separated by commas */
    OPTION_PM_METRICS
};

struct option_info {
    const char *name; /* without dashes; NULL ends the table */
    char letter;      /* 0: none */
    enum option_kind kind;
    const char *value_name;     /* in help, e.g. "DIR"; NULL for flags */
    const char *summary;        /* one line, no full stop */
    const char *const *choices; /* OPTION_CHOICE: NULL-terminated; letter case does not matter */
    long minimum, maximum;      /* OPTION_NUMBER, both allowed */
};

#define ARGUMENTS_OPTIONS_MAX 24
#define ARGUMENTS_OPERANDS_MAX 64

struct argument_value {
    bool is_set;
    const char *text; /* of a choice: as the table spells it */
    long number;
};

struct arguments {
    const struct option_info *options;                   /* borrowed from the table */
    struct argument_value values[ARGUMENTS_OPTIONS_MAX]; /* by index in options */
    struct {
        size_t option; /* index in options */
        const char *text;
    } texts[ARGUMENTS_OPERANDS_MAX]; /* every value of OPTION_TEXT, in order: some options may be repeated */
    int text_count;
    bool wants_help;
    const char *operands[ARGUMENTS_OPERANDS_MAX];
    int operand_count;
    char **rest; /* with stops_at_operand: from the first operand on, NULL-terminated; the operands are not filled */
    int rest_count;
};

/* argv[0] is skipped; argv[argc] must be NULL. GPUFL_E_INVALID: the problem says what is wrong, with the nearest valid
 * word. wants_help ends parsing at once. */
NODISCARD gpufl_status arguments_parse(struct arguments *arguments, const struct option_info *options,
                                       bool stops_at_operand, int argc, char **argv, struct problem *problem);

/* By option name, which must be in the table. */
bool arguments_has(const struct arguments *arguments, const char *name);
const char *arguments_text(const struct arguments *arguments, const char *name, const char *fallback);
/* Every value of an option that may be repeated; returns how many, at most `max`. */
int arguments_texts(const struct arguments *arguments, const char *name, const char **out, int max);
long arguments_number(const struct arguments *arguments, const char *name, long fallback);

#endif
