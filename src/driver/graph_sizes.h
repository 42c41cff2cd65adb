/* SPDX-License-Identifier: Apache-2.0 */
/* How many kernels the program's executable graphs launch, from CUPTI's reports while they are instantiated: each
 * node is cloned into the executable graph (as measured on an H200, CUPTI 13.0). Bounded: the size of a graph that
 * was evicted, or that contains graphs, is unknown. Lock-free, any thread. */
#ifndef GPUFL_DRIVER_GRAPH_SIZES_H
#define GPUFL_DRIVER_GRAPH_SIZES_H

#include "driver/cupti_abi.h"

/* The callback ids of the resource domain that it needs, and the handler for their reports. */
extern const uint32_t graph_sizes_ids[];
extern const size_t graph_sizes_id_count;
void graph_sizes_note(uint32_t cbid, const struct cupti_abi_graph_data *data);
uint32_t graph_sizes_kernels(const void *executable); /* 0: not known, or none */

#endif
