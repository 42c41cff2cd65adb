/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of a dictionary that exist, and those that were used without existing. Bitmap pages in a hash table: about
 * one bit per id where ids are dense, and a hard memory limit where they are sparse. One owner thread. */
#ifndef GPUFL_LOGFILE_ID_SET_H
#define GPUFL_LOGFILE_ID_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_page;

/* An id that was used before it was defined. */
struct id_use {
    uint64_t id, rows;
    char file[128];
    uint64_t line;
};

struct id_set {
    struct id_page **pages; /* owned; open addressing by id / ids per page */
    size_t page_count, slot_count;
    struct id_page *last; /* the page of the previous lookup, usually also that of the next */
    struct id_use *uses;  /* owned; open addressing by id, rows 0 = free */
    size_t use_count;
    uint64_t unlisted_rows; /* rows with undefined ids that did not fit into uses */
    bool is_full;           /* some definitions were dropped: unknown ids cannot be reported */
};

void id_set_free(struct id_set *set);
void id_set_add(struct id_set *set, uint64_t id);
bool id_set_has(struct id_set *set, uint64_t id);
/* Records one row that uses an id which is not (yet) in the set. */
void id_set_note_use(struct id_set *set, uint64_t id, const char *file, uint64_t line);
#define ID_SET_USES_MAX 4096
/* Iterates over the recorded uses: i from 0 to ID_SET_USES_MAX - 1; NULL: empty entry, or defined meanwhile. */
const struct id_use *id_set_undefined(struct id_set *set, size_t i);

#endif
