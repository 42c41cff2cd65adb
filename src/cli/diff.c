/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/compare.h"
#include "cli/command.h"
#include "cli/report.h"

#include <stdio.h>
#include <unistd.h>

static void verdict_refuse(const struct comparison *comparison)
{
    static const char *const advice[] = {
        "record such a session again with `gpufl trace -e Trace`; `gpufl doctor` tells "
        "whether a machine can time kernels",
        "compare sessions of programs that use the GPU"};
    struct bytes why = {0};
    compare_missing(comparison, &why);
    command_error("diff", "no verdict without kernel times (%s): %s", bytes_text(&why),
                  advice[comparison->has_kernel_times]);
    bytes_free(&why);
}

static int diff_print(const struct analysis *base, const struct analysis *fresh, const struct arguments *arguments)
{
    struct comparison comparison;
    struct bytes text = {0};
    double threshold = (double)arguments_number(arguments, "threshold", (long)(COMPARE_THRESHOLD * 100)) / 100;
    if (compare_make(&comparison, base, fresh, threshold) != GPUFL_OK) {
        command_error("diff", "out of memory");
        return EXIT_ENVIRONMENT;
    }
    struct report_options options = report_options_for(STDOUT_FILENO, arguments_text(arguments, "color", "auto"));
    options.top = (int)arguments_number(arguments, "top", options.top);
    options.is_wide = arguments_has(arguments, "wide");
    if (arguments_has(arguments, "json")) {
        compare_json(&comparison, &text);
        bytes_append_char(&text, '\n');
    } else {
        compare_text(&comparison, &options, &text);
    }
    int code = !comparison.has_verdict ? EXIT_ENVIRONMENT : comparison.regressions ? EXIT_ANSWER_NO : EXIT_GOOD;
    if (text.failed) {
        command_error("diff", "out of memory");
        code = EXIT_ENVIRONMENT;
    } else if (fwrite(text.data, 1, text.size, stdout) != text.size) {
        code = EXIT_ENVIRONMENT;
    } else if (!comparison.has_verdict) {
        verdict_refuse(&comparison);
    }
    compare_free(&comparison);
    bytes_free(&text);
    return code;
}

int command_diff(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("diff", argc, argv, &arguments);
    if (code >= 0)
        return code;
    struct session_model *models[2] = {NULL, NULL};
    struct analysis analyses[2];
    unsigned made = 0;
    code = EXIT_ENVIRONMENT;
    for (; made < 2; made++) {
        models[made] = report_load("diff", arguments.operands[made]);
        if (!models[made])
            break;
        if (analysis_make_with(&analyses[made], models[made], CODE_UNREAD) != GPUFL_OK) {
            command_error("diff", "out of memory");
            break;
        }
    }
    if (made == 2)
        code = diff_print(&analyses[0], &analyses[1], &arguments);
    for (unsigned i = 0; i < 2; i++) {
        if (i < made)
            analysis_free(&analyses[i]);
        session_free(models[i]);
    }
    return code;
}
