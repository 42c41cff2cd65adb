/* SPDX-License-Identifier: Apache-2.0 */
#include "export/filter.h"

#include "analysis/report_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* True if `wanted` is a sequence of complete parts of the path. */
static bool path_holds(const char *path, const char *separator, const char *wanted)
{
    size_t wanted_size = strlen(wanted), separator_size = strlen(separator);
    for (const char *at = path; at; at = strstr(at, separator), at = at ? at + separator_size : NULL) {
        const char *end = at + wanted_size;
        if (strncmp(at, wanted, wanted_size) == 0 && (!*end || strncmp(end, separator, separator_size) == 0))
            return true;
    }
    return false;
}

/* wanted: as paths are written in the log, or as reports print them. */
static bool path_matches(const char *path, const char *wanted, struct bytes *shown)
{
    if (path_holds(path, "|", wanted))
        return true;
    bytes_clear(shown);
    page_path(shown, path);
    return path_holds(bytes_text(shown), " > ", wanted);
}

static int64_t bound_ns(int64_t start_ns, double ms, int64_t fallback)
{
    if (isnan(ms) || start_ns == TIME_UNKNOWN)
        return fallback;
    double at_ns = (double)start_ns + ms * 1e6;
    if (at_ns <= (double)INT64_MIN || at_ns >= (double)INT64_MAX)
        return at_ns < 0 ? INT64_MIN : INT64_MAX;
    return start_ns + (int64_t)(ms * 1e6);
}

gpufl_status filter_make(struct export_filter *filter, const struct session_model *model, const char *scope,
                         double from_ms, double to_ms, struct problem *problem)
{
    int64_t start_ns = model->job.start_ns != TIME_UNKNOWN ? model->job.start_ns : model->first_ns;
    *filter = (struct export_filter){.model = model,
                                     .start_ns = start_ns,
                                     .from_ns = bound_ns(start_ns, from_ms, INT64_MIN),
                                     .to_ns = bound_ns(start_ns, to_ms, INT64_MAX)};
    if (!scope)
        return GPUFL_OK;
    const struct dictionary_table *names = &model->dictionaries[DICTIONARY_SCOPE_NAME];
    filter->path_count = names->count;
    filter->is_path_in = calloc((size_t)names->count + 1, sizeof *filter->is_path_in);
    if (!filter->is_path_in)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    bool is_found = false;
    struct bytes shown = {0};
    for (uint32_t id = 1; id < names->count; id++) {
        filter->is_path_in[id] = names->texts[id] && path_matches(names->texts[id], scope, &shown);
        is_found = is_found || filter->is_path_in[id];
    }
    bytes_free(&shown);
    if (is_found)
        return GPUFL_OK;
    filter_free(filter);
    return problem_set(problem, GPUFL_E_NOT_FOUND,
                       "no scope is named '%.200s'; for all scopes, run 'gpufl report --wide'", scope);
}

void filter_free(struct export_filter *filter)
{
    free(filter->is_path_in);
    filter->is_path_in = NULL;
}

bool filter_takes_entry(const struct export_filter *filter, uint32_t scope)
{
    const struct scope_instance *entry = &filter->model->scopes[scope];
    if (!filter_takes_scope(filter, scope))
        return false;
    bool is_before = entry->end_ns != TIME_UNKNOWN && entry->end_ns <= filter->from_ns &&
                     !(entry->begin_ns != TIME_UNKNOWN && entry->begin_ns >= filter->from_ns);
    bool is_after = entry->begin_ns != TIME_UNKNOWN && entry->begin_ns >= filter->to_ns;
    return !is_before && !is_after;
}
