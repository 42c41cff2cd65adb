/* SPDX-License-Identifier: Apache-2.0 */
/* Names that rows of the scope channel refer to: functions and stacks
 * (function_dict, func_symbol_dict) and metrics (metric_dict). Each is written to
 * its dictionary once, before the first row that can use it. Ids are 0 when
 * memory is exhausted, or stacks' texts have filled what they may of the log,
 * which is counted as a loss. Collector thread only. */
#ifndef GPUFL_CAPTURE_NAMES_H
#define GPUFL_CAPTURE_NAMES_H

#include "base/intern.h"
#include "capture/recorder.h"

struct names {
    struct recorder *recorder; /* borrowed */
    struct intern functions;   /* mangled symbols, and SHA-256 of stack texts, which are long: one space of ids */
    size_t stack_bytes, stack_bytes_max; /* of texts that were written */
    struct intern metrics;
    struct bytes text;
};

void names_open(struct names *names, struct recorder *recorder);
void names_close(struct names *names);
uint32_t names_function(struct names *names, const char *symbol); /* mangled */
uint32_t names_stack(struct names *names, const char *text, size_t size);
uint32_t names_metric(struct names *names, const char *metric);
size_t names_bytes(const struct names *names);

#endif
