/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's /metrics and /healthz, on the endpoint's own thread; reads the counters only. */
#ifndef GPUFL_AGENT_STATUS_PAGES_H
#define GPUFL_AGENT_STATUS_PAGES_H

#include "base/endpoint.h"

extern const struct endpoint_page agent_pages[]; /* user: struct agent_counters */

#endif
