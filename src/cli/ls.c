/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/message.h"
#include "analysis/quantity.h"
#include "analysis/session_facts.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum column { NAME, STARTED, PROGRAM, ENGINE, DURATION, KERNELS, STATE, SIZE, COLUMN_COUNT };
static const char *const titles[COLUMN_COUNT] = {"NAME", "STARTED", "PROGRAM", "ENGINE",
                                                 "TIME", "KERNELS", "STATE",   "SIZE"};
static const bool is_number[COLUMN_COUNT] = {[DURATION] = true, [KERNELS] = true, [SIZE] = true};
enum { GAP = 2, CELL_SIZE = SESSION_PATH_SIZE };

struct row {
    char cells[COLUMN_COUNT][CELL_SIZE];
};

struct table {
    struct row *rows; /* owned */
    size_t count;
    size_t widths[COLUMN_COUNT]; /* 0: the column is left out */
};

static int compare_names(const void *left, const void *right)
{
    return strcmp((*(const struct session_place *const *)left)->name,
                  (*(const struct session_place *const *)right)->name);
}

/* Two directories can hold sessions of one name; a path tells them apart, and every command takes it. */
static bool mark_same_names(const struct session_scan *scan, bool *is_shared)
{
    const struct session_place **order = calloc(scan->count + 1, sizeof *order);
    if (!order)
        return false;
    for (size_t i = 0; i < scan->count; i++)
        order[i] = &scan->items[i];
    qsort(order, scan->count, sizeof *order, compare_names);
    for (size_t i = 1; i < scan->count; i++)
        if (strcmp(order[i]->name, order[i - 1]->name) == 0)
            is_shared[order[i] - scan->items] = is_shared[order[i - 1] - scan->items] = true;
    free(order);
    return true;
}

static void cell_text(char *cell, const char *text)
{
    struct bytes safe = {0};
    text_escape(&safe, text, strlen(text));
    snprintf(cell, CELL_SIZE, "%s", *text ? bytes_text(&safe) : "-");
    bytes_free(&safe);
}

static void write_name(char *cell, const struct session_place *place, bool is_shared)
{
    const char *slash = strrchr(place->path, '/');
    char path[SESSION_PATH_SIZE + SHORT_NAME_SIZE];
    if (!*place->name)
        cell_text(cell, place->path);
    else if (!is_shared || !slash)
        cell_text(cell, place->name);
    else {
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - place->path), place->path, place->name);
        cell_text(cell, path);
    }
}

/* 11-15 02:13, and the year instead of the time where it is another one. */
static void write_time(char *cell, int64_t ns, const struct tm *now)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm local;
    snprintf(cell, CELL_SIZE, "-");
    if (ns > 0 && localtime_r(&seconds, &local))
        strftime(cell, CELL_SIZE, local.tm_year == now->tm_year ? "%m-%d %H:%M" : "%Y-%m-%d", &local);
}

static void row_write(struct row *row, const struct session_facts *facts, bool is_shared, const struct tm *now)
{
    char(*cells)[CELL_SIZE] = row->cells;
    write_name(cells[NAME], &facts->place, is_shared);
    write_time(cells[STARTED], facts->start_ns != FACT_UNKNOWN ? facts->start_ns : facts->place.start_ns, now);
    cell_text(cells[PROGRAM], facts->app);
    cell_text(cells[ENGINE], facts->engine);
    snprintf(cells[DURATION], CELL_SIZE, "%s",
             facts->duration_ns == FACT_UNKNOWN ? "-" : quantity_time((double)facts->duration_ns).text);
    snprintf(cells[KERNELS], CELL_SIZE, "%s",
             facts->kernels == FACT_UNKNOWN ? "-"
                                            : quantity_count((uint64_t)(facts->kernels + facts->untimed_kernels)).text);
    if (facts->state == SESSION_LOSSES)
        snprintf(cells[STATE], CELL_SIZE, "%s lost", quantity_count((uint64_t)facts->lost).text);
    else
        snprintf(cells[STATE], CELL_SIZE, "%s", session_state_word(facts->state));
    snprintf(cells[SIZE], CELL_SIZE, "%s", quantity_bytes((double)facts->bytes).text);
}

static size_t width_of(const char *text)
{
    return text_columns(text, strlen(text));
}

static size_t total_width(const struct table *table)
{
    size_t total = 0;
    for (int i = 0; i < COLUMN_COUNT; i++)
        total += table->widths[i] ? table->widths[i] + (i ? GAP : 0) : 0;
    return total;
}

/* Long names give way first; then what the name says too, and the size, are left out. */
static void fit(struct table *table, size_t columns)
{
    static const struct {
        enum column column;
        size_t least;
    } steps[] = {{PROGRAM, 8}, {NAME, 16}, {PROGRAM, 0}, {ENGINE, 8}, {SIZE, 0}, {ENGINE, 0}, {NAME, 8}};
    for (int i = 0; i < COLUMN_COUNT; i++) {
        table->widths[i] = strlen(titles[i]);
        for (size_t row = 0; row < table->count; row++) {
            size_t width = width_of(table->rows[row].cells[i]);
            table->widths[i] = width > table->widths[i] ? width : table->widths[i];
        }
    }
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        size_t total = total_width(table), *width = &table->widths[steps[i].column];
        if (total <= columns || *width <= steps[i].least)
            continue;
        size_t excess = total - columns;
        *width = steps[i].least && *width > excess + steps[i].least ? *width - excess : steps[i].least;
    }
}

static void print_line(const struct table *table, const char *(*cell)(const void *, int), const void *user)
{
    struct bytes line = {0};
    for (int i = 0; i < COLUMN_COUNT; i++) {
        const char *text = cell(user, i);
        size_t width = width_of(text), column = table->widths[i];
        if (!column)
            continue;
        for (size_t at = 0; i && at < GAP; at++)
            bytes_append_char(&line, ' ');
        for (size_t at = width; is_number[i] && at < column; at++)
            bytes_append_char(&line, ' ');
        text_cut(&line, text, strlen(text), column);
        for (size_t at = width; !is_number[i] && at < column; at++)
            bytes_append_char(&line, ' ');
    }
    while (line.size && line.data[line.size - 1] == ' ')
        line.size--;
    bytes_append_char(&line, '\n');
    if (!line.failed)
        fwrite(line.data, 1, line.size, stdout);
    bytes_free(&line);
}

static const char *title_cell(const void *user, int column)
{
    (void)user;
    return titles[column];
}

static const char *row_cell(const void *user, int column)
{
    return ((const struct row *)user)->cells[column];
}

static int print_table(const struct session_scan *scan)
{
    struct table table = {.rows = calloc(scan->count, sizeof *table.rows), .count = scan->count};
    bool *is_shared = calloc(scan->count, sizeof *is_shared);
    int code = table.rows && is_shared && mark_same_names(scan, is_shared) ? EXIT_GOOD : EXIT_ENVIRONMENT;
    int64_t now_ns = clock_wall_ns();
    time_t seconds = (time_t)(now_ns / 1000000000);
    struct tm now = {0};
    localtime_r(&seconds, &now);
    for (size_t i = 0; code == EXIT_GOOD && i < scan->count; i++) {
        struct session_facts facts;
        session_facts_read(&facts, &scan->items[i], now_ns);
        row_write(&table.rows[i], &facts, is_shared[i], &now);
    }
    if (code == EXIT_GOOD) {
        /* Names in a pipe are whole: programs read them. */
        fit(&table, isatty(STDOUT_FILENO) ? (size_t)terminal_columns(STDOUT_FILENO, 80) : SIZE_MAX);
        print_line(&table, title_cell, NULL);
        for (size_t i = 0; i < table.count; i++)
            print_line(&table, row_cell, &table.rows[i]);
    } else {
        command_error("ls", "out of memory");
    }
    free(is_shared);
    free(table.rows);
    return code;
}

static int print_json(const struct session_scan *scan)
{
    struct bytes out = {0};
    int64_t now_ns = clock_wall_ns();
    bytes_append_char(&out, '[');
    for (size_t i = 0; i < scan->count; i++) {
        struct session_facts facts;
        session_facts_read(&facts, &scan->items[i], now_ns);
        bytes_append_text(&out, i ? ",\n" : "\n");
        session_facts_json(&out, &facts);
    }
    bytes_append_text(&out, scan->count ? "\n]\n" : "]\n");
    bool is_printed = !out.failed && fwrite(out.data, 1, out.size, stdout) == out.size;
    if (out.failed)
        command_error("ls", "out of memory");
    bytes_free(&out);
    return is_printed ? EXIT_GOOD : EXIT_ENVIRONMENT;
}

int command_ls(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("ls", argc, argv, &arguments);
    if (code >= 0)
        return code;
    struct session_scan scan;
    struct problem problem = {""};
    const char *dir = arguments.operands[0];
    gpufl_status status = dir ? session_scan_find(&scan, dir, &problem) : session_scan_find_here(&scan, &problem);
    if (status != GPUFL_OK) {
        command_error("ls", "%s", problem.text);
        return EXIT_ENVIRONMENT;
    }
    session_scan_name(&scan);
    if (arguments_has(&arguments, "json"))
        code = print_json(&scan);
    else if (scan.count)
        code = print_table(&scan);
    else {
        message_print(stderr, "gpufl: no sessions in %s. Record one: gpufl trace -- CMD", dir ? dir : "this directory");
        code = EXIT_GOOD;
    }
    session_scan_free(&scan);
    return code;
}
