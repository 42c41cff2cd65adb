/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware metrics for display: a metric's name determines what it counts, and its unit. Stateless; thread-safe. */
#ifndef GPUFL_ANALYSIS_METRIC_TEXT_H
#define GPUFL_ANALYSIS_METRIC_TEXT_H

#include "analysis/deep_use.h"
#include "analysis/quantity.h"

/* 69.6 %, 23.2 MB, 467 us, 2.89 inst/cycle, 8.59 G inst */
struct quantity metric_quantity(const char *name, double value);
bool metric_is_zero(const struct metric_column
                        *column); /* in every result; a share of a peak that is 0 says something, and is not left out */
struct quantity quantity_flops(double per_second); /* 36.8 TFLOP/s */
/* Floating-point operations of the group's mean result (a fused multiply-add counts as two; tensor cores included) per
 * second of gpu__time_duration. NaN: operations or time were not counted. */
double metric_group_flops(const struct metric_group *group);
double metric_group_time_ns(const struct metric_group *group); /* of all its results; NaN: not counted */
/* Appends a metric's name, escaped and at most `columns` wide: drops "_of_peak_sustained_" before the middle. */
void text_metric_name(struct bytes *out, const char *name, size_t size, size_t columns);

#endif
