/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of PC sampling: a session to write to, kernels that ran, and the resulting rows. */
#ifndef GPUFL_TESTS_PC_FIXTURE_H
#define GPUFL_TESTS_PC_FIXTURE_H

#include "recorder_fixture.h"

#include "capture/pc_ring.h"
#include "capture/pc_sampler.h"

#define SECOND_NS INT64_C(1000000000)
#define BEGIN_NS INT64_C(1763000000000000000)
enum { CONTEXT = 3, STALL = 9 };

struct fixture {
    char dir[256];
    struct log_writer *writer;
    struct recorder recorder;
    struct names names;
    struct kernel_history *history;
    struct pc_attribution *attribution;
    struct pc_ring *ring;
};

static inline struct pc_attribution_options attribution_options(struct fixture *fixture)
{
    return (struct pc_attribution_options){&fixture->recorder, &fixture->names, fixture->history};
}

static inline struct fixture *fixture_make(void)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    recorder_fixture_open(fixture->dir, &fixture->writer, &fixture->recorder);
    names_open(&fixture->names, &fixture->recorder);
    assert_int_equal(kernel_history_make(&fixture->history, 1024), GPUFL_OK);
    return fixture;
}

static inline int open_fixture(void **state)
{
    struct fixture *fixture = fixture_make();
    const struct pc_attribution_options options = attribution_options(fixture);
    assert_int_equal(pc_attribution_make(&fixture->attribution, &options), GPUFL_OK);
    assert_int_equal(pc_ring_make(&fixture->ring, &fixture->recorder), GPUFL_OK);
    pc_attribution_define(fixture->attribution, 1, 77, "_Z1aPf");
    pc_attribution_define(fixture->attribution, 2, 77, "_Z1bPf");
    pc_attribution_stall(fixture->attribution, 0, STALL, "stalled_wait");
    *state = fixture;
    return 0;
}

static inline int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    pc_ring_free(fixture->ring);
    pc_attribution_free(fixture->attribution);
    kernel_history_free(fixture->history);
    names_close(&fixture->names);
    recorder_fixture_close(fixture->dir, fixture->writer, &fixture->recorder);
    free(fixture);
    return 0;
}

/* Instances 7, 107, 207, ... have the same path. */
static inline uint32_t path_of(uint64_t scope_id)
{
    return scope_id && scope_id != SCOPE_UNKNOWN ? (uint32_t)(scope_id % 100) + 1000 : 0;
}

static inline void ran(struct fixture *fixture, const char *symbol, int64_t start_ns, int64_t end_ns, uint64_t scope_id,
                       uint32_t correlation_id)
{
    const struct kernel_execution execution = {
        BEGIN_NS + start_ns, BEGIN_NS + end_ns, scope_id, kernel_history_symbol(fixture->history, symbol), CONTEXT,
        correlation_id,      path_of(scope_id)};
    kernel_history_add(fixture->history, &execution);
}

static inline void sampled(struct fixture *fixture, uint32_t function, int64_t start_ns, int64_t end_ns,
                           uint32_t samples, uint32_t correlation_id)
{
    const struct pc_interval interval = {BEGIN_NS + start_ns, BEGIN_NS + end_ns, CONTEXT, 0, 0};
    const struct pc_count count = {0x40, function, STALL, samples, correlation_id};
    pc_attribution_add(fixture->attribution, &interval, &count, 1);
}

static inline uint32_t row_count(const struct fixture *fixture)
{
    return fixture->recorder.batches[RECORD_PROFILE_SAMPLE_BATCH].row_count;
}
static inline const int64_t *row_at(const struct fixture *fixture, uint32_t index)
{
    assert_true(index < row_count(fixture));
    return &fixture->recorder.batches[RECORD_PROFILE_SAMPLE_BATCH].cells[index * PROFILE_SAMPLE_COLUMN_COUNT];
}
static inline uint64_t lost(const struct fixture *fixture, enum loss_reason reason)
{
    return atomic_load(&fixture->recorder.lost[reason]);
}

#endif
