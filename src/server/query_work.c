/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query_work.h"

#include <stdlib.h>

/* True for a path, as written in the list of scopes, and its nested scopes. */
static bool scope_matches(const char *path, const char *wanted, struct bytes *shown)
{
    size_t size = strlen(wanted);
    if (!path)
        return false;
    bytes_clear(shown);
    page_path(shown, path);
    const char *text = bytes_text(shown);
    return !strncmp(text, wanted, size) && (!text[size] || !strncmp(text + size, " > ", 3));
}

bool work_filter_read(struct query_call *call, const struct session_model *model, struct work_filter *filter)
{
    const char *scope = query_text(call, "scope");
    *filter = (struct work_filter){.to_ns = INT64_MAX / 2, .device = CELL_UNKNOWN, .stream = CELL_UNKNOWN};
    if (!query_range(call, &filter->from_ns, &filter->to_ns) ||
        !query_int(call, "device", 0, DEVICE_UNKNOWN - 1, &filter->device) ||
        !query_int(call, "stream", 0, ID_UNKNOWN - 1, &filter->stream))
        return false;
    filter->is_any = !scope && !query_text(call, "from_ns") && !query_text(call, "to_ns") &&
                     filter->device == CELL_UNKNOWN && filter->stream == CELL_UNKNOWN;
    if (!scope)
        return true;
    const struct dictionary_table *paths = &model->dictionaries[DICTIONARY_SCOPE_NAME];
    filter->is_in_scope = calloc((size_t)paths->count + 1, sizeof *filter->is_in_scope);
    if (!filter->is_in_scope)
        return query_fail(call, 503, "no_memory", "no memory to answer");
    struct bytes shown = {0};
    for (uint32_t id = 1; id < paths->count; id++)
        filter->is_in_scope[id] = scope_matches(paths->texts[id], scope, &shown);
    bytes_free(&shown);
    return true;
}

bool work_filter_takes(const struct work_filter *filter, const struct session_model *model, size_t row)
{
    const struct kernel_columns *kernels = &model->kernels;
    if (kernels->start_ns[row] < filter->from_ns || kernels->start_ns[row] >= filter->to_ns)
        return false;
    if ((filter->device != CELL_UNKNOWN && kernels->device[row] != filter->device) ||
        (filter->stream != CELL_UNKNOWN && kernels->stream_id[row] != filter->stream))
        return false;
    return work_filter_takes_scope(filter, model, kernels->scope[row]);
}

bool work_filter_takes_scope(const struct work_filter *filter, const struct session_model *model, uint32_t scope)
{
    if (!filter->is_in_scope)
        return true;
    uint32_t path = scope < model->scope_count ? model->scopes[scope].path_id : 0;
    return path && path < model->dictionaries[DICTIONARY_SCOPE_NAME].count && filter->is_in_scope[path];
}
