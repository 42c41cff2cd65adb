/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/engine_settings.h"

#include "driver/metric_sets.h"
#include "driver/sass_metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static gpufl_status check_choice(enum profiler_kind kind, const char *text, struct problem *problem)
{
    struct metric_choice choice;
    return metric_choice_parse(&choice, kind, text, problem);
}

/* AMD's counters begin with a capital letter, as no set and no metric of NVIDIA's does; only the GPU knows which it has. */
static bool names_amd_counters(const char *text)
{
    bool is_start = true;
    for (; *text; text++) {
        if (is_start && *text >= 'A' && *text <= 'Z')
            return true;
        is_start = *text == ',' || *text == ' ';
    }
    return false;
}

static gpufl_status check_range(const char *text, struct problem *problem)
{
    return names_amd_counters(text) ? GPUFL_OK : check_choice(PROFILER_RANGE, text, problem);
}

static gpufl_status check_pm(const char *text, struct problem *problem)
{
    return check_choice(PROFILER_PM_SAMPLING, text, problem);
}

static gpufl_status check_names(const char *text, struct problem *problem)
{
    if (text[strspn(text, ", ")])
        return GPUFL_OK;
    return problem_set(problem, GPUFL_E_INVALID, "no scope is named");
}

static const struct setting {
    const char *option, *variable;
    const char *engines[3]; /* that use it */
    gpufl_status (*check)(const char *text, struct problem *problem);
} settings[] = {
    {"pc-rate", "GPUFL_PC_SAMPLING_RATE_HZ", {"PcSampling", "Deep"}, NULL},
    {"pc-period", "GPUFL_PC_SAMPLING_PERIOD", {"PcSampling", "Deep"}, NULL},
    {"pc-mode", "GPUFL_PC_SAMPLING_MODE", {"PcSampling", "Deep"}, NULL},
    {"pc-share", "GPUFL_PC_SAMPLING_SHARE", {"PcSampling"}, NULL},
    {"sass-metrics", "GPUFL_SASS_METRICS", {"SassMetrics", "Deep"}, sass_choice_check},
    {"range-metrics", "GPUFL_RANGE_METRICS", {"RangeProfiler"}, check_range},
    {"range-mode", "GPUFL_RANGE_MODE", {"RangeProfiler"}, NULL},
    {"range-scopes", "GPUFL_RANGE_SCOPES", {"RangeProfiler"}, check_names},
    {"pm", "GPUFL_PM_METRICS", {"Trace"}, check_pm},
    {"pm-interval", "GPUFL_PM_INTERVAL_US", {"Trace"}, NULL},
};
enum { setting_count = sizeof settings / sizeof settings[0] };

static gpufl_status check_engine(const struct setting *setting, const char *engine, struct problem *problem)
{
    for (const char *const *name = setting->engines; *name; name++)
        if (strcasecmp(*name, engine) == 0)
            return GPUFL_OK;
    const char *other = setting->engines[1];
    return problem_set(problem, GPUFL_E_INVALID, "--%s is a setting of engine %s%s%s, not of %s; add --engine %s",
                       setting->option, setting->engines[0], other ? " or " : "", other ? other : "", engine,
                       setting->engines[0]);
}

gpufl_status engine_settings_check(const struct arguments *arguments, const char *engine, struct problem *problem)
{
    if (!engine)
        engine = getenv("GPUFL_PROFILING_ENGINE");
    if (!engine || !*engine)
        engine = "Trace";
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &settings[i];
        if (!arguments_has(arguments, setting->option))
            continue;
        gpufl_status status = check_engine(setting, engine, problem);
        if (status != GPUFL_OK)
            return status;
        struct problem detail = {""};
        if (setting->check && setting->check(arguments_text(arguments, setting->option, ""), &detail) != GPUFL_OK)
            return problem_set(problem, GPUFL_E_INVALID, "--%s: %s", setting->option, detail.text);
    }
    if (arguments_has(arguments, "pc-rate") && arguments_has(arguments, "pc-period"))
        return problem_set(problem, GPUFL_E_INVALID, "--pc-rate and --pc-period say the same thing; give one of them");
    if (arguments_has(arguments, "pm-interval") && !arguments_has(arguments, "pm") && !getenv("GPUFL_PM_METRICS"))
        return problem_set(problem, GPUFL_E_INVALID, "--pm-interval needs --pm METRICS");
    return GPUFL_OK;
}

bool engine_settings_apply(const struct arguments *arguments, struct child_options *child)
{
    for (size_t i = 0; arguments && i < setting_count; i++)
        if (arguments_has(arguments, settings[i].option) &&
            !child_set(child, settings[i].variable, arguments_text(arguments, settings[i].option, ""), false))
            return false;
    return true;
}
