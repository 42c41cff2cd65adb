/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's pen: collects rows into batches, dictionary entries into
 * updates that precede them, and losses into loss records, and writes them to the
 * session's log. Collector thread only, except recorder_lose. */
#ifndef GPUFL_CAPTURE_RECORDER_H
#define GPUFL_CAPTURE_RECORDER_H

#include "base/bytes.h"
#include "format/batch.h"
#include "logfile/writer.h"

#include <stdatomic.h>

/* Every way in which gpufl can fail to record something. */
#define LOSS_MAP(X)                                                                                                 \
    X(LOSS_TAKEN_OVER, "taken_over", "unknown",                                                                     \
      "another profiler took CUPTI's buffers away while the program ran; how many records went to it is not known") \
    X(LOSS_CUPTI_DROPPED, "cupti_dropped", "unknown",                                                               \
      "CUPTI had no buffer to write them to, or dropped them on its own")                                           \
    X(LOSS_BAD_RECORD, "bad_record", "unknown",                                                                     \
      "an activity buffer held a record that cannot be right; the rest of it was skipped")                          \
    X(LOSS_NO_TIMESTAMP, "no_timestamp", "kernel_event_batch", "CUPTI had no time for the record")                  \
    X(LOSS_STILL_RUNNING, "still_running", "kernel_event_batch", "still running when the session ended")            \
    X(LOSS_SCOPE_RING, "scope_ring_full", "scope_event_batch", "a thread's scope ring was full")                    \
    X(LOSS_SCOPE_THREADS, "too_many_threads", "scope_event_batch", "more threads with scopes than rings")           \
    X(LOSS_STACK_RING, "stack_ring_full", "function_dict", "a thread's ring had no room for a call stack")          \
    X(LOSS_ATTRIBUTION, "attribution", "scope_id",                                                                  \
      "the call's scope is unknown: its thread's scope history was already forgotten")                              \
    X(LOSS_NAMES, "names_full", "kernel_dict", "no memory left for names or launch configurations")                 \
    X(LOSS_PENDING, "pending_full", "api_lead_ns",                                                                  \
      "too many records waited for their API call; they are written without its time, thread and scope")

enum loss_reason {
#define LOSS_ENUM(name, word, record, text) name,
    LOSS_MAP(LOSS_ENUM)
#undef LOSS_ENUM
        LOSS_REASON_COUNT
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
    uint64_t disk_lost_written[RECORD_TYPE_COUNT];
};

NODISCARD gpufl_status recorder_open(struct recorder *recorder, struct log_writer *writer, const char *session_id,
                                     const char *app_name);
void recorder_close(struct recorder *recorder); /* frees; flush first */

/* A zeroed row of the type at that time (column 0 is set); never NULL after a good open. */
int64_t *recorder_row(struct recorder *recorder, enum record_type type, int64_t time_ns);
/* Writes `text` as the dictionary's entry `id` before the next batch that could use it. */
void recorder_define(struct recorder *recorder, enum dictionary dictionary, uint32_t id, const char *text, size_t size);
/* Adds to a loss count; any thread. */
static inline void recorder_lose(struct recorder *recorder, enum loss_reason reason, uint64_t count)
{
    atomic_fetch_add_explicit(&recorder->lost[reason], count, memory_order_relaxed);
}
/* Writes batches older than age_ms (0: all), dictionaries, and new losses. */
void recorder_flush(struct recorder *recorder, int64_t age_ms);
/* Starts a line of a single record: {"version":1,"type":..,"session_id":..  */
struct bytes *recorder_begin(struct recorder *recorder, enum record_type type);
/* Ends it and writes it to its channel (or to all channels). */
void recorder_end(struct recorder *recorder, enum record_type type);
/* ,"rows":{..},"lost":{..} for the shutdown record. */
void recorder_append_totals(struct recorder *recorder, struct bytes *out);
uint64_t recorder_lost_total(const struct recorder *recorder);

#endif
