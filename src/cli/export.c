/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

#include "analysis/message.h"
#include "analysis/quantity.h"
#include "analysis/report_page.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/terminal.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a signal has to remove. Written whole before it is pointed to, so that the handler never sees half of it. */
static char temporary_path[4096];
static volatile sig_atomic_t has_temporary;

static void temporary_note(const char *path)
{
    has_temporary = 0;
    if (!path || strlen(path) >= sizeof temporary_path)
        return;
    memcpy(temporary_path, path, strlen(path) + 1);
    has_temporary = 1;
}

static void share_tell(void *user, double share)
{
    progress_set(user, share);
}

static void on_end(int signal_number)
{
    if (has_temporary)
        unlink(temporary_path);
    static const char message[] = "\ngpufl export: interrupted; no half-written file is left\n";
    ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
    (void)written;
    _exit(EXIT_SIGNAL_BASE + signal_number);
}

static void signals_catch(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_end};
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

static bool milliseconds_read(const struct arguments *arguments, const char *name, double *out)
{
    const char *text = arguments_text(arguments, name, NULL);
    *out = NAN;
    if (!text)
        return true;
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    const double longest_ms = (double)INT64_MAX / 1e6; /* what the nanoseconds of a session have room for */
    if (end == text || *end || errno || !(value >= 0 && value < longest_ms)) {
        command_error("export", "--%s takes milliseconds since the session's start, not '%s'", name, text);
        return false;
    }
    *out = value;
    return true;
}

static bool format_read(const struct arguments *arguments, struct export_options *options)
{
    const char *name = arguments_text(arguments, "format", NULL);
    for (unsigned i = 0; name && export_format_names[i]; i++)
        if (strcmp(name, export_format_names[i]) == 0)
            options->format = (enum export_format)i;
    if (!name && arguments_has(arguments, "table"))
        options->format = EXPORT_CSV;
    else if (!name && !export_format_guess(options->output, &options->format)) {
        command_error(
            "export",
            "cannot tell the format from the name '%s'; give --format, or an extension such as .pftrace or .json",
            options->output);
        return false;
    }
    return true;
}

static bool table_is_known(const char *name)
{
    const char *const *names = export_table_names();
    struct bytes list = {0};
    bool is_known = false;
    for (size_t i = 0; names[i]; i++) {
        is_known = is_known || strcmp(name, names[i]) == 0;
        bytes_append_format(&list, "%s%s", i ? ", " : "", names[i]);
    }
    if (!is_known)
        command_error("export", "no table '%s'; choose %s", name, bytes_text(&list));
    bytes_free(&list);
    return is_known;
}

static bool options_read(const struct arguments *arguments, struct export_options *options)
{
    *options = (struct export_options){.output = arguments_text(arguments, "output", NULL),
                                       .may_replace = arguments_has(arguments, "force"),
                                       .table = arguments_text(arguments, "table", NULL),
                                       .scope = arguments_text(arguments, "scope", NULL),
                                       .on_temporary = temporary_note};
    if (!options->output) {
        command_error("export",
                      "-o FILE is missing (-o - writes to standard output)\n  example: gpufl export -o train.pftrace");
        return false;
    }
    if (!format_read(arguments, options) || !milliseconds_read(arguments, "from", &options->from_ms) ||
        !milliseconds_read(arguments, "to", &options->to_ms))
        return false;
    if (options->from_ms > options->to_ms) { /* false where one is not given */
        command_error("export", "--from %s is later than --to %s", arguments_text(arguments, "from", ""),
                      arguments_text(arguments, "to", ""));
        return false;
    }
    if (options->table && options->format != EXPORT_CSV) {
        command_error("export", "--table goes with --format csv");
        return false;
    }
    if (options->table && !table_is_known(options->table))
        return false;
    size_t size = strlen(options->output);
    if (options->format == EXPORT_CSV && !options->table && size > 4 &&
        strcmp(options->output + size - 4, ".csv") == 0) {
        command_error("export", "a file holds one table; --table NAME chooses it, -o DIR/ takes all");
        return false;
    }
    const char *by = arguments_text(arguments, "by", NULL);
    bool has_stacks =
        options->format == EXPORT_PPROF || options->format == EXPORT_SPEEDSCOPE || options->format == EXPORT_COLLAPSED;
    if (by && !has_stacks) {
        command_error("export", "--by goes with --format pprof, speedscope and collapsed");
        return false;
    }
    if (by)
        options->group = strcmp(by, "stack") == 0 ? EXPORT_BY_STACK : EXPORT_BY_SCOPE;
    return true;
}

/* The other tool shows no word of what is missing. */
static void warn_of_gaps(const struct session_model *model, const char *session)
{
    bool has_work = model->kernels.count || model->copy_count || model->memset_count || model->scope_count ||
                    model->sync_count || model->device_metrics.count || model->deep.untimed_count;
    if (!session_is_complete(model))
        command_error("export", "warning: the session is incomplete; for what is missing, run 'gpufl verify%s%s'",
                      session ? " " : "", session ? session : "");
    if (!has_work)
        command_error("export", "warning: the session is empty: it has no GPU work, no scopes and no samples");
}

int command_export(int argc, char **argv)
{
    struct arguments arguments;
    struct export_options options;
    int code = command_parse("export", argc, argv, &arguments);
    if (code >= 0)
        return code;
    if (!options_read(&arguments, &options))
        return EXIT_USAGE;
    bool is_standard_output = strcmp(options.output, "-") == 0;
    /* Names may hold what a terminal would obey; only collapsed stacks have them escaped. */
    if (is_standard_output && options.format != EXPORT_COLLAPSED && isatty(STDOUT_FILENO)) {
        command_error("export", "standard output is a terminal; -o FILE writes to a file");
        return EXIT_USAGE;
    }
    signals_catch();
    struct session_model *model = report_load("export", arguments.operands[0]);
    if (!model)
        return EXIT_ENVIRONMENT;
    warn_of_gaps(model, arguments.operands[0]);
    struct export_result result;
    struct problem problem = {""};
    struct progress *progress = progress_start("writing the export", 0);
    options.on_share = share_tell;
    options.user = progress;
    gpufl_status status = export_session(model, &options, &result, &problem);
    progress_finish(progress);
    if (status != GPUFL_OK)
        command_error("export", "%s", problem.text);
    else if (!is_standard_output)
        message_print(stderr, "gpufl: %s %s, %s · %s", quantity_count(result.rows).text,
                      options.format == EXPORT_CSV || options.format == EXPORT_SQLITE ? "rows" : "events",
                      quantity_bytes((double)result.bytes).text, options.output);
    session_free(model);
    return status == GPUFL_OK ? EXIT_GOOD : status == GPUFL_E_INVALID ? EXIT_USAGE : EXIT_ENVIRONMENT;
}
