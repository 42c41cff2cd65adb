/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of range profiling: nine metrics, which take the look-alike GPU three passes, and its
 * contexts. Include after cmocka.h. */
#ifndef GPUFL_TESTS_RANGE_FIXTURE_H
#define GPUFL_TESTS_RANGE_FIXTURE_H

#include "../fakes/fake_client.h"

static const char *const range_metrics[] = {"sm__throughput.avg.pct_of_peak_sustained_elapsed",
                                            "dram__bytes_read.sum",
                                            "dram__bytes_write.sum",
                                            "sm__warps_active.avg",
                                            "lts__t_sector_hit_rate.pct",
                                            "sm__cycles_active.avg",
                                            "l1tex__t_sector_hit_rate.pct",
                                            "sm__inst_executed.sum",
                                            "gpu__time_duration.sum"};
enum { METRIC_COUNT = sizeof range_metrics / sizeof range_metrics[0], PASSES = 3 };

/* In a child, after cuInit. */
static inline struct fake_context *primary_context(int device)
{
    struct fake_context *(*find)(int);
    *(void **)&find = dlsym(RTLD_DEFAULT, "fake_primary_context");
    CHECK(find);
    return find(device);
}

#endif
