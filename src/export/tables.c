/* SPDX-License-Identifier: Apache-2.0 */
#include "export/tables.h"

#include "export/export.h"

#include <string.h>

const struct export_table *const export_tables[] = {&table_of_session,
                                                    &table_of_devices,
                                                    &table_of_kernels,
                                                    &table_of_launches,
                                                    &table_of_untimed,
                                                    &table_of_copies,
                                                    &table_of_memsets,
                                                    &table_of_graphs,
                                                    &table_of_syncs,
                                                    &table_of_allocations,
                                                    &table_of_scopes,
                                                    &table_of_device_metrics,
                                                    &table_of_host_metrics,
                                                    &table_of_process_metrics,
                                                    &table_of_pm_samples,
                                                    &table_of_range_metrics,
                                                    &table_of_stalls,
                                                    &table_of_code_samples,
                                                    &table_of_windows,
                                                    &table_of_losses,
                                                    &table_of_capabilities,
                                                    &table_of_issues,
                                                    NULL};

const struct export_table *export_table_find(const char *name)
{
    for (size_t i = 0; export_tables[i]; i++)
        if (strcmp(export_tables[i]->name, name) == 0)
            return export_tables[i];
    return NULL;
}

unsigned table_column_count(const struct export_table *table)
{
    return table->record ? record_catalogue[table->record].column_count : table->column_count;
}

struct table_column table_column(const struct export_table *table, unsigned index)
{
    if (!table->record)
        return table->columns[index];
    const struct column_info *info = &record_catalogue[table->record].columns[index];
    /* The model has absolute times where the log has times relative to a batch. */
    return (struct table_column){.name = index ? info->name : "time_ns", .kind = COLUMN_INTEGER};
}

void table_source_reset(struct table_source *source)
{
    source->group = source->group_first = 0;
}
