/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/engine_word.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

const char *engine_word(const char *text)
{
    static const struct {
        const char *wire, *word;
    } engines[] = {
        {"none", "Monitor"},
        {"monitor", "Monitor"},
        {"trace", "Trace"},
        {"dispatch_counters", "Trace"}, /* AMD */
        {"pc_sampling", "PcSampling"},
        {"sass_metrics", "SassMetrics"},
        {"pm_sampling", "PmSampling"},
        {"range_profiler", "RangeProfiler"},
        {"range_profiler_kernel_replay", "RangeProfilerKernelReplay"},
        {"pc_sampling_with_sass", "Deep"},
        {"deep", "Deep"},
    };
    const char *dot = strrchr(text, '.');
    const char *name = dot ? dot + 1 : text;
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
        if (!strcasecmp(name, engines[i].wire) || !strcasecmp(name, engines[i].word))
            return engines[i].word;
    return NULL;
}
