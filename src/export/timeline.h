/* SPDX-License-Identifier: Apache-2.0 */
/* A session as events on lanes, for the formats of trace viewers. A lane contains events that can be drawn in one row:
 * consecutive events, or nested ones where nesting has a meaning. Other overlapping events get further lanes. GPU work
 * comes in order of start; no other order is guaranteed. One thread. */
#ifndef GPUFL_EXPORT_TIMELINE_H
#define GPUFL_EXPORT_TIMELINE_H

#include "export/filter.h"
#include "export/tables.h"

enum lane_group { LANE_SCOPES, LANE_CALLS, LANE_WAITS, LANE_WINDOWS, LANE_STREAM, LANE_GRAPHS };
enum event_kind {
    EVENT_SCOPE,
    EVENT_CALL, /* on the host, requests GPU work */
    EVENT_WAIT,
    EVENT_WINDOW,
    EVENT_KERNEL,
    EVENT_COPY,
    EVENT_MEMSET,
    EVENT_GRAPH
};

struct timeline_lane {
    enum lane_group group;
    uint16_t device; /* DEVICE_UNKNOWN for the host's lanes */
    uint32_t owner;  /* stream or thread; ID_UNKNOWN */
    uint32_t number; /* from 0: further lanes of the same owner */
    uint32_t id;     /* from 1, over all lanes */
};

struct timeline_event {
    enum event_kind kind;
    enum event_kind work; /* of a call: what it requested; else kind */
    size_t row;           /* in the model's array of `work` */
    const struct timeline_lane *lane;
    int64_t start_ns, end_ns; /* end TIME_UNKNOWN: not recorded */
    enum dictionary dictionary;
    uint32_t name_id;         /* in the dictionary; 0: name is a word */
    const char *name;         /* never NULL */
    uint64_t flow_id;         /* of work with a call: connects both; 0 none */
    const uint64_t *flow_ids; /* of a call */
    size_t flow_count;
    const struct timeline_lane *call_lane; /* of work with a flow */
    int64_t call_start_ns;
};

struct timeline_visitor {
    void *user;
    bool (*lane)(void *user, const struct timeline_lane *lane); /* before its first event; false: stop */
    bool (*event)(void *user, const struct timeline_event *event);
};

/* GPUFL_OK also if the visitor stopped. */
NODISCARD gpufl_status timeline_walk(const struct export_filter *filter, const struct timeline_visitor *visitor);

/* "stream 7", "thread 100 scopes", "stream 7 (2)" */
void timeline_lane_name(const struct timeline_lane *lane, char *out, size_t size);
void timeline_gpu_name(const struct session_model *model, uint16_t device, char *out,
                       size_t size);                  /* "GPU 0 NVIDIA H200" */
const char *timeline_kind_name(enum event_kind kind); /* "kernel", ... */

/* Further details of an event. Texts live as long as this struct and the model. */
enum { EVENT_ARGUMENTS_MAX = 24 };
struct event_argument {
    const char *key;
    struct table_value value;
};
struct event_arguments {
    struct event_argument items[EVENT_ARGUMENTS_MAX];
    unsigned count;
    char texts[3][48];
};
void timeline_arguments(const struct session_model *model, const struct timeline_event *event,
                        struct event_arguments *out);

/* Sampled values over time of GPUs, host and hardware counters. */
struct counter_series {
    uint16_t device;  /* DEVICE_UNKNOWN: the host's */
    const char *name; /* with its unit */
    uint32_t id;      /* from 1 */
    bool is_pm;
};
struct counter_sample {
    int64_t time_ns;
    bool is_real;
    int64_t integer;
    double real;
};
struct counter_visitor {
    void *user;
    bool (*series)(void *user, const struct counter_series *series); /* before its first sample; may be NULL */
    bool (*sample)(void *user, const struct counter_series *series, const struct counter_sample *sample);
};
NODISCARD gpufl_status counters_walk(const struct export_filter *filter, const struct counter_visitor *visitor);

#endif
