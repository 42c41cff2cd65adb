/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up training run for the server's benchmarks: one step after the other, the same launches in each, times with
 * some noise. One thread at a time. */
#ifndef GPUFL_BENCH_TRAINING_RUN_H
#define GPUFL_BENCH_TRAINING_RUN_H

#include "format/batch.h"

enum { TRAINING_KERNEL_NAMES = 120, TRAINING_BATCH_ROWS = 2048, TRAINING_COLUMNS = KERNEL_GRAPH_ID };
#define TRAINING_START_NS INT64_C(1789000000000000000)

struct training_run {
    uint64_t random, scope_id, batch_id;
    int64_t time_ns; /* of the next kernel */
    uint32_t corr_id;
};
void training_run_init(struct training_run *run, uint64_t seed);
/* The next kernel; base_ns: what its dt_ns counts from. */
void training_run_row(struct training_run *run, int64_t base_ns, int64_t cells[TRAINING_COLUMNS]);

/* Lines as the live file has them, LF included, appended to out: what begins a session, and one batch. */
void training_run_begin(const char *session_id, struct bytes *out);
void training_run_batch(struct training_run *run, struct batch *batch, const char *session_id, uint64_t seq,
                        struct bytes *out);

#endif
