/* SPDX-License-Identifier: Apache-2.0 */
/* A monitor's values as one OTLP metrics request (JSON encoding), following the semantic conventions for hardware:
 * hw.gpu.*, hw.power, hw.energy, hw.temperature, hw.errors, hw.status. Unknown values are absent. */
#ifndef GPUFL_MONITOR_OTLP_H
#define GPUFL_MONITOR_OTLP_H

#include "base/status.h"
#include "monitor/view.h"

/* Appends the body of a POST to /v1/metrics. Takes the view's lock. */
void otlp_request(struct bytes *out, struct monitor_view *view);
/* "http://collector:4318/some/path" into server and path; path is /v1/metrics when the URL has none. */
NODISCARD gpufl_status otlp_url_split(const char *url, char *server, size_t server_size, char *path, size_t path_size,
                                      struct problem *problem);

#endif
