/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns a lane to each event; internal to timeline.c. Lanes live until lane_set_free. One thread. */
#ifndef GPUFL_EXPORT_LANES_H
#define GPUFL_EXPORT_LANES_H

#include "export/timeline.h"

struct lane_set {
    struct intern keys;   /* group, device and owner -> index + 1 */
    struct lane **firsts; /* by that index */
    size_t capacity;
    uint32_t count; /* of all lanes */
    const struct timeline_visitor *visitor;
    bool is_stopped, is_out_of_memory;
};

enum lane_rule { LANE_FLAT, LANE_NESTED, LANE_SINGLE };

/* A lane that is free from start to end; NULL: stopped, or out of memory. LANE_SINGLE: the owner's only lane, even if
 * it is occupied. Events of an owner must come in order of start. */
const struct timeline_lane *lane_for(struct lane_set *set, enum lane_group group, uint16_t device, uint32_t owner,
                                     int64_t start_ns, int64_t end_ns, enum lane_rule rule);
void lane_set_free(struct lane_set *set);

#endif
