/* SPDX-License-Identifier: Apache-2.0 */
/* Which ids of a dictionary exist, and which were used without existing. Bitmap
 * pages found by hashing: about one bit per id where ids are dense, a hard limit
 * on memory where they are not. One owner thread. */
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
    struct id_page *last; /* most look-ups hit the page of the one before */
    struct id_use *uses;  /* owned; open addressing by id, rows 0 = free */
    size_t use_count;
    uint64_t unlisted_rows; /* rows with undefined ids for which there was no room in uses */
    bool is_full;           /* some definitions were not kept: nothing can be said about unknown ids */
};

void id_set_free(struct id_set *set);
void id_set_add(struct id_set *set, uint64_t id);
bool id_set_has(struct id_set *set, uint64_t id);
/* Notes one row that uses an id which is not in the set (yet). */
void id_set_note_use(struct id_set *set, uint64_t id, const char *file, uint64_t line);
#define ID_SET_USES_MAX 4096
/* Walks the noted uses: i from 0 to ID_SET_USES_MAX - 1; NULL: nothing there, or defined by now. */
const struct id_use *id_set_undefined(struct id_set *set, size_t i);

#endif
