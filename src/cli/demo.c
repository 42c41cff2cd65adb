/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/installation.h"
#include "cli/report.h"
#include "cli/trace.h"
#include "driver/cuda.h"

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

static int show_live(char *program)
{
    const char *base = getenv("TMPDIR");
    char dir[256], session[PATH_MAX];
    snprintf(dir, sizeof dir, "%s/gpufl-demo-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(dir)) {
        command_error("demo", "cannot make a directory in %s", base && *base ? base : "/tmp");
        return EXIT_ENVIRONMENT;
    }
    char *argv[] = {program, NULL};
    struct trace_request request = {
        .command = "demo", .argv = argv, .engine = "Trace", .name = "gpufl-demo", .dir = dir, .sample_ms = 100};
    printf("tracing %s\n", program);
    int code = trace_run(&request, session);
    if (code != EXIT_GOOD || !session[0])
        return code != EXIT_GOOD ? code : EXIT_ENVIRONMENT;
    struct session_model *model = report_load("demo", session);
    if (!model)
        return EXIT_ENVIRONMENT;
    code = print_report(model);
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

int command_demo(int argc, char **argv)
{
    static const char *const programs[] = {"gpufl-demo-app", "../libexec/gpufl/gpufl-demo-app", NULL};
    static const char *const recordings[] = {"../../examples/recorded/h200-training",
                                             "../share/gpufl/examples/recorded/h200-training", NULL};
    struct arguments arguments;
    int code = command_parse("demo", argc, argv, &arguments);
    if (code >= 0)
        return code;
    char path[PATH_MAX];
    const char *reason = "the example program was not built here";
    if (!has_gpu())
        reason = "no usable GPU; see `gpufl doctor`";
    else if (installation_find(path, programs))
        return show_live(path);
    if (installation_find(path, recordings))
        return show_recorded(path, reason);
    command_error("demo", "nothing to trace (%s), and the recorded session is not installed", reason);
    return EXIT_ENVIRONMENT;
}
