/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/compare.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/session_operand.h"

#include <stdio.h>
#include <unistd.h>

static void verdict_refuse(const struct comparison *comparison)
{
    const char *advice = "";
    switch (comparison->verdict) {
    case COMPARE_JUDGED:
        return;
    case COMPARE_TIMES_MISSING:
        advice = comparison->has_kernel_times ? "compare sessions of programs that use the GPU"
                                              : "record such a session again with `gpufl trace -e Trace`; `gpufl "
                                                "doctor` shows whether a machine can time kernels";
        break;
    case COMPARE_UNRELATED:
        advice = "compare two runs of one program, or give --allow-unrelated";
        break;
    case COMPARE_INCOMPLETE:
        advice = "for what is missing, run 'gpufl verify SESSION'; record it again, or give --allow-incomplete";
        break;
    }
    struct bytes why = {0};
    compare_refusal(comparison, &why);
    command_error("diff", "no verdict: %s: %s", bytes_text(&why), advice);
    bytes_free(&why);
}

static int diff_print(const struct analysis *base, const struct analysis *fresh, const struct arguments *arguments)
{
    struct comparison comparison;
    struct bytes text = {0};
    const struct compare_options judging = {
        .threshold = (double)arguments_number(arguments, "threshold", (long)(COMPARE_THRESHOLD * 100)) / 100,
        .allow_incomplete = arguments_has(arguments, "allow-incomplete"),
        .allow_unrelated = arguments_has(arguments, "allow-unrelated")};
    if (compare_make(&comparison, base, fresh, &judging) != GPUFL_OK) {
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
    bool is_judged = comparison.verdict == COMPARE_JUDGED;
    int code = !is_judged ? EXIT_ENVIRONMENT : comparison.regressions ? EXIT_ANSWER_NO : EXIT_GOOD;
    if (text.failed) {
        command_error("diff", "out of memory");
        code = EXIT_ENVIRONMENT;
    } else {
        verdict_refuse(&comparison);
        if (fwrite(text.data, 1, text.size, stdout) != text.size)
            code = EXIT_ENVIRONMENT;
    }
    compare_free(&comparison);
    bytes_free(&text);
    return code;
}

/* Both, or one and the session of the same program before it. */
static bool sessions_choose(const struct arguments *arguments, struct session_choice choices[2])
{
    struct problem problem = {""};
    if (arguments->operand_count == 2)
        return session_operand("diff", arguments->operands[0], &choices[0]) &&
               session_operand("diff", arguments->operands[1], &choices[1]);
    if (!session_operand("diff", arguments->operands[0], &choices[1]))
        return false;
    if (session_select_previous(&choices[1].place, &choices[0], &problem) == GPUFL_OK)
        return true;
    command_error("diff", "%s", problem.text);
    return false;
}

int command_diff(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("diff", argc, argv, &arguments);
    if (code >= 0)
        return code;
    struct session_choice choices[2];
    if (!sessions_choose(&arguments, choices))
        return EXIT_ENVIRONMENT;
    struct session_model *models[2] = {NULL, NULL};
    struct analysis analyses[2];
    unsigned made = 0;
    code = EXIT_ENVIRONMENT;
    for (; made < 2; made++) {
        models[made] = report_load("diff", choices[made].place.path);
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
