/* SPDX-License-Identifier: Apache-2.0 */
/* What CUPTI's record of one kernel costs the program where this host was not calibrated: measured on an H200 with CUDA
 * 13.0 and CUPTI 13.0 Update 1 (bench/RESULTS.md, "What CUPTI's records cost"). */
#ifndef GPUFL_BASE_RECORD_COST_H
#define GPUFL_BASE_RECORD_COST_H

enum {
    RECORD_COST_HOST_NS = 1900,      /* per launch, on the launching thread */
    RECORD_COST_GPU_NS = 1000,       /* per kernel, on a GPU that has more work queued */
    RECORD_COST_GRAPH_NODE_NS = 280, /* per kernel of a CUDA graph, likewise */
    RECORD_COST_NS_MAX = 1000000     /* no cost is larger */
};

#endif
