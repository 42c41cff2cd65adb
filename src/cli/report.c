/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include "analysis/message.h"
#include "analysis/quantity.h"
#include "cli/command.h"
#include "cli/session_operand.h"
#include "cli/terminal.h"
#include "export/output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { NO_TERMINAL = -1, HTML_TOP = 50 /* rows per table */ };

struct session_model *report_load(const char *command, const char *word)
{
    struct session_model *model = NULL;
    struct problem problem = {""};
    struct session_choice choice;
    const char *session = session_operand(command, word, &choice);
    if (!session)
        return NULL;
    struct progress *progress = progress_start("reading the session", directory_bytes(session));
    gpufl_status status = session_load(&model, session, &problem);
    progress_finish(progress);
    if (status == GPUFL_OK)
        return model;
    command_error(command, "%s", problem.text);
    return NULL;
}

struct report_options report_options_for(int fd, const char *color)
{
    struct report_options options = {0};
    options.top = 10;
    options.use_color = terminal_use_color(fd, color);
    options.columns = terminal_columns(fd, 100);
    options.may_run_tools = true;
    return options;
}

static gpufl_status write_all(int fd, const struct bytes *text, const char *what, struct problem *problem)
{
    for (size_t done = 0; done < text->size;) {
        ssize_t size = write(fd, text->data + done, text->size - done);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return problem_set(problem, GPUFL_E_IO, "cannot write to %s: %s", what, strerror(errno));
        done += (size_t)size;
    }
    return GPUFL_OK;
}

/* The file appears when it is whole; until then what was there stays. file: NULL is standard output. */
static int text_put(const char *file, const struct bytes *text)
{
    struct output_file output;
    struct problem problem = {""};
    gpufl_status status = output_open(&output, file ? file : "-", true, NULL, &problem);
    if (status == GPUFL_OK) {
        status = write_all(output.fd, text, file ? file : "standard output", &problem);
        if (status == GPUFL_OK)
            status = output_commit(&output, &problem);
        output_discard(&output);
    }
    if (status != GPUFL_OK)
        command_error("report", "%s", problem.text);
    return status == GPUFL_OK ? EXIT_GOOD : EXIT_ENVIRONMENT;
}

/* The text that was asked for; a failure is printed already. */
static bool report_write(const struct session_model *model, const struct arguments *arguments,
                         const struct report_options *options, struct bytes *text)
{
    const char *function = arguments_text(arguments, "code", NULL);
    struct problem problem = {"out of memory"};
    gpufl_status status;
    if (function)
        status = report_code(model, function, options, text, &problem);
    else if (arguments_has(arguments, "html"))
        status = report_html(model, options, text);
    else if (arguments_has(arguments, "json"))
        status = report_json(model, options, text);
    else
        status = report_text(model, options, text);
    if (status != GPUFL_OK)
        command_error("report", "%s", problem.text);
    return status == GPUFL_OK;
}

/* False: options that exclude each other, which is printed. */
static bool usage_check(const struct arguments *arguments)
{
    static const char *const with_html[] = {"json", "code", "output"};
    if (arguments_has(arguments, "code") && arguments_has(arguments, "json")) {
        command_error("report", "--code prints text only; --json holds the same instructions under deep.lines");
        return false;
    }
    for (size_t i = 0; i < sizeof with_html / sizeof *with_html; i++)
        if (arguments_has(arguments, "html") && arguments_has(arguments, with_html[i])) {
            command_error("report", "--html and --%s exclude each other", with_html[i]);
            return false;
        }
    return true;
}

int command_report(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("report", argc, argv, &arguments);
    if (code >= 0)
        return code;
    if (!usage_check(&arguments))
        return EXIT_USAGE;
    const char *html = arguments_text(&arguments, "html", NULL);
    const char *file = html ? html : arguments_text(&arguments, "output", NULL);
    struct session_model *model = report_load("report", arguments.operands[0]);
    if (!model)
        return EXIT_ENVIRONMENT;
    struct bytes text = {0};
    struct report_options options =
        report_options_for(file ? NO_TERMINAL : STDOUT_FILENO, arguments_text(&arguments, "color", "auto"));
    options.top = (int)arguments_number(&arguments, "top", html ? HTML_TOP : options.top);
    options.is_wide = arguments_has(&arguments, "wide");
    code = report_write(model, &arguments, &options, &text) ? text_put(file, &text) : EXIT_ENVIRONMENT;
    if (code == EXIT_GOOD && file && strcmp(file, "-") != 0)
        message_print(stderr, "gpufl: %s · %s%s", quantity_bytes((double)text.size).text, file,
                      html ? ". Open it in a browser" : "");
    bytes_free(&text);
    session_free(model);
    return code;
}
