/* SPDX-License-Identifier: Apache-2.0 */
/* `gpufl metrics`: the command line, the host, and the lists. */
#include "cli/metrics.h"

#include "analysis/message.h"
#include "base/environment.h"
#include "cli/command.h"
#include "cli/machine.h"
#include "cli/terminal.h"
#include "driver/metric_sets.h"
#include "format/json.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { WIDE_COLUMNS = 110 }; /* of a line with a metric's name and its description */

const char *const metric_type_words[] = {"counter", "ratio", "throughput", NULL};

const char *profiler_kind_word(enum profiler_kind kind)
{
    return kind == PROFILER_PM_SAMPLING ? "pm_sampling" : "range";
}

gpufl_status metrics_chips(const struct metrics_query *query, struct bytes *out, struct problem *problem)
{
    struct name_list chips = {0};
    gpufl_status status = profiler_host_chips(query->cupti, &chips, problem);
    if (status != GPUFL_OK)
        return status;
    if (query->is_json) {
        json_key(out, "chips");
        bytes_append_char(out, '[');
    }
    for (size_t i = 0; i < chips.count; i++) {
        if (query->is_json) {
            bytes_append_text(out, i ? "," : "");
            json_text(out, chips.names[i]);
        } else {
            bytes_append_format(out, "%s\n", chips.names[i]);
        }
    }
    bytes_append_text(out, query->is_json ? "]" : "");
    name_list_free(&chips);
    return GPUFL_OK;
}

/* A part of the name, or a pattern with * and ?. */
static bool filter_matches(const char *filter, const char *name)
{
    if (!filter)
        return true;
    if (strpbrk(filter, "*?"))
        return fnmatch(filter, name, FNM_CASEFOLD) == 0;
    return strcasestr(name, filter) != NULL;
}

static gpufl_status append_metric(const struct metrics_query *query, const char *name, struct bytes *out,
                                  struct problem *problem)
{
    struct metric_properties properties;
    gpufl_status status = profiler_host_properties(query->host, name, &properties, problem);
    if (status != GPUFL_OK)
        return status;
    if (query->is_json) {
        bytes_append_text(out, out->size && out->data[out->size - 1] == '}' ? ",{" : "{");
        json_key(out, "name");
        json_text(out, name);
        json_key(out, "type");
        json_text(out, metric_type_words[properties.type]);
        json_key(out, "unit");
        json_text(out, properties.unit[0] ? properties.unit : NULL);
        json_key(out, "description");
        json_text(out, properties.description);
        bytes_append_char(out, '}');
    } else {
        bool is_narrow = terminal_columns(STDOUT_FILENO, WIDE_COLUMNS) < WIDE_COLUMNS;
        bytes_append_format(out, is_narrow ? "%s\n  %s  %s" : "%-60s  %-10s  %s", name,
                            metric_type_words[properties.type], properties.description);
        if (properties.unit[0])
            bytes_append_format(out, "%s[%s]", properties.description[0] ? " " : "", properties.unit);
        bytes_append_char(out, '\n');
    }
    metric_properties_free(&properties);
    return GPUFL_OK;
}

gpufl_status metrics_list(const struct metrics_query *query, struct bytes *out, struct problem *problem)
{
    const char *filter = query->operand_count ? query->operands[0] : NULL;
    gpufl_status status = GPUFL_OK;
    size_t found = 0;
    if (query->is_json) {
        json_key(out, "metrics");
        bytes_append_char(out, '[');
    }
    for (int type = METRIC_COUNTER; type <= METRIC_THROUGHPUT && status == GPUFL_OK; type++) {
        if (query->type && strcmp(query->type, metric_type_words[type]))
            continue;
        struct name_list names = {0};
        status = profiler_host_base_metrics(query->host, (enum metric_type)type, &names, problem);
        for (size_t i = 0; i < names.count && status == GPUFL_OK; i++) {
            if (!filter_matches(filter, names.names[i]))
                continue;
            found++;
            status = append_metric(query, names.names[i], out, problem);
        }
        name_list_free(&names);
    }
    bytes_append_text(out, query->is_json ? "]" : "");
    if (status == GPUFL_OK && !found && filter)
        return problem_set(problem, GPUFL_E_NOT_FOUND,
                           "no metric of %s matches '%s'; for all of them, run 'gpufl metrics list'", query->chip,
                           filter);
    return status;
}

typedef gpufl_status metrics_action_fn(const struct metrics_query *query, struct bytes *out, struct problem *problem);

static const struct action {
    const char *name, *operand; /* operand NULL: takes none */
    int operand_min, operand_max;
    bool needs_cupti, needs_host;
    metrics_action_fn *run;
} actions[] = {
    {"chips", NULL, 0, 0, true, false, metrics_chips},
    {"list", "FILTER", 0, 1, true, true, metrics_list},
    {"show", "NAME", 1, 1, true, true, metrics_show},
    {"passes", "NAME", 1, ARGUMENTS_OPERANDS_MAX, true, true, metrics_passes},
    {"sets", NULL, 0, 0, false, false, metrics_sets},
};
enum { ACTION_COUNT = sizeof actions / sizeof actions[0] };

static const struct action *action_find(const char *word)
{
    const char *names[ACTION_COUNT + 1] = {NULL};
    for (size_t i = 0; i < ACTION_COUNT; i++) {
        names[i] = actions[i].name;
        if (!strcmp(word, actions[i].name))
            return &actions[i];
    }
    const char *near = nearest_word(word, names);
    if (near)
        command_error("metrics", "no action '%s'; did you mean '%s'?", word, near);
    else
        command_error("metrics", "no action '%s'; there are chips, list, show, passes and sets", word);
    return NULL;
}

gpufl_status metrics_own_chip(char chip[PROFILER_CHIP_NAME_BYTES], struct problem *problem)
{
    struct machine machine;
    struct problem cause = {""};
    machine_open(&machine);
    gpufl_status status = machine.has_cuda && machine.cupti
                              ? profiler_target_chip(machine.cupti, 0, chip, &cause)
                              : problem_set(&cause, GPUFL_E_NO_DRIVER, "%s",
                                            machine.cupti ? machine.cuda_problem.text : machine.cupti_problem.text);
    machine_close(&machine);
    if (status != GPUFL_OK)
        problem_set(problem, status, "name a chip with --chip, like --chip GH100: this machine has no GPU to ask (%s)",
                    cause.text);
    return status;
}

/* Loads CUPTI and opens the host, where the action needs them; the host is the caller's to close. */
static gpufl_status query_prepare(struct metrics_query *query, const struct action *action,
                                  char chip[PROFILER_CHIP_NAME_BYTES], struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    if (action->needs_cupti || query->chip)
        status = cupti_load(&query->cupti, problem);
    if (status == GPUFL_OK && action->needs_host && !query->chip) {
        status = metrics_own_chip(chip, problem);
        query->chip = chip;
    }
    if (status == GPUFL_OK && query->chip)
        status = profiler_host_open(&query->host, query->cupti, query->chip, query->kind, NULL, 0, problem);
    return status;
}

static gpufl_status answer(const struct metrics_query *query, const struct action *action, struct bytes *out,
                           struct problem *problem)
{
    if (!query->is_json)
        return action->run(query, out, problem);
    bytes_append_char(out, '{');
    if (query->host) {
        json_key(out, "chip");
        json_text(out, query->chip);
        json_key(out, "profiler");
        json_text(out, profiler_kind_word(query->kind));
    }
    gpufl_status status = action->run(query, out, problem);
    bytes_append_text(out, "}\n");
    return status;
}

static int answer_print(struct bytes *out, bool is_json)
{
    if (out->failed) {
        command_error("metrics", "out of memory");
        return EXIT_ENVIRONMENT;
    }
    if (is_json)
        fwrite(out->data, 1, out->size, stdout);
    else
        message_write(stdout, bytes_text(out), MESSAGE_INDENT);
    return EXIT_GOOD;
}

int command_metrics(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("metrics", argc, argv, &arguments);
    if (code >= 0)
        return code;
    const struct action *action = action_find(arguments.operands[0]);
    if (!action)
        return EXIT_USAGE;
    struct metrics_query query = {
        .chip = arguments_text(&arguments, "chip", NULL),
        .kind = arguments_has(&arguments, "pm") ? PROFILER_PM_SAMPLING : PROFILER_RANGE,
        .type = arguments_text(&arguments, "type", NULL),
        .operands = arguments.operands + 1,
        .operand_count = arguments.operand_count - 1,
        .is_json = arguments_has(&arguments, "json"),
    };
    if (query.operand_count < action->operand_min) {
        command_error("metrics", "%s requires a %s, such as sm__throughput", action->name, action->operand);
        return EXIT_USAGE;
    }
    if (query.operand_count > action->operand_max) {
        command_error("metrics", "%s takes %s%s; '%s' is one too many", action->name,
                      action->operand ? "one " : "no operand", action->operand ? action->operand : "",
                      query.operands[action->operand_max]);
        return EXIT_USAGE;
    }
    struct bytes out = {0};
    struct problem problem = {""};
    char chip[PROFILER_CHIP_NAME_BYTES];
    gpufl_status status = query_prepare(&query, action, chip, &problem);
    if (status == GPUFL_OK)
        status = answer(&query, action, &out, &problem);
    if (status == GPUFL_OK)
        code = answer_print(&out, query.is_json);
    else if (status == GPUFL_E_INVALID)
        code = EXIT_USAGE;
    else
        code = query.host && status == GPUFL_E_NOT_FOUND ? EXIT_ANSWER_NO : EXIT_ENVIRONMENT;
    if (status != GPUFL_OK)
        command_error("metrics", "%s", problem.text);
    profiler_host_close(query.host);
    bytes_free(&out);
    return code;
}
