/* SPDX-License-Identifier: Apache-2.0 */
/* Metric pages for Prometheus: text format 0.0.4 and OpenMetrics 1.0. The caller declares each family and writes its
 * samples directly after it. A family without samples is omitted, so unknown values are absent. Pure functions on the
 * caller's buffer: any thread. */
#ifndef GPUFL_BASE_EXPOSITION_H
#define GPUFL_BASE_EXPOSITION_H

#include "base/bytes.h"

enum exposition_format { EXPOSITION_TEXT, EXPOSITION_OPENMETRICS };
enum exposition_kind { EXPOSITION_GAUGE, EXPOSITION_COUNTER, EXPOSITION_HISTOGRAM };

struct exposition {
    struct bytes *out; /* borrowed */
    enum exposition_format format;
    const char *name, *help; /* of the current family; borrowed until the next one */
    enum exposition_kind kind;
    bool is_declared; /* its HELP and TYPE lines are written */
};

/* The format that an Accept header prefers; NULL or unknown types: the text format. */
enum exposition_format exposition_choose(const char *accept);
const char *exposition_content_type(enum exposition_format format);

void exposition_begin(struct exposition *page, struct bytes *out, enum exposition_format format);
/* name: as on the page; a counter's ends with _total. help: one sentence. */
void exposition_family(struct exposition *page, const char *name, enum exposition_kind kind, const char *help);
/* labels: the text from exposition_label, or "". */
void exposition_sample(struct exposition *page, const char *labels, double value);
void exposition_sample_uint(struct exposition *page, const char *labels, uint64_t value);
/* One histogram: counts[i] is the number of values in (bounds[i - 1], bounds[i]], and counts[bound_count] that of all
 * larger values. Bounds ascend. */
void exposition_histogram(struct exposition *page, const char *labels, const double *bounds, const uint64_t *counts,
                          size_t bound_count, double sum);
void exposition_end(struct exposition *page);

/* Appends name="value" with the necessary escapes, after a comma unless labels is empty. Invalid UTF-8 bytes become
 * '?'. */
void exposition_label(struct bytes *labels, const char *name, const char *value);

#endif
