/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cupti_calls.h"

#include "driver/cupti.h"

enum { RUNTIME_is_runtime = true, DRIVER_is_runtime = false };

const struct cupti_call cupti_calls[] = {
#define CALL_ROW(domain, name, id, kind) {id, CUPTI_CALL_##kind, domain##_is_runtime},
    CUPTI_RUNTIME_CALLS(CALL_ROW) CUPTI_DRIVER_CALLS(CALL_ROW)
#undef CALL_ROW
};
const size_t cupti_call_count = sizeof cupti_calls / sizeof cupti_calls[0];

unsigned cupti_call_groups(unsigned features)
{
    unsigned groups = CUPTI_CALL_LAUNCH | CUPTI_CALL_COPY;
    if (features & CUPTI_TRACE_GRAPHS)
        groups |= CUPTI_CALL_GRAPH;
    if (features & CUPTI_TRACE_SYNC)
        groups |= CUPTI_CALL_SYNC;
    if (features & CUPTI_TRACE_MEMORY)
        groups |= CUPTI_CALL_MEMORY;
    return groups;
}

bool cupti_call_is_graph_launch(bool is_runtime, uint32_t cbid)
{
    /* Called once per API record, so without searching the table. */
    enum { runtime_graph = 311, runtime_graph_ptsz = 312, driver_graph = 514, driver_graph_ptsz = 515 };
    return is_runtime ? cbid == runtime_graph || cbid == runtime_graph_ptsz
                      : cbid == driver_graph || cbid == driver_graph_ptsz;
}

uint32_t cupti_call_sync_type(bool is_runtime, uint32_t cbid)
{
    enum { event = 1, stream_wait_event, stream, context };
    switch (cbid) {
    case 126: /* cudaThreadSynchronize, cuStreamSynchronize */
        return is_runtime ? context : stream;
    case 131:
    case 239:
        return is_runtime ? stream : 0;
    case 137:
        return is_runtime ? event : 0;
    case 147:
    case 247:
        return is_runtime ? stream_wait_event : 0;
    case 165:
        return is_runtime ? context : 0;
    case 17:
    case 800:
        return is_runtime ? 0 : context;
    case 121:
        return is_runtime ? 0 : event;
    case 295:
    case 436:
        return is_runtime ? 0 : stream_wait_event;
    case 440:
        return is_runtime ? 0 : stream;
    default:
        return 0;
    }
}

bool cupti_call_is_per_thread(bool is_runtime, uint32_t cbid)
{
    /* Waits, then captures, in the order of the list. */
    return is_runtime ? cbid == 239 || cbid == 247 || cbid == 316 || cbid == 320 || cbid == 453
                      : cbid == 436 || cbid == 440 || cbid == 496 || cbid == 498 || cbid == 540 || cbid == 721;
}
