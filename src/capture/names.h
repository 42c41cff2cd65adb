/* SPDX-License-Identifier: Apache-2.0 */
/* Names that rows of the scope channel refer to: functions and stacks (function_dict, func_symbol_dict) and metrics
 * (metric_dict). Each is written to its dictionary before the first row that uses it. When a limit is reached,
 * unused names are forgotten; they get a new id when they are used again. The id is 0 when memory is exhausted, or
 * when the texts of stacks have reached their hourly limit in the log; both count as a loss. Collector thread only. */
#ifndef GPUFL_CAPTURE_NAMES_H
#define GPUFL_CAPTURE_NAMES_H

#include "base/intern_cache.h"
#include "capture/recorder.h"

struct names {
    struct recorder *recorder; /* borrowed */
    /* Mangled symbols, and the SHA-256 of stack texts, which are long; they share one id space. */
    struct intern_cache functions;
    size_t stack_bytes, stack_bytes_max; /* bytes of stack texts written since stack_hour_ns, and their limit */
    int64_t stack_hour_ns;               /* CLOCK_MONOTONIC */
    struct intern_cache metrics;
    struct bytes text;
};

void names_open(struct names *names, struct recorder *recorder);
void names_close(struct names *names);
uint32_t names_function(struct names *names, const char *symbol); /* mangled */
/* now_ns: CLOCK_MONOTONIC. */
uint32_t names_stack(struct names *names, const char *text, size_t size, int64_t now_ns);
uint32_t names_metric(struct names *names, const char *metric);
size_t names_bytes(const struct names *names);

#endif
