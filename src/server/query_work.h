/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the executions of a query: the parameters from_ns, to_ns, device, stream and scope. */
#ifndef GPUFL_SERVER_QUERY_WORK_H
#define GPUFL_SERVER_QUERY_WORK_H

#include "server/query_call.h"

struct work_filter {
    int64_t from_ns, to_ns; /* executions that start in this span */
    int64_t device, stream; /* CELL_UNKNOWN: any */
    bool *is_in_scope;      /* owned; by path id; NULL: any */
    bool is_any;            /* nothing is filtered */
};

/* False: already answered. On success the caller frees is_in_scope. */
bool work_filter_read(struct query_call *call, const struct session_model *model, struct work_filter *filter);
bool work_filter_takes(const struct work_filter *filter, const struct session_model *model, size_t row);
/* scope: index into the model's scopes, ID_UNKNOWN outside all scopes. */
bool work_filter_takes_scope(const struct work_filter *filter, const struct session_model *model, uint32_t scope);

/* Writes one execution as an element of an open list or the value of a member. query_kernel.c */
void work_kernel_write(struct bytes *out, const struct session_model *model, uint32_t row);

#endif
