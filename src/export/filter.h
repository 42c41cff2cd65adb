/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the exported part of a session: a time span and a scope. Events that overlap the time span are exported
 * completely. Made once, then read-only; borrows the model. */
#ifndef GPUFL_EXPORT_FILTER_H
#define GPUFL_EXPORT_FILTER_H

#include "analysis/session.h"

struct export_filter {
    const struct session_model *model;
    int64_t start_ns;       /* the session's; TIME_UNKNOWN: no record has a time */
    int64_t from_ns, to_ns; /* INT64_MIN and INT64_MAX: no limit */
    bool *is_path_in; /* owned; [path_count] by id in scope_name_dict; NULL: everything, inside and outside scopes */
    uint32_t path_count;
};

/* scope: a scope's name, or names joined by '|', found anywhere in a path; NULL: all. GPUFL_E_NOT_FOUND: no such scope.
 * from_ms, to_ms: since the session's start; NAN: no limit. */
NODISCARD gpufl_status filter_make(struct export_filter *filter, const struct session_model *model, const char *scope,
                                   double from_ms, double to_ms, struct problem *problem);
void filter_free(struct export_filter *filter);

static inline bool filter_takes_time(const struct export_filter *filter, int64_t start_ns, int64_t duration_ns)
{
    return start_ns < filter->to_ns && (start_ns >= filter->from_ns || start_ns + duration_ns > filter->from_ns);
}
/* scope: index of an instance, ID_UNKNOWN none. */
static inline bool filter_takes_scope(const struct export_filter *filter, uint32_t scope)
{
    if (!filter->is_path_in)
        return true;
    uint32_t path_id = scope < filter->model->scope_count ? filter->model->scopes[scope].path_id : 0;
    return path_id < filter->path_count && filter->is_path_in[path_id];
}
static inline bool filter_takes(const struct export_filter *filter, uint32_t scope, int64_t start_ns,
                                int64_t duration_ns)
{
    return filter_takes_time(filter, start_ns, duration_ns) && filter_takes_scope(filter, scope);
}
/* A scope's entry; an entry without a known begin or end overlaps every time span. */
bool filter_takes_entry(const struct export_filter *filter, uint32_t scope);

#endif
