/* SPDX-License-Identifier: Apache-2.0 */
/* `gpufl metrics show`, `passes` and `sets`: what a metric is and what it costs. */
#include "cli/metrics.h"
#include "driver/metric_sets.h"
#include "format/json.h"

#include <stdlib.h>
#include <string.h>

static void append_names_json(struct bytes *out, const char *key, const char *const *names, size_t count)
{
    json_key(out, key);
    bytes_append_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        bytes_append_text(out, i ? "," : "");
        json_text(out, names[i]);
    }
    bytes_append_char(out, ']');
}

static void append_properties(const struct metrics_query *query, const struct metric_properties *properties,
                              const struct name_list *suffixes, size_t passes, struct bytes *out)
{
    const char *name = query->operands[0];
    if (query->is_json) {
        json_key(out, "name");
        json_text(out, name);
        json_key(out, "type");
        json_text(out, metric_type_words[properties->type]);
        json_key(out, "unit");
        json_text(out, properties->unit[0] ? properties->unit : NULL);
        json_key(out, "hardware_unit");
        json_text(out, properties->hardware_unit[0] ? properties->hardware_unit : NULL);
        json_key(out, "description");
        json_text(out, properties->description);
        json_key(out, "passes");
        if (passes)
            json_uint(out, passes);
        else
            json_text(out, NULL);
        append_names_json(out, "suffixes", suffixes->names, suffixes->count);
        return;
    }
    bytes_append_format(out, "%s on %s\n  %s\n  type   %s\n", name, query->chip, properties->description,
                        metric_type_words[properties->type]);
    if (properties->unit[0])
        bytes_append_format(out, "  unit   %s\n", properties->unit);
    if (properties->hardware_unit[0])
        bytes_append_format(out, "  where  %s\n", properties->hardware_unit);
    if (passes)
        bytes_append_format(out, "  passes %zu\n", passes);
    bytes_append_format(out, "  %s\n", suffixes->count ? "suffixes" : "no suffixes");
    for (size_t i = 0; i < suffixes->count; i++)
        bytes_append_format(out, "    %s\n", suffixes->names[i]);
}

gpufl_status metrics_show(const struct metrics_query *query, struct bytes *out, struct problem *problem)
{
    const char *name = query->operands[0];
    struct metric_properties properties = {0};
    struct name_list suffixes = {0};
    struct metric_plan plan = {0};
    gpufl_status status = profiler_host_properties(query->host, name, &properties, problem);
    if (status == GPUFL_OK)
        status = profiler_host_sub_metrics(query->host, name, properties.type, &suffixes, problem);
    /* The passes of a name without suffix cannot be planned; they are left out. */
    struct problem ignored;
    if (status == GPUFL_OK && profiler_host_check(query->host, name, &ignored) == GPUFL_OK)
        status = profiler_host_plan(query->host, &name, 1, &plan, problem);
    if (status == GPUFL_OK)
        append_properties(query, &properties, &suffixes, plan.passes, out);
    metric_plan_free(&plan);
    name_list_free(&suffixes);
    metric_properties_free(&properties);
    return status;
}

/* The operands as one choice: names of metrics and of sets. */
static gpufl_status choose(const struct metrics_query *query, struct metric_choice *choice, struct problem *problem)
{
    struct bytes text = {0};
    for (int i = 0; i < query->operand_count; i++)
        bytes_append_format(&text, "%s%s", i ? "," : "", query->operands[i]);
    gpufl_status status = text.failed ? problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory")
                                      : metric_choice_parse(choice, query->kind, bytes_text(&text), problem);
    bytes_free(&text);
    return status;
}

static void append_left_out(const struct metrics_query *query, const char *left_out, struct bytes *out)
{
    if (query->is_json) {
        json_key(out, "left_out");
        json_text(out, left_out[0] ? left_out : NULL);
    } else if (left_out[0]) {
        bytes_append_format(out, "     %s has no %s\n", query->chip, left_out);
    }
}

static gpufl_status append_each(const struct metrics_query *query, const struct metric_choice *choice,
                                struct bytes *out, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < choice->count && status == GPUFL_OK; i++) {
        struct metric_plan plan = {0};
        status = profiler_host_plan(query->host, &choice->list[i], 1, &plan, problem);
        if (status == GPUFL_OK && query->is_json) {
            bytes_append_text(out, i ? ",{" : "{");
            json_key(out, "name");
            json_text(out, choice->list[i]);
            json_key(out, "passes");
            json_uint(out, plan.passes);
            bytes_append_char(out, '}');
        } else if (status == GPUFL_OK) {
            bytes_append_format(out, "%4zu %s\n", plan.passes, choice->list[i]);
        }
        metric_plan_free(&plan);
    }
    return status;
}

gpufl_status metrics_passes(const struct metrics_query *query, struct bytes *out, struct problem *problem)
{
    struct metric_choice *choice = calloc(1, sizeof *choice);
    if (!choice)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    struct metric_plan plan = {0};
    struct problem left_out = {""};
    gpufl_status status = choose(query, choice, problem);
    if (status == GPUFL_OK)
        status = metric_choice_fit(choice, query->host, &left_out, problem);
    if (status == GPUFL_OK)
        status = profiler_host_plan(query->host, choice->list, choice->count, &plan, problem);
    if (status == GPUFL_OK && query->is_json) {
        json_key(out, "metrics");
        bytes_append_char(out, '[');
    }
    if (status == GPUFL_OK)
        status = append_each(query, choice, out, problem);
    if (status == GPUFL_OK && query->is_json) {
        bytes_append_char(out, ']');
        json_key(out, "passes");
        json_uint(out, plan.passes);
        json_key(out, "config_image_bytes");
        json_uint(out, plan.image_bytes);
    } else if (status == GPUFL_OK) {
        bytes_append_format(out, "%4zu together%s\n", plan.passes,
                            query->kind == PROFILER_PM_SAMPLING && plan.passes > 1
                                ? "; PM sampling takes only what fits one pass"
                                : "");
    }
    if (status == GPUFL_OK)
        append_left_out(query, left_out.text, out);
    metric_plan_free(&plan);
    free(choice);
    return status;
}

/* What the set takes on the query's chip: passes, and what that lacks. */
static gpufl_status plan_set(const struct metrics_query *query, const struct metric_set *set, size_t *passes,
                             struct problem *left_out, struct problem *problem)
{
    struct metric_choice *choice = calloc(1, sizeof *choice);
    if (!choice)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    struct profiler_host *host = NULL;
    struct metric_plan plan = {0};
    gpufl_status status = metric_choice_parse(choice, set->kind, set->name, problem);
    if (status == GPUFL_OK)
        status = profiler_host_open(&host, query->cupti, query->chip, set->kind, NULL, 0, problem);
    if (status == GPUFL_OK)
        status = metric_choice_fit(choice, host, left_out, problem);
    if (status == GPUFL_OK)
        status = profiler_host_plan(host, choice->list, choice->count, &plan, problem);
    *passes = plan.passes;
    metric_plan_free(&plan);
    profiler_host_close(host);
    free(choice);
    return status;
}

static gpufl_status append_set(const struct metrics_query *query, const struct metric_set *set, bool is_first,
                               struct bytes *out, struct problem *problem)
{
    size_t passes = 0, count = 0;
    struct problem left_out = {""};
    gpufl_status status = query->host ? plan_set(query, set, &passes, &left_out, problem) : GPUFL_OK;
    if (status != GPUFL_OK)
        return status;
    while (set->metrics[count])
        count++;
    if (query->is_json) {
        bytes_append_text(out, is_first ? "{" : ",{");
        json_key(out, "name");
        json_text(out, set->name);
        json_key(out, "profiler");
        json_text(out, profiler_kind_word(set->kind));
        json_key(out, "about");
        json_text(out, set->about);
        if (query->host) {
            json_key(out, "passes");
            json_uint(out, passes);
            append_left_out(query, left_out.text, out);
        }
        append_names_json(out, "metrics", set->metrics, count);
        bytes_append_char(out, '}');
        return GPUFL_OK;
    }
    bytes_append_format(out, "%s%s: %s", is_first ? "" : "\n", set->name, set->about);
    if (query->host)
        bytes_append_format(out, " (%s: %zu pass%s)", query->chip, passes, passes == 1 ? "" : "es");
    bytes_append_char(out, '\n');
    for (size_t i = 0; i < count; i++)
        bytes_append_format(out, "     %s\n", set->metrics[i]);
    append_left_out(query, left_out.text, out);
    return GPUFL_OK;
}

gpufl_status metrics_sets(const struct metrics_query *query, struct bytes *out, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    bool is_first = true;
    if (query->is_json) {
        json_key(out, "sets");
        bytes_append_char(out, '[');
    }
    for (size_t i = 0; i < metric_set_count && status == GPUFL_OK; i++) {
        if (metric_sets[i].kind != query->kind)
            continue;
        status = append_set(query, &metric_sets[i], is_first, out, problem);
        is_first = false;
    }
    bytes_append_text(out, query->is_json ? "]" : "");
    return status;
}
