/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/pc_names.h"

#include <stdbool.h>
#include <stdlib.h>

static int compare_texts(const void *a, const void *b)
{
    uintptr_t left = (uintptr_t)((const struct pc_name *)a)->text, right = (uintptr_t)((const struct pc_name *)b)->text;
    return left < right ? -1 : left > right;
}

/* Two addresses mean that the names are copies, one that they are shared. */
static void decide(struct pc_names *names, const struct pc_name *read, size_t count)
{
    bool is_first_read = !names->probe.text;
    for (size_t i = 0; i < count && names->owner == NAMES_UNDECIDED; i++) {
        if (!names->probe.text)
            names->probe = read[i];
        if (read[i].cubin_crc != names->probe.cubin_crc || read[i].function_index != names->probe.function_index)
            continue;
        if (read[i].text != names->probe.text)
            names->owner = NAMES_COPIED;
        else if (!is_first_read)
            names->owner = NAMES_SHARED; /* we still hold the first one, yet the same address was returned */
    }
}

void pc_names_release(struct pc_names *names, struct pc_name *read, size_t count)
{
    decide(names, read, count);
    if (names->owner == NAMES_SHARED)
        return;
    qsort(read, count, sizeof *read, compare_texts);
    for (size_t i = 0; i < count; i++) {
        if (i && read[i].text == read[i - 1].text)
            continue;
        if (names->owner == NAMES_COPIED)
            free(read[i].text);
        else if (names->held_count < PC_NAMES_HELD_MAX)
            names->held[names->held_count++] = read[i].text;
    }
    while (names->owner == NAMES_COPIED && names->held_count)
        free(names->held[--names->held_count]);
}
