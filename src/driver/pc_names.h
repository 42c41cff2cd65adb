/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the function names are that CUPTI hands over with PC samples: copies of
 * our own, to be freed with the read, or names that belong to all reads. CUPTI's
 * documentation leaves both open; freeing what is shared would crash, keeping
 * copies would grow without end. So a function that comes twice decides. */
#ifndef GPUFL_DRIVER_PC_NAMES_H
#define GPUFL_DRIVER_PC_NAMES_H

#include <stddef.h>
#include <stdint.h>

enum { PC_NAMES_HELD_MAX = 1024 };

struct pc_name {
    uint64_t cubin_crc;
    uint32_t function_index;
    char *text;
};

struct pc_names {
    enum { NAMES_UNDECIDED, NAMES_COPIED, NAMES_SHARED } owner;
    struct pc_name probe; /* a function whose name is watched until it is decided */
    char *held[PC_NAMES_HELD_MAX];
    uint32_t held_count;
};

/* After a read that brought these names, none of them NULL: frees them, if they are ours, and holds them while that is
 * not known. Changes their order. */
void pc_names_release(struct pc_names *names, struct pc_name *read, size_t count);

#endif
