/* SPDX-License-Identifier: Apache-2.0 */
#include "base/record_cost.h"

/* Measured on an H200 with CUDA 13.0 and CUPTI 13.0 Update 1 (bench/RESULTS.md, "What CUPTI's records cost"); cold: a
 * launch from PyTorch. */
const struct record_cost_info record_costs[RECORD_COST_COUNT] = {
    [RECORD_COST_HOST] = {"host_ns", 1900}, [RECORD_COST_HOST_COLD] = {"host_cold_ns", 3400},
    [RECORD_COST_CALL] = {"call_ns", 0},    [RECORD_COST_CALL_COLD] = {"call_cold_ns", 0},
    [RECORD_COST_GPU] = {"gpu_ns", 1000},   [RECORD_COST_GRAPH_NODE] = {"graph_node_ns", 280},
};
