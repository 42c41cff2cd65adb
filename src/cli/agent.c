/* SPDX-License-Identifier: Apache-2.0 */
#include "base/upload_library.h"
#include "cli/agent_settings.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "format/json.h"
#include "logfile/reader.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef gpufl_status (*agent_run_fn)(const struct agent_options *options, struct agent_result *result,
                                     struct problem *problem);

static const char module_mark[] = "an address in this program";

static atomic_bool is_stopping;
static int wake_fd = -1;

/* Async-signal-safe. */
static void on_signal(int number)
{
    (void)number;
    const uint64_t one = 1;
    atomic_store(&is_stopping, true);
    ssize_t ignored = write(wake_fd, &one, sizeof one);
    (void)ignored;
}

static void on_log(void *user, gpufl_log_level level, const char *text)
{
    const bool *is_quiet = user;
    if (level == GPUFL_LOG_ERROR || !*is_quiet)
        command_error("agent", "%s", text);
}

static void handle_signals(void)
{
    /* A second Ctrl-C ends the program at once. */
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL); /* a file size limit is a full disk, not an end */
}

/* How much --once will read, for the progress line. */
static uint64_t bytes_below(const struct agent_options *options)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < options->root_count; i++) {
        struct session_list list;
        if (session_list_find(&list, options->roots[i], NULL) != GPUFL_OK)
            continue;
        for (size_t k = 0; k < list.count; k++)
            bytes += directory_bytes(list.paths[k]);
        session_list_free(&list);
    }
    return bytes;
}

static void print_result(const struct agent_result *result, const struct problem *problem, bool is_json)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {{"sessions", result->sessions},
                   {"windows", result->windows},
                   {"lines", result->lines},
                   {"bytes", result->bytes},
                   {"left_out_lines", result->left_out_lines},
                   {"missing_lines", result->missing_lines},
                   {"damaged_sessions", result->damaged_sessions},
                   {"left_out_windows", result->left_out_windows},
                   {"quarantined_windows", result->quarantined_windows},
                   {"rejected_lines", result->rejected_lines},
                   {"dropped_lines", result->dropped_lines},
                   {"waiting_sessions", result->waiting_sessions}};
    if (!is_json) {
        printf("%" PRIu64 " lines in %" PRIu64 " windows sent, %.1f MB; %" PRIu64 " sessions completed, %" PRIu64
               " waiting\n",
               result->lines, result->windows, (double)result->bytes / 1e6, result->sessions, result->waiting_sessions);
        return;
    }
    struct bytes out = {0};
    bytes_append_char(&out, '{');
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        json_key(&out, numbers[i].name);
        json_uint(&out, numbers[i].value);
    }
    json_key(&out, "message");
    json_text(&out, problem->text);
    bytes_append_text(&out, "}\n");
    fputs(bytes_text(&out), stdout);
    bytes_free(&out);
}

static int exit_code_of(gpufl_status status, const struct agent_options *options, const struct agent_result *result)
{
    if (status == GPUFL_E_INVALID)
        return EXIT_USAGE;
    if (status != GPUFL_OK)
        return EXIT_ENVIRONMENT;
    bool is_whole = !result->quarantined_windows && !result->rejected_lines && !result->left_out_lines &&
                    !result->damaged_sessions && !result->left_out_windows && !result->dropped_lines &&
                    !result->waiting_sessions;
    return options->is_once && !is_whole ? EXIT_ANSWER_NO : EXIT_GOOD;
}

static int run(struct agent_settings *settings, const struct arguments *arguments)
{
    struct problem problem = {""};
    struct agent_result result = {0};
    void *found = upload_library_symbol(module_mark, "gpufl_agent_run", &problem);
    agent_run_fn agent_run = NULL;
    memcpy(&agent_run, &found, sizeof agent_run);
    if (!agent_run) {
        command_error("agent", "%s", problem.text);
        return EXIT_ENVIRONMENT;
    }
    bool is_quiet = arguments_has(arguments, "quiet");
    struct agent_options *options = &settings->options;
    handle_signals();
    options->log_fn = on_log;
    options->log_user = &is_quiet;
    options->is_stopping = &is_stopping;
    options->wake_fd = wake_fd;
    struct progress *progress = options->is_once ? progress_start("sending", bytes_below(options)) : NULL;
    gpufl_status status = agent_run(options, &result, &problem);
    progress_finish(progress);
    if (status != GPUFL_OK)
        command_error("agent", "%s", problem.text);
    if (options->is_once && (arguments_has(arguments, "json") || (status == GPUFL_OK && !is_quiet)))
        print_result(&result, &problem, arguments_has(arguments, "json"));
    return exit_code_of(status, options, &result);
}

int command_agent(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("agent", argc, argv, &arguments);
    if (code >= 0)
        return code;
    struct agent_settings settings;
    struct problem problem = {""};
    if (agent_settings_read(&settings, &arguments, &problem) != GPUFL_OK) {
        command_error("agent", "%s", problem.text);
        code = EXIT_USAGE;
    } else if (arguments_has(&arguments, "json") && !settings.options.is_once) {
        command_error("agent", "--json requires --once");
        code = EXIT_USAGE;
    } else {
        code = run(&settings, &arguments);
    }
    agent_settings_free(&settings);
    return code;
}
