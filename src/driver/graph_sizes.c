/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/graph_sizes.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { graphs_max = 1024, node_kernel = 0, node_child_graph = 4, node_conditional = 13 }; /* CUgraphNodeType */

const uint32_t graph_sizes_ids[] = {CUPTI_ABI_RESOURCE_GRAPHEXEC_STARTING, CUPTI_ABI_RESOURCE_GRAPHEXEC_CREATED,
                                    CUPTI_ABI_RESOURCE_GRAPHEXEC_DESTROYING, CUPTI_ABI_RESOURCE_GRAPHNODE_CLONED};
const size_t graph_sizes_id_count = sizeof graph_sizes_ids / sizeof graph_sizes_ids[0];

/* A reader may see one of the two renewed: the handle is cleared before the number changes, and set after it. */
static struct graph_size {
    _Atomic(const void *) executable;
    atomic_uint kernels;
} sizes[graphs_max];

static struct graph_size *size_of(const void *executable)
{
    uint64_t mixed = (uint64_t)(uintptr_t)executable * UINT64_C(0x9e3779b97f4a7c15);
    return &sizes[mixed >> 54];
}

void graph_sizes_note(uint32_t cbid, const struct cupti_abi_graph_data *data)
{
    static _Thread_local uint32_t kernels; /* of the graph that this thread is instantiating */
    static _Thread_local bool is_unknown;
    if (!data)
        return;
    struct graph_size *size = size_of(data->executable);
    if (cbid == CUPTI_ABI_RESOURCE_GRAPHNODE_CLONED) {
        kernels += data->node_type == node_kernel;
        is_unknown |= data->node_type == node_child_graph || data->node_type == node_conditional;
        return;
    }
    const void *known = data->executable;
    if (cbid == CUPTI_ABI_RESOURCE_GRAPHEXEC_DESTROYING) {
        (void)atomic_compare_exchange_strong(&size->executable, &known, NULL);
        return;
    }
    if (cbid == CUPTI_ABI_RESOURCE_GRAPHEXEC_CREATED && data->executable) {
        atomic_store(&size->executable, NULL);
        atomic_store(&size->kernels, is_unknown ? 0 : kernels);
        atomic_store(&size->executable, data->executable);
    }
    kernels = 0; /* also at the start: clones of graphs that are not instantiated were counted */
    is_unknown = false;
}

uint32_t graph_sizes_kernels(const void *executable)
{
    struct graph_size *size = size_of(executable);
    if (!executable || atomic_load(&size->executable) != executable)
        return 0;
    uint32_t kernels = atomic_load(&size->kernels);
    return atomic_load(&size->executable) == executable ? kernels : 0;
}
