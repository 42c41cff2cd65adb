/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/demo_recordings.h"
#include "cli/demo_server.h"
#include "cli/installation.h"
#include "cli/report.h"
#include "cli/temporary.h"
#include "cli/trace.h"
#include "driver/cuda.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool has_gpu(void)
{
    struct cuda *cuda;
    return cuda_load(&cuda, true, NULL) == GPUFL_OK && cuda_initialize(cuda, NULL) == GPUFL_OK &&
           cuda_device_count(cuda) > 0;
}

static int print_report(struct session_model *model)
{
    struct report_options options = report_options_for(STDOUT_FILENO, "auto");
    struct bytes text = {0};
    bool is_printed = report_text(model, &options, &text) == GPUFL_OK && !text.failed &&
                      fwrite(text.data, 1, text.size, stdout) == text.size;
    bytes_free(&text);
    return is_printed ? EXIT_GOOD : EXIT_ENVIRONMENT;
}

/* session: PATH_MAX bytes, where the trace is. */
static int show_live(char *program, const char *dir, char *session)
{
    char *argv[] = {program, NULL};
    struct trace_request request = {.command = "demo",
                                    .argv = argv,
                                    .engine = "Trace",
                                    .name = "gpufl-demo",
                                    .dir = dir,
                                    .sample_ms = 100,
                                    .is_quiet = true};
    printf("tracing %s\n", program);
    int code = trace_run(&request, session);
    if (code != EXIT_GOOD || !session[0])
        return code != EXIT_GOOD ? code : EXIT_ENVIRONMENT;
    struct session_model *model = report_load("demo", session);
    if (!model)
        return EXIT_ENVIRONMENT;
    /* A trace without kernels (CUPTI refused, for example) shows nothing. */
    code = model->kernels.count ? print_report(model) : EXIT_ENVIRONMENT;
    session_free(model);
    return code;
}

static int show_recorded(const char *dir, const char *reason)
{
    struct session_model *model = report_load("demo", dir);
    if (!model)
        return EXIT_ENVIRONMENT;
    const char *gpu = model->device_count && model->devices[0].name ? model->devices[0].name : "a GPU";
    char when[32] = "at an unknown time";
    if (model->job.start_ns != TIME_UNKNOWN) {
        time_t seconds = (time_t)(model->job.start_ns / 1000000000);
        struct tm utc;
        if (gmtime_r(&seconds, &utc))
            strftime(when, sizeof when, "on %Y-%m-%d", &utc);
    }
    printf("A recording, not this machine (%s): %s on %s, made %s.\n\n", reason,
           model->job.app && *model->job.app ? model->job.app : "a program", gpu, when);
    int code = print_report(model);
    session_free(model);
    return code;
}

/* Where nobody can press Ctrl-C, it ends by itself. */
static bool ends_by_itself(const struct arguments *arguments)
{
    const char *ci = getenv("CI");
    bool is_attended = (isatty(STDIN_FILENO) || isatty(STDOUT_FILENO)) && !(ci && *ci);
    return arguments_has(arguments, "once") || (!is_attended && !arguments_has(arguments, "stay"));
}

static int show_server(const struct arguments *arguments, struct demo_request *request)
{
    const char *missing = demo_server_missing();
    if (missing) {
        printf("\nNo server in this installation: %s\n", missing);
        return EXIT_GOOD;
    }
    request->port = arguments_number(arguments, "port", -1);
    request->is_once = ends_by_itself(arguments);
    int code = demo_serve(request);
    if (code == EXIT_GOOD && request->is_once && !arguments_has(arguments, "once"))
        printf("It ended by itself because nobody is at a terminal; --stay keeps it.\n");
    return code;
}

/* The live session, where there is one, and all recorded ones. */
static int show_sessions(const struct arguments *arguments, const struct demo_recordings *recordings, const char *live,
                         const char *dir)
{
    struct demo_request request = {.dir = dir};
    _Static_assert(DEMO_RECORDINGS_MAX + 1 <= DEMO_SESSIONS_MAX, "every recording and the live session have room");
    for (size_t i = 0; i < recordings->count; i++)
        request.sessions[request.session_count++] = recordings->paths[i];
    if (live[0])
        request.sessions[request.session_count++] = live;
    if (recordings->left_out)
        printf("\nOnly %zu recorded sessions are sent to the server; %zu more are left out.\n", recordings->count,
               recordings->left_out);
    fflush(stdout);
    return show_server(arguments, &request);
}

int command_demo(int argc, char **argv)
{
    static const char *const programs[] = {"gpufl-demo-app", "../libexec/gpufl/gpufl-demo-app", NULL};
    static struct demo_recordings recordings; /* too large for the stack */
    struct arguments arguments;
    int code = command_parse("demo", argc, argv, &arguments);
    if (code >= 0)
        return code;
    if (arguments_has(&arguments, "once") && arguments_has(&arguments, "stay")) {
        command_error("demo", "--once and --stay exclude each other");
        return EXIT_USAGE;
    }
    char program[PATH_MAX], live[PATH_MAX] = "", dir[256];
    const char *reason = "the example program was not built here";
    struct problem problem = {""};
    bool is_live = false, has_recording = demo_recordings_find(&recordings, &problem) == GPUFL_OK;
    if (!has_gpu())
        reason = "no usable GPU; see `gpufl doctor`";
    else
        is_live = installation_find(program, programs);
    if (!is_live && !has_recording) {
        command_error("demo", "nothing to trace (%s), and nothing to show: %s", reason, problem.text);
        return EXIT_ENVIRONMENT;
    }
    if (!temporary_directory_make("demo", dir))
        return EXIT_ENVIRONMENT;
    code = is_live ? show_live(program, dir, live) : EXIT_GOOD;
    if (code != EXIT_GOOD && code != EXIT_SIGNAL_BASE + SIGINT && has_recording) {
        printf("The live trace failed with status %d (see `gpufl doctor`); here is a recorded session instead.\n\n",
               code);
        is_live = false;
        live[0] = '\0';
        reason = "the live trace failed";
    }
    if (!is_live)
        code = show_recorded(recordings.paths[0], reason);
    if (code == EXIT_GOOD && !arguments_has(&arguments, "no-server"))
        code = show_sessions(&arguments, &recordings, live, dir);
    temporary_directory_remove("demo", dir);
    return code;
}
