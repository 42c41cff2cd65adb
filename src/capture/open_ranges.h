/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges that have started and not ended, by id. Bounded: when a set is full, the range in it that has been open
 * longest is evicted, so ranges that a program never ends do not displace later ones. Collector thread only. */
#ifndef GPUFL_CAPTURE_OPEN_RANGES_H
#define GPUFL_CAPTURE_OPEN_RANGES_H

#include "capture/scope_paths.h"
#include "capture/thread_log.h"

enum adoption { ADOPTION_NONE, ADOPTION_BY_TOKEN, ADOPTION_OF_TASK }; /* schema enum adoption_origin */

struct open_scope {
    uint64_t id, parent_id;
    int64_t start_ns;
    struct scope_place place;
    uint32_t tag_id, repeat, warmup, source;
    uint32_t depth, stack;
    struct scope_details details;
    int64_t adopted_ns;     /* of another thread's scope: when this thread began to work for it */
    enum adoption adoption; /* NONE: this thread's own scope, or nothing was adopted */
};

struct open_range {
    uint64_t range_id; /* 0: a free slot */
    uint32_t thread_id;
    struct open_scope scope;
};

struct open_ranges {          /* zeroed: empty */
    struct open_range *slots; /* allocated with the first range */
};

enum open_range_outcome { OPEN_RANGE_ADDED, OPEN_RANGE_ANOTHER_FORGOTTEN, OPEN_RANGE_NO_MEMORY };

enum open_range_outcome open_ranges_add(struct open_ranges *ranges, const struct open_range *range);
/* False: no range has that id. */
bool open_ranges_take(struct open_ranges *ranges, uint64_t range_id, struct open_range *range);
/* The range after that one, NULL: the first; NULL at the end. */
struct open_range *open_ranges_next(const struct open_ranges *ranges, struct open_range *range);
void open_ranges_free(struct open_ranges *ranges);
size_t open_ranges_bytes(const struct open_ranges *ranges);

#endif
