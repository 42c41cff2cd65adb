/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/disk_space.h"

#include "base/clock.h"

#include <sys/statvfs.h>

#define ASK_NS INT64_C(1000000000)
#define ASK_BYTES ((uint64_t)8 << 20)
#define FLOOR_BYTES ((uint64_t)1 << 30)

void disk_space_open(struct disk_space *space, int dir_fd, int64_t wanted_bytes)
{
    *space = (struct disk_space){.dir_fd = dir_fd, .wanted_bytes = wanted_bytes};
}

static uint64_t floor_of(const struct disk_space *space, uint64_t total_bytes)
{
    if (space->wanted_bytes >= 0)
        return (uint64_t)space->wanted_bytes;
    return total_bytes / 20 > FLOOR_BYTES ? total_bytes / 20 : FLOOR_BYTES;
}

bool disk_space_is_low(struct disk_space *space, size_t bytes)
{
    if (!space->wanted_bytes)
        return false;
    int64_t now_ns = clock_mono_ns();
    if (!space->asked_ns || now_ns - space->asked_ns >= ASK_NS || space->bytes_since >= ASK_BYTES) {
        struct statvfs answer;
        bool is_known = !fstatvfs(space->dir_fd, &answer) && answer.f_blocks;
        uint64_t block_bytes = is_known ? answer.f_frsize : 0;
        space->free_bytes = is_known ? answer.f_bavail * block_bytes : 0;
        space->floor_bytes = is_known ? floor_of(space, answer.f_blocks * block_bytes) : 0;
        space->is_low = space->free_bytes < space->floor_bytes;
        space->bytes_since = 0;
        space->asked_ns = now_ns;
    }
    if (!space->is_low)
        space->bytes_since += bytes;
    return space->is_low;
}
