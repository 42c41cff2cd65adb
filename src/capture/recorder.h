/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's pen: collects rows into batches, dictionary entries into
 * updates that precede them, and losses into loss records, and writes them to the
 * session's log. Collector thread only, except recorder_lose and recorder_lose_because. */
#ifndef GPUFL_CAPTURE_RECORDER_H
#define GPUFL_CAPTURE_RECORDER_H

#include "base/bytes.h"
#include "format/batch.h"
#include "logfile/writer.h"

#include <stdatomic.h>

/* Every way in which gpufl can fail to record something. */
#define LOSS_MAP(X)                                                                                                  \
    X(LOSS_TAKEN_OVER, "taken_over", "unknown",                                                                      \
      "another profiler took CUPTI's buffers away while the program ran; how many records went to it is not known")  \
    X(LOSS_CUPTI_LEFT, "cupti_left", "unknown",                                                                      \
      "CUPTI was left alone at the end; how many records its buffers still held is not known")                       \
    X(LOSS_KERNELS_MISSING, "kernel_missing", "kernel_event_batch",                                                  \
      "CUPTI never handed over the records of these launches")                                                       \
    X(LOSS_CUPTI_DROPPED, "cupti_dropped", "unknown",                                                                \
      "CUPTI had no buffer to write them to, or dropped them on its own")                                            \
    X(LOSS_ROCPROFILER_DROPPED, "rocprofiler_dropped", "unknown",                                                    \
      "rocprofiler-sdk dropped them on its own, or no buffer was free to keep them")                                 \
    X(LOSS_ROCPROFILER_KERNELS_LATE, "rocprofiler_kernels_late", "kernel_event_batch",                               \
      "kernels that still ran when the session ended, or whose records rocprofiler-sdk had not handed over")         \
    X(LOSS_ROCPROFILER_COPIES_LATE, "rocprofiler_copies_late", "memcpy_event_batch",                                 \
      "copies that still ran when the session ended, or whose records rocprofiler-sdk had not handed over")          \
    X(LOSS_ROCPROFILER_COUNTERS_LATE, "rocprofiler_counters_late", "kernel_perf_metric_event",                       \
      "dispatches whose counters rocprofiler-sdk had not handed over, or not all, when the session ended")           \
    X(LOSS_COUNTERS_FULL, "dispatch_counters_full", "kernel_perf_metric_event",                                      \
      "counters of dispatches came faster than they could be written")                                               \
    X(LOSS_BAD_RECORD, "bad_record", "unknown",                                                                      \
      "an activity buffer held a record that cannot be right; the rest of it was skipped")                           \
    X(LOSS_NO_TIMESTAMP, "no_timestamp", "kernel_event_batch", "CUPTI had no time for the record")                   \
    X(LOSS_COPY_NO_TIMESTAMP, "copy_no_timestamp", "memcpy_event_batch",                                             \
      "CUPTI had no time for a copy or memset, as beside SASS counters")                                             \
    X(LOSS_CLOCK_STEP, "clock_step", "gpu_time",                                                                     \
      "times of GPU work beside a step of the wall clock: they may be wrong by as much as the clock was set")        \
    X(LOSS_STILL_RUNNING, "still_running", "kernel_event_batch", "still running when the session ended")             \
    X(LOSS_SCOPE_RING, "scope_ring_full", "scope_event_batch", "a thread's scope ring was full")                     \
    X(LOSS_SCOPE_DEPTH, "scope_too_deep", "scope_event_batch",                                                       \
      "scopes inside 8192 others of their thread; their work belongs to the innermost scope that was kept")          \
    X(LOSS_OPEN_RANGES, "open_ranges", "scope_event_batch",                                                          \
      "ends of ranges that were open beside 16384 others, or without memory for them")                               \
    X(LOSS_NVTX_STRINGS, "nvtx_strings_full", "scope_name_dict",                                                     \
      "ranges and marks without their name: it is among more than 65536 registered strings or 16 MiB of them")       \
    X(LOSS_NVTX_DOMAINS, "nvtx_domains_full", "scope_event_batch",                                                   \
      "ranges that were pushed in a domain beyond the first 125 of the program")                                     \
    X(LOSS_GIVEN_NAMES, "given_names_full", "given_name",                                                            \
      "names of threads, streams and categories that came faster than they could be written")                        \
    X(LOSS_SCOPE_THREADS, "too_many_threads", "scope_event_batch",                                                   \
      "scopes of threads that got no ring, because 1024 others had one")                                             \
    X(LOSS_CALL_THREADS, "call_threads", "api_time",                                                                 \
      "calls of threads that got no ring, because 1024 others had one: their time, thread and scope are unknown, "   \
      "and waits are missing")                                                                                       \
    X(LOSS_STACK_THREADS, "stack_threads", "stack_id",                                                               \
      "call stacks of threads that got no ring, because 1024 others had one")                                        \
    X(LOSS_LAUNCH_THREADS, "launch_threads", "launch_event_batch",                                                   \
      "launches while kernel tracing was paused, of threads that got no ring, because 1024 others had one")          \
    X(LOSS_STACK_RING, "stack_ring_full", "function_dict", "a thread's ring had no room for a call stack")           \
    X(LOSS_STACK_LATE, "stack_late", "stack_id",                                                                     \
      "too many rows waited for the names in their call stack; they are written without the stack")                  \
    X(LOSS_ATTRIBUTION, "attribution", "scope_id",                                                                   \
      "the call's scope is unknown: its thread's scope history was already forgotten or had no room")                \
    X(LOSS_KERNEL_NAMES, "kernel_names_full", "kernel_dict", "no memory for the name of a kernel")                   \
    X(LOSS_AMD_KERNEL_NAMES, "amd_kernel_names_full", "kernel_dict",                                                 \
      "AMD kernels were loaded whose names there was no room for: more than 4 million, or 128 MiB of names")         \
    X(LOSS_LAUNCH_CONFIGS, "launch_configs_full", "launch_config_batch", "no memory for a launch configuration")     \
    X(LOSS_SCOPE_NAMES, "scope_names_full", "scope_name_dict",                                                       \
      "no memory for the name of a scope or a tag, or the scopes open at once have more than 8 MiB of names")        \
    X(LOSS_FUNCTION_NAMES, "function_names_full", "function_dict", "no memory for the name of a function or metric") \
    X(LOSS_STACK_TEXTS, "stack_texts_full", "function_dict",                                                         \
      "no memory for a call stack or a name in it, or more stacks waited to be spelled out than may wait")           \
    X(LOSS_LONG_NAMES, "name_too_long", "dictionary_update", "a name of more than 4 MiB, or no memory for it")       \
    X(LOSS_LAUNCH_RING, "launch_ring_full", "launch_event_batch",                                                    \
      "a thread's ring had no room for a launch while kernel tracing was paused")                                    \
    X(LOSS_CALL_RING, "call_ring_full", "api_time",                                                                  \
      "a thread's ring had no room for a call: its time, thread and scope are unknown, and a wait is missing")       \
    X(LOSS_CALL_UNKNOWN, "call_unknown", "api_time",                                                                 \
      "the API call of these records was never told, or was forgotten before they came; they are written "           \
      "without its time, thread and scope")                                                                          \
    X(LOSS_GRAPH_UNTIMED, "graph_in_window", "launch_event_batch",                                                   \
      "CUDA graphs launched while kernel tracing was paused; how many kernels they ran is not known")                \
    X(LOSS_GRAPH_NOT_COUNTED, "graph_not_counted", "profile_sample_batch",                                           \
      "kernels of CUDA graphs, which run uncounted")                                                                 \
    X(LOSS_CODE_MEMORY, "code_memory_full", "code_object", "no room for modules that wait to be written")            \
    X(LOSS_CODE_LIMIT, "code_limit", "code_object", "more code than GPUFL_CODE_BYTES_MAX, or than fits a line")      \
    X(LOSS_CODE_INVALID, "code_invalid", "code_object", "a module that is no readable cubin")                        \
    X(LOSS_CODE_UNWRITTEN, "code_unwritten", "code_object", "modules still waited to be written at the end")         \
    X(LOSS_SOURCE_LIMIT, "source_limit", "source_file_content",                                                      \
      "source text that was more than is kept, or still waited to be read when the session ended")                   \
    X(LOSS_PC_DROPPED, "pc_samples_dropped", "profile_sample_batch", "the GPU dropped PC samples")                   \
    X(LOSS_PC_BUFFER_FULL, "pc_buffer_full", "profile_sample_batch",                                                 \
      "the GPU's buffer of PC samples was full; how many it missed is not known")                                    \
    X(LOSS_PC_UNREAD, "pc_samples_unread", "profile_sample_batch",                                                   \
      "PC samples of more instructions than CUPTI could hand over when sampling was switched off")                   \
    X(LOSS_PC_FAILED, "pc_sampling_failed", "profile_sample_batch",                                                  \
      "a call that starts PC sampling or reads its samples failed; how many are missing is not known")               \
    X(LOSS_PC_TABLE, "pc_table_full", "profile_sample_batch", "PC samples came faster than they could be written")   \
    X(LOSS_PC_CONTEXTS, "pc_contexts", "pc_sampling_config", "more contexts than can be sampled at a time")          \
    X(LOSS_PM_OVERFLOW, "pm_overflow", "pm_sample_batch",                                                            \
      "the GPU's buffer of counter samples was full or could not be read; how many it held is not known")            \
    X(LOSS_PM_GAP, "pm_gap", "pm_sample_batch",                                                                      \
      "intervals without a counter sample: the GPU's buffer was overwritten before it was read, or it took none")    \
    X(LOSS_PM_BAD_TIME, "pm_bad_time", "pm_sample_batch", "counter samples with a time that cannot be right")        \
    X(LOSS_PM_QUEUE, "pm_queue_full", "pm_sample_batch", "counter samples came faster than they could be written")   \
    X(LOSS_PM_NO_VALUE, "pm_no_value", "pm_sample_batch", "the counters of a sample do not hold the metric's value") \
    X(LOSS_SASS_DROPPED, "sass_records_dropped", "profile_sample_batch",                                             \
      "CUPTI counted instructions and the counts could not be read from it")                                         \
    X(LOSS_SASS_MEMORY, "sass_memory", "profile_sample_batch",                                                       \
      "no memory left for instruction counts that wait to be written")                                               \
    X(LOSS_SASS_INVALID, "sass_counts_invalid", "profile_sample_batch",                                              \
      "kernels ran in the window and all of their instruction counts are zero: not measured, so not written")        \
    X(LOSS_RANGE_OVERLAP, "range_overlap", "perf_metric_event",                                                      \
      "the scope began while another one was measured on its context")                                               \
    X(LOSS_RANGE_NO_CONTEXT, "range_no_context", "perf_metric_event",                                                \
      "the scope began before its thread had a CUDA context; name a scope inside it with GPUFL_RANGE_SCOPES")        \
    X(LOSS_RANGE_BUSY, "range_busy", "perf_metric_event",                                                            \
      "another thread's launch did not end in time, and CUPTI must not be started or stopped beside one")            \
    X(LOSS_RANGE_GRAPH, "range_graph", "perf_metric_event",                                                          \
      "a CUDA graph was captured or launched in the scope, or captured elsewhere meanwhile: it is not counted")      \
    X(LOSS_LAUNCH_IN_CAPTURE, "launch_in_capture", "launch_event_batch",                                             \
      "launched while another thread captured a CUDA graph: whether it ran is not known, and it is not counted")     \
    X(LOSS_RANGES_DROPPED, "ranges_dropped", "perf_metric_event",                                                    \
      "CUPTI counted and dropped the counters, or they could not be read from it")                                   \
    X(LOSS_RANGE_MEMORY, "range_memory", "perf_metric_event", "no memory left for counters that wait to be written") \
    X(LOSS_RANGE_UNNAMED, "range_unnamed", "kernel_perf_metric_event",                                               \
      "which launch the counters belong to is not known; they are written without its name")                         \
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

/* Why the first loss of a reason happened, in words; later ones are not kept. */
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
    uint64_t writer_lost_told[LOG_LOSS_COUNT][RECORD_TYPE_COUNT];
    unsigned channels; /* bit mask: those that a line for all of them opens */
};

NODISCARD gpufl_status recorder_open(struct recorder *recorder, struct log_writer *writer, const char *session_id,
                                     const char *app_name);
/* For a session of the given channels (bit mask) that writes single records and losses only; cannot fail. */
void recorder_open_plain(struct recorder *recorder, struct log_writer *writer, const char *session_id,
                         const char *app_name, unsigned channels);
void recorder_close(struct recorder *recorder); /* frees; flush first */
/* Takes the losses of a recorder whose thread was abandoned, so that they are written. */
void recorder_take_losses(struct recorder *recorder, const struct recorder *abandoned);

/* A zeroed row of the type at that time (column 0 is set); never NULL after a good open. */
int64_t *recorder_row(struct recorder *recorder, enum record_type type, int64_t time_ns);
/* Writes `text` as the dictionary's entry `id` before the next batch that could use it, and counts it as a loss when it
 * fits no line; not between recorder_begin and recorder_end. */
void recorder_define(struct recorder *recorder, enum dictionary dictionary, uint32_t id, const char *text, size_t size);
/* All waiting entries of the dictionaries that live in the channel, where so many come that they should not wait for
 * a batch; not between recorder_begin and recorder_end. */
void recorder_write_dictionaries(struct recorder *recorder, enum channel channel);
/* Adds to a loss count; any thread. */
static inline void recorder_lose(struct recorder *recorder, enum loss_reason reason, uint64_t count)
{
    atomic_fetch_add_explicit(&recorder->lost[reason], count, memory_order_relaxed);
}
/* The same; the reason's first cause that is not "" also goes into the log, once. Neither locks nor allocates. */
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
