/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that were launched but not timed, by name. */
#include "server/query_work.h"

#include <stdlib.h>

enum { page_default = 100, page_max = 1000 };

struct launch_count {
    uint32_t kernel_id;
    uint64_t count;
};

static int id_compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* Most launches first. */
static int count_compare(const void *left, const void *right)
{
    const struct launch_count *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->kernel_id < b->kernel_id ? -1 : a->kernel_id > b->kernel_id;
}

/* Kernel ids of the launches that match the filter; NULL: no memory. */
static uint32_t *ids_take(const struct session_model *model, const struct work_filter *filter, const char *text,
                          size_t *count)
{
    const struct session_deep *deep = &model->deep;
    uint32_t *ids = malloc((deep->untimed_count + 1) * sizeof *ids);
    *count = 0;
    for (size_t i = 0; ids && i < deep->untimed_count; i++) {
        const struct untimed_launch *launch = &deep->untimed[i];
        if (launch->time_ns < filter->from_ns || launch->time_ns >= filter->to_ns ||
            !work_filter_takes_scope(filter, model, launch->scope))
            continue;
        const char *name = text ? session_text(model, DICTIONARY_KERNEL, launch->kernel_id) : NULL;
        if (!text || (name && strcasestr(name, text)))
            ids[(*count)++] = launch->kernel_id;
    }
    return ids;
}

static size_t counts_make(uint32_t *ids, size_t id_count, struct launch_count *counts)
{
    size_t used = 0;
    qsort(ids, id_count, sizeof *ids, id_compare);
    for (size_t i = 0; i < id_count; i++) {
        if (!i || ids[i] != ids[i - 1])
            counts[used++] = (struct launch_count){.kernel_id = ids[i]};
        counts[used - 1].count++;
    }
    qsort(counts, used, sizeof *counts, count_compare);
    return used;
}

void query_launches(struct query_call *call)
{
    const struct session_model *model = call->session->model;
    struct work_filter filter;
    struct query_page page;
    if (!query_page(call, page_default, page_max, &page) || !work_filter_read(call, model, &filter))
        return;
    size_t id_count = 0;
    uint32_t *ids = ids_take(model, &filter, query_text(call, "q"), &id_count);
    struct launch_count *counts = malloc((id_count + 1) * sizeof *counts);
    free(filter.is_in_scope);
    if (!ids || !counts) {
        query_fail(call, 503, "no_memory", "no memory to answer");
        goto cleanup;
    }
    size_t used = counts_make(ids, id_count, counts);
    bytes_append_char(&call->out, '{');
    member_uint(&call->out, "count", id_count);
    list_open(&call->out, "kernels");
    for (size_t i = page.first; i < used && i - page.first < page.limit; i++) {
        element(&call->out, '{');
        member_text(&call->out, "name", session_text(model, DICTIONARY_KERNEL, counts[i].kernel_id));
        member_uint(&call->out, "kernel_id", counts[i].kernel_id);
        member_uint(&call->out, "count", counts[i].count);
        bytes_append_char(&call->out, '}');
    }
    bytes_append_char(&call->out, ']');
    query_page_end(call, &page, used);
    bytes_append_char(&call->out, '}');
cleanup:
    free(ids);
    free(counts);
}
