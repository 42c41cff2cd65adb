/* SPDX-License-Identifier: Apache-2.0 */
/* Events that CUPTI reports while the program runs: contexts, modules, launches. The functions are called on the
 * user's threads, inside the CUDA call: they must be short, must not call CUDA, and may only make the CUPTI calls
 * that its documentation allows in a callback. One listener per process; nothing is called after cupti_trace_stop. */
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
    uint32_t graph_kernels; /* launched by the graph; 0: not known */
};

struct cupti_listener {
    void *user;
    void (*on_context)(void *user, const struct gpu_context *context, bool is_created); /* is_created false: about to
                                                                                         * be destroyed */
    /* A context was created whose ids CUPTI does not report, so nothing is known about it. */
    void (*on_unknown_context)(void *user, const struct problem *problem);
    void (*on_module)(void *user, uint32_t module_id, const void *cubin, size_t cubin_bytes);
    /* Entry to (is_enter) and exit from each call that launches kernels, while cupti_listen_launches is on. */
    void (*on_launch)(void *user, const struct launch_call *call, bool is_enter);
    /* The same for each call that begins or ends the capture of a graph. change: of the number of captures in
     * progress, 1, 0 or -1; a capture is in progress from the entry to its begin call until the exit from its end
     * call, on any threads. */
    void (*on_capture)(void *user, int change, bool is_enter);
};

/* After cupti_trace_start. The listener is borrowed until cupti_trace_stop. */
NODISCARD gpufl_status cupti_listen(struct cupti *cupti, const struct cupti_listener *listener,
                                    struct problem *problem);
/* Detaches the listener, which may be freed once the calls in progress have returned. For a CUPTI that is stuck:
 * CUPTI is not called, so its callbacks stay on. */
void cupti_listen_no_more(void);
/* Includes captures. False: CUPTI refused, and launches are not reported. */
bool cupti_listen_launches(struct cupti *cupti, bool is_on);
/* Fills in the ids of a CUcontext; false when CUPTI does not know it. Also in a callback. */
bool cupti_context_describe(struct cupti *cupti, void *handle, struct gpu_context *context);
/* The stream_id that records use for a CUstream or cudaStream_t; context: the calling thread's. False: CUPTI does
 * not know the stream, or is not in use. */
bool cupti_stream_id(void *context, void *stream, uint32_t *id);
/* Switches kernel records off and on again, for counters that exclude them. Records of kernels launched before the
 * pause are still delivered. */
NODISCARD gpufl_status cupti_trace_pause(struct cupti *cupti, struct problem *problem);
NODISCARD gpufl_status cupti_trace_resume(struct cupti *cupti, struct problem *problem);
/* Key of a cubin as in PC samples and SASS counters; 0 when CUPTI cannot compute it. Not from a callback. */
uint64_t cupti_cubin_crc(const struct cupti *cupti, const void *cubin, size_t cubin_bytes);

#endif
