/* SPDX-License-Identifier: Apache-2.0 */
/* The scopes of which tokens were taken, by token, also after they ended: work for a scope may come later. Bounded: of
 * more than 65,536 the ones that have not been used longest are forgotten. Collector thread only. */
#ifndef GPUFL_CAPTURE_SCOPE_TOKENS_H
#define GPUFL_CAPTURE_SCOPE_TOKENS_H

#include "capture/scope_paths.h"

#include <stdbool.h>

struct token_scope {
    uint64_t token; /* 0: a free slot */
    uint64_t id, parent_id;
    int64_t start_ns;
    struct scope_place place;
    uint32_t depth, last_use;
};

struct scope_tokens {          /* zeroed: empty */
    struct token_scope *slots; /* allocated with the first token */
    uint32_t use_count;
};

/* False: no memory. */
bool scope_tokens_add(struct scope_tokens *tokens, const struct token_scope *scope);
/* NULL: the token was never added, or is forgotten. */
const struct token_scope *scope_tokens_find(struct scope_tokens *tokens, uint64_t token);
void scope_tokens_free(struct scope_tokens *tokens);
size_t scope_tokens_bytes(const struct scope_tokens *tokens);

#endif
