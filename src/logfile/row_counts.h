/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a session's shutdown record counts, compared with those that were read. */
#ifndef GPUFL_LOGFILE_ROW_COUNTS_H
#define GPUFL_LOGFILE_ROW_COUNTS_H

#include "logfile/reader.h"

struct row_counts {
    bool is_told[RECORD_TYPE_COUNT];
    int64_t told[RECORD_TYPE_COUNT];
};

/* A shutdown record; one without counts (of a launcher, of GPUFlight) changes nothing. */
void row_counts_take(struct row_counts *counts, const struct json_value *shutdown);
/* The rows of all batches; false: the shutdown record does not say. */
bool row_counts_batches(const struct row_counts *counts, uint64_t *rows);
/* One issue for each type of which there are fewer or more rows than the shutdown record says. Of a session that was
 * read in part: one issue for all batches together, or none where their rows are not known. */
void row_counts_check(const struct row_counts *counts, const struct log_summary *summary, log_issue_fn on_issue,
                      void *user);

#endif
