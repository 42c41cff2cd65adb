/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of metrics that Prometheus reads: text format 0.0.4 and OpenMetrics 1.0.
 * The caller names families one after the other and their samples directly
 * after each; a family without a sample leaves no trace, so what is unknown is
 * absent. Pure functions on a caller's buffer: any thread. */
#ifndef GPUFL_BASE_EXPOSITION_H
#define GPUFL_BASE_EXPOSITION_H

#include "base/bytes.h"

enum exposition_format { EXPOSITION_TEXT, EXPOSITION_OPENMETRICS };
enum exposition_kind { EXPOSITION_GAUGE, EXPOSITION_COUNTER, EXPOSITION_HISTOGRAM };

struct exposition {
    struct bytes *out; /* borrowed */
    enum exposition_format format;
    const char *name, *help; /* of the family; borrowed until the next one */
    enum exposition_kind kind;
    bool is_declared; /* its HELP and TYPE lines are written */
};

/* The format that an Accept header asks for first; NULL or anything else: the text format. */
enum exposition_format exposition_choose(const char *accept);
const char *exposition_content_type(enum exposition_format format);

void exposition_begin(struct exposition *page, struct bytes *out, enum exposition_format format);
/* name: as it stands on the page; a counter's ends with _total. help: one sentence. */
void exposition_family(struct exposition *page, const char *name, enum exposition_kind kind, const char *help);
/* labels: what exposition_label appended, or "" for none. */
void exposition_sample(struct exposition *page, const char *labels, double value);
void exposition_sample_uint(struct exposition *page, const char *labels, uint64_t value);
/* One histogram: counts[i] samples were at most bounds[i] and more than the bound before; counts[bound_count] is the
 * rest. Bounds ascend. */
void exposition_histogram(struct exposition *page, const char *labels, const double *bounds, const uint64_t *counts,
                          size_t bound_count, double sum);
void exposition_end(struct exposition *page);

/* Appends name="value" with what the format wants escaped, after a comma unless labels is empty. Bytes that are no
 * UTF-8 become '?'. */
void exposition_label(struct bytes *labels, const char *name, const char *value);

#endif
