/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership of the function names that CUPTI returns with PC samples: copies that we must free after the read, or
 * names shared by all reads. CUPTI's documentation does not say; freeing shared names would crash, and keeping
 * copies would leak. A function that occurs twice shows which it is. */
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

/* Call after a read with these names, none of them NULL: frees them if they are copies, and keeps them while that is
 * unknown. Changes their order. */
void pc_names_release(struct pc_names *names, struct pc_name *read, size_t count);

#endif
