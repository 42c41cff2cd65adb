/* SPDX-License-Identifier: Apache-2.0 */
/* The same values under dcgm-exporter's names and units, so that dashboards made for it work. */
#ifndef GPUFL_MONITOR_PROMETHEUS_DCGM_H
#define GPUFL_MONITOR_PROMETHEUS_DCGM_H

#include "base/exposition.h"
#include "monitor/view.h"

/* The caller holds the view's lock; labels is scratch. */
void prometheus_dcgm_write(struct exposition *page, const struct monitor_view *view, struct bytes *labels);

#endif
