/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/fork.h"

#include "driver/cuda.h"
#include "driver/cupti.h"
#include "driver/cupti_fork.h"
#include "driver/gpu_claim.h"
#include "driver/pc_sampling.h"
#include "driver/profiler_target.h"
#include "driver/rocprofiler.h"
#include "driver/sass_metrics.h"

void driver_before_fork(void)
{
    cupti_before_fork();
}

void driver_after_fork_in_parent(void)
{
    cupti_after_fork_in_parent();
}

void driver_after_fork_in_child(bool is_whole)
{
    cuda_abandon();
    cupti_abandon();
    cupti_after_fork_in_child(is_whole);
    cupti_trace_abandon();
    profiler_target_abandon();
    sass_metrics_abandon();
    pc_sampling_abandon();
    gpu_claims_abandon();
    rocprofiler_forget();
}
