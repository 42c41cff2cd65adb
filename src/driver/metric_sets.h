/* SPDX-License-Identifier: Apache-2.0 */
/* Named sets of metrics, by purpose. The same names are used on the command line, in the environment and in the log. */
#ifndef GPUFL_DRIVER_METRIC_SETS_H
#define GPUFL_DRIVER_METRIC_SETS_H

#include "driver/profiler_host.h"

enum { METRICS_MAX = 64, METRIC_NAME_BYTES = 128 };

struct metric_set {
    const char *name, *about;
    enum profiler_kind kind;
    const char *const *metrics; /* NULL-terminated, full names with suffix */
};
/* overview, memory, compute, occupancy, tensor (range profiler); sm, memory, tensor, links, overview (PM sampling). */
extern const struct metric_set metric_sets[];
extern const size_t metric_set_count;
const struct metric_set *metric_set_find(enum profiler_kind kind, const char *name);

struct metric_choice {
    char name[64]; /* the set's, or "custom" */
    char metrics[METRICS_MAX][METRIC_NAME_BYTES];
    const char *list[METRICS_MAX]; /* points into metrics */
    size_t count;
    bool is_named[METRICS_MAX];  /* requested by its own name, not as part of a set */
    uint8_t origin[METRICS_MAX]; /* position of the metric before metric_choice_fit */
};
/* text: names of sets and of metrics, separated by commas. GPUFL_E_INVALID names the unknown word and the nearest
 * set; a word with "__" in it is treated as a metric and checked by the plan. */
NODISCARD gpufl_status metric_choice_parse(struct metric_choice *choice, enum profiler_kind kind, const char *text,
                                           struct problem *problem);
/* Removes metrics of sets that the host's chip lacks (NVLink on a GPU without it) and writes their names, separated
 * by ", ", to left_out ("" if none). Metrics requested by name stay: the plan refuses them. GPUFL_E_INVALID: nothing
 * is left. */
NODISCARD gpufl_status metric_choice_fit(struct metric_choice *choice, struct profiler_host *host,
                                         struct problem *left_out, struct problem *problem);
/* A plan of the choice for the host's chip, fitted first if the chip lacks something (left_out as above). */
NODISCARD gpufl_status metric_choice_plan(struct metric_choice *choice, struct profiler_host *host,
                                          struct metric_plan *plan, struct problem *left_out, struct problem *problem);
void metric_choice_copy(struct metric_choice *copy, const struct metric_choice *choice);
/* Expands values of a fitted choice to those of the original choice: NaN for removed metrics. */
void metric_choice_spread(const struct metric_choice *fitted, const double *values, size_t count, double *spread);
/* The column of GPUFlight's wire format v1 that holds this metric, e.g. "l2_hit_rate_pct"; NULL when there is none. */
const char *metric_wire_name(const char *metric);

#endif
