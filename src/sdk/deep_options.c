/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/deep_options.h"

struct deep_settings deep_settings_of(const struct options *options, bool is_injected)
{
    return (struct deep_settings){
        .engine = options->profiling_engine,
        .is_pc_serialized = options->pc_sampling_mode == PC_MODE_SERIALIZED,
        .pc_rate_hz = (uint32_t)options->pc_sampling_rate_hz,
        .pc_period_exponent = (uint32_t)options->pc_sampling_period,
        .pc_drain_ms = (uint32_t)options->pc_sampling_drain_ms,
        .pc_share_percent = (uint32_t)options->pc_sampling_share,
        .pc_cycle_ms = (uint32_t)options->pc_sampling_cycle_ms,
        .sass_metrics = options->sass_metrics,
        .range_metrics = options->range_metrics,
        .range_scopes = options->range_scopes,
        /* A program traced from outside usually has no scopes. */
        .is_range_per_kernel = options->range_mode == RANGE_MODE_KERNEL ||
                               (options->range_mode == RANGE_MODE_AUTO && is_injected && !options->range_scopes[0]),
        .pm_metrics = options->pm_metrics,
        .pm_interval_us = (uint32_t)options->pm_interval_us,
        .counting_ms = (uint32_t)options->deep_counting_ms,
        .sampling_ms = (uint32_t)options->deep_sampling_ms,
        .with_source = options->enable_source_collection,
        .code_bytes_max = (uint64_t)options->code_bytes_max,
    };
}
