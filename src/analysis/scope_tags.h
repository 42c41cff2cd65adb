/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes whose calls have different tags: the calls of each tag, or of tags that differ only in their numbers. */
#ifndef GPUFL_ANALYSIS_SCOPE_TAGS_H
#define GPUFL_ANALYSIS_SCOPE_TAGS_H

#include "base/intern.h"

#include <stddef.h>
#include <stdint.h>

enum { SCOPE_TAGS_MAX = 8 }; /* of a scope, before tags are grouped; then groups, and one for the rest */

struct scope_tag {
    uint32_t node;
    const char *text;        /* "batch_42", "batch_*"; NULL: all other tags */
    uint64_t tags;           /* different ones */
    uint64_t calls, kernels; /* kernels and gpu_ns: also of the scopes inside */
    int64_t wall_ns, gpu_ns;
};

struct scope_tags {
    struct scope_tag *items; /* by node, longest wall time first, the rest last */
    size_t count;
    struct intern texts; /* owns the texts of groups */
};

struct analysis;
/* The tags of a node; *count 0: its calls have at most one. */
const struct scope_tag *scope_tags_of(const struct analysis *analysis, uint32_t node, size_t *count);
void scope_tags_free(struct scope_tags *tags);

#endif
