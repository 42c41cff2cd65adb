/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/report_json.h"

#include <math.h>
#include <stdlib.h>

struct range_device {
    uint16_t device;
    int64_t busy_ns, busy_end_ns; /* end: of the work counted so far */
    int64_t kernel_ns;            /* sum of parts, larger than busy where kernels overlap */
    uint64_t kernels, copies, memsets;
};

struct range_sum {
    const struct session_model *model;
    int64_t from_ns, to_ns;
    struct range_device *devices; /* owned */
    size_t device_count;
};

enum { copy_kinds = 16 };
struct copy_sum {
    uint64_t calls, bytes;
    int64_t total_ns;
};

/* The part inside the time span; 0 if they do not overlap. */
static int64_t part_of(const struct range_sum *sum, int64_t start_ns, int64_t duration_ns)
{
    int64_t end_ns = start_ns + duration_ns;
    int64_t from_ns = start_ns > sum->from_ns ? start_ns : sum->from_ns;
    int64_t to_ns = end_ns < sum->to_ns ? end_ns : sum->to_ns;
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

static bool begins_inside(const struct range_sum *sum, int64_t start_ns)
{
    return start_ns >= sum->from_ns && start_ns < sum->to_ns;
}

static struct range_device *device_of(struct range_sum *sum, uint16_t device)
{
    for (size_t i = 0; i < sum->device_count; i++)
        if (sum->devices[i].device == device)
            return &sum->devices[i];
    return NULL;
}

/* Work in order of start: overlapping work counts once. */
static struct range_device *work_add(struct range_sum *sum, uint16_t device, int64_t start_ns, int64_t duration_ns)
{
    struct range_device *at = device_of(sum, device);
    if (!at || (!part_of(sum, start_ns, duration_ns) && !begins_inside(sum, start_ns)))
        return NULL;
    int64_t end_ns = start_ns + duration_ns;
    int64_t seen_ns = start_ns > at->busy_end_ns ? start_ns : at->busy_end_ns;
    if (end_ns > seen_ns) {
        at->busy_ns += part_of(sum, seen_ns, end_ns - seen_ns);
        at->busy_end_ns = end_ns;
    }
    return at;
}

/* Merges kernels, copies and memsets, which are each in order of start. */
static void work_sum(struct range_sum *sum)
{
    const struct session_model *model = sum->model;
    size_t kernel = 0, copy = 0, memset_ = 0;
    for (;;) {
        int64_t kernel_ns = kernel < model->kernels.count ? model->kernels.start_ns[kernel] : INT64_MAX;
        int64_t copy_ns = copy < model->copy_count ? model->copies[copy].span.start_ns : INT64_MAX;
        int64_t memset_ns = memset_ < model->memset_count ? model->memsets[memset_].span.start_ns : INT64_MAX;
        int64_t first_ns = kernel_ns < copy_ns ? kernel_ns : copy_ns;
        first_ns = memset_ns < first_ns ? memset_ns : first_ns;
        if (first_ns >= sum->to_ns)
            return;
        struct range_device *at;
        if (first_ns == kernel_ns) {
            int64_t duration_ns = model->kernels.duration_ns[kernel];
            at = work_add(sum, model->kernels.device[kernel++], kernel_ns, duration_ns);
            if (at) {
                at->kernel_ns = sum_saturated(at->kernel_ns, part_of(sum, kernel_ns, duration_ns));
                at->kernels += begins_inside(sum, kernel_ns);
            }
        } else if (first_ns == copy_ns) {
            const struct gpu_span *span = &model->copies[copy++].span;
            at = work_add(sum, span->device, span->start_ns, span->duration_ns);
            if (at)
                at->copies += begins_inside(sum, span->start_ns);
        } else {
            const struct gpu_span *span = &model->memsets[memset_++].span;
            at = work_add(sum, span->device, span->start_ns, span->duration_ns);
            if (at)
                at->memsets += begins_inside(sum, span->start_ns);
        }
    }
}

/* Integral of the power samples in microjoules, with linear interpolation. covered: the part of the time span between
 * samples. NAN: no samples. */
static double energy_of(const struct range_sum *sum, uint16_t device, int64_t *covered_ns)
{
    const struct metric_table *table = &sum->model->device_metrics;
    int64_t before_ns = TIME_UNKNOWN;
    double before_mw = 0, energy_uj = 0;
    *covered_ns = 0;
    if (!table->columns || !table->columns[DEVICE_METRIC_DEVICE_ID] || !table->columns[DEVICE_METRIC_POWER_MW])
        return (double)NAN;
    for (size_t i = 0; i < table->count; i++) {
        int64_t time_ns = table->columns[0][i], power_mw = table->columns[DEVICE_METRIC_POWER_MW][i];
        if (table->columns[DEVICE_METRIC_DEVICE_ID][i] != device || power_mw == CELL_UNKNOWN)
            continue;
        if (before_ns != TIME_UNKNOWN && time_ns > before_ns) {
            int64_t from_ns = before_ns > sum->from_ns ? before_ns : sum->from_ns;
            int64_t to_ns = time_ns < sum->to_ns ? time_ns : sum->to_ns;
            double slope = ((double)power_mw - before_mw) / (double)(time_ns - before_ns);
            if (to_ns > from_ns) {
                double middle_mw = before_mw + slope * ((double)(from_ns - before_ns) + (double)(to_ns - from_ns) / 2);
                energy_uj += middle_mw * (double)(to_ns - from_ns) / 1e6;
                *covered_ns += to_ns - from_ns;
            }
        }
        before_ns = time_ns;
        before_mw = (double)power_mw;
    }
    return *covered_ns ? energy_uj : (double)NAN;
}

static void devices_write(struct bytes *out, const struct range_sum *sum)
{
    list_open(out, "devices");
    for (size_t i = 0; i < sum->device_count; i++) {
        const struct range_device *at = &sum->devices[i];
        int64_t covered_ns;
        double energy_uj = energy_of(sum, at->device, &covered_ns);
        element(out, '{');
        member_device(out, at->device);
        member_int(out, "busy_ns", at->busy_ns);
        member_int(out, "kernel_ns", at->kernel_ns);
        member_uint(out, "kernels", at->kernels);
        member_uint(out, "copies", at->copies);
        member_uint(out, "memsets", at->memsets);
        member_double(out, "energy_uj", energy_uj);
        member_int(out, "energy_covered_ns", covered_ns);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

static void copies_write(struct bytes *out, const struct range_sum *sum)
{
    struct copy_sum kinds[copy_kinds] = {0};
    for (size_t i = 0; i < sum->model->copy_count; i++) {
        const struct gpu_copy *copy = &sum->model->copies[i];
        if (!begins_inside(sum, copy->span.start_ns) || copy->copy_kind >= copy_kinds)
            continue;
        struct copy_sum *kind = &kinds[copy->copy_kind];
        kind->calls++;
        kind->bytes += copy->bytes;
        kind->total_ns = sum_saturated(kind->total_ns, copy->span.duration_ns);
    }
    list_open(out, "copies");
    for (unsigned i = 0; i < copy_kinds; i++) {
        if (!kinds[i].calls)
            continue;
        element(out, '{');
        member_text(out, "copy_kind", schema_word("copy_kind", i));
        member_uint(out, "calls", kinds[i].calls);
        member_uint(out, "bytes", kinds[i].bytes);
        member_int(out, "total_ns", kinds[i].total_ns);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

gpufl_status json_range(const struct analysis *analysis, int64_t from_ns, int64_t to_ns, struct bytes *out)
{
    struct range_sum sum = {.model = analysis->model, .from_ns = from_ns, .to_ns = to_ns};
    sum.devices = calloc(analysis->device_count + 1, sizeof *sum.devices);
    if (!sum.devices)
        return GPUFL_E_NO_MEMORY;
    for (size_t i = 0; i < analysis->device_count; i++)
        sum.devices[sum.device_count++] =
            (struct range_device){.device = analysis->devices[i].device, .busy_end_ns = INT64_MIN};
    work_sum(&sum);
    int64_t wait_ns = 0;
    for (size_t i = 0; i < sum.model->sync_count; i++)
        wait_ns = sum_saturated(wait_ns, part_of(&sum, sum.model->syncs[i].start_ns, sum.model->syncs[i].duration_ns));
    devices_write(out, &sum);
    copies_write(out, &sum);
    member_int(out, "sync_ns", wait_ns);
    free(sum.devices);
    return GPUFL_OK;
}
