/* SPDX-License-Identifier: Apache-2.0 */
/* Collects rows into batches, dictionary entries into updates that precede them, and losses into loss records, and
 * writes them to the session's log. Collector thread only, except recorder_lose and recorder_lose_because. */
#ifndef GPUFL_CAPTURE_RECORDER_H
#define GPUFL_CAPTURE_RECORDER_H

#include "base/bytes.h"
#include "format/batch.h"
#include "logfile/writer.h"

#include <stdatomic.h>

/* Every way in which gpufl can fail to record something. */
#define LOSS_MAP(X)                                                                                                  \
    X(LOSS_TAKEN_OVER, "taken_over", "unknown",                                                                      \
      "another profiler took over CUPTI's buffers while the program ran; how many records it received is unknown")   \
    X(LOSS_CUPTI_LEFT, "cupti_left", "unknown",                                                                      \
      "CUPTI was not flushed at the end; how many records its buffers still held is unknown")                        \
    X(LOSS_KERNELS_MISSING, "kernel_missing", "kernel_event_batch",                                                  \
      "CUPTI never delivered the records of these launches")                                                         \
    X(LOSS_CUPTI_DROPPED, "cupti_dropped", "unknown",                                                                \
      "CUPTI had no buffer for the records, or dropped them for another reason")                                     \
    X(LOSS_ROCPROFILER_DROPPED, "rocprofiler_dropped", "unknown",                                                    \
      "rocprofiler-sdk dropped the records, or no buffer was free for them")                                         \
    X(LOSS_ROCPROFILER_KERNELS_LATE, "rocprofiler_kernels_late", "kernel_event_batch",                               \
      "kernels that were still running when the session ended, or whose records rocprofiler-sdk had not delivered")  \
    X(LOSS_ROCPROFILER_COPIES_LATE, "rocprofiler_copies_late", "memcpy_event_batch",                                 \
      "copies that were still running when the session ended, or whose records rocprofiler-sdk had not delivered")   \
    X(LOSS_ROCPROFILER_COUNTERS_LATE, "rocprofiler_counters_late", "kernel_perf_metric_event",                       \
      "dispatches whose counters rocprofiler-sdk had not all delivered when the session ended")                      \
    X(LOSS_COUNTERS_FULL, "dispatch_counters_full", "kernel_perf_metric_event",                                      \
      "counters of dispatches came faster than they could be written")                                               \
    X(LOSS_BAD_RECORD, "bad_record", "unknown",                                                                      \
      "an activity buffer held an invalid record; the rest of the buffer was skipped")                               \
    X(LOSS_NO_TIMESTAMP, "no_timestamp", "kernel_event_batch", "CUPTI had no time for the record")                   \
    X(LOSS_COPY_NO_TIMESTAMP, "copy_no_timestamp", "memcpy_event_batch",                                             \
      "CUPTI had no time for a copy or memset, which happens while SASS counters are on")                            \
    X(LOSS_CLOCK_STEP, "clock_step", "gpu_time",                                                                     \
      "times of GPU work around a step of the wall clock: they may be wrong by the size of the step")                \
    X(LOSS_STILL_RUNNING, "still_running", "kernel_event_batch", "still running when the session ended")             \
    X(LOSS_SCOPE_RING, "scope_ring_full", "scope_event_batch", "a thread's scope ring was full")                     \
    X(LOSS_SCOPE_DEPTH, "scope_too_deep", "scope_event_batch",                                                       \
      "scopes nested in 8192 others of their thread; their work is attributed to the innermost recorded scope")      \
    X(LOSS_SCOPE_TOKENS, "scope_tokens", "scope_adoption_batch",                                                     \
      "work for scopes of other threads that were forgotten: 65536 later ones were handed over, or memory ran out")  \
    X(LOSS_OPEN_RANGES, "open_ranges", "scope_event_batch",                                                          \
      "ends of ranges that were open at the same time as 16384 others, or when memory was exhausted")                \
    X(LOSS_NVTX_STRINGS, "nvtx_strings_full", "scope_name_dict",                                                     \
      "ranges and marks without a name: more than 65536 strings or 16 MiB of strings were registered")               \
    X(LOSS_NVTX_DOMAINS, "nvtx_domains_full", "scope_event_batch",                                                   \
      "ranges pushed in a domain after the program's first 125")                                                     \
    X(LOSS_GIVEN_NAMES, "given_names_full", "given_name",                                                            \
      "names of threads, streams and categories arrived faster than they could be written")                          \
    X(LOSS_SCOPE_THREADS, "too_many_threads", "scope_event_batch",                                                   \
      "scopes of threads without a ring, because 1024 others had one")                                               \
    X(LOSS_CALL_THREADS, "call_threads", "api_time",                                                                 \
      "calls of threads without a ring, because 1024 others had one: their time, thread and scope are unknown, "     \
      "and waits are missing")                                                                                       \
    X(LOSS_STACK_THREADS, "stack_threads", "stack_id",                                                               \
      "call stacks of threads without a ring, because 1024 others had one")                                          \
    X(LOSS_LAUNCH_THREADS, "launch_threads", "launch_event_batch",                                                   \
      "launches, while kernel tracing was paused, of threads without a ring, because 1024 others had one")           \
    X(LOSS_STACK_RING, "stack_ring_full", "function_dict", "a thread's ring had no room for a call stack")           \
    X(LOSS_STACK_LATE, "stack_late", "stack_id",                                                                     \
      "too many rows waited for the names in their call stack; they are written without the stack")                  \
    X(LOSS_ATTRIBUTION, "attribution", "scope_id",                                                                   \
      "the call's scope is unknown: its thread's scope history was already forgotten or had no room")                \
    X(LOSS_KERNEL_NAMES, "kernel_names_full", "kernel_dict", "no memory for the name of a kernel")                   \
    X(LOSS_AMD_KERNEL_NAMES, "amd_kernel_names_full", "kernel_dict",                                                 \
      "there was no room for the names of loaded AMD kernels: more than 4 million, or 128 MiB of names")             \
    X(LOSS_LAUNCH_CONFIGS, "launch_configs_full", "launch_config_batch", "no memory for a launch configuration")     \
    X(LOSS_SCOPE_NAMES, "scope_names_full", "scope_name_dict",                                                       \
      "no memory for the name of a scope or a tag, or the scopes open at once have more than 8 MiB of names")        \
    X(LOSS_FUNCTION_NAMES, "function_names_full", "function_dict", "no memory for the name of a function or metric") \
    X(LOSS_STACK_TEXTS, "stack_texts_full", "function_dict",                                                         \
      "no memory for a call stack or a name in it, or too many stacks waited for their names")                       \
    X(LOSS_LONG_NAMES, "name_too_long", "dictionary_update", "a name larger than 4 MiB, or no memory for it")        \
    X(LOSS_LAUNCH_RING, "launch_ring_full", "launch_event_batch",                                                    \
      "a thread's ring had no room for a launch while kernel tracing was paused")                                    \
    X(LOSS_CALL_RING, "call_ring_full", "api_time",                                                                  \
      "a thread's ring had no room for a call: its time, thread and scope are unknown, and a wait is missing")       \
    X(LOSS_CALL_UNKNOWN, "call_unknown", "api_time",                                                                 \
      "the API call of these records was never reported, or was evicted before they arrived; they are written "      \
      "without its time, thread and scope")                                                                          \
    X(LOSS_GRAPH_UNTIMED, "graph_in_window", "launch_event_batch",                                                   \
      "CUDA graphs launched while kernel tracing was paused; how many kernels they ran is unknown")                  \
    X(LOSS_GRAPH_NOT_COUNTED, "graph_not_counted", "profile_sample_batch",                                           \
      "kernels of CUDA graphs, which are not counted")                                                               \
    X(LOSS_CODE_MEMORY, "code_memory_full", "code_object", "no memory for modules that wait to be written")          \
    X(LOSS_CODE_LIMIT, "code_limit", "code_object", "more code than GPUFL_CODE_BYTES_MAX, or than fits in a line")   \
    X(LOSS_CODE_INVALID, "code_invalid", "code_object", "a module that is not a readable cubin")                     \
    X(LOSS_CODE_UNWRITTEN, "code_unwritten", "code_object",                                                          \
      "modules that were still waiting to be written at the end")                                                    \
    X(LOSS_SOURCE_LIMIT, "source_limit", "source_file_content",                                                      \
      "source text beyond the size limit, or not read yet when the session ended")                                   \
    X(LOSS_PC_DROPPED, "pc_samples_dropped", "profile_sample_batch", "the GPU dropped PC samples")                   \
    X(LOSS_PC_BUFFER_FULL, "pc_buffer_full", "profile_sample_batch",                                                 \
      "the GPU's buffer of PC samples was full; how many samples were lost is unknown")                              \
    X(LOSS_PC_UNREAD, "pc_samples_unread", "profile_sample_batch",                                                   \
      "PC samples of more instructions than CUPTI could deliver when sampling was switched off")                     \
    X(LOSS_PC_FAILED, "pc_sampling_failed", "profile_sample_batch",                                                  \
      "a call that starts PC sampling or reads its samples failed; how many are missing is unknown")                 \
    X(LOSS_PC_TABLE, "pc_table_full", "profile_sample_batch", "PC samples came faster than they could be written")   \
    X(LOSS_PC_CONTEXTS, "pc_contexts", "pc_sampling_config", "more contexts than can be sampled at a time")          \
    X(LOSS_PM_OVERFLOW, "pm_overflow", "pm_sample_batch",                                                            \
      "the GPU's buffer of counter samples was full or could not be read; how many it held is unknown")              \
    X(LOSS_PM_GAP, "pm_gap", "pm_sample_batch",                                                                      \
      "intervals without a counter sample: the GPU's buffer was overwritten before it was read, or took none")       \
    X(LOSS_PM_BAD_TIME, "pm_bad_time", "pm_sample_batch", "counter samples with an invalid time")                    \
    X(LOSS_PM_QUEUE, "pm_queue_full", "pm_sample_batch", "counter samples came faster than they could be written")   \
    X(LOSS_PM_NO_VALUE, "pm_no_value", "pm_sample_batch", "the counters of a sample do not hold the metric's value") \
    X(LOSS_SASS_DROPPED, "sass_records_dropped", "profile_sample_batch",                                             \
      "CUPTI counted instructions, but the counts could not be read")                                                \
    X(LOSS_SASS_MEMORY, "sass_memory", "profile_sample_batch",                                                       \
      "no memory left for instruction counts that wait to be written")                                               \
    X(LOSS_SASS_INVALID, "sass_counts_invalid", "profile_sample_batch",                                              \
      "kernels ran in the window, but all instruction counts are zero: they were not measured and are not written")  \
    X(LOSS_RANGE_OVERLAP, "range_overlap", "perf_metric_event",                                                      \
      "the scope began while another scope was measured on its context")                                             \
    X(LOSS_RANGE_NO_CONTEXT, "range_no_context", "perf_metric_event",                                                \
      "the scope began before its thread had a CUDA context; name a scope inside it with GPUFL_RANGE_SCOPES")        \
    X(LOSS_RANGE_BUSY, "range_busy", "perf_metric_event",                                                            \
      "another thread's launch did not end in time, and CUPTI must not be started or stopped during a launch")       \
    X(LOSS_RANGE_GRAPH, "range_graph", "perf_metric_event",                                                          \
      "a CUDA graph was captured or launched in the scope, or captured elsewhere meanwhile: it is not counted")      \
    X(LOSS_LAUNCH_IN_CAPTURE, "launch_in_capture", "launch_event_batch",                                             \
      "launched while another thread captured a CUDA graph: whether it ran is unknown, and it is not counted")       \
    X(LOSS_RANGES_DROPPED, "ranges_dropped", "perf_metric_event",                                                    \
      "CUPTI dropped the counters, or they could not be read")                                                       \
    X(LOSS_RANGE_MEMORY, "range_memory", "perf_metric_event", "no memory left for counters that wait to be written") \
    X(LOSS_RANGE_UNNAMED, "range_unnamed", "kernel_perf_metric_event",                                               \
      "the launch that the counters belong to is unknown; they are written without a kernel name")                   \
    X(LOSS_DRIVER_GONE, "driver_gone", "device_metric_batch",                                                        \
      "NVML stopped answering; GPUs are not sampled until it answers again")                                         \
    X(LOSS_HUNG_CALL, "hung_call", "unknown",                                                                        \
      "a call to a GPU library or to the disk did not return in time; its thread was abandoned")                     \
    X(LOSS_PENDING, "pending_full", "api_lead_ns",                                                                   \
      "too many records waited for their API call; they are written without its time, thread and scope")

enum loss_reason {
#define LOSS_ENUM(name, word, record, text) name,
    LOSS_MAP(LOSS_ENUM)
#undef LOSS_ENUM
        LOSS_REASON_COUNT
};

/* The cause of the first loss with a given reason, as text; later causes are not kept. */
struct loss_cause {
    _Atomic int state; /* enum cause_state in recorder.c; 0: none yet */
    struct problem problem;
};

struct recorder {
    struct log_writer *writer;         /* borrowed */
    const char *session_id, *app_name; /* borrowed */
    struct batch batches[RECORD_TYPE_COUNT];
    int64_t batch_since_mono_ns[RECORD_TYPE_COUNT];
    struct bytes entries[DICTIONARY_COUNT]; /* "id":"text",... not yet written */
    struct bytes line;
    _Atomic uint64_t lost[LOSS_REASON_COUNT];
    uint64_t lost_written[LOSS_REASON_COUNT];
    struct loss_cause causes[LOSS_REASON_COUNT];
    uint64_t writer_lost_reported[LOG_LOSS_COUNT][RECORD_TYPE_COUNT];
    unsigned channels; /* bit mask of the channels that a line for all channels opens */
};

NODISCARD gpufl_status recorder_open(struct recorder *recorder, struct log_writer *writer, const char *session_id,
                                     const char *app_name);
/* For a session with the given channels (bit mask) that writes only single records and losses; cannot fail. */
void recorder_open_plain(struct recorder *recorder, struct log_writer *writer, const char *session_id,
                         const char *app_name, unsigned channels);
void recorder_close(struct recorder *recorder); /* frees; flush first */
/* Takes over the losses of a recorder whose thread was abandoned, so that they are written. */
void recorder_take_losses(struct recorder *recorder, const struct recorder *abandoned);

/* A zeroed row of that type, with the time set in column 0; never NULL after a successful open. */
int64_t *recorder_row(struct recorder *recorder, enum record_type type, int64_t time_ns);
/* Writes `text` as entry `id` of the dictionary before the next batch that can use it, and counts it as a loss if it
 * does not fit in a line. Not between recorder_begin and recorder_end. */
void recorder_define(struct recorder *recorder, enum dictionary dictionary, uint32_t id, const char *text, size_t size);
/* Writes all pending entries of the channel's dictionaries, for dictionaries that grow too fast to wait for a batch.
 * Not between recorder_begin and recorder_end. */
void recorder_write_dictionaries(struct recorder *recorder, enum channel channel);
/* Adds to a loss count; any thread. */
static inline void recorder_lose(struct recorder *recorder, enum loss_reason reason, uint64_t count)
{
    atomic_fetch_add_explicit(&recorder->lost[reason], count, memory_order_relaxed);
}
/* The same; the first cause of this reason that is not "" is also written to the log. Neither locks nor allocates. */
void recorder_lose_because(struct recorder *recorder, enum loss_reason reason, uint64_t count, const char *cause);
/* Writes batches older than age_ms (0: all), dictionaries, and new losses. */
void recorder_flush(struct recorder *recorder, int64_t age_ms);
/* Starts a line of a single record: {"version":1,"type":..,"session_id":..  */
struct bytes *recorder_begin(struct recorder *recorder, enum record_type type);
/* Ends it and writes it to its channel (or to all channels). */
void recorder_end(struct recorder *recorder, enum record_type type);
/* ,"rows":{..},"lost":{..} for the shutdown record. */
void recorder_append_totals(struct recorder *recorder, struct bytes *out);
/* Without what the disk refused, of which log_writer has sent a message. */
uint64_t recorder_lost_total(const struct recorder *recorder);

#endif
