/* SPDX-License-Identifier: Apache-2.0 */
/* The dashboard's files, which are embedded in the program, and their paths. The build generates the table of files
 * from web/dist (tools/embed_dashboard.sh). Constant data; thread-safe. */
#ifndef GPUFL_SERVER_DASHBOARD_H
#define GPUFL_SERVER_DASHBOARD_H

#include "http/http_static.h"

extern const struct http_static_file dashboard_files[]; /* by path */
extern const size_t dashboard_file_count;

/* Accessible without a key: they contain no data. */
const struct http_route *dashboard_routes(size_t *count);

#endif
