/* SPDX-License-Identifier: Apache-2.0 */
/* What CUPTI tells while the program runs: contexts, modules, launches. The
 * functions are called on the user's threads, inside the CUDA call: they must be
 * short, must not call CUDA, and of CUPTI only what its documentation allows in a
 * callback. One listener per process; nothing is called after cupti_trace_stop. */
#ifndef GPUFL_DRIVER_CUPTI_EVENTS_H
#define GPUFL_DRIVER_CUPTI_EVENTS_H

#include "driver/cupti.h"

struct gpu_context {
    void *handle; /* CUcontext */
    uint32_t id, device_id;
};

struct launch_call {
    void *context;
    uint32_t context_id, correlation_id;
    const char *symbol; /* mangled kernel name; NULL for a graph; valid during the call */
    bool is_graph;
    uint32_t graph_kernels; /* that the graph launches; 0: not known */
};

struct cupti_listener {
    void *user;
    void (*on_context)(void *user, const struct gpu_context *context, bool is_created); /* else: about to go */
    /* A context came that CUPTI does not tell the ids of, so that nothing can be said of it. */
    void (*on_unknown_context)(void *user, const struct problem *problem);
    void (*on_module)(void *user, uint32_t module_id, const void *cubin, size_t cubin_bytes);
    /* Entry to (is_enter) and exit from each call that launches kernels, while cupti_listen_launches is on. */
    void (*on_launch)(void *user, const struct launch_call *call, bool is_enter);
    /* The same of each call that begins or ends the capture of a graph. change: to how many are under way, 1, 0 or -1; a
     * capture is so from the entry to its beginning until the exit from its end, on whatever threads. */
    void (*on_capture)(void *user, int change, bool is_enter);
};

/* After cupti_trace_start. The listener is borrowed until cupti_trace_stop. */
NODISCARD gpufl_status cupti_listen(struct cupti *cupti, const struct cupti_listener *listener,
                                    struct problem *problem);
/* The listener hears no more, and is no longer borrowed once the calls that are in it have come back. For a CUPTI that is
 * stuck: it is not asked, so that its callbacks stay on. */
void cupti_listen_no_more(void);
/* Captures with them. False: CUPTI refused, and no launch is told of. */
bool cupti_listen_launches(struct cupti *cupti, bool is_on);
/* Fills in the ids of a CUcontext; false when CUPTI does not know it. Also in a callback. */
bool cupti_context_describe(struct cupti *cupti, void *handle, struct gpu_context *context);
/* The stream_id of a CUstream or cudaStream_t as records have it; context: the calling thread's. False: CUPTI does not
 * know the stream, or is not in use. */
bool cupti_stream_id(void *context, void *stream, uint32_t *id);
/* Kernel records off and on again, for counters that cannot share a moment with them. Records of kernels launched
 * before the pause still come. */
NODISCARD gpufl_status cupti_trace_pause(struct cupti *cupti, struct problem *problem);
NODISCARD gpufl_status cupti_trace_resume(struct cupti *cupti, struct problem *problem);
/* Key of a cubin as PC samples and SASS counters name it; 0 when CUPTI cannot tell. Not from a callback. */
uint64_t cupti_cubin_crc(const struct cupti *cupti, const void *cubin, size_t cubin_bytes);

#endif
