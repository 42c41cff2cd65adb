/* SPDX-License-Identifier: Apache-2.0 */
/* rocprofiler-sdk, as far as tracing HIP programs needs it: load, register, services, decode, stop. Callers use our
 * own structs. Works with 0.5 to 1.x.
 *
 * rocprofiler accepts tools only before HIP starts: it calls the configure function (that of libgpufl_inject.so, or
 * ours when we force it) and then `initialize`, and services can only be configured inside that call. They last for
 * the life of the process; a later session restarts the same ones.
 *
 * The functions in rocprofiler_sink run on rocprofiler's threads (activities, counters) or on the program's (code,
 * ranges): they must not block or call rocprofiler. One trace per process. */
#ifndef GPUFL_DRIVER_ROCPROFILER_H
#define GPUFL_DRIVER_ROCPROFILER_H

#include "base/status.h"
#include "driver/activity.h"

struct rocprofiler; /* opaque, process-wide, never unloaded */

/* GPUFL_E_NOT_FOUND: not installed; GPUFL_E_UNSUPPORTED: too old, or functions are missing. */
NODISCARD gpufl_status rocprofiler_load(struct rocprofiler **out, struct problem *problem);
uint32_t rocprofiler_version(const struct rocprofiler *rocprofiler); /* 10000 = 1.0.0 */
const char *rocprofiler_path(const struct rocprofiler *rocprofiler);
int64_t rocprofiler_now_ns(const struct rocprofiler *rocprofiler); /* its own clock; 0 when it cannot be read */
/* Whether the process uses HIP: its library or rocprofiler's is mapped. */
bool rocprofiler_is_in_use(void);
/* True inside rocprofiler's call of our initialize, when a trace can be started. For the calling thread. */
bool rocprofiler_is_registering(void);

/* What rocprofiler_configure must return, NULL: not used. `begin` is called when services can be configured. version
 * and client_id are rocprofiler's arguments. */
void *rocprofiler_register(uint32_t version, void *client_id, void (*begin)(void));

struct rocprofiler_agent {      /* a GPU */
    char name[64], product[96]; /* "gfx942", "AMD Instinct MI300X" */
    uint32_t pci_domain, pci_bus, pci_device;
    uint32_t partition;          /* of a partitioned GPU, where each partition is an agent */
    uint32_t gfx_target_version; /* 90402 = gfx942 */
    uint32_t compute_units, wave_size, simds_per_unit, waves_per_simd_max, lds_bytes;
    uint64_t memory_bytes;
    uint32_t device_id; /* set by the sink's device_of */
};

enum rocprofiler_range {
    ROCPROFILER_RANGE_PUSH,
    ROCPROFILER_RANGE_POP,
    ROCPROFILER_RANGE_START,
    ROCPROFILER_RANGE_STOP,
    ROCPROFILER_RANGE_MARK /* an instant */
};

enum { ROCPROFILER_LANES = 5 }; /* one buffer, with one thread, per kind of record */

struct rocprofiler_sink {
    /* Activities of one lane, in batches; each lane has one caller. A count of 0 ends the batch. */
    void (*on_activities)(unsigned lane, const struct activity *activities, size_t count);
    void (*on_code)(const void *bytes, size_t size); /* a code object was loaded; NULL: not wanted */
    void (*on_range)(enum rocprofiler_range range, const char *text, uint64_t range_id); /* ROCTX */
    uint32_t (*device_of)(void *user, const struct rocprofiler_agent *agent, uint32_t ordinal);
    void *user; /* for device_of, which is called only inside rocprofiler_trace_start */
};

enum {
    ROCPROFILER_KERNELS = 1 << 0,
    ROCPROFILER_COPIES = 1 << 1,
    ROCPROFILER_CALLS = 1 << 2, /* time and thread of HIP calls */
    ROCPROFILER_SYNC = 1 << 3,
    ROCPROFILER_MEMORY = 1 << 4,
    ROCPROFILER_RANGES = 1 << 5,
    ROCPROFILER_CODE = 1 << 6,
    ROCPROFILER_COUNTERS = 1 << 7
};

struct rocprofiler_trace_options {
    unsigned features;    /* ROCPROFILER_*; kernels, copies and calls are always tried */
    const char *counters; /* names, separated by commas; "": the default set */
    struct rocprofiler_sink sink;
};
struct rocprofiler_trace_result {
    unsigned granted;
    char left_out[400];              /* counters that the GPU lacks or that do not fit in one pass; "": none */
    struct problem counters_problem; /* why no counters are collected */
};

/* On any error nothing runs, and the problem says what to do next: GPUFL_E_BUSY another tool came first or HIP is
 * already running, GPUFL_E_UNSUPPORTED, GPUFL_E_NO_DRIVER. Refused features lack their bit. */
NODISCARD gpufl_status rocprofiler_trace_start(struct rocprofiler *rocprofiler,
                                               const struct rocprofiler_trace_options *options,
                                               struct rocprofiler_trace_result *result, struct problem *problem);
/* Delivers the content of the buffers, and reads the clock again. */
void rocprofiler_flush(struct rocprofiler *rocprofiler);
/* Stops, and waits at most two seconds for the records of work in progress. True: no function of the sink is called
 * any more. False: one is in progress, possibly forever. */
bool rocprofiler_trace_stop(struct rocprofiler *rocprofiler);
enum rocprofiler_awaited_kind {
    ROCPROFILER_AWAITED_KERNELS,
    ROCPROFILER_AWAITED_COPIES,
    ROCPROFILER_AWAITED_COUNTERS, /* of dispatches */
    ROCPROFILER_AWAITED_KINDS
};
/* After the stop: how many were started during the trace and have no record. */
uint64_t rocprofiler_late(const struct rocprofiler *rocprofiler, enum rocprofiler_awaited_kind kind);
/* Since the last call: records dropped by rocprofiler, and records of unknown kinds. */
uint64_t rocprofiler_take_dropped(struct rocprofiler *rocprofiler);
uint64_t rocprofiler_take_unknown(struct rocprofiler *rocprofiler);
/* And loaded kernels whose names did not fit in the table. */
uint64_t rocprofiler_take_nameless(struct rocprofiler *rocprofiler);
size_t rocprofiler_bytes(const struct rocprofiler *rocprofiler); /* memory of its buffers and of our tables for it */
uint32_t rocprofiler_agent_count(const struct rocprofiler *rocprofiler);
const struct rocprofiler_agent *rocprofiler_agent_at(const struct rocprofiler *rocprofiler, uint32_t index);
/* Names of the values of struct counters_activity, in their order. */
uint32_t rocprofiler_counter_count(const struct rocprofiler *rocprofiler);
const char *rocprofiler_counter_name(const struct rocprofiler *rocprofiler, uint32_t index);
void rocprofiler_forget(void); /* in a forked child: rocprofiler must not be called any more */

#endif
