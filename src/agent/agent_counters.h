/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the agent, for its /metrics page and its result. Written by the agent's thread, read by the page's
 * thread. */
#ifndef GPUFL_AGENT_AGENT_COUNTERS_H
#define GPUFL_AGENT_AGENT_COUNTERS_H

#include "base/exposition.h"

#include <stdatomic.h>
#include <stdint.h>

/* X(member, name on the page, kind, help) */
#define AGENT_COUNTER_MAP(X)                                                                                        \
    X(sessions_tracked, "gpufl_agent_sessions", GAUGE, "Session directories that are followed.")                    \
    X(sessions_waiting, "gpufl_agent_sessions_waiting", GAUGE, "Sessions that are not completely uploaded.")        \
    X(spool_bytes, "gpufl_agent_spool_bytes", GAUGE, "Bytes of all session directories.")                           \
    X(quarantine_bytes, "gpufl_agent_quarantine_bytes", GAUGE, "Bytes of windows in quarantine.")                   \
    X(backlog_bytes, "gpufl_agent_backlog_bytes", GAUGE, "Bytes of log files that are not uploaded.")               \
    X(windows_sent, "gpufl_agent_windows_sent_total", COUNTER, "Windows that the server accepted.")                 \
    X(lines_sent, "gpufl_agent_lines_sent_total", COUNTER, "Lines that the server accepted.")                       \
    X(bytes_sent, "gpufl_agent_sent_bytes_total", COUNTER, "Compressed bytes that the server accepted.")            \
    X(raw_bytes_sent, "gpufl_agent_sent_raw_bytes_total", COUNTER,                                                  \
      "Bytes that the server accepted, before compression.")                                                        \
    X(sessions_completed, "gpufl_agent_sessions_completed_total", COUNTER, "Sessions that were declared complete.") \
    X(requests_failed, "gpufl_agent_requests_failed_total", COUNTER, "Requests that failed and are repeated.")      \
    X(windows_repeated, "gpufl_agent_windows_repeated_total", COUNTER, "Windows sent again after a crash.")         \
    X(windows_quarantined, "gpufl_agent_windows_quarantined_total", COUNTER, "Windows that the server refused.")    \
    X(lines_rejected, "gpufl_agent_lines_rejected_total", COUNTER, "Lines that the server rejected.")               \
    X(lines_left_out, "gpufl_agent_lines_left_out_total", COUNTER, "Damaged lines, which are not sent.")            \
    X(windows_left_out, "gpufl_agent_windows_left_out_total", COUNTER,                                              \
      "Published windows that were missing, damaged or too large.")                                                 \
    X(sessions_damaged, "gpufl_agent_sessions_damaged_total", COUNTER,                                              \
      "Sessions with a file that could not be read completely; they are not deleted.")                              \
    X(lines_missing, "gpufl_agent_lines_missing_total", COUNTER, "Line numbers without a line.")                    \
    X(lines_dropped, "gpufl_agent_lines_dropped_total", COUNTER, "Unsent lines deleted to stay below the limit.")   \
    X(bytes_dropped, "gpufl_agent_dropped_bytes_total", COUNTER, "Unsent bytes deleted to stay below the limit.")   \
    X(bytes_deleted, "gpufl_agent_deleted_bytes_total", COUNTER, "Bytes deleted because the server has them.")      \
    X(state_failures, "gpufl_agent_state_failures_total", COUNTER, "Failed writes of the agent's state.")           \
    X(is_refused, "gpufl_agent_refused", GAUGE, "1 while the server refuses the API key or the protocol.")          \
    X(last_success_s, "gpufl_agent_last_success_timestamp_seconds", GAUGE, "When the server last accepted data.")

struct agent_counters {
#define AGENT_COUNTER_MEMBER(member, name, kind, help) _Atomic uint64_t member;
    AGENT_COUNTER_MAP(AGENT_COUNTER_MEMBER)
#undef AGENT_COUNTER_MEMBER
    _Atomic int64_t tick_mono_ns; /* the agent's thread last ran its loop */
};

static inline void counter_add(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

/* Appends the page. */
void agent_counters_write(const struct agent_counters *counters, enum exposition_format format, struct bytes *out);

#endif
