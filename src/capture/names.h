/* SPDX-License-Identifier: Apache-2.0 */
/* Names that rows of the scope channel refer to: functions and stacks
 * (function_dict, func_symbol_dict) and metrics (metric_dict). Each is written to
 * its dictionary before the first row that can use it; names that are no longer
 * used are forgotten at a bound, and written again under a new id when they come
 * back. Ids are 0 when memory is exhausted, or stacks' texts have filled what
 * they may of the log in this hour, which is counted as a loss. Collector thread only. */
#ifndef GPUFL_CAPTURE_NAMES_H
#define GPUFL_CAPTURE_NAMES_H

#include "base/intern_cache.h"
#include "capture/recorder.h"

struct names {
    struct recorder *recorder; /* borrowed */
    /* Mangled symbols, and SHA-256 of stack texts, which are long: one space of ids. */
    struct intern_cache functions;
    size_t stack_bytes, stack_bytes_max; /* of texts that were written since stack_hour_ns */
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
