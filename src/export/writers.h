/* SPDX-License-Identifier: Apache-2.0 */
/* Each format's writer. A writer appends to the sink and returns early when that
 * fails; the sink's owner tells why. GPUFL_E_NO_MEMORY is a writer's own failure. */
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
/* Fills an empty file; SQLite itself writes there. rows: how many. */
NODISCARD gpufl_status sqlite_write(const char *path, const struct export_filter *filter,
                                    const struct sink_progress *progress, uint64_t *rows, struct problem *problem);

#endif
