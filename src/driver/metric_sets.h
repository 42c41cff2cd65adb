/* SPDX-License-Identifier: Apache-2.0 */
/* Named sets of metrics, by what a person wants to know. The same names on
 * the command line, in the environment and in the log. */
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
    bool is_named[METRICS_MAX];  /* asked for by its own name, not by that of a set */
    uint8_t origin[METRICS_MAX]; /* place that the metric had before metric_choice_fit */
};
/* text: names of sets and of metrics, separated by commas. GPUFL_E_INVALID names the unknown word and the nearest set;
 * anything with "__" in it is taken for a metric and checked by the plan. */
NODISCARD gpufl_status metric_choice_parse(struct metric_choice *choice, enum profiler_kind kind, const char *text,
                                           struct problem *problem);
/* Leaves out what the host's chip does not have of the sets (NVLink of a GPU without it) and writes their names,
 * separated by ", ", to left_out ("" when it has all). Metrics asked for by name stay: the plan refuses them.
 * GPUFL_E_INVALID: nothing is left. */
NODISCARD gpufl_status metric_choice_fit(struct metric_choice *choice, struct profiler_host *host,
                                         struct problem *left_out, struct problem *problem);
/* A plan of the choice for the host's chip, fitted first where the chip lacks something (left_out as above). */
NODISCARD gpufl_status metric_choice_plan(struct metric_choice *choice, struct profiler_host *host,
                                          struct metric_plan *plan, struct problem *left_out, struct problem *problem);
void metric_choice_copy(struct metric_choice *copy, const struct metric_choice *choice);
/* From values of a fitted choice to those of the one that it was copied from: NaN for what was left out. */
void metric_choice_spread(const struct metric_choice *fitted, const double *values, size_t count, double *spread);
/* The column of GPUFlight's wire format v1 that holds this metric, e.g. "l2_hit_rate_pct"; NULL when there is none. */
const char *metric_wire_name(const char *metric);

#endif
