/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of struct rocprofiler, for the files of this folder and for tests
 * that put functions of their own into it. There is one, in rocprofiler.c. */
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
    _Atomic uint64_t nameless; /* kernels there was no room for */
};

/* What a HIP call is to us, by its operation. */
enum rocprofiler_call {
    ROCPROFILER_CALL_OTHER,
    ROCPROFILER_CALL_WORK,
    ROCPROFILER_CALL_ASYNC, /* a copy whose name says that it does not wait */
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
    struct { /* by agent: which counters, as its handles, and the one pass that holds them */
        struct rocprofiler_abi_id counters[DISPATCH_COUNTERS_MAX], config;
        uint32_t wanted, known; /* bit per name; known: wanted, and in the pass */
    } agents[ROCPROFILER_AGENTS_MAX];
};

struct rocprofiler_awaited { /* in the running trace; ids grow, and are rocprofiler's */
    _Atomic uint64_t started, delivered, last_id;
    uint64_t earlier_id; /* records up to this one belong to an earlier trace, which has counted them as lost */
    bool is_reported;    /* starts are */
};

struct rocprofiler {
    struct rocprofiler_table call;
    struct library library;
    uint32_t version;
    _Atomic enum rocprofiler_state state;
    unsigned configured; /* features whose services there are */
    unsigned granted;    /* of them, those of the running trace */
    struct gate gate;    /* around the sink */
    struct rocprofiler_sink sink;
    /* Code has a context of its own that is never stopped: kernels may be loaded between two sessions. */
    struct rocprofiler_abi_id code_context, context, counter_context, buffers[ROCPROFILER_LANES];
    _Atomic int64_t clock_offset_ns; /* CLOCK_REALTIME minus rocprofiler's clock */
    _Atomic uint64_t dropped, unknown;
    uint64_t dropped_before[ROCPROFILER_LANES]; /* rocprofiler counts from the buffer's start */
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

/* The index of the GPU agent with this handle; ROCPROFILER_AGENTS_MAX: a CPU, or not known. */
uint32_t rocprofiler_agent_index(const struct rocprofiler *rocprofiler, uint64_t handle);
const struct rocprofiler_kernel *rocprofiler_kernel_find(const struct rocprofiler *rocprofiler, uint64_t kernel_id);
/* Keeps a kernel's name and registers; what does not fit is counted, and nameless later. */
void rocprofiler_kernel_add(struct rocprofiler *rocprofiler, const struct rocprofiler_abi_kernel_symbol *symbol);
/* How many activities a record became: 0 to 2. */
unsigned rocprofiler_decode(struct rocprofiler *rocprofiler, const struct rocprofiler_abi_header *header,
                            struct activity out[2]);
/* Wall time of a time of rocprofiler's clock; 0 stays 0. */
int64_t rocprofiler_wall_ns(const struct rocprofiler *rocprofiler, uint64_t time);
int rocprofiler_status(const struct rocprofiler *rocprofiler, const char *function, int result,
                       struct problem *problem);
/* Only inside initialize. */
gpufl_status rocprofiler_configure_services(struct rocprofiler *rocprofiler,
                                            const struct rocprofiler_trace_options *options, struct problem *problem);
/* A lane's buffer, with a thread of its own. */
bool rocprofiler_make_buffer(struct rocprofiler *rocprofiler, struct rocprofiler_abi_id context,
                             enum rocprofiler_lane lane, struct problem *problem);
/* Plans the counters and configures their service; the problem is in result. */
void rocprofiler_configure_counting(struct rocprofiler *rocprofiler, const char *names);
void rocprofiler_counting_records(struct rocprofiler *rocprofiler, struct rocprofiler_abi_header **headers,
                                  size_t count);
void rocprofiler_counting_end(void); /* after the last of them */

void rocprofiler_awaited_begin(struct rocprofiler *rocprofiler);
/* On the thread that starts the work. */
void rocprofiler_awaited_start(struct rocprofiler_awaited *awaited, uint64_t id);
/* A record came; id 0: not known of which. False: it belongs to an earlier trace. */
bool rocprofiler_awaited_deliver(struct rocprofiler_awaited *awaited, uint64_t id);
/* Flushes until every record is there, boundedly. False: a buffer could not be flushed. */
bool rocprofiler_await(struct rocprofiler *rocprofiler);

#endif
