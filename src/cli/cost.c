/* SPDX-License-Identifier: Apache-2.0 */
/* `gpufl cost`: runs a program alternately without and with recording, and compares the run times. */
#include "analysis/analysis.h"
#include "analysis/report.h"
#include "analysis/message.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/temporary.h"
#include "cli/trace.h"
#include "format/json.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <unistd.h>

enum { PAIRS_MAX = 100 };

struct cost_pair {
    double bare_s, recorded_s;
    double estimate; /* the session's own slowdown; NAN: it has none */
};

struct cost_run {
    char **argv;
    const char *engine;
    bool has_stacks;
    struct cost_pair pairs[PAIRS_MAX];
    int count;
};

/* The session's estimate; NAN where it has none. */
static double estimate_of(const char *session)
{
    struct session_model *model;
    struct analysis analysis;
    struct problem problem = {""};
    double estimate = (double)NAN;
    if (!*session || session_load(&model, session, &problem) != GPUFL_OK)
        return estimate;
    if (analysis_make_with(&analysis, model, CODE_UNREAD) == GPUFL_OK) {
        if (analysis.slowdown.is_known)
            estimate = analysis.slowdown.fraction;
        analysis_free(&analysis);
    }
    session_free(model);
    return estimate;
}

/* Its exit code; what the program prints is left out: it is run many times. */
static int bare_once(struct cost_run *run, struct cost_pair *pair)
{
    struct child_options options = {.argv = run->argv};
    struct child_result result = {0};
    struct problem problem = {""};
    gpufl_status status = child_run(&options, &result, &problem);
    if (status != GPUFL_OK) {
        command_error("cost", "%s", problem.text);
        return status == GPUFL_E_NOT_FOUND ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
    }
    pair->bare_s = (double)result.wall_ns / 1e9;
    return result.signal ? EXIT_SIGNAL_BASE + result.signal : result.exit_code;
}

static int recorded_once(struct cost_run *run, const char *dir, struct cost_pair *pair)
{
    char session[PATH_MAX];
    struct child_result result = {0};
    const struct trace_request request = {.command = "cost",
                                          .argv = run->argv,
                                          .engine = run->engine,
                                          .dir = dir,
                                          .sample_ms = -1,
                                          .has_stacks = run->has_stacks,
                                          .has_no_disassembly = true,
                                          .is_quiet = true,
                                          .result = &result};
    int code = trace_run(&request, session);
    pair->recorded_s = (double)result.wall_ns / 1e9;
    pair->estimate = estimate_of(session);
    return code;
}

static int run_pairs(struct cost_run *run, const char *dir, int pairs)
{
    for (run->count = 0; run->count < pairs; run->count++) {
        struct cost_pair *pair = &run->pairs[run->count];
        int bare = bare_once(run, pair);
        int recorded = bare ? bare : recorded_once(run, dir, pair);
        if (recorded && recorded != EXIT_NOT_FOUND && recorded != EXIT_NOT_EXECUTABLE)
            command_error("cost", "the program failed%s with exit status %d: its run times are not compared",
                          bare ? "" : " while it was recorded, and only then,", recorded);
        if (recorded)
            return recorded;
        message_print(stderr, "gpufl cost: pair %d of %d: %.2f s alone, %.2f s recorded", run->count + 1, pairs,
                      pair->bare_s, pair->recorded_s);
    }
    return 0;
}

struct cost_summary {
    double bare_s, recorded_s, slowdown, least, most, estimate; /* medians; estimate NAN: none */
};

static struct cost_summary summarize(const struct cost_run *run)
{
    double bare[PAIRS_MAX], recorded[PAIRS_MAX], slowdown[PAIRS_MAX], estimate[PAIRS_MAX];
    int estimates = 0;
    for (int i = 0; i < run->count; i++) {
        const struct cost_pair *pair = &run->pairs[i];
        bare[i] = pair->bare_s;
        recorded[i] = pair->recorded_s;
        slowdown[i] = pair->bare_s > 0 ? pair->recorded_s / pair->bare_s - 1 : 0;
        if (!isnan(pair->estimate))
            estimate[estimates++] = pair->estimate;
    }
    size_t count = (size_t)run->count;
    double median = median_of(slowdown, count); /* which sorts them */
    return (struct cost_summary){.bare_s = median_of(bare, count),
                                 .recorded_s = median_of(recorded, count),
                                 .slowdown = median,
                                 .least = slowdown[0],
                                 .most = slowdown[count - 1],
                                 .estimate = estimates ? median_of(estimate, (size_t)estimates) : (double)NAN};
}

static void print_json(const struct cost_run *run, const struct cost_summary *summary)
{
    const struct {
        const char *key;
        double value;
    } members[] = {{"bare_s", summary->bare_s},
                   {"recorded_s", summary->recorded_s},
                   {"slowdown_fraction", summary->slowdown},
                   {"slowdown_least", summary->least},
                   {"slowdown_most", summary->most},
                   {"estimate_fraction", summary->estimate}};
    struct bytes out = {0};
    bytes_append_char(&out, '{');
    json_key(&out, "engine");
    json_text(&out, run->engine ? run->engine : "Trace");
    json_key(&out, "pairs");
    json_int(&out, run->count);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_key(&out, members[i].key);
        json_double(&out, members[i].value);
    }
    bytes_append_text(&out, "}\n");
    fwrite(out.data, 1, out.size, stdout);
    bytes_free(&out);
}

static void print_text(const struct cost_run *run, const struct cost_summary *summary)
{
    char estimate[64] = "the sessions have no estimate";
    if (!isnan(summary->estimate))
        snprintf(estimate, sizeof estimate, "the sessions' own estimate is %.1f %%", summary->estimate * 100);
    message_print(stdout, "alone %.2f s, recorded with %s %.2f s (medians of %d pair%s)", summary->bare_s,
                  run->engine ? run->engine : "Trace", summary->recorded_s, run->count, run->count == 1 ? "" : "s");
    message_print(stdout, "slowed down by %.1f %% (%.1f to %.1f %%); %s", summary->slowdown * 100, summary->least * 100,
                  summary->most * 100, estimate);
}

int command_cost(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("cost", argc, argv, &arguments);
    if (code >= 0)
        return code;
    struct cost_run run = {.argv = arguments.rest,
                           .engine = arguments_text(&arguments, "engine", NULL),
                           .has_stacks = arguments_has(&arguments, "stacks")};
    char dir[TEMPORARY_PATH_MAX];
    if (!temporary_directory_make("cost", dir))
        return EXIT_ENVIRONMENT;
    /* The program's output goes nowhere, ours to where it would have gone. */
    int out = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (out < 0 || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0) {
        command_error("cost", "no file descriptor is free");
        code = EXIT_ENVIRONMENT;
    } else {
        code = run_pairs(&run, dir, (int)arguments_number(&arguments, "pairs", 5));
        fflush(stdout);
        dup2(out, STDOUT_FILENO);
    }
    close(nowhere);
    close(out);
    temporary_directory_remove("cost", dir);
    if (code)
        return code;
    struct cost_summary summary = summarize(&run);
    if (arguments_has(&arguments, "json"))
        print_json(&run, &summary);
    else
        print_text(&run, &summary);
    return EXIT_GOOD;
}
