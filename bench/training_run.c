/* SPDX-License-Identifier: Apache-2.0 */
#include "training_run.h"

#include "logfile/line.h"

#include <inttypes.h>

void training_run_init(struct training_run *run, uint64_t seed)
{
    *run = (struct training_run){.random = seed, .time_ns = TRAINING_START_NS};
}

static uint32_t noise(struct training_run *run, uint32_t below)
{
    run->random = run->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)((run->random >> 33) % below);
}

void training_run_row(struct training_run *run, int64_t base_ns, int64_t cells[TRAINING_COLUMNS])
{
    uint32_t step = run->corr_id % 1500, kernel = step * 7919 % TRAINING_KERNEL_NAMES;
    int64_t duration_ns = 1500 + (int64_t)kernel * 37 + noise(run, 200);
    run->scope_id += step % 50 == 0;
    memset(cells, 0, TRAINING_COLUMNS * sizeof *cells);
    cells[KERNEL_DT_NS] = run->time_ns - base_ns;
    cells[KERNEL_KERNEL_ID] = 1 + kernel;
    cells[KERNEL_STREAM_ID] = step % 16 == 15 ? 20 : 7;
    cells[KERNEL_DURATION_NS] = duration_ns;
    cells[KERNEL_CORR_ID] = run->corr_id;
    cells[KERNEL_LAUNCH_ID] = 1 + step;
    cells[KERNEL_NUM_REGS] = 32;
    cells[KERNEL_CONTEXT_ID] = 1;
    cells[KERNEL_API_LEAD_NS] = 9000 + noise(run, 4000);
    cells[KERNEL_API_DURATION_NS] = 2100 + noise(run, 300);
    cells[KERNEL_THREAD_ID] = 4711;
    cells[KERNEL_SCOPE_ID] = (int64_t)run->scope_id;
    run->time_ns += duration_ns + 500 + noise(run, 100);
    run->corr_id++;
}

static void line_end(struct bytes *out, size_t begin, uint64_t seq)
{
    bytes_append_format(out, ",\"seq\":%" PRIu64, seq);
    line_append_crc(out, begin);
}

void training_run_begin(const char *session_id, struct bytes *out)
{
    size_t begin = out->size;
    bytes_append_format(out,
                        "{\"version\":1,\"type\":\"job_start\",\"session_id\":\"%s\",\"pid\":7,\"app\":\"training\","
                        "\"hostname\":\"node1\",\"ts_ns\":%" PRId64 ",\"session_kind\":\"trace\"",
                        session_id, TRAINING_START_NS - 1000);
    line_end(out, begin, 1);
    begin = out->size;
    bytes_append_format(out, "{\"version\":1,\"type\":\"dictionary_update\",\"session_id\":\"%s\",\"kernel_dict\":{",
                        session_id);
    for (int i = 1; i <= TRAINING_KERNEL_NAMES; i++)
        bytes_append_format(out, "%s\"%d\":\"void layer_%d::kernel<float, %d>(float const*, float*, int)\"",
                            i > 1 ? "," : "", i, i / 10, i);
    bytes_append_char(out, '}');
    line_end(out, begin, 2);
}

void training_run_batch(struct training_run *run, struct batch *batch, const char *session_id, uint64_t seq,
                        struct bytes *out)
{
    size_t begin = out->size;
    int64_t *row;
    batch->base_time_ns = run->time_ns;
    batch->batch_id = run->batch_id++;
    while ((row = batch_row(batch)))
        training_run_row(run, batch->base_time_ns, row);
    batch_encode(batch, session_id, "", out);
    line_end(out, begin, seq);
}
