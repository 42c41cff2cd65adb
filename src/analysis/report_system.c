/* SPDX-License-Identifier: Apache-2.0 */
/* System metrics, insights, losses and overhead. */
#include "analysis/report_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { issues_shown = 5 };

static void metric_item(struct page_list *list, const struct metric_summary *metric, const char *label,
                        const char *unit, double divisor)
{
    if (!metric->count)
        return;
    page_list_add(list, "%s %s %s (max %s)", label, quantity_count((uint64_t)(metric->mean / divisor + 0.5)).text, unit,
                  quantity_count((uint64_t)((double)metric->max / divisor + 0.5)).text);
}

static void device_items(struct page_list *list, const struct device_use *use, bool is_amd)
{
    const struct metric_summary *metrics = use->metrics;
    const double mib = 1024.0 * 1024.0;
    metric_item(list, &metrics[DEVICE_METRIC_GPU_UTIL], "util", "%", 1);
    metric_item(list, &metrics[DEVICE_METRIC_POWER_MW], "power", "W", 1000);
    metric_item(list, &metrics[DEVICE_METRIC_TEMP_C], "temp", "°C", 1);
    metric_item(list, &metrics[DEVICE_METRIC_TEMP_JUNCTION_C], "junction", "°C", 1);
    metric_item(list, &metrics[DEVICE_METRIC_FAN_RPM], "fan", "rpm", 1);
    metric_item(list, &metrics[DEVICE_METRIC_CLOCK_SM], is_amd ? "clock" : "SM clock", "MHz", 1);
    const struct metric_summary *used = &metrics[DEVICE_METRIC_USED_MIB], *total = &metrics[DEVICE_METRIC_TOTAL_MIB];
    if (used->count)
        page_list_add(list, "memory %s (max %s)%s%s", quantity_memory(used->mean * mib).text,
                      quantity_memory((double)used->max * mib).text, total->count ? " of " : "",
                      total->count ? quantity_memory((double)total->max * mib).text : "");
    const struct metric_summary *energy = &metrics[DEVICE_METRIC_ENERGY_UJ];
    if (energy->count > 1 && energy->last >= energy->first) {
        double joules = (double)(energy->last - energy->first) / 1e6;
        page_list_add(list, joules < 9999.5 ? "energy %.0f J" : "energy %.1f kJ",
                      joules < 9999.5 ? joules : joules / 1000);
    }
    metric_item(list, &metrics[DEVICE_METRIC_SM_ACTIVE_BP], "SM active", "%", 100);
    metric_item(list, &metrics[DEVICE_METRIC_TENSOR_ACTIVE_BP], "tensor active", "%", 100);
    metric_item(list, &metrics[DEVICE_METRIC_DRAM_ACTIVE_BP], "DRAM active", "%", 100);
    const struct metric_summary *ecc = &metrics[DEVICE_METRIC_ECC_UNCORRECTED];
    if (ecc->count && ecc->last > 0)
        page_list_add(list, "%s uncorrected ECC errors", quantity_count((uint64_t)ecc->last).text);
    uint64_t known = metrics[DEVICE_METRIC_THROTTLE_REASONS].count;
    bool is_limited = false;
    for (unsigned bit = 0; bit < throttle_bits; bit++)
        if (throttle_reasons[bit].is_limit && use->throttle_samples[bit]) {
            is_limited = true;
            page_list_add(list, "slowed by %s in %s of samples", throttle_reasons[bit].words,
                          quantity_percent((double)use->throttle_samples[bit] / (double)known).text);
        }
    if (known && !is_limited)
        page_list_add(list, "never slowed down");
}

static void host_items(struct page_list *list, const struct metric_summary *host)
{
    const double mib = 1024.0 * 1024.0;
    metric_item(list, &host[HOST_METRIC_CPU_PCT_X100], "CPU", "%", 100);
    const struct metric_summary *used = &host[HOST_METRIC_RAM_USED_MIB], *total = &host[HOST_METRIC_RAM_TOTAL_MIB];
    if (used->count)
        page_list_add(list, "RAM %s (max %s)%s%s", quantity_memory(used->mean * mib).text,
                      quantity_memory((double)used->max * mib).text, total->count ? " of " : "",
                      total->count ? quantity_memory((double)total->max * mib).text : "");
    metric_item(list, &host[HOST_METRIC_PROCESS_CPU_PCT_X100], "this process", "% of a core", 100);
    const struct metric_summary *rss = &host[HOST_METRIC_PROCESS_RSS_MIB];
    if (rss->count)
        page_list_add(list, "its RAM %s (max %s)", quantity_memory(rss->mean * mib).text,
                      quantity_memory((double)rss->max * mib).text);
}

static struct quantity process_name(const struct analysis *analysis, const struct process_use *use)
{
    struct quantity name;
    if (use->pid == analysis->model->job.pid)
        snprintf(name.text, sizeof name.text, "this process");
    else
        snprintf(name.text, sizeof name.text, "pid %lld", (long long)use->pid);
    return name;
}

static void process_items(struct page_list *list, const struct analysis *analysis)
{
    enum { shown_max = 8 };
    for (size_t i = 0; i < analysis->process_count && i < shown_max; i++) {
        const struct process_use *use = &analysis->processes[i];
        char gpu[40] = "";
        if (analysis->system_count > 1)
            snprintf(gpu, sizeof gpu, " on GPU %lld", (long long)use->device);
        if (use->used_mib.count)
            page_list_add(list, "%s%s at most %s", process_name(analysis, use).text, gpu,
                          quantity_memory((double)use->used_mib.max * 1024 * 1024).text);
    }
}

/* "of 3 samples of each GPU": the number of samples behind the means below. */
static void samples_said(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    size_t devices = analysis->system_count;
    uint64_t least = devices ? UINT64_MAX : analysis->model->host_metrics.count, most = devices ? 0 : least;
    for (size_t i = 0; i < devices; i++) {
        least = analysis->system[i].samples < least ? analysis->system[i].samples : least;
        most = analysis->system[i].samples > most ? analysis->system[i].samples : most;
    }
    bytes_append_text(page->out, "   mean (max) of ");
    if (least < most)
        bytes_append_format(page->out, "%s to ", quantity_count(least).text);
    bytes_append_format(page->out, "%s sample%s%s\n", quantity_count(most).text, most == 1 ? "" : "s",
                        devices > 1 ? " of each GPU" : "");
}

void section_system(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    page_title(page, "SYSTEM");
    if (!analysis->system_count && !analysis->model->host_metrics.count) {
        bytes_append_text(page->out, "   not recorded (system sampling was off)\n");
        return;
    }
    samples_said(page);
    for (size_t i = 0; i < analysis->system_count; i++) {
        char lead[40];
        snprintf(lead, sizeof lead, "GPU %-4lld", (long long)analysis->system[i].device);
        struct page_list list = page_list_start(page, 3, lead);
        const struct device_info *info = session_device(analysis->model, (uint16_t)analysis->system[i].device);
        bool is_amd = info && !strcmp(info->vendor, "AMD");
        if (info && !is_amd && info->telemetry_id != ID_UNKNOWN && info->telemetry_id != info->id)
            page_list_add(&list, "nvidia-smi's GPU %" PRIu32, info->telemetry_id);
        device_items(&list, &analysis->system[i], is_amd);
        page_list_end(&list);
    }
    if (!analysis->system_count)
        bytes_append_text(page->out, "   GPU     not recorded\n");
    if (analysis->process_count) {
        struct page_list list = page_list_start(page, 3, "GPU memory  ");
        process_items(&list, analysis);
        page_list_end(&list);
    }
    if (analysis->model->host_metrics.count) {
        struct page_list list = page_list_start(page, 3, "host    ");
        host_items(&list, analysis->host);
        page_list_end(&list);
    }
}

void section_insights(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    if (!analysis->insight_count) {
        page_title_note(page, "INSIGHTS",
                        analysis->has_kernel_engine || analysis->system_count
                            ? "none: no rule found anything in the recorded data"
                            : "none: there is no data to judge");
        return;
    }
    page_title(page, "INSIGHTS");
    bytes_append_char(page->out, '\n');
    for (size_t i = 0; i < analysis->insight_count && i < INSIGHTS_SHOWN; i++) {
        char number[32];
        snprintf(number, sizeof number, "%2zu", i + 1);
        bytes_append_char(page->out, ' ');
        if (analysis->insights[i].severity == INSIGHT_HIGH)
            page_styled(page, STYLE_CAUTION, number);
        else
            bytes_append_text(page->out, number);
        bytes_append_text(page->out, "  ");
        page_wrapped(page, 5, analysis->insights[i].text);
    }
    if (analysis->insight_count > INSIGHTS_SHOWN)
        bytes_append_format(page->out, "     and %zu more: `gpufl report --json` has them\n",
                            analysis->insight_count - INSIGHTS_SHOWN);
}

/* "kernel " for kernel_event_batch. */
static void record_word(struct bytes *out, const char *type)
{
    const char *suffix = strstr(type, "_event_batch");
    suffix = suffix ? suffix : strstr(type, "_batch");
    text_escape(out, type, suffix ? (size_t)(suffix - type) : strlen(type));
    if (*type)
        bytes_append_char(out, ' ');
}

/* The missing part of a record that is in the log. */
static const char *detail_word(const char *type)
{
    if (!strcmp(type, "scope_id"))
        return "their scope";
    if (!strcmp(type, "stack_id"))
        return "their call stack";
    return strstr(type, "_dict") ? "a name or call stack" : "their API call";
}

static void loss_lines(struct page *page)
{
    const struct session_model *model = page->analysis->model;
    struct bytes line = {0};
    for (size_t i = 0; i < model->loss_count; i++) {
        const struct session_loss *loss = &model->losses[i];
        bytes_clear(&line);
        if (loss->is_gap) {
            text_escape(&line, loss->message, strlen(loss->message));
            bytes_append_text(&line, "; what ran meanwhile is not in the log");
            page_note(page, bytes_text(&line));
            continue;
        }
        if (loss->has_unknown_count && !loss->count)
            bytes_append_text(&line, "an unknown number of");
        else
            bytes_append_format(&line, "%s%s", loss->has_unknown_count ? "at least " : "",
                                quantity_count(loss->count).text);
        bytes_append_char(&line, ' ');
        if (loss_is_of_detail(loss)) {
            bytes_append_text(&line, "records without ");
            bytes_append_text(&line, detail_word(loss->record_type));
            bytes_append_text(&line, ": ");
        } else {
            record_word(&line, loss->record_type);
            bytes_append_text(&line, "records lost: ");
        }
        text_escape(&line, loss->reason, strlen(loss->reason));
        if (*loss->message) {
            bytes_append_text(&line, ", ");
            text_escape(&line, loss->message, strlen(loss->message));
        }
        if (*loss->cause) {
            bytes_append_text(&line, "; first cause: ");
            text_escape(&line, loss->cause, strlen(loss->cause));
        }
        page_note(page, bytes_text(&line));
    }
    if (session_lacks_end(model))
        bytes_append_text(page->out, "   an unknown amount is missing at the end\n");
    if (session_has_gap(model))
        bytes_append_text(page->out, "   how much the damaged or missing lines held is not known\n");
    bool is_exact;
    (void)session_lost(model, &is_exact);
    if (!model->loss_count && is_exact)
        bytes_append_text(page->out, model->summary.is_live ? "   nothing lost so far\n" : "   nothing lost\n");
    if (model->invalid_rows)
        bytes_append_format(page->out, "   %s rows with impossible values left out\n",
                            quantity_count(model->invalid_rows).text);
    if (model->unresolved_rows)
        bytes_append_format(page->out, "   %s rows name a scope that is not in the log\n",
                            quantity_count(model->unresolved_rows).text);
    bytes_free(&line);
}

static void issue_lines(struct page *page)
{
    const struct session_model *model = page->analysis->model;
    size_t shown = 0, skipped = 0;
    struct bytes line = {0};
    for (size_t i = 0; i < model->issue_count; i++) {
        const struct log_issue *issue = &model->issues[i];
        if (issue->kind == LOG_ISSUE_UNFINISHED)
            continue; /* already in the header */
        if (shown++ >= issues_shown) {
            skipped++;
            continue;
        }
        bytes_clear(&line);
        text_escape(&line, issue->file, strlen(issue->file));
        if (issue->line)
            bytes_append_format(&line, ":%llu", (unsigned long long)issue->line);
        if (*issue->file)
            bytes_append_text(&line, ": ");
        text_escape(&line, issue->text, strlen(issue->text));
        page_note(page, bytes_text(&line));
    }
    if (skipped)
        bytes_append_format(page->out, "   and %zu more (gpufl verify lists all)\n", skipped);
    bytes_free(&line);
}

static void overhead_line(struct page *page)
{
    const struct session_overhead *overhead = &page->analysis->model->overhead;
    if (!overhead->is_known) {
        bytes_append_text(page->out, "   overhead not recorded\n");
        return;
    }
    struct page_list list = page_list_start(page, 3, "");
    const struct {
        const char *label;
        int64_t ns;
    } items[] = {
        {"CUPTI, by its own account", overhead->cupti_ns},
        {"collector CPU", overhead->collector_cpu_ns},
        {"sampler CPU", overhead->sampler_cpu_ns},
        {"compression CPU", overhead->seal_cpu_ns},
        {"flushing", overhead->flush_ns},
    };
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        if (items[i].ns >= 0)
            page_list_add(&list, "%s %s", items[i].label, quantity_time((double)items[i].ns).text);
    if (overhead->memory_peak_bytes >= 0)
        page_list_add(&list, "memory at most %s", quantity_memory((double)overhead->memory_peak_bytes).text);
    page_list_end(&list);
}

/* A feature that was refused with a reason; preferably one that an engine depends on. */
static const struct session_capability *refused_feature(const struct session_model *model)
{
    static const char *const engines[] = {"pc_sampling", "sass_metrics", "range_counters"};
    const struct session_capability *found = NULL;
    for (size_t i = 0; i < model->capability_count; i++) {
        const struct session_capability *capability = &model->capabilities[i];
        if (!capability->is_requested || !*capability->message || strcmp(capability->status, "skipped") != 0)
            continue;
        for (size_t j = 0; j < sizeof engines / sizeof *engines; j++)
            if (!strcmp(capability->feature, engines[j]))
                return capability;
        found = found ? found : capability;
    }
    return found;
}

/* If the granted engine differs from the requested one, prints the reason of the refused feature. */
static void engine_line(struct page *page)
{
    const struct session_model *model = page->analysis->model;
    const struct job_info *job = &model->job;
    struct bytes line = {0};
    bytes_append_text(&line, "engine ");
    text_escape(&line, job->requested_engine, strlen(job->requested_engine));
    bytes_append_text(&line, " was requested, ");
    text_escape(&line, job->engine, strlen(job->engine));
    bytes_append_text(&line, " ran");
    const struct session_capability *refused = refused_feature(model);
    if (refused) {
        bytes_append_text(&line, ": ");
        text_escape(&line, refused->message, strlen(refused->message));
    }
    page_note(page, bytes_text(&line));
    page->out->failed = page->out->failed || line.failed;
    bytes_free(&line);
}

static void clock_lines(struct page *page)
{
    const struct session_model *model = page->analysis->model;
    for (size_t i = 0; i < model->clock_sync_count; i++) {
        const struct clock_reading_record *sync = &model->clock_syncs[i];
        int64_t step_ns = sync->wall_step_ns;
        if (step_ns == CELL_UNKNOWN || (step_ns <= 1000000 && step_ns >= -1000000))
            continue;
        struct bytes line = {0};
        bytes_append_format(&line, "the wall clock was set %s by %s", step_ns < 0 ? "back" : "forward",
                            quantity_time(step_ns < 0 ? -(double)step_ns : (double)step_ns).text);
        if (sync->is_continuous && model->first_ns != TIME_UNKNOWN && sync->wall_ns >= model->first_ns)
            bytes_append_format(&line, " after %s; all times are as if it had not been",
                                quantity_time((double)(sync->wall_ns - model->first_ns)).text);
        else
            bytes_append_text(&line, ": times before and after it cannot be compared");
        page_note(page, bytes_text(&line));
        page->out->failed |= line.failed;
        bytes_free(&line);
    }
}

void section_losses(struct page *page)
{
    const struct session_model *model = page->analysis->model;
    page_title(page, "LOSSES AND OVERHEAD");
    bytes_append_char(page->out, '\n');
    loss_lines(page);
    issue_lines(page);
    clock_lines(page);
    if (*model->job.requested_engine && strcmp(model->job.requested_engine, model->job.engine) != 0)
        engine_line(page);
    else if (!page->analysis->has_deep) /* otherwise they are in DEEP DATA */
        page_refusals(page);
    overhead_line(page);
}
