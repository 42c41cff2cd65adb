/* SPDX-License-Identifier: Apache-2.0 */
/* struct range_counters, shared by range_counters.c (contexts, memory), range_scopes.c and range_kernels.c (the two
 * modes) and range_records.c (the collector's side). A context's lock is taken before the engine's locks. */
#ifndef GPUFL_CAPTURE_RANGE_ENGINE_H
#define GPUFL_CAPTURE_RANGE_ENGINE_H

#include "base/intern.h"
#include "capture/launch_gate.h"
#include "capture/range_counters.h"
#include "driver/profiler_target.h"
#include "driver/range_profiler.h"

#include <pthread.h>

enum {
    RANGE_CONTEXTS_MAX = 64,
    RANGE_CHIPS_MAX = 8,
    RANGE_TARGETS_MAX = 256, /* scopes that are measured, per context */
    RANGE_SCOPE_NAMES_MAX = 64,
    RANGE_PATIENCE = 64,           /* scopes that others begin before an absent target loses the focus */
    RANGE_BYTES_MAX = 256 << 20,   /* images, launches and results together */
    RANGE_WAIT_DEFAULT_MS = 30000, /* long kernels are replayed inside their launch, which takes seconds */
    RANGE_WAIT_SHORT_MS = 100,
    RANGE_REASON_BYTES = sizeof(struct problem)
};

struct range_chip { /* lives as long as the engine */
    char name[PROFILER_CHIP_NAME_BYTES];
    struct profiler_host *host; /* under chips_lock */
    struct metric_plan plan;
    struct metric_choice metrics; /* the engine's metrics that this chip supports */
};

struct range_scope { /* the description of a measured scope */
    char *path;      /* owned */
    uint32_t depth, passes_collected;
    uint64_t scope_key, instances;
    int64_t start_ns, end_ns; /* of the first and the last instance of a round */
};

struct range_target {
    struct range_scope scope;
    struct range_place place;
    int64_t instance_start_ns;
    bool was_written;
    uint8_t *image; /* owned */
};

struct range_launch {
    const char *symbol; /* in range_counters.symbols; NULL: no memory for the name */
    int64_t time_ns;
    uint64_t ordinal;
    uint32_t correlation_id, thread_id;
};

/* Passed from the user's threads to the collector; owns everything it points to. */
struct range_result {
    struct range_result *next;
    struct range_chip *chip;
    struct gpu_context gpu;
    uint8_t *image; /* NULL: there are no counters, reason says why */
    size_t image_bytes, held_bytes;
    struct range_scope scope;      /* RANGE_PER_SCOPE */
    struct range_launch *launches; /* RANGE_PER_KERNEL */
    uint32_t launch_count;
    bool is_mixed; /* launches overlapped: which range belongs to which launch is not known */
    char reason[RANGE_REASON_BYTES];
};

struct range_context {
    struct range_context *next; /* this, users and is_attached: under contexts_lock */
    uint32_t users;
    bool is_attached;
    struct range_counters *counters;
    struct gpu_context gpu;
    struct range_chip *chip;
    pthread_mutex_t lock; /* everything below */
    struct range_profiler *profiler;
    bool has_failed;
    bool is_stuck;          /* a launch did not end: the profiler must not be used or freed */
    struct problem problem; /* why */
    size_t image_bytes;
    /* per scope */
    struct range_target *targets;
    uint32_t target_count;
    int32_t focus, open;   /* index of a target, or -1 */
    uint64_t instance;     /* number of the open or latest instance */
    uint32_t others_begun; /* since the target in focus last ran */
    bool is_midway;        /* CUPTI has some passes of the target in focus and needs the rest next */
    bool has_undecoded;
    /* per kernel */
    pthread_cond_t idle; /* in_flight became 0 */
    uint32_t in_flight;  /* launches between entry and exit */
    uint32_t kernels_max;
    uint8_t *image;
    struct range_launch *launches;
    uint32_t launch_count;
    bool is_mixed;
    bool is_paused; /* not counting: the last call captured or launched a graph */
};

struct range_counters {
    struct cupti *cupti;
    struct recorder *recorder;
    struct scope_history *history;
    struct metric_choice metrics;
    enum range_mode mode;
    uint32_t kernels_max;
    _Atomic uint32_t wait_ms; /* shortened after a launch did not end in time: such a program would wait at every
                               * launch */
    uint64_t generation;      /* distinguishes a thread's state of this engine from that of an earlier one */
    char *scope_text;         /* owned */
    const char *scope_names[RANGE_SCOPE_NAMES_MAX];
    uint32_t scope_name_count;

    struct launch_gate gate;
    pthread_mutex_t contexts_lock;
    struct range_context *contexts;
    uint32_t attached_count;
    _Atomic bool has_refused; /* a context could not be attached: its scopes are not counted as lost */
    bool has_failure;
    struct problem failure;

    pthread_mutex_t chips_lock;
    struct range_chip chips[RANGE_CHIPS_MAX];
    uint32_t chip_count;

    pthread_mutex_t results_lock;
    struct range_result *results, **results_end;
    struct intern symbols;

    _Atomic size_t held_bytes;
    _Atomic uint64_t launch_ordinal;
    _Atomic uint64_t passes, scope_events, kernel_events, short_scopes;
    struct bytes text; /* collector's */
};

/* A thread's position in its scopes and launches. */
struct range_thread {
    uint64_t generation;
    uint32_t depth, open_depth;
    uint64_t instance; /* of the measured scope */
    bool is_launching;
    uint64_t entered_ticks;               /* of the launch in progress */
    bool is_uncounted;                    /* the launch in progress is not counted: a graph is being captured */
    bool is_at_capture_call;              /* has passed the gate in a call that begins or ends a capture */
    struct range_context *scope_context;  /* of the measured scope that is open here, with a reference */
    struct range_context *launch_context; /* of the launch in progress, with a reference */
};
struct range_thread *range_thread_state(const struct range_counters *counters);

/* No other thread launches until range_quiet_end; false: a launch does not end in time. */
bool range_quiet_begin(struct range_counters *counters);
void range_quiet_end(struct range_counters *counters);

/* The attached context (NULL: the only one), with a reference; NULL when there is none. */
struct range_context *range_context_take(struct range_counters *counters, void *handle);
void range_context_give(struct range_context *context);
/* Stops profiling a context after a CUPTI failure. Its lock is held, and it is quiet or stuck. */
void range_context_fail(struct range_context *context, const struct problem *problem);
/* Keeps and logs the first failure. */
void range_failure_note(struct range_counters *counters, uint32_t context_id, const struct problem *problem);

/* Memory within the engine's limit; NULL when the limit is reached. */
void *range_memory_take(struct range_counters *counters, size_t bytes);
void range_memory_give(struct range_counters *counters, void *memory, size_t bytes);
/* An empty result; NULL (counted as lost) when there is no memory. */
struct range_result *range_result_make(struct range_context *context);
void range_result_send(struct range_counters *counters, struct range_result *result);
void range_result_free(struct range_counters *counters, struct range_result *result);

bool range_scopes_parse(struct range_counters *counters, const char *text);
void range_scopes_end(struct range_context *context); /* turns the collected data of unfinished scopes into results */
/* Allocates image and launches for as many kernels as memory allows, then begins the first reading. */
gpufl_status range_kernels_begin(struct range_context *context, struct problem *problem);
void range_kernels_end(struct range_context *context);
/* Call with the context's lock held before a graph is captured or launched, while no other graph is being captured. */
void range_kernels_pause(struct range_context *context);
void range_scopes_drop_open(struct range_context *context);
size_t range_launches_bytes(const struct range_counters *counters);

#endif
