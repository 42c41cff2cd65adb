/* SPDX-License-Identifier: Apache-2.0 */
/* A monitor's metrics page: base units, stable names and labels. Unknown values are absent. */
#ifndef GPUFL_MONITOR_PROMETHEUS_H
#define GPUFL_MONITOR_PROMETHEUS_H

#include "base/exposition.h"
#include "monitor/view.h"

struct prometheus_options {
    enum exposition_format format;
    bool with_dcgm_names; /* also DCGM's names and units */
};
/* Appends the page. Takes the view's lock. */
void prometheus_page(struct bytes *out, struct monitor_view *view, const struct prometheus_options *options);

#endif
