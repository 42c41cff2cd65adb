/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of each format. A writer appends to the sink and returns early if that fails; the sink's owner reports
 * why. GPUFL_E_NO_MEMORY is a failure of the writer itself. */
#ifndef GPUFL_EXPORT_WRITERS_H
#define GPUFL_EXPORT_WRITERS_H

#include "export/export.h"
#include "export/filter.h"
#include "export/sink.h"
#include "export/tables.h"

NODISCARD gpufl_status chrome_write(struct export_sink *sink, const struct export_filter *filter);
NODISCARD gpufl_status perfetto_write(struct export_sink *sink, const struct export_filter *filter);
NODISCARD gpufl_status otlp_write(struct export_sink *sink, const struct export_filter *filter);
void csv_write(struct export_sink *sink, const struct export_filter *filter, const struct export_table *table);
NODISCARD gpufl_status pprof_write(struct export_sink *sink, const struct export_filter *filter,
                                   enum export_grouping group);
NODISCARD gpufl_status speedscope_write(struct export_sink *sink, const struct export_filter *filter,
                                        enum export_grouping group);
NODISCARD gpufl_status collapsed_write(struct export_sink *sink, const struct export_filter *filter,
                                       enum export_grouping group);
/* Fills an empty file; SQLite writes it. rows: number of rows written. */
NODISCARD gpufl_status sqlite_write(const char *path, const struct export_filter *filter,
                                    const struct sink_progress *progress, uint64_t *rows, struct problem *problem);

#endif
