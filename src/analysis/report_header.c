/* SPDX-License-Identifier: Apache-2.0 */
/* Identity and completeness of the session. */
#include "analysis/report_page.h"

#include <stdio.h>
#include <time.h>

/* Escaped text in the caller's buffer; valid until its next use. */
static const char *safe(struct bytes *buffer, const char *text)
{
    bytes_clear(buffer);
    text_escape(buffer, text, strlen(text));
    return bytes_text(buffer);
}

/* "NVIDIA H200" or "8 x NVIDIA H200": the GPUs that had work, or if none had, those of the machine. */
static void gpu_text(const struct analysis *analysis, struct bytes *out)
{
    const struct session_model *model = analysis->model;
    size_t used = 0, count;
    for (size_t i = 0; i < analysis->device_count; i++)
        used += session_device(model, analysis->devices[i].device) != NULL;
    count = used ? analysis->device_count : model->device_count;
    const char *last = NULL;
    size_t repeats = 0;
    for (size_t i = 0; i <= count; i++) {
        const struct device_info *device = NULL;
        if (i < count)
            device = used ? session_device(model, analysis->devices[i].device) : &model->devices[i];
        const char *name = i < count ? (device && *device->name ? device->name : "unknown GPU") : NULL;
        if (last && (!name || strcmp(name, last) != 0)) {
            if (out->size)
                bytes_append_text(out, " + ");
            if (repeats > 1)
                bytes_append_format(out, "%zu x ", repeats);
            text_escape(out, last, strlen(last));
            repeats = 0;
        }
        last = name;
        repeats++;
    }
}

static void date_item(struct page_list *list, int64_t ns)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm parts;
    char date[40];
    if (gmtime_r(&seconds, &parts) && strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &parts))
        page_list_add(list, "%s", date);
}

/* "NVIDIA H200 (driver 580.159, CUDA 13.0)" */
static void gpu_item(struct page_list *list, const struct analysis *analysis)
{
    const struct job_info *job = &analysis->model->job;
    struct bytes gpu = {0};
    gpu_text(analysis, &gpu);
    if (!gpu.size)
        bytes_append_text(&gpu, "no GPU seen");
    if (*job->driver_version || *job->cuda_version) {
        bytes_append_text(&gpu, *job->driver_version ? " (driver " : " (CUDA ");
        text_escape(&gpu, job->driver_version, strlen(job->driver_version));
        if (*job->driver_version && *job->cuda_version)
            bytes_append_text(&gpu, ", CUDA ");
        text_escape(&gpu, job->cuda_version, strlen(job->cuda_version));
        bytes_append_text(&gpu, ")");
    }
    page_list_add(list, "%s", bytes_text(&gpu));
    list->page->out->failed |= gpu.failed;
    bytes_free(&gpu);
}

/* The command line, on at most command_lines lines unless --wide. */
static void command_line(struct page *page, const char *command, size_t indent)
{
    enum { command_lines = 3 };
    static const char lead[] = "command: ";
    if (!*command)
        return;
    struct bytes text = {0};
    bytes_append_text(&text, lead);
    text_cut(&text, command, strlen(command),
             page->is_wide ? 0 : command_lines * (page->columns - indent - sizeof lead));
    bytes_append_format(page->out, "%*s", (int)indent, "");
    page_wrapped(page, indent + 2, bytes_text(&text));
    page->out->failed |= text.failed;
    bytes_free(&text);
}

void page_identity(struct page *page, const struct analysis *analysis, const char *lead, bool with_session)
{
    const struct job_info *job = &analysis->model->job;
    struct bytes buffer = {0};
    struct page_list list = page_list_start(page, 1, lead);
    page_list_add(&list, "%s", *job->app ? safe(&buffer, job->app) : "unknown program");
    if (with_session && *job->session_id)
        page_list_add(&list, "session %s", safe(&buffer, job->session_id));
    if (job->pid >= 0)
        page_list_add(&list, "pid %lld", (long long)job->pid);
    if (*job->hostname)
        page_list_add(&list, "host %s", safe(&buffer, job->hostname));
    gpu_item(&list, analysis);
    page_list_add(&list, "engine %s", *job->engine ? safe(&buffer, job->engine) : "unknown");
    if (analysis->start_ns != TIME_UNKNOWN) {
        page_list_add(&list, "%s", quantity_time((double)analysis->wall_ns).text);
        date_item(&list, analysis->start_ns);
    }
    page_list_end(&list);
    command_line(page, job->command, list.indent);
    page->out->failed |= buffer.failed;
    bytes_free(&buffer);
}

static void ending_items(struct page_list *list, const struct session_model *model)
{
    const struct log_summary *summary = &model->summary;
    if (summary->is_live)
        page_list_add(list, "still running");
    else if (!summary->has_shutdown)
        page_list_add(list, "unfinished: the program ended without closing the session");
    else if (model->job.signal != CELL_UNKNOWN)
        page_list_add(list, "the program was killed by signal %lld", (long long)model->job.signal);
    else if (summary->is_synthetic_shutdown)
        page_list_add(list, "the program ended without closing the session");
    if (summary->has_torn_tail)
        page_list_add(list, "last line torn");
    if (summary->damaged_lines)
        page_list_add(list, "%s damaged line%s", quantity_count(summary->damaged_lines).text,
                      summary->damaged_lines == 1 ? "" : "s");
    if (summary->missing_lines)
        page_list_add(list, "%s missing line%s", quantity_count(summary->missing_lines).text,
                      summary->missing_lines == 1 ? "" : "s");
    if (session_missing_rows(model))
        page_list_add(list, "%s missing row%s", quantity_count(session_missing_rows(model)).text,
                      session_missing_rows(model) == 1 ? "" : "s");
}

/* "slowed down by about 16 % (CUPTI 14.9, callbacks 0.8; CUPTI's cost not calibrated)" */
static void slowdown_item(struct page_list *list, const struct analysis *analysis)
{
    const struct slowdown *slowdown = &analysis->slowdown;
    if (!slowdown->is_known) {
        page_list_add(list, "slowdown not recorded");
        return;
    }
    struct bytes parts = {0};
    double unit = slowdown->fraction / (double)(slowdown_ns(slowdown) ? slowdown_ns(slowdown) : 1);
    for (int i = 0; i < SLOWDOWN_PART_COUNT && slowdown->fraction >= SLOWDOWN_SHOWN; i++)
        if (slowdown->parts_ns[i] && (double)slowdown->parts_ns[i] * unit >= 0.0005)
            bytes_append_format(&parts, "%s%s %.1f", parts.size ? ", " : " (",
                                slowdown_part_words((enum slowdown_part)i), (double)slowdown->parts_ns[i] * unit * 100);
    if (parts.size)
        bytes_append_text(&parts,
                          slowdown->is_default && slowdown->parts_ns[SLOWDOWN_CUPTI] ? "; not calibrated)" : ")");
    page_list_add(list, "%s%s", slowdown_words(analysis).text, parts.size ? bytes_text(&parts) : "");
    list->page->out->failed |= parts.failed;
    bytes_free(&parts);
}

/* "16 kernels counted (RangeProfiler does not time kernels), 0 lost", "2,065 kernels recorded, 0 lost" */
static void kernel_items(struct page_list *list, const struct session_model *model)
{
    struct bytes counted = {0};
    if (session_has_kernel_times(model)) {
        page_list_add(list, "%s kernel%s recorded, %s lost", quantity_count(model->kernels.count).text,
                      model->kernels.count == 1 ? "" : "s", lost_text(model).text);
        if (model->deep.untimed_count)
            page_list_add(list, "%s more counted, not timed", quantity_count(model->deep.untimed_count).text);
    } else {
        counted_text(model, &counted);
        page_list_add(list, "%s, %s lost", bytes_text(&counted), lost_text(model).text);
    }
    list->page->out->failed |= counted.failed;
    bytes_free(&counted);
}

void page_completeness(struct page *page, const struct analysis *analysis, size_t indent)
{
    const struct session_model *model = analysis->model;
    struct page_list list = page_list_start(page, indent, session_is_complete(model) ? "complete: " : "incomplete: ");
    list.indent = indent + 2;
    if (analysis->has_kernel_engine)
        kernel_items(&list, model);
    else
        page_list_add(&list, "%s GPU sample%s recorded, %s lost", quantity_count(model->device_metrics.count).text,
                      model->device_metrics.count == 1 ? "" : "s", lost_text(model).text);
    if (session_lost_details(model))
        page_list_add(&list, "%s without call, scope, stack or name", quantity_count(session_lost_details(model)).text);
    ending_items(&list, model);
    slowdown_item(&list, analysis);
    page_list_end(&list);
}

void section_header(struct page *page)
{
    page_identity(page, page->analysis, "", false);
    page_completeness(page, page->analysis, 1);
}
