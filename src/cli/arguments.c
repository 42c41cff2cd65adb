/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/arguments.h"

#include "base/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static size_t option_count(const struct option_info *options)
{
    size_t count = 0;
    while (options[count].name)
        count++;
    return count;
}

static gpufl_status unknown_long(const struct option_info *options, const char *given, size_t size,
                                 struct problem *problem)
{
    const char *names[ARGUMENTS_OPTIONS_MAX + 2] = {NULL};
    size_t count = 0;
    for (; count < ARGUMENTS_OPTIONS_MAX && options[count].name; count++)
        names[count] = options[count].name;
    names[count] = "help";
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)size, given);
    const char *near = nearest_word(word, names);
    if (near)
        return problem_set(problem, GPUFL_E_INVALID, "no option '--%s'; did you mean '--%s'?", word, near);
    return problem_set(problem, GPUFL_E_INVALID, "no option '--%s'", word);
}

static gpufl_status set_number(struct argument_value *value, const struct option_info *option, const char *text,
                               struct problem *problem)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno || end == text || *end || number < option->minimum || number > option->maximum)
        return problem_set(problem, GPUFL_E_INVALID, "--%s takes a whole number from %ld to %ld, not '%s'",
                           option->name, option->minimum, option->maximum, text);
    value->number = number;
    return GPUFL_OK;
}

static gpufl_status set_choice(struct argument_value *value, const struct option_info *option, const char *text,
                               struct problem *problem)
{
    for (const char *const *choice = option->choices; *choice; choice++) {
        if (strcasecmp(*choice, text) == 0) {
            value->text = *choice;
            return GPUFL_OK;
        }
    }
    const char *near = nearest_word(text, option->choices);
    if (near)
        return problem_set(problem, GPUFL_E_INVALID, "no %s '%s'; did you mean '%s'?", option->name, text, near);
    char list[200] = "";
    for (const char *const *choice = option->choices; *choice; choice++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", !used ? "" : choice[1] ? ", " : " or ", *choice);
    }
    return problem_set(problem, GPUFL_E_INVALID, "no %s '%s'; choose %s", option->name, text, list);
}

static gpufl_status set_value(struct arguments *arguments, size_t index, const char *text, struct problem *problem)
{
    const struct option_info *option = &arguments->options[index];
    struct argument_value *value = &arguments->values[index];
    if (option->kind == OPTION_TEXT) {
        if (arguments->text_count == ARGUMENTS_OPERANDS_MAX)
            return problem_set(problem, GPUFL_E_LIMIT, "more than %d options with values", ARGUMENTS_OPERANDS_MAX);
        arguments->texts[arguments->text_count].option = index;
        arguments->texts[arguments->text_count++].text = text;
    }
    value->is_set = true;
    value->text = text;
    if (option->kind == OPTION_NUMBER)
        return set_number(value, option, text, problem);
    if (option->kind == OPTION_CHOICE)
        return set_choice(value, option, text, problem);
    return GPUFL_OK;
}

static gpufl_status missing_value(const struct option_info *option, struct problem *problem)
{
    return problem_set(problem, GPUFL_E_INVALID, "--%s needs a value: --%s %s", option->name, option->name,
                       option->value_name ? option->value_name : "VALUE");
}

static const struct option_info *option_named(const struct option_info *options, const char *name, size_t size)
{
    while (options->name && (strlen(options->name) != size || memcmp(options->name, name, size) != 0))
        options++;
    return options->name ? options : NULL;
}

/* gpufl 1.0.0 spelled some options differently from command to command; scripts may still do so. */
static const struct option_info *option_find(const struct option_info *options, const char *name, size_t size)
{
    static const struct {
        const char *before, *now;
    } renamed[] = {{"url", "server"}, {"api-key-file", "key-file"}, {"interval-ms", "interval"}};
    const struct option_info *option = option_named(options, name, size);
    for (size_t i = 0; !option && i < sizeof renamed / sizeof *renamed; i++)
        if (strlen(renamed[i].before) == size && memcmp(renamed[i].before, name, size) == 0)
            option = option_named(options, renamed[i].now, strlen(renamed[i].now));
    return option;
}

/* --name, --name=VALUE or --name VALUE; *at moves on when the value is the next word. */
static gpufl_status parse_long(struct arguments *arguments, char **argv, int *at, struct problem *problem)
{
    const char *given = argv[*at] + 2;
    size_t size = strcspn(given, "=");
    if (size == 4 && memcmp(given, "help", 4) == 0) {
        arguments->wants_help = true;
        return GPUFL_OK;
    }
    const struct option_info *option = option_find(arguments->options, given, size);
    if (!option)
        return unknown_long(arguments->options, given, size, problem);
    size_t index = (size_t)(option - arguments->options);
    if (option->kind == OPTION_FLAG) {
        if (given[size] == '=')
            return problem_set(problem, GPUFL_E_INVALID, "--%s takes no value", option->name);
        arguments->values[index].is_set = true;
        return GPUFL_OK;
    }
    if (given[size] == '=')
        return set_value(arguments, index, given + size + 1, problem);
    if (!argv[*at + 1])
        return missing_value(option, problem);
    return set_value(arguments, index, argv[++*at], problem);
}

/* One word of letters: -q, -qh, -o DIR, -oDIR. */
static gpufl_status parse_letters(struct arguments *arguments, char **argv, int *at, struct problem *problem)
{
    for (const char *letter = argv[*at] + 1; *letter; letter++) {
        if (*letter == 'h') {
            arguments->wants_help = true;
            return GPUFL_OK;
        }
        size_t index = 0;
        while (arguments->options[index].name && arguments->options[index].letter != *letter)
            index++;
        const struct option_info *option = &arguments->options[index];
        if (!option->name)
            return problem_set(problem, GPUFL_E_INVALID, "no option '-%c'", *letter);
        if (option->kind == OPTION_FLAG) {
            arguments->values[index].is_set = true;
            continue;
        }
        if (letter[1])
            return set_value(arguments, index, letter + 1, problem);
        if (!argv[*at + 1])
            return missing_value(option, problem);
        return set_value(arguments, index, argv[++*at], problem);
    }
    return GPUFL_OK;
}

gpufl_status arguments_parse(struct arguments *arguments, const struct option_info *options, bool stops_at_operand,
                             int argc, char **argv, struct problem *problem)
{
    memset(arguments, 0, sizeof *arguments);
    arguments->options = options;
    if (option_count(options) > ARGUMENTS_OPTIONS_MAX)
        return problem_set(problem, GPUFL_E_LIMIT, "more than %d options in a table", ARGUMENTS_OPTIONS_MAX);
    bool only_operands = false;
    for (int at = 1; at < argc; at++) {
        const char *word = argv[at];
        gpufl_status status = GPUFL_OK;
        if (!only_operands && strcmp(word, "--") == 0) {
            only_operands = true;
        } else if (!only_operands && word[0] == '-' && word[1] == '-') {
            status = parse_long(arguments, argv, &at, problem);
        } else if (!only_operands && word[0] == '-' && word[1]) {
            status = parse_letters(arguments, argv, &at, problem);
        } else if (stops_at_operand) {
            arguments->rest = argv + at;
            arguments->rest_count = argc - at;
            return GPUFL_OK;
        } else if (arguments->operand_count == ARGUMENTS_OPERANDS_MAX) {
            status = problem_set(problem, GPUFL_E_LIMIT, "more than %d operands", ARGUMENTS_OPERANDS_MAX);
        } else {
            arguments->operands[arguments->operand_count++] = word;
        }
        if (status != GPUFL_OK || arguments->wants_help)
            return status;
    }
    return GPUFL_OK;
}

static const struct argument_value *value_of(const struct arguments *arguments, const char *name)
{
    static const struct argument_value unset = {false, NULL, 0};
    for (size_t index = 0; arguments->options[index].name; index++) {
        if (strcmp(arguments->options[index].name, name) == 0)
            return &arguments->values[index];
    }
    return &unset;
}

bool arguments_has(const struct arguments *arguments, const char *name)
{
    return value_of(arguments, name)->is_set;
}

const char *arguments_text(const struct arguments *arguments, const char *name, const char *fallback)
{
    const struct argument_value *value = value_of(arguments, name);
    return value->is_set ? value->text : fallback;
}

int arguments_texts(const struct arguments *arguments, const char *name, const char **out, int max)
{
    int count = 0;
    for (int i = 0; i < arguments->text_count && count < max; i++)
        if (strcmp(arguments->options[arguments->texts[i].option].name, name) == 0)
            out[count++] = arguments->texts[i].text;
    return count;
}

long arguments_number(const struct arguments *arguments, const char *name, long fallback)
{
    const struct argument_value *value = value_of(arguments, name);
    return value->is_set ? value->number : fallback;
}
