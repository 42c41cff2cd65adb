/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/scope_tokens.h"

#include <stdlib.h>

enum { slot_count = 64 * 1024, set_size = 8 }; /* 4 MiB, touched only as needed */

static struct token_scope *set_of(const struct scope_tokens *tokens, uint64_t token)
{
    uint64_t hash = token * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    return &tokens->slots[hash % (slot_count / set_size) * set_size];
}

bool scope_tokens_add(struct scope_tokens *tokens, const struct token_scope *scope)
{
    if (!tokens->slots && !(tokens->slots = calloc(slot_count, sizeof *tokens->slots)))
        return false;
    struct token_scope *set = set_of(tokens, scope->token), *oldest = set;
    for (struct token_scope *slot = set; slot < set + set_size && oldest->token; slot++)
        if (!slot->token || tokens->use_count - slot->last_use > tokens->use_count - oldest->last_use)
            oldest = slot;
    *oldest = *scope;
    oldest->last_use = tokens->use_count++;
    return true;
}

const struct token_scope *scope_tokens_find(struct scope_tokens *tokens, uint64_t token)
{
    if (!tokens->slots)
        return NULL;
    struct token_scope *set = set_of(tokens, token);
    for (struct token_scope *slot = set; slot < set + set_size; slot++)
        if (slot->token == token) {
            slot->last_use = tokens->use_count++;
            return slot;
        }
    return NULL;
}

void scope_tokens_free(struct scope_tokens *tokens)
{
    free(tokens->slots);
    *tokens = (struct scope_tokens){0};
}

size_t scope_tokens_bytes(const struct scope_tokens *tokens)
{
    return tokens->slots ? slot_count * sizeof *tokens->slots : 0;
}
