/* SPDX-License-Identifier: Apache-2.0 */
/* SASS metrics of the look-alike CUPTI: what it hears of launches, and the
 * recording that it can play instead (FAKE_SASS_RECORDING). */
#ifndef FAKES_CUPTI_SASS_H
#define FAKES_CUPTI_SASS_H

#include "driver/sass_metrics_abi.h"
#include "fake_gpu.h"

#define SASS_PROTOTYPE(member, symbol, parameter) FAKE_API int symbol(struct parameter *);
SASS_ABI_FUNCTIONS(SASS_PROTOTYPE)
#undef SASS_PROTOTYPE

/* A kernel was enqueued. */
void sass_work(const struct fake_work *work);
/* Whether a context counts: kernel activity cannot be enabled. */
bool sass_is_counting(void);
bool sass_counts(uint32_t context_id); /* this one does */

/* A graph is about to be launched into the context, and a subscriber was notified: returns when the context does not
 * count. */
void sass_graph_launch(uint32_t context_id);

/* The id that the look-alike gives to a metric of that name. */
uint64_t sass_metric_id(const char *name);

bool sass_recording_is_wanted(void);
/* Size of the next recorded flush; 0 when the recording is at its end or cannot be read. */
void sass_recording_size(size_t *record_count, size_t *instance_count);
/* Fills the records of the next flush and goes on to the one after it. */
void sass_recording_take(struct sass_abi_record *records, size_t record_count, size_t instance_count);

#endif
