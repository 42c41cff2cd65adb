/* SPDX-License-Identifier: Apache-2.0 */
/* Takes samples of GPUs and host and writes them: metric batches, system_start/system_stop, losses. The system
 * sampler decides when to sample. One owner at a time; not thread-safe. */
#ifndef GPUFL_CAPTURE_SYSTEM_RECORDS_H
#define GPUFL_CAPTURE_SYSTEM_RECORDS_H

#include "capture/gpu_telemetry.h"
#include "capture/host_metrics.h"
#include "logfile/writer.h"

struct system_records {
    struct log_writer *writer; /* borrowed */
    char session_id[40];
    char *app_name; /* owned */
    struct host_metrics host;
    struct host_sample host_sample; /* the latest */
    struct gpu_telemetry gpu;
    struct batch device_batch, process_batch, mig_batch, host_batch;
    int64_t oldest_row_mono_ns; /* of the rows not yet written; 0: none */
    int64_t slow_mono_ns;       /* when slow values were last sampled; 0: never */
    int64_t slow_interval_ns;
    bool has_reported_process_limit;
    struct bytes line, host_members;
};

struct system_records_options {
    struct log_writer *writer;
    const char *session_id, *app_name;
    const char *root; /* directory that contains proc: "" */
    struct gpu_choice gpus;
    unsigned slow_interval_ms; /* how often slow values (energy, processes) are sampled; 0: 1000 */
};
/* gpu_problem (may be NULL): why there is no GPU data, else "". */
NODISCARD gpufl_status system_records_open(struct system_records *records, const struct system_records_options *options,
                                           struct problem *gpu_problem);
void system_records_close(struct system_records *records);
void system_records_abandon(struct system_records *records); /* in a forked child */

/* Switches to another session; earlier rows are written to the old one. Cannot fail. */
void system_records_move(struct system_records *records, struct log_writer *writer, const char *session_id);

/* Writes one sample of everything as rows. Slow values are included once per slow_interval_ms. */
void system_records_sample(struct system_records *records);
/* Writes the rows if they would be older than a second at next_mono_ns; INT64_MAX: always. */
void system_records_flush(struct system_records *records, int64_t next_mono_ns);
/* Writes system_start or system_stop with the latest sample, or with unknown values. */
void system_records_window(struct system_records *records, bool is_start, const char *name, int64_t wall_ns,
                           bool with_sample);
void system_records_loss(struct system_records *records, const char *reason, const char *record_type,
                         int64_t count /* CELL_UNKNOWN: null */, const char *message);
/* Takes a sample without writing rows and appends the v1 members of job_start. */
void system_records_describe(struct system_records *records, struct bytes *out);

#endif
