/* SPDX-License-Identifier: Apache-2.0 */
/* struct rocprofiler, shared by the files of this folder and by tests that replace its functions. The single
 * instance is in rocprofiler.c. */
#ifndef GPUFL_DRIVER_ROCPROFILER_TABLE_H
#define GPUFL_DRIVER_ROCPROFILER_TABLE_H

#include "driver/gate.h"
#include "driver/library.h"
#include "driver/rocprofiler.h"
#include "driver/rocprofiler_abi.h"

enum {
    ROCPROFILER_AGENTS_MAX = 64,
    ROCPROFILER_KERNEL_PAGES = 1024, /* 4 Mi kernel ids */
    ROCPROFILER_KERNELS_PER_PAGE = 4096,
    ROCPROFILER_OPERATIONS_MAX = 1024
};

struct rocprofiler_table { /* NULL where the library lacks a function */
#define ROCPROFILER_MEMBER(member, symbol, parameters) int(*member) parameters;
    ROCPROFILER_ABI_FUNCTIONS(ROCPROFILER_MEMBER)
#undef ROCPROFILER_MEMBER
    const char *(*status_name)(int status);
};

struct rocprofiler_kernel {
    uint32_t regs, sgprs, accum_vgprs, group_bytes;
    char name[];
};

struct rocprofiler_kernel_page {
    _Atomic(struct rocprofiler_kernel *) kernels[ROCPROFILER_KERNELS_PER_PAGE];
};

struct rocprofiler_kernels { /* rocprofiler_kernels.c */
    _Atomic(struct rocprofiler_kernel_page *) pages[ROCPROFILER_KERNEL_PAGES];
    size_t bytes_max; /* 0: 128 MiB, about half a million kernels */
    _Atomic size_t bytes;
    _Atomic uint64_t nameless; /* kernels that did not fit in the table */
};

/* The relevance of a HIP call, by its operation. */
enum rocprofiler_call {
    ROCPROFILER_CALL_OTHER,
    ROCPROFILER_CALL_WORK,
    ROCPROFILER_CALL_ASYNC, /* a copy whose name says that it is asynchronous */
    ROCPROFILER_CALL_GRAPH,
    ROCPROFILER_CALL_WAIT_EVENT,
    ROCPROFILER_CALL_WAIT_STREAM,
    ROCPROFILER_CALL_WAIT_DEVICE
};

enum rocprofiler_state {
    ROCPROFILER_UNREGISTERED,
    ROCPROFILER_REGISTERED,  /* our configure function was called */
    ROCPROFILER_CONFIGURING, /* inside initialize */
    ROCPROFILER_READY,       /* services are configured */
    ROCPROFILER_LOCKED,      /* initialize is over, without services */
    ROCPROFILER_FINALIZED
};

enum rocprofiler_lane { LANE_KERNELS, LANE_COPIES, LANE_CALLS, LANE_MEMORY, LANE_COUNTERS };

struct rocprofiler_counting {
    uint32_t count;
    char names[DISPATCH_COUNTERS_MAX][64];
    struct { /* by agent: the chosen counters, as the agent's handles, and the pass that contains them */
        struct rocprofiler_abi_id counters[DISPATCH_COUNTERS_MAX], config;
        uint32_t wanted, known; /* bit per name; known: wanted, and in the pass */
    } agents[ROCPROFILER_AGENTS_MAX];
};

struct rocprofiler_awaited { /* in the running trace; ids increase, and are assigned by rocprofiler */
    _Atomic uint64_t started, delivered, last_id;
    uint64_t earlier_id; /* records up to this one belong to an earlier trace, which counted them as lost */
    bool is_reported;    /* starts are reported */
};

struct rocprofiler {
    struct rocprofiler_table call;
    struct library library;
    uint32_t version;
    _Atomic enum rocprofiler_state state;
    unsigned configured; /* features whose services are configured */
    unsigned granted;    /* those granted to the running trace */
    struct gate gate;    /* around the sink */
    struct rocprofiler_sink sink;
    /* Code has a separate context that is never stopped: kernels may be loaded between two sessions. */
    struct rocprofiler_abi_id code_context, context, counter_context, buffers[ROCPROFILER_LANES];
    _Atomic int64_t clock_offset_ns; /* CLOCK_REALTIME minus rocprofiler's clock */
    _Atomic uint64_t dropped, unknown;
    uint64_t dropped_before[ROCPROFILER_LANES]; /* rocprofiler's counters start with the buffer */
    struct rocprofiler_awaited awaited[ROCPROFILER_AWAITED_KINDS];
    int memory_kind;                           /* its number in this release; -1: none */
    uint8_t calls[ROCPROFILER_OPERATIONS_MAX]; /* enum rocprofiler_call */
    struct rocprofiler_agent agents[ROCPROFILER_AGENTS_MAX];
    uint64_t agent_handles[ROCPROFILER_AGENTS_MAX];
    uint32_t agent_count;
    struct rocprofiler_kernels kernels;
    struct rocprofiler_counting counting;
    struct rocprofiler_trace_result result;
};

/* The index of the GPU agent with this handle; ROCPROFILER_AGENTS_MAX: a CPU, or unknown. */
uint32_t rocprofiler_agent_index(const struct rocprofiler *rocprofiler, uint64_t handle);
const struct rocprofiler_kernel *rocprofiler_kernel_find(const struct rocprofiler *rocprofiler, uint64_t kernel_id);
/* Stores a kernel's name and registers; a kernel that does not fit is counted, and has no name later. */
void rocprofiler_kernel_add(struct rocprofiler *rocprofiler, const struct rocprofiler_abi_kernel_symbol *symbol);
/* Decodes a record; returns how many activities it became: 0 to 2. */
unsigned rocprofiler_decode(struct rocprofiler *rocprofiler, const struct rocprofiler_abi_header *header,
                            struct activity out[2]);
/* Converts a time of rocprofiler's clock to wall time; 0 stays 0. */
int64_t rocprofiler_wall_ns(const struct rocprofiler *rocprofiler, uint64_t time);
int rocprofiler_status(const struct rocprofiler *rocprofiler, const char *function, int result,
                       struct problem *problem);
/* Only inside initialize. */
gpufl_status rocprofiler_configure_services(struct rocprofiler *rocprofiler,
                                            const struct rocprofiler_trace_options *options, struct problem *problem);
/* Creates a lane's buffer, with a separate thread. */
bool rocprofiler_make_buffer(struct rocprofiler *rocprofiler, struct rocprofiler_abi_id context,
                             enum rocprofiler_lane lane, struct problem *problem);
/* Plans the counters and configures their service; the problem is in result. */
void rocprofiler_configure_counting(struct rocprofiler *rocprofiler, const char *names);
void rocprofiler_counting_records(struct rocprofiler *rocprofiler, struct rocprofiler_abi_header **headers,
                                  size_t count);
void rocprofiler_counting_end(void); /* after the last of them */

void rocprofiler_awaited_begin(struct rocprofiler *rocprofiler);
/* Call on the thread that starts the work. */
void rocprofiler_awaited_start(struct rocprofiler_awaited *awaited, uint64_t id);
/* A record arrived; id 0: for unknown work. False: it belongs to an earlier trace. */
bool rocprofiler_awaited_deliver(struct rocprofiler_awaited *awaited, uint64_t id);
/* Flushes until every record has arrived, with a time limit. False: a buffer could not be flushed. */
bool rocprofiler_await(struct rocprofiler *rocprofiler);

#endif
