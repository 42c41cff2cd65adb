/* SPDX-License-Identifier: Apache-2.0 */
/* A set of mostly consecutive numbers (line numbers, batch ids), stored as ranges. Initialize with zeros; owns its
 * memory. One thread at a time. */
#ifndef GPUFL_STORE_SEQUENCE_SET_H
#define GPUFL_STORE_SEQUENCE_SET_H

#include "base/bytes.h"
#include "base/status.h"

enum { SEQUENCE_RANGES_MAX = 1 << 20 };

struct sequence_range {
    uint64_t first, last;
};
struct sequence_set {
    struct sequence_range *ranges; /* ascending, neither overlapping nor adjacent */
    size_t count, capacity;
};

void sequence_set_free(struct sequence_set *set);
bool sequence_set_has(const struct sequence_set *set, uint64_t value);
bool sequence_set_meets(const struct sequence_set *set, uint64_t first, uint64_t last);
/* GPUFL_E_NO_MEMORY, or GPUFL_E_LIMIT if there would be more than SEQUENCE_RANGES_MAX ranges. */
NODISCARD gpufl_status sequence_set_add(struct sequence_set *set, uint64_t first, uint64_t last);
void sequence_set_encode(const struct sequence_set *set, struct bytes *out);
NODISCARD gpufl_status sequence_set_decode(struct sequence_set *set, const void *data, size_t size);

#endif
