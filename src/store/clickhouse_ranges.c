/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes line numbers as bytes: for each kind that has any, its name, the size of its set, and the set. */
#include "store/clickhouse_store.h"

void ch_ranges_encode(const struct sequence_set added[SEQUENCE_KINDS], struct bytes *out)
{
    struct bytes set = {0};
    for (unsigned kind = 0; kind < SEQUENCE_KINDS; kind++) {
        char name[SEQUENCE_NAME_MAX];
        if (!added[kind].count)
            continue;
        bytes_clear(&set);
        sequence_kind_name(kind, name);
        sequence_set_encode(&added[kind], &set);
        ch_put_text(out, name);
        ch_put_blob(out, set.data, set.size);
        out->failed |= set.failed;
    }
    bytes_free(&set);
}

/* Reads the next kind and its set; *kind SEQUENCE_KINDS: an unknown kind. False: damaged. */
static bool ranges_next(const uint8_t **at, const uint8_t *end, unsigned *kind, const uint8_t **set, size_t *size)
{
    char name[SEQUENCE_NAME_MAX];
    uint64_t count;
    if (!varint_read(at, end, &count) || count >= sizeof name || count > (uint64_t)(end - *at))
        return false;
    memcpy(name, *at, (size_t)count);
    name[count] = '\0';
    *at += count;
    if (!varint_read(at, end, &count) || count > (uint64_t)(end - *at))
        return false;
    *kind = sequence_kind_of(name);
    *set = *at;
    *size = (size_t)count;
    *at += count;
    return true;
}

gpufl_status ch_ranges_add(struct sequence_set sets[SEQUENCE_KINDS], const void *data, size_t size)
{
    const uint8_t *at = data, *end = at + size, *bytes;
    gpufl_status status = GPUFL_OK;
    while (at < end && !status) {
        struct sequence_set set = {0};
        unsigned kind;
        size_t set_size;
        if (!ranges_next(&at, end, &kind, &bytes, &set_size))
            return GPUFL_E_DAMAGED;
        if (kind == SEQUENCE_KINDS)
            continue;
        status = sequence_set_decode(&set, bytes, set_size);
        for (size_t i = 0; i < set.count && !status; i++)
            status = sequence_set_add(&sets[kind], set.ranges[i].first, set.ranges[i].last);
        sequence_set_free(&set);
    }
    return status;
}

bool ch_ranges_meet(const struct sequence_set added[SEQUENCE_KINDS], const void *data, size_t size)
{
    const uint8_t *at = data, *end = at + size, *bytes;
    bool is_met = false;
    while (at < end && !is_met) {
        struct sequence_set set = {0};
        unsigned kind;
        size_t set_size;
        if (!ranges_next(&at, end, &kind, &bytes, &set_size))
            return true;
        if (kind == SEQUENCE_KINDS)
            continue;
        is_met = sequence_set_decode(&set, bytes, set_size) != GPUFL_OK;
        for (size_t i = 0; i < set.count && !is_met; i++)
            is_met = sequence_set_meets(&added[kind], set.ranges[i].first, set.ranges[i].last);
        sequence_set_free(&set);
    }
    return is_met;
}
