/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel's row as the span type that copies, memsets and graph launches have. */
#ifndef GPUFL_EXPORT_WORK_SPAN_H
#define GPUFL_EXPORT_WORK_SPAN_H

#include "analysis/session.h"

static inline struct gpu_span kernel_span(const struct kernel_columns *kernels, size_t row)
{
    return (struct gpu_span){.start_ns = kernels->start_ns[row],
                             .duration_ns = kernels->duration_ns[row],
                             .api_start_ns = kernels->api_start_ns[row],
                             .api_duration_ns = kernels->api_duration_ns[row],
                             .stream_id = kernels->stream_id[row],
                             .thread_id = kernels->thread_id[row],
                             .scope = kernels->scope[row],
                             .corr_id = kernels->corr_id[row],
                             .graph_id = kernels->graph_id ? kernels->graph_id[row] : 0,
                             .device = kernels->device[row]};
}

#endif
