/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/time_window.h"
#include "analysis/steps.h"

#include <stdlib.h>

/* Work that began before the window can reach into it; the last rows of each table before it are included. */
enum { earlier_rows = 1024 };

struct row_range {
    size_t first, count;
};

static size_t span_from(const void *rows, size_t row_size, size_t count, int64_t time_ns)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gpu_span *span = (const void *)((const char *)rows + middle * row_size);
        if (span->start_ns < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct row_range range_make(size_t first, size_t end)
{
    first = first > earlier_rows ? first - earlier_rows : 0;
    return (struct row_range){first, end - first};
}

static void kernels_narrow(struct kernel_columns *kernels, struct row_range range)
{
    kernels->start_ns += range.first;
    kernels->duration_ns += range.first;
    kernels->api_start_ns += range.first;
    kernels->api_duration_ns += range.first;
    kernels->thread_id += range.first;
    kernels->scope += range.first;
    kernels->device += range.first;
    kernels->count = range.count;
}

/* A view of the model with the rows of the window: time_use_make reads only these columns. */
static void model_narrow(struct session_model *part, int64_t from_ns, int64_t to_ns)
{
    struct row_range copies = range_make(span_from(part->copies, sizeof *part->copies, part->copy_count, from_ns),
                                         span_from(part->copies, sizeof *part->copies, part->copy_count, to_ns));
    struct row_range fills = range_make(span_from(part->memsets, sizeof *part->memsets, part->memset_count, from_ns),
                                        span_from(part->memsets, sizeof *part->memsets, part->memset_count, to_ns));
    if (part->kernels.count)
        kernels_narrow(&part->kernels, range_make(kernel_from(part, from_ns), kernel_from(part, to_ns)));
    part->copies = copies.count ? part->copies + copies.first : part->copies;
    part->copy_count = copies.count;
    part->memsets = fills.count ? part->memsets + fills.first : part->memsets;
    part->memset_count = fills.count;
}

gpufl_status time_window_make(const struct analysis *analysis, int64_t from_ns, int64_t to_ns, struct time_use *use)
{
    struct session_model *part = malloc(sizeof *part);
    if (!part)
        return GPUFL_E_NO_MEMORY;
    *part = *analysis->model;
    model_narrow(part, from_ns, to_ns);
    struct analysis window = {.model = part, .start_ns = from_ns, .end_ns = to_ns, .wall_ns = to_ns - from_ns};
    gpufl_status status = time_use_make(&window);
    *use = (struct time_use){0};
    for (size_t i = 0; status == GPUFL_OK && i < window.device_count; i++) {
        const struct time_use *device = &window.devices[i];
        use->busy_ns += device->busy_ns;
        use->wait_launch_ns += device->wait_launch_ns;
        use->wait_sync_ns += device->wait_sync_ns;
        use->queued_ns += device->queued_ns;
        use->no_work_ns += device->no_work_ns;
        use->unknown_ns += device->unknown_ns;
    }
    /* A GPU without work in the window does not appear above. */
    for (size_t i = window.device_count; status == GPUFL_OK && i < analysis->device_count; i++)
        use->no_work_ns += to_ns - from_ns;
    free(window.devices);
    free(window.time_bins);
    free(window.launch_bound.wait_by_path);
    free(part);
    return status;
}

gpufl_status time_window_busy(const struct analysis *analysis, int64_t from_ns, int64_t to_ns, int64_t *busy_ns)
{
    const struct session_model *model = analysis->model;
    struct time_use use, after = {0};
    size_t inside = kernel_from(model, to_ns) - kernel_from(model, from_ns);
    from_ns = from_ns > analysis->start_ns ? from_ns : analysis->start_ns;
    to_ns = to_ns < analysis->end_ns ? to_ns : analysis->end_ns;
    if (to_ns <= from_ns || inside <= model->kernels.count / 2) {
        gpufl_status status = to_ns > from_ns ? time_window_make(analysis, from_ns, to_ns, &use) : GPUFL_OK;
        *busy_ns = to_ns > from_ns && status == GPUFL_OK ? use.busy_ns : 0;
        return status;
    }
    gpufl_status status = time_window_make(analysis, analysis->start_ns, from_ns, &use);
    if (status == GPUFL_OK)
        status = time_window_make(analysis, to_ns, analysis->end_ns, &after);
    if (status == GPUFL_OK)
        *busy_ns = analysis_busy_ns(analysis) - use.busy_ns - after.busy_ns;
    return status;
}
