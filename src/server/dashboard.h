/* SPDX-License-Identifier: Apache-2.0 */
/* The dashboard's files, which are part of the program, and the paths that they have. The build makes the table of files
 * from web/dist (tools/embed_dashboard.sh). Constant data; any thread. */
#ifndef GPUFL_SERVER_DASHBOARD_H
#define GPUFL_SERVER_DASHBOARD_H

#include "http/http_static.h"

extern const struct http_static_file dashboard_files[]; /* by path */
extern const size_t dashboard_file_count;

/* Open to everybody: they hold no data. */
const struct http_route *dashboard_routes(size_t *count);

#endif
