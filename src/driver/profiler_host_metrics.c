/* SPDX-License-Identifier: Apache-2.0 */
/* Copies CUPTI's names, and explains invalid names. */
#include "base/environment.h"
#include "driver/cupti_table.h"
#include "driver/profiler_host_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 1 << 17, NAME_BYTES_MAX = 1024, SINGLE_PASS_TEXT_MAX = 16 << 20 };

gpufl_status name_list_copy(struct name_list *list, const char *const *names, size_t count, struct problem *problem)
{
    if (count > NAMES_MAX || (count && !names))
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "CUPTI returned %zu unreadable names", count);
    size_t text_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        size_t size = names[i] ? strnlen(names[i], NAME_BYTES_MAX) : NAME_BYTES_MAX;
        if (size == NAME_BYTES_MAX)
            return problem_set(problem, GPUFL_E_UNSUPPORTED, "CUPTI's name %zu of %zu is unreadable", i, count);
        text_bytes += size + 1;
    }
    /* Plus a final NULL: the list is also passed to nearest_word. */
    const char **copies = malloc((count + 1) * sizeof *copies + text_bytes);
    if (!copies)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    char *text = (char *)(copies + count + 1);
    for (size_t i = 0; i < count; i++) {
        copies[i] = text;
        text = stpcpy(text, names[i]) + 1;
    }
    copies[count] = NULL;
    *list = (struct name_list){copies, count};
    return GPUFL_OK;
}

void name_list_free(struct name_list *list)
{
    free(list->names);
    *list = (struct name_list){0};
}

void metric_properties_free(struct metric_properties *properties)
{
    free(properties->description);
    free(properties->hardware_unit);
    free(properties->unit);
    *properties = (struct metric_properties){0};
}

void metric_plan_free(struct metric_plan *plan)
{
    free(plan->image);
    *plan = (struct metric_plan){0};
}

static bool name_list_has(const struct name_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->names[i], name))
            return true;
    return false;
}

static const char *kind_words(enum profiler_kind kind)
{
    return kind == PROFILER_PM_SAMPLING ? "PM sampling" : "the range profiler";
}

static bool is_of_other_kind(struct profiler_host *host, const char *base)
{
    enum profiler_kind other = host->kind == PROFILER_RANGE ? PROFILER_PM_SAMPLING : PROFILER_RANGE;
    struct profiler_host *twin;
    if (profiler_host_open(&twin, host->cupti, host->chip, other, NULL, 0, NULL) != GPUFL_OK)
        return false;
    bool is_found = false;
    for (int type = METRIC_COUNTER; type <= METRIC_THROUGHPUT && !is_found; type++) {
        struct name_list names = {0};
        if (profiler_host_base_metrics(twin, (enum metric_type)type, &names, NULL) == GPUFL_OK)
            is_found = name_list_has(&names, base);
        name_list_free(&names);
    }
    profiler_host_close(twin);
    return is_found;
}

static gpufl_status refuse_base(struct profiler_host *host, const char *base, const char *near, struct problem *problem)
{
    if (is_of_other_kind(host, base))
        return problem_set(problem, GPUFL_E_INVALID, "on %s the metric '%s' is for %s only, not for %s%s%s%s",
                           host->chip, base,
                           kind_words(host->kind == PROFILER_RANGE ? PROFILER_PM_SAMPLING : PROFILER_RANGE),
                           kind_words(host->kind), near ? "; the nearest is '" : "", near ? near : "", near ? "'" : "");
    if (near)
        return problem_set(problem, GPUFL_E_INVALID, "%s has no metric '%s' for %s; did you mean '%s'?", host->chip,
                           base, kind_words(host->kind), near);
    return problem_set(problem, GPUFL_E_INVALID,
                       "%s has no metric '%s' for %s; `gpufl metrics list --chip %s` lists its metrics", host->chip,
                       base, kind_words(host->kind), host->chip);
}

static gpufl_status check_suffix(struct profiler_host *host, const char *base, const char *suffix,
                                 enum metric_type type, struct problem *problem)
{
    struct name_list suffixes = {0};
    gpufl_status status = host_sub_metrics(host, base, type, &suffixes, problem);
    if (status != GPUFL_OK)
        return status;
    const char *near = *suffix ? nearest_word(suffix, suffixes.names) : NULL;
    if (!name_list_has(&suffixes, suffix)) {
        if (!*suffix)
            status = problem_set(problem, GPUFL_E_INVALID, "metric '%s' needs a suffix, for example '%s%s'", base, base,
                                 suffixes.count ? suffixes.names[0] : "");
        else if (near)
            status = problem_set(problem, GPUFL_E_INVALID, "metric '%s' has no '%s'; did you mean '%s%s'?", base,
                                 suffix, base, near);
        else
            status =
                problem_set(problem, GPUFL_E_INVALID,
                            "metric '%s' has no '%s'; `gpufl metrics show %s` lists its suffixes", base, suffix, base);
    }
    name_list_free(&suffixes);
    return status;
}

/* The nearest name of any type; "" when none is near. */
static void find_nearest(const struct name_list *lists, const char *base, char *near, size_t size)
{
    size_t count = 0;
    for (int type = METRIC_COUNTER; type <= METRIC_THROUGHPUT; type++)
        count += lists[type].count;
    const char **words = malloc((count + 1) * sizeof *words);
    const char *found = NULL;
    if (words) {
        size_t at = 0;
        for (int type = METRIC_COUNTER; type <= METRIC_THROUGHPUT; type++)
            for (size_t i = 0; i < lists[type].count; i++)
                words[at++] = lists[type].names[i];
        words[at] = NULL;
        found = nearest_word(base, words);
    }
    snprintf(near, size, "%s", found ? found : "");
    free(words);
}

gpufl_status metric_check(struct profiler_host *host, const char *metric, bool may_lack_suffix, struct problem *problem)
{
    char base[NAME_BYTES_MAX], near[NAME_BYTES_MAX] = "";
    /* "FBSP.TriageCompute.dramc__throughput.avg.per_second": dots before the unit's name belong to it. */
    const char *unit_end = strstr(metric, "__");
    size_t unit_size = unit_end ? (size_t)(unit_end - metric) : 0;
    size_t base_size = unit_size + strcspn(metric + unit_size, ".");
    if (!base_size || strnlen(metric, sizeof base) == sizeof base)
        return problem_set(problem, GPUFL_E_INVALID, "'%.64s' is not a metric name", metric);
    snprintf(base, sizeof base, "%.*s", (int)base_size, metric);
    struct name_list lists[METRIC_THROUGHPUT + 1] = {0};
    gpufl_status status = GPUFL_OK;
    int found = -1;
    for (int type = METRIC_COUNTER; type <= METRIC_THROUGHPUT && status == GPUFL_OK; type++) {
        status = profiler_host_base_metrics(host, (enum metric_type)type, &lists[type], problem);
        if (status == GPUFL_OK && name_list_has(&lists[type], base))
            found = type;
    }
    if (status == GPUFL_OK && found < 0)
        find_nearest(lists, base, near, sizeof near);
    for (int type = METRIC_COUNTER; type <= METRIC_THROUGHPUT; type++)
        name_list_free(&lists[type]);
    if (status != GPUFL_OK)
        return status;
    if (found < 0)
        return refuse_base(host, base, near[0] ? near : NULL, problem);
    if (may_lack_suffix && !metric[base_size])
        return GPUFL_OK;
    return check_suffix(host, base, metric + base_size, (enum metric_type)found, problem);
}

gpufl_status profiler_host_check(struct profiler_host *host, const char *metric, struct problem *problem)
{
    struct metric_plan plan;
    gpufl_status status = profiler_host_plan(host, &metric, 1, &plan, problem);
    if (status == GPUFL_OK)
        metric_plan_free(&plan);
    return status;
}

gpufl_status profiler_host_single_pass_sets(struct cupti *cupti, const char *chip, struct name_list *sets,
                                            struct problem *problem)
{
    struct host_table call;
    gpufl_status status = host_table_bind(&call, cupti, problem);
    if (status != GPUFL_OK)
        return status;
    if (!call.single_pass_sets)
        return profiler_lacks(cupti, "single-pass sets (CUDA 13.2 and newer)", problem);
    struct profiler_abi_host_single_pass_sets parameter = {.struct_bytes = PROFILER_ABI_HOST_SINGLE_PASS_SETS_BYTES,
                                                           .chip_name = chip};
    int result = call.single_pass_sets(&parameter);
    if (result == PROFILER_ABI_INVALID_CHIP_NAME)
        return host_refuse_chip(cupti, chip, problem);
    if (result != CUPTI_ABI_SUCCESS)
        return host_problem(cupti, "cuptiProfilerHostGetSinglePassSets", result, problem);
    size_t count = parameter.set_count;
    if (count > NAMES_MAX)
        return problem_set(problem, GPUFL_E_LIMIT, "CUPTI returned %zu single-pass sets", count);
    const char **names = calloc(count + 1, sizeof *names);
    if (!names)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    parameter.set_names = names;
    result = count ? call.single_pass_sets(&parameter) : CUPTI_ABI_SUCCESS;
    status = result == CUPTI_ABI_SUCCESS ? name_list_copy(sets, names, count, problem)
                                         : host_problem(cupti, "cuptiProfilerHostGetSinglePassSets", result, problem);
    free(names);
    return status;
}

/* Copies names from offsets in a text written by CUPTI. */
static gpufl_status copy_single_pass(struct name_list *metrics,
                                     const struct profiler_abi_host_single_pass_metrics *answer, const char **names,
                                     struct problem *problem)
{
    answer->text[answer->text_bytes] = '\0';
    for (size_t i = 0; i < answer->metric_count; i++) {
        if (answer->offsets[i] >= answer->text_bytes)
            return problem_set(problem, GPUFL_E_UNSUPPORTED, "CUPTI's name %zu of a single-pass set is unreadable", i);
        names[i] = (const char *)answer->text + answer->offsets[i];
    }
    return name_list_copy(metrics, names, answer->metric_count, problem);
}

gpufl_status profiler_host_single_pass_metrics(struct cupti *cupti, const char *chip, const char *set,
                                               struct name_list *metrics, struct problem *problem)
{
    struct name_list sets = {0};
    gpufl_status status = profiler_host_single_pass_sets(cupti, chip, &sets, problem);
    if (status != GPUFL_OK)
        return status;
    if (!name_list_has(&sets, set)) {
        const char *near = nearest_word(set, sets.names);
        status = problem_set(problem, GPUFL_E_INVALID, "%s has no single-pass set '%s'%s%s%s", chip, set,
                             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    name_list_free(&sets);
    struct host_table call;
    if (status == GPUFL_OK)
        status = host_table_bind(&call, cupti, problem);
    if (status != GPUFL_OK)
        return status;
    if (!call.single_pass_metrics)
        return profiler_lacks(cupti, "single-pass sets (CUDA 13.2 and newer)", problem);
    struct profiler_abi_host_single_pass_metrics parameter = {
        .struct_bytes = PROFILER_ABI_HOST_SINGLE_PASS_METRICS_BYTES, .chip_name = chip, .set_name = set};
    int result = call.single_pass_metrics(&parameter);
    if (result != CUPTI_ABI_SUCCESS)
        return host_problem(cupti, "cuptiProfilerHostGetMetricsInSinglePassSet", result, problem);
    const size_t count = parameter.metric_count, text_bytes = parameter.text_bytes;
    if (count > NAMES_MAX || text_bytes > SINGLE_PASS_TEXT_MAX)
        return problem_set(problem, GPUFL_E_LIMIT, "CUPTI returned %zu names in %zu bytes", count, text_bytes);
    const char **names = calloc(count + 1, sizeof *names);
    parameter.offsets = calloc(count + 1, sizeof *parameter.offsets);
    parameter.text = calloc(text_bytes + 1, 1);
    if (!names || !parameter.offsets || !parameter.text) {
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    } else {
        result = call.single_pass_metrics(&parameter);
        parameter.metric_count = count;
        parameter.text_bytes = text_bytes;
        status = result == CUPTI_ABI_SUCCESS
                     ? copy_single_pass(metrics, &parameter, names, problem)
                     : host_problem(cupti, "cuptiProfilerHostGetMetricsInSinglePassSet", result, problem);
    }
    free(names);
    free(parameter.offsets);
    free(parameter.text);
    return status;
}
