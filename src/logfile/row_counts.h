/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the row counts in a session's shutdown record with the rows that were read. */
#ifndef GPUFL_LOGFILE_ROW_COUNTS_H
#define GPUFL_LOGFILE_ROW_COUNTS_H

#include "logfile/reader.h"

struct row_counts {
    bool is_counted[RECORD_TYPE_COUNT];
    int64_t rows[RECORD_TYPE_COUNT];
};

/* Takes the counts of a shutdown record; a record without counts (of a launcher, or of GPUFlight) changes nothing. */
void row_counts_take(struct row_counts *counts, const struct json_value *shutdown);
/* The rows of all batches; false: the shutdown record does not count them. */
bool row_counts_batches(const struct row_counts *counts, uint64_t *rows);
/* Reports one issue for each type whose number of rows differs from the shutdown record. For a partially read session:
 * one issue for all batches together, or none if their rows are unknown. */
void row_counts_check(const struct row_counts *counts, const struct log_summary *summary, log_issue_fn on_issue,
                      void *user);

#endif
