/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts keys that consist of long ascending runs, as in logs of a few threads: each run is appended to a chain that it
 * continues, and the few chains are merged. */
#include "analysis/statistics.h"

#include <stdlib.h>
#include <string.h>

enum { chains_max = 64 };

struct chains {
    uint8_t *of_run; /* owned */
    size_t *starts;  /* owned; run_count + 1 */
    size_t run_count, chain_count;
    int64_t last_keys[chains_max];
    size_t sizes[chains_max];
};

static size_t runs_count(const int64_t *keys, size_t count)
{
    size_t runs = 1;
    for (size_t i = 1; i < count; i++)
        runs += keys[i - 1] > keys[i];
    return runs;
}

/* The chain whose end is closest below the key; chains_max: none, and no room for another. */
static size_t chain_for(struct chains *chains, int64_t key)
{
    size_t best = chains_max;
    for (size_t i = 0; i < chains->chain_count; i++)
        if (chains->last_keys[i] <= key && (best == chains_max || chains->last_keys[i] > chains->last_keys[best]))
            best = i;
    if (best == chains_max && chains->chain_count < chains_max)
        best = chains->chain_count++;
    return best;
}

static bool chains_make(struct chains *chains, const int64_t *keys, size_t count)
{
    size_t run = 0;
    for (size_t start = 0, end; start < count; start = end, run++) {
        for (end = start + 1; end < count && keys[end - 1] <= keys[end];)
            end++;
        size_t chain = chain_for(chains, keys[start]);
        if (chain == chains_max)
            return false;
        chains->of_run[run] = (uint8_t)chain;
        chains->starts[run] = start;
        chains->last_keys[chain] = keys[end - 1];
        chains->sizes[chain] += end - start;
    }
    chains->starts[run] = count;
    return true;
}

/* Lists the rows chain after chain; ends[i]: the end of chain i. */
static void chains_lay_out(const struct chains *chains, uint32_t *order, size_t *ends)
{
    size_t at = 0;
    for (size_t i = 0; i < chains->chain_count; i++) {
        ends[i] = at;
        at += chains->sizes[i];
    }
    for (size_t run = 0; run < chains->run_count; run++) {
        size_t *to = &ends[chains->of_run[run]];
        for (size_t row = chains->starts[run]; row < chains->starts[run + 1]; row++)
            order[(*to)++] = (uint32_t)row;
    }
}

static void chains_merge(const int64_t *keys, const uint32_t *from, size_t middle, size_t end, uint32_t *to)
{
    size_t left = 0, right = middle;
    while (left < middle && right < end) {
        const uint32_t a = from[left], b = from[right];
        const int64_t key_a = keys[a], key_b = keys[b];
        bool is_left = key_a < key_b || (key_a == key_b && a < b);
        *to++ = is_left ? a : b;
        left += is_left;
        right += !is_left;
    }
    memcpy(to, from + left, (middle - left) * sizeof *to);
    memcpy(to + (middle - left), from + right, (end - right) * sizeof *to);
}

bool runs_order(const int64_t *keys, size_t count, uint32_t *order, uint32_t *scratch)
{
    enum { run_length_min = 32 };
    struct chains chains = {.run_count = count ? runs_count(keys, count) : 0};
    if (!count || count / chains.run_count < run_length_min)
        return false;
    size_t ends[chains_max];
    chains.of_run = calloc(chains.run_count, sizeof *chains.of_run);
    chains.starts = calloc(chains.run_count + 1, sizeof *chains.starts);
    bool is_done = chains.of_run && chains.starts && chains_make(&chains, keys, count);
    if (is_done)
        chains_lay_out(&chains, order, ends);
    uint32_t *from = order, *to = scratch;
    for (size_t left = chains.chain_count; is_done && left > 1; left = (left + 1) / 2) {
        for (size_t i = 0, start = 0; i < left; i += 2) {
            size_t middle = ends[i], end = i + 1 < left ? ends[i + 1] : middle;
            chains_merge(keys, from + start, middle - start, end - start, to + start);
            ends[i / 2] = start = end;
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (is_done && from != order)
        memcpy(order, from, count * sizeof *order);
    free(chains.of_run);
    free(chains.starts);
    return is_done;
}
