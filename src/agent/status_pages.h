/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's /metrics and /healthz pages, rendered on the endpoint's thread; reads only the counters. */
#ifndef GPUFL_AGENT_STATUS_PAGES_H
#define GPUFL_AGENT_STATUS_PAGES_H

#include "base/endpoint.h"

extern const struct endpoint_page agent_pages[]; /* user: struct agent_counters */

#endif
