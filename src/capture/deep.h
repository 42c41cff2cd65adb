/* SPDX-License-Identifier: Apache-2.0 */
/* The engines above Trace, as the session and the collector see them: creates an engine's parts, passes contexts and
 * modules to them, and reports which parts were granted. A part that cannot start does not stop the others. Made and
 * started by the session before the collector's thread runs; deep_round and deep_finish run on that thread, the rest
 * as noted. */
#ifndef GPUFL_CAPTURE_DEEP_H
#define GPUFL_CAPTURE_DEEP_H

#include "capture/deep_grants.h"
#include "capture/kernel_history.h"
#include "capture/names.h"
#include "capture/scope_history.h"
#include "driver/cupti_events.h"

struct deep; /* opaque */

struct deep_settings {
    gpufl_engine engine; /* above Trace; Trace with pm_metrics */
    bool is_pc_serialized;
    uint32_t pc_rate_hz, pc_period_exponent, pc_drain_ms, pc_share_percent, pc_cycle_ms; /* 0: default */
    const char *sass_metrics, *range_metrics, *range_scopes, *pm_metrics; /* "": default; pm_metrics: off */
    bool is_range_per_kernel;
    uint32_t pm_interval_us, counting_ms, sampling_ms; /* the last two: Deep's windows; 0: default */
    bool with_source;
    uint64_t code_bytes_max;
};

struct deep_options {
    struct deep_settings settings; /* texts are borrowed, as everything below */
    struct cupti *cupti;
    struct recorder *recorder;
    struct names *names;
    struct kernel_history *kernels;
    struct scope_history *scopes;
    struct code_store *code; /* for engines above Trace; NULL: code is not stored */
};

/* True when the settings request anything above Trace. */
static inline bool deep_is_wanted(const struct deep_settings *settings)
{
    return settings->engine > GPUFL_ENGINE_TRACE || settings->pm_metrics[0];
}
NODISCARD gpufl_status deep_make(struct deep **out, const struct deep_options *options);
/* Call after the trace has started: listens for contexts and takes on existing ones. */
void deep_start(struct deep *deep);
struct deep_grants *deep_grants(struct deep *deep);
/* The engine that the grants amount to; why (NULL: not asked for): set if that is not the one asked for. */
gpufl_engine deep_engine(struct deep *deep, struct problem *why);
/* False: kernel tracing is paused for the whole run, and launches are recorded without times. */
bool deep_times_kernels(struct deep *deep);
/* Whether scope edges are needed; if so, every edge of every scope must be passed, on its thread. stack: enum
 * scope_stack. */
bool deep_wants_scopes(const struct deep *deep);
void deep_scope(struct deep *deep, bool is_begin, uint32_t stack, const char *name, size_t name_size);
/* Writes what is ready. complete_ns: all kernel records until then were read; graph_kernels: graph kernels so far. */
void deep_round(struct deep *deep, int64_t complete_ns, uint64_t graph_kernels);
/* Call around each flush of CUPTI's records, on the collector's thread; false: do not flush now. */
bool deep_flush_begin(struct deep *deep);
void deep_flush_end(struct deep *deep);
/* Call before the trace stops: ends counting and sampling. */
void deep_stop(struct deep *deep);
/* For a deep_stop that does not return: lets blocked launches pass. Any thread; does not block. */
void deep_unblock_launches(struct deep *deep);
/* Call after the last record was read: writes the rest. */
void deep_finish(struct deep *deep, uint64_t graph_kernels);
bool deep_free(struct deep *deep);    /* NULL is a no-op; false: abandoned threads still use it, so it is not freed */
void deep_abandon(struct deep *deep); /* in a forked child */
size_t deep_bytes(struct deep *deep);

#endif
