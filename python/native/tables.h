/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a session, by name. One function per table converts the model to
 * columns. Units are in the names (_ns, _bytes); times are wall-clock nanoseconds. */
#ifndef GPUFL_PYTHON_TABLES_H
#define GPUFL_PYTHON_TABLES_H

#include "column.h"

typedef struct column_table *(*table_fn)(struct session_share *share);

struct table_info {
    const char *name;
    table_fn make; /* NULL: no memory */
};
extern const struct table_info table_infos[]; /* ends with a NULL name */

/* GPUFL_E_NOT_FOUND: there is no table of that name. */
NODISCARD gpufl_status table_of_session(struct column_table **out, struct session_share *share, const char *name);

/* scope and scope_row, from indexes into the model's scopes. */
void table_add_scope(struct column_table *table, struct rows scopes);

/* tables_deep.c: data of the deep engines. */
struct column_table *table_code_samples(struct session_share *share);
struct column_table *table_scope_samples(struct session_share *share);
struct column_table *table_perf(struct session_share *share);
struct column_table *table_pm_samples(struct session_share *share);
struct column_table *table_untimed_launches(struct session_share *share);
/* tables_scopes.c */
struct column_table *table_scope_events(struct session_share *share);
struct column_table *table_adoptions(struct session_share *share);

#endif
