/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the session's file system has enough free space left: a recording must not be what fills it up. Asks the file
 * system at most once a second, and every 8 MiB. Single-threaded. */
#ifndef GPUFL_LOGFILE_DISK_SPACE_H
#define GPUFL_LOGFILE_DISK_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_SPACE_DEFAULT INT64_C(-1) /* the larger of 1 GiB and 5 % of the file system */

struct disk_space {
    int dir_fd;                       /* borrowed */
    int64_t wanted_bytes;             /* to keep free; 0: never low; or DISK_SPACE_DEFAULT */
    int64_t asked_ns;                 /* mono; 0: never asked */
    uint64_t bytes_since;             /* written since then */
    uint64_t free_bytes, floor_bytes; /* at that time */
    bool is_low;
};

void disk_space_open(struct disk_space *space, int dir_fd, int64_t wanted_bytes);
/* bytes: to be written if the space is not low. A file system that does not report its free space is never low. */
bool disk_space_is_low(struct disk_space *space, size_t bytes);

#endif
