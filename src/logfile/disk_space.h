/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the file system of a session has enough room left for others: a recording must not be what fills it. Asks
 * at most once a second, and once per 8 MiB. One thread. */
#ifndef GPUFL_LOGFILE_DISK_SPACE_H
#define GPUFL_LOGFILE_DISK_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_SPACE_DEFAULT INT64_C(-1) /* the larger of 1 GiB and 5 % of the file system */

struct disk_space {
    int dir_fd;                       /* borrowed */
    int64_t wanted_bytes;             /* to stay free; 0: never low; DISK_SPACE_DEFAULT */
    int64_t asked_ns;                 /* mono; 0: never */
    uint64_t bytes_since;             /* written since then */
    uint64_t free_bytes, floor_bytes; /* as of then */
    bool is_low;
};

void disk_space_open(struct disk_space *space, int dir_fd, int64_t wanted_bytes);
/* bytes: to be written if it is not. A file system that does not tell never is low. */
bool disk_space_is_low(struct disk_space *space, size_t bytes);

#endif
