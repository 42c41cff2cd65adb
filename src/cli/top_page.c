/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top.h"

#include "analysis/quantity.h"
#include "format/json.h"
#include "monitor/clock_event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const top_order_names[] = {
    [TOP_BY_MEMORY] = "memory", [TOP_BY_KERNELS] = "kernels", [TOP_BY_PID] = "pid",
    [TOP_BY_NAME] = "name",     [TOP_BY_GPU] = "gpu",         [TOP_ORDER_COUNT] = NULL};

enum { BAR_CELLS = 8, PROGRAM_COLUMNS = 20 };
#define COLOR_TITLE "\033[1m"
#define COLOR_DIM "\033[2m"
#define COLOR_ALARM "\033[31m"

/* A line is built plain, then cut and coloured as a whole. */
struct page_writer {
    struct bytes *out;
    struct bytes line;
    const struct top_page *page;
    int lines;
};

static void line_end(struct page_writer *writer, const char *color)
{
    bool is_colored = color && writer->page->use_color;
    if (is_colored)
        bytes_append_text(writer->out, color);
    size_t size = 0;
    int columns = 0;
    while (size < writer->line.size && columns < writer->page->columns) {
        size_t step = 1;
        while (size + step < writer->line.size && ((unsigned char)writer->line.data[size + step] & 0xc0) == 0x80)
            step++;
        columns += (int)text_columns(writer->line.data + size, step);
        if (columns <= writer->page->columns)
            size += step;
    }
    while (size && writer->line.data[size - 1] == ' ')
        size--;
    bytes_append(writer->out, writer->line.data, size);
    bytes_append_text(writer->out, is_colored ? "\033[0m\n" : "\n");
    writer->out->failed |= writer->line.failed;
    bytes_clear(&writer->line);
    writer->lines++;
}

/* Fills up with blanks to the column. */
static void line_to(struct page_writer *writer, size_t column)
{
    size_t columns = writer->line.size ? text_columns(writer->line.data, writer->line.size) : 0;
    do
        bytes_append_char(&writer->line, ' ');
    while (++columns < column);
}

static void name_append(struct page_writer *writer, const char *name, size_t columns)
{
    text_cut(&writer->line, name, strlen(name), columns);
}

/* A sentence over as many lines as it takes: its end says what to do. */
static void sentence_append(struct page_writer *writer, const char *text, const char *color)
{
    while (*text) {
        size_t size = strcspn(text, " ");
        if (text_columns(writer->line.data, writer->line.size) + size >= (size_t)writer->page->columns)
            line_end(writer, color);
        text_cut(&writer->line, text, size, 0);
        bytes_append_char(&writer->line, ' ');
        text += size + (text[size] == ' ');
    }
    line_end(writer, color);
}

static void header_write(struct page_writer *writer, const struct monitor_view *view)
{
    struct bytes *line = &writer->line;
    bytes_append_text(line, "gpufl top · ");
    name_append(writer, view->hostname, 40);
    if (view->host.cpu_pct_x100 != CELL_UNKNOWN)
        bytes_append_format(line, " · CPU %.0f %%", (double)view->host.cpu_pct_x100 / 100);
    if (view->host.ram_used_mib != CELL_UNKNOWN && view->host.ram_total_mib != CELL_UNKNOWN)
        bytes_append_format(line, " · memory %.1f of %.1f GiB", (double)view->host.ram_used_mib / 1024,
                            (double)view->host.ram_total_mib / 1024);
    time_t now = (time_t)(view->sampled_wall_ns / 1000000000);
    struct tm local;
    if (localtime_r(&now, &local))
        bytes_append_format(line, " · %02d:%02d:%02d", local.tm_hour, local.tm_min, local.tm_sec);
    for (unsigned vendor = 0; vendor < GPU_VENDOR_COUNT; vendor++)
        if (view->driver_versions[vendor][0]) {
            bytes_append_format(line, " · %s driver ", gpu_vendor_name(vendor));
            name_append(writer, view->driver_versions[vendor], 20);
        }
    line_end(writer, COLOR_TITLE);
}

/* " 512 of 700 W"; "–": not known. */
static void value_append(struct bytes *out, const struct gpu_sample *sample, enum gpu_metric metric, double divisor,
                         const char *format)
{
    if (gpu_sample_knows(sample, metric))
        bytes_append_format(out, strcmp(format, "1") == 0 ? "%.1f" : "%.0f", (double)sample->values[metric] / divisor);
    else
        bytes_append_text(out, "–");
}

static double share_of(const struct gpu_sample *sample, enum gpu_metric part, double whole)
{
    return gpu_sample_knows(sample, part) && whole > 0 ? (double)sample->values[part] / whole : 0;
}

enum { AT_NAME = 5 };

/* Columns at which the GPUs' values begin; 0: left out. */
static const struct gpu_layout {
    int columns; /* that it needs */
    int name_columns, busy, busy_bar, memory, memory_bar, power, temp, clock;
    bool has_power_limit;
} gpu_layouts[] = {{98, 22, 29, 35, 45, 64, 73, 87, 94, true},
                   {80, 22, 29, 0, 36, 0, 56, 70, 76, true},
                   {0, 13, 20, 0, 27, 0, 47, 54, 0, false}};

static const struct gpu_layout *layout_of(const struct top_page *page)
{
    const struct gpu_layout *layout = gpu_layouts;
    while (layout->columns > page->columns)
        layout++;
    return layout;
}

static void gpu_heads_write(struct page_writer *writer)
{
    const struct gpu_layout *layout = layout_of(writer->page);
    const struct {
        int at;
        const char *text;
    } heads[] = {{AT_NAME, "name"},        {layout->busy, "busy"}, {layout->memory, "memory"},
                 {layout->power, "power"}, {layout->temp, "temp"}, {layout->clock, "MHz"}};
    bytes_append_text(&writer->line, "GPU");
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (!heads[i].at)
            continue;
        line_to(writer, (size_t)heads[i].at);
        bytes_append_text(&writer->line, heads[i].text);
    }
    line_end(writer, COLOR_DIM);
}

static void bar_write(struct page_writer *writer, int at, double share)
{
    if (!at)
        return;
    line_to(writer, (size_t)at);
    text_bar(&writer->line, share, BAR_CELLS);
}

static void gpu_write(struct page_writer *writer, const struct view_gpu *gpu)
{
    const struct gpu_sample *sample = &gpu->sample;
    const double gib = 1073741824;
    const struct gpu_layout *layout = layout_of(writer->page);
    struct bytes *line = &writer->line;
    bytes_append_format(line, "%3u", gpu->info.index);
    line_to(writer, AT_NAME);
    name_append(writer, gpu->info.name, (size_t)layout->name_columns);
    line_to(writer, (size_t)layout->busy);
    if (!gpu->is_up) {
        bytes_append_text(line, "does not answer");
        line_end(writer, COLOR_ALARM);
        return;
    }
    value_append(line, sample, GPU_UTIL_PCT, 1, "0");
    bytes_append_text(line, " %");
    bar_write(writer, layout->busy_bar, share_of(sample, GPU_UTIL_PCT, 100));
    line_to(writer, (size_t)layout->memory);
    value_append(line, sample, GPU_MEM_USED_BYTES, gib, "1");
    bytes_append_text(line, " of ");
    value_append(line, sample, GPU_MEM_TOTAL_BYTES, gib, "1");
    bytes_append_text(line, " GiB");
    double total = gpu_sample_knows(sample, GPU_MEM_TOTAL_BYTES) ? (double)sample->values[GPU_MEM_TOTAL_BYTES] : 0;
    bar_write(writer, layout->memory_bar, share_of(sample, GPU_MEM_USED_BYTES, total));
    line_to(writer, (size_t)layout->power);
    value_append(line, sample, GPU_POWER_MW, 1000, "0");
    if (layout->has_power_limit) {
        bytes_append_text(line, " of ");
        value_append(line, sample, GPU_POWER_LIMIT_MW, 1000, "0");
    }
    bytes_append_text(line, " W");
    line_to(writer, (size_t)layout->temp);
    value_append(line, sample, GPU_TEMP_C, 1, "0");
    bytes_append_text(line, " °C");
    if (layout->clock) {
        line_to(writer, (size_t)layout->clock);
        value_append(line, sample, GPU_CLOCK_SM_MHZ, 1, "0");
    }
    line_end(writer, NULL);
    /* Idle and chosen clocks are no news; a limit is. */
    const uint64_t quiet = GPU_THROTTLE_IDLE | GPU_THROTTLE_APPLICATION_CLOCKS | GPU_THROTTLE_DISPLAY_CLOCKS;
    uint64_t reasons = gpu_sample_knows(sample, GPU_THROTTLE_REASONS) ? sample->values[GPU_THROTTLE_REASONS] : 0;
    for (size_t i = 0; i < CLOCK_EVENT_COUNT; i++) {
        if (!(reasons & ~quiet & clock_events[i].bit))
            continue;
        line_to(writer, AT_NAME);
        bytes_append_format(line, "clocks are held down: %s", clock_events[i].name);
        line_end(writer, COLOR_ALARM);
    }
}

struct page_row {
    const struct view_process *process;
    const struct live_program *program;
    uint32_t gpu;
};

static int number_compare(double a, double b)
{
    return a < b ? 1 : a > b ? -1 : 0;
}

static double row_memory(const struct page_row *row)
{
    return row->process->use.has_used_bytes ? (double)row->process->use.used_bytes : -1;
}

static double row_rate(const struct page_row *row)
{
    return row->program && row->program->has_rate ? row->program->kernels_per_s : -1;
}

static int row_compare(const void *left, const void *right, void *user)
{
    const struct page_row *a = left, *b = right;
    int order = 0;
    switch (*(const enum top_order *)user) {
    case TOP_BY_MEMORY:
        order = number_compare(row_memory(a), row_memory(b));
        break;
    case TOP_BY_KERNELS:
        order = number_compare(row_rate(a), row_rate(b));
        break;
    case TOP_BY_NAME:
        order = strcmp(a->process->identity.name, b->process->identity.name);
        break;
    case TOP_BY_GPU:
        order = number_compare(b->gpu, a->gpu);
        break;
    default:
        break;
    }
    order = order ? order : number_compare(b->process->use.pid, a->process->use.pid);
    return order ? order : number_compare(b->gpu, a->gpu);
}

static size_t rows_gather(struct page_row **out, const struct monitor_view *view, const struct live_kernels *live,
                          enum top_order order)
{
    size_t count = 0, at = 0;
    for (uint32_t i = 0; i < view->gpu_count; i++)
        count += view->gpus[i].process_count;
    *out = calloc(count + 1, sizeof **out);
    for (uint32_t i = 0; *out && i < view->gpu_count; i++)
        for (uint32_t j = 0; j < view->gpus[i].process_count; j++)
            (*out)[at++] = (struct page_row){.process = &view->gpus[i].processes[j],
                                             .program = live_kernels_find(live, view->gpus[i].processes[j].use.pid),
                                             .gpu = view->gpus[i].info.index};
    if (at)
        qsort_r(*out, at, sizeof **out, row_compare, &order);
    return at;
}

enum { AT_GPU = 10, AT_USED = 15, AT_RATE = 28, AT_PROGRAM = 40, AT_KERNEL = 62 };

static void row_write(struct page_writer *writer, const struct page_row *row)
{
    const struct gpu_process *use = &row->process->use;
    struct bytes *line = &writer->line;
    bytes_append_format(line, "%8u", use->pid);
    line_to(writer, AT_GPU);
    bytes_append_format(line, "%u", row->gpu);
    line_to(writer, AT_USED);
    bytes_append_text(line, use->has_used_bytes ? quantity_memory((double)use->used_bytes).text : "–");
    line_to(writer, AT_RATE);
    if (row->program && row->program->has_rate)
        bytes_append_text(line, quantity_count((uint64_t)(row->program->kernels_per_s + 0.5)).text);
    else
        bytes_append_text(line, row->program ? "–" : "");
    line_to(writer, AT_PROGRAM);
    name_append(writer, row->process->identity.name[0] ? row->process->identity.name : "(unknown)", PROGRAM_COLUMNS);
    line_to(writer, AT_KERNEL);
    if (row->program && row->program->top_kernel) {
        const char *name = live_kernel_name(row->program, row->program->top_kernel);
        size_t room = writer->page->columns > AT_KERNEL + 10 ? (size_t)(writer->page->columns - AT_KERNEL) : 10;
        if (name)
            text_kernel_name(line, name, strlen(name), room);
        else
            bytes_append_format(line, "kernel %u", row->program->top_kernel);
    }
    line_end(writer, NULL);
}

static void processes_write(struct page_writer *writer, const struct monitor_view *view,
                            const struct live_kernels *live)
{
    struct page_row *rows;
    size_t count = rows_gather(&rows, view, live, writer->page->order);
    int room = writer->page->rows ? writer->page->rows - writer->lines - 4 : INT32_MAX;
    line_end(writer, NULL);
    if (!count) {
        bytes_append_text(&writer->line, "no process on a GPU");
        line_end(writer, COLOR_DIM);
    } else {
        bytes_append_text(&writer->line, "     PID  GPU  memory       kernels/s   program               kernel");
        line_end(writer, COLOR_DIM);
    }
    size_t shown = room <= 0 ? 0 : count > (size_t)room ? (size_t)room : count;
    for (size_t i = 0; i < shown; i++)
        row_write(writer, &rows[i]);
    if (shown < count && shown) {
        bytes_append_format(&writer->line, "and %zu more", count - shown);
        line_end(writer, COLOR_DIM);
    }
    free(rows);
}

void top_page_write(struct bytes *out, const struct host_watch *watch, const struct live_kernels *live,
                    const struct top_page *page)
{
    struct page_writer writer = {.out = out, .page = page};
    header_write(&writer, &watch->view);
    line_end(&writer, NULL);
    if (watch->view.gpu_count) {
        gpu_heads_write(&writer);
    } else {
        bytes_append_text(&writer.line, "no GPUs: ");
        sentence_append(&writer, watch->problem.text, COLOR_ALARM);
    }
    for (uint32_t i = 0; i < watch->view.gpu_count; i++)
        gpu_write(&writer, &watch->view.gpus[i]);
    processes_write(&writer, &watch->view, live);
    if (page->rows) {
        while (writer.lines < page->rows - 1)
            line_end(&writer, NULL);
        bytes_append_format(&writer.line, "q quits · by %s; sort by m memory, k kernels, p pid, n name, g gpu",
                            top_order_names[page->order]);
        line_end(&writer, COLOR_DIM);
    }
    bytes_free(&writer.line);
}

void top_json_write(struct bytes *out, const struct host_watch *watch, const struct live_kernels *live)
{
    bytes_append_char(out, '{');
    host_watch_json(out, watch);
    json_key(out, "traced");
    bytes_append_char(out, '[');
    bool is_first = true;
    for (uint32_t i = 0; i < live->count; i++) {
        const struct live_program *program = &live->programs[i];
        if (program->fd < 0)
            continue;
        bytes_append_text(out, is_first ? "{" : ",{");
        is_first = false;
        json_key(out, "pid");
        json_uint(out, program->pid);
        json_key(out, "session_id");
        json_text(out, program->session_id);
        json_key(out, "kernels_per_s");
        if (program->has_rate)
            json_double(out, program->kernels_per_s);
        else
            json_text(out, NULL);
        json_key(out, "top_kernel");
        json_text(out, program->top_kernel ? live_kernel_name(program, program->top_kernel) : NULL);
        bytes_append_char(out, '}');
    }
    bytes_append_text(out, "]}\n");
}
