/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

#include "export/output.h"
#include "export/writers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

const char *const export_format_names[] = {[EXPORT_CHROME] = "chrome",       [EXPORT_PERFETTO] = "perfetto",
                                           [EXPORT_SQLITE] = "sqlite",       [EXPORT_CSV] = "csv",
                                           [EXPORT_PPROF] = "pprof",         [EXPORT_SPEEDSCOPE] = "speedscope",
                                           [EXPORT_COLLAPSED] = "collapsed", [EXPORT_OTLP] = "otlp",
                                           [EXPORT_FORMAT_COUNT] = NULL};

/* A longer extension precedes one that is its suffix. */
static const struct {
    const char *ending;
    enum export_format format;
} endings[] = {
    {".speedscope.json", EXPORT_SPEEDSCOPE},
    {".otlp.json", EXPORT_OTLP},
    {".jsonl", EXPORT_OTLP},
    {".json", EXPORT_CHROME},
    {".pftrace", EXPORT_PERFETTO},
    {".perfetto-trace", EXPORT_PERFETTO},
    {".sqlite", EXPORT_SQLITE},
    {".sqlite3", EXPORT_SQLITE},
    {".db", EXPORT_SQLITE},
    {".csv", EXPORT_CSV},
    {"/", EXPORT_CSV},
    {".pb", EXPORT_PPROF},
    {".pprof", EXPORT_PPROF},
    {".collapsed", EXPORT_COLLAPSED},
    {".folded", EXPORT_COLLAPSED},
};

static bool text_ends(const char *text, size_t size, const char *ending)
{
    size_t ending_size = strlen(ending);
    return size > ending_size && strncasecmp(text + size - ending_size, ending, ending_size) == 0;
}

bool export_format_guess(const char *output, enum export_format *format)
{
    size_t size = strlen(output);
    if (text_ends(output, size, ".gz"))
        size -= 3;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (text_ends(output, size, endings[i].ending)) {
            *format = endings[i].format;
            return true;
        }
    }
    return false;
}

const char *const *export_table_names(void)
{
    enum { TABLES_MAX = 32 };
    static const char *names[TABLES_MAX];
    for (size_t i = 0; i < TABLES_MAX - 1 && export_tables[i]; i++)
        names[i] = export_tables[i]->name;
    return names;
}

/* The approximate number of rows that a sink will count: each kernel counts itself and its call, and in Perfetto the
 * ends of both. */
static struct sink_progress progress_of(const struct session_model *model, const struct export_options *options)
{
    uint64_t factor = options->format == EXPORT_PERFETTO                                   ? 4
                      : options->format == EXPORT_CHROME || options->format == EXPORT_OTLP ? 2
                                                                                           : 1;
    struct sink_progress progress = {.on_share = options->on_share, .user = options->user};
    for (size_t i = 0; export_tables[i]; i++)
        if (!options->table || strcmp(options->table, export_tables[i]->name) == 0)
            progress.rows_expected += factor * export_tables[i]->count(model);
    return progress;
}

static gpufl_status format_write(struct export_sink *sink, const struct export_filter *filter,
                                 const struct export_options *options, const struct export_table *table)
{
    switch (options->format) {
    case EXPORT_CHROME:
        return chrome_write(sink, filter);
    case EXPORT_PERFETTO:
        return perfetto_write(sink, filter);
    case EXPORT_PPROF:
        return pprof_write(sink, filter, options->group);
    case EXPORT_SPEEDSCOPE:
        return speedscope_write(sink, filter, options->group);
    case EXPORT_COLLAPSED:
        return collapsed_write(sink, filter, options->group);
    case EXPORT_OTLP:
        return otlp_write(sink, filter);
    case EXPORT_CSV:
        csv_write(sink, filter, table);
        return GPUFL_OK;
    default:
        return GPUFL_E_INVALID;
    }
}

static gpufl_status file_export(const char *path, const struct export_filter *filter,
                                const struct export_options *options, const struct export_table *table,
                                struct export_result *result, struct problem *problem)
{
    struct output_file file;
    struct export_sink sink;
    gpufl_status status = output_open(&file, path, options->may_replace, options->on_temporary, problem);
    if (status != GPUFL_OK)
        return status;
    bool is_gzip = options->format == EXPORT_PPROF || text_ends(path, strlen(path), ".gz");
    status = sink_open(&sink, file.fd, is_gzip);
    if (status == GPUFL_OK) {
        sink.progress = progress_of(filter->model, options);
        sink.progress.rows_before = result->rows;
        status = format_write(&sink, filter, options, table);
        gpufl_status closed = sink_close(&sink, strcmp(path, "-") == 0 ? "standard output" : path, problem);
        result->bytes += sink.written;
        result->rows += sink.rows;
        if (closed != GPUFL_OK) {
            output_discard(&file);
            return closed;
        }
    }
    if (status != GPUFL_OK) {
        output_discard(&file);
        return problem_set(problem, status, "out of memory");
    }
    return output_commit(&file, problem);
}

static gpufl_status sqlite_export(const struct export_filter *filter, const struct export_options *options,
                                  struct export_result *result, struct problem *problem)
{
    struct output_file file;
    if (strcmp(options->output, "-") == 0)
        return problem_set(problem, GPUFL_E_INVALID, "a database cannot be written to standard output; use -o FILE");
    gpufl_status status = output_open(&file, options->output, options->may_replace, options->on_temporary, problem);
    if (status != GPUFL_OK)
        return status;
    struct sink_progress progress = progress_of(filter->model, options);
    status = file.is_stream ? problem_set(problem, GPUFL_E_INVALID,
                                          "%.400s is not a regular file, so it cannot hold a database", options->output)
                            : sqlite_write(file.temporary, filter, &progress, &result->rows, problem);
    struct stat info;
    if (status == GPUFL_OK && fstat(file.fd, &info) == 0)
        result->bytes = (uint64_t)info.st_size;
    if (status == GPUFL_OK)
        return output_commit(&file, problem);
    output_discard(&file);
    return status;
}

/* Writes one file for each table with rows. */
static gpufl_status directory_export(const struct export_filter *filter, const struct export_options *options,
                                     struct export_result *result, struct problem *problem)
{
    if (strcmp(options->output, "-") == 0)
        return problem_set(
            problem, GPUFL_E_INVALID,
            "standard output can have only one table; select it with --table NAME, or use -o DIR for all");
    struct stat info;
    if (stat(options->output, &info) == 0 && !S_ISDIR(info.st_mode))
        return problem_set(problem, GPUFL_E_INVALID,
                           "%.400s is not a directory; --table NAME writes one table to a file, -o DIR takes all",
                           options->output);
    bool is_made = mkdir(options->output, 0777) == 0;
    if (!is_made && errno != EEXIST)
        return problem_set(problem, GPUFL_E_IO, "cannot make %.400s: %s", options->output, strerror(errno));
    if (!is_made && !options->may_replace)
        return problem_set(problem, GPUFL_E_BUSY, "%.400s already exists; --force writes into it", options->output);
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; export_tables[i] && status == GPUFL_OK; i++) {
        char path[PATH_MAX];
        int size = snprintf(path, sizeof path, "%s/%s.csv", options->output, export_tables[i]->name);
        if (size < 0 || (size_t)size >= sizeof path)
            status = problem_set(problem, GPUFL_E_INVALID, "the name of the output is too long");
        else if (export_tables[i]->count(filter->model) || options->may_replace)
            status = file_export(path, filter, options, export_tables[i], result, problem);
    }
    return status;
}

gpufl_status export_session(const struct session_model *model, const struct export_options *options,
                            struct export_result *result, struct problem *problem)
{
    struct export_filter filter;
    *result = (struct export_result){0};
    const struct export_table *table = options->table ? export_table_find(options->table) : NULL;
    if (options->table && (!table || options->format != EXPORT_CSV))
        return problem_set(problem, GPUFL_E_INVALID, table ? "--table requires --format csv" : "no such table");
    gpufl_status status = filter_make(&filter, model, options->scope, options->from_ms, options->to_ms, problem);
    if (status != GPUFL_OK)
        return status;
    if (options->format == EXPORT_SQLITE)
        status = sqlite_export(&filter, options, result, problem);
    else if (options->format == EXPORT_CSV && !table)
        status = directory_export(&filter, options, result, problem);
    else
        status = file_export(options->output, &filter, options, table, result, problem);
    filter_free(&filter);
    return status;
}
