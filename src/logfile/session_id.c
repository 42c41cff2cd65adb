/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "logfile/session_dir.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

void session_id_make(char out[37])
{
    unsigned char id[16];
    uint64_t now_ms = (uint64_t)clock_wall_ns() / 1000000;
    if (getrandom(id, sizeof id, GRND_NONBLOCK) != (ssize_t)sizeof id) {
        /* Early in boot there may be no entropy; time and pid still make the id unique. */
        uint64_t seed[2] = {clock_ticks(), (uint64_t)getpid() << 32 ^ (uint64_t)clock_mono_ns()};
        memcpy(id, seed, sizeof id);
    }
    for (int i = 0; i < 6; i++)
        id[i] = (unsigned char)(now_ms >> (40 - 8 * i));
    id[6] = (id[6] & 0x0f) | 0x70;
    id[8] = (id[8] & 0x3f) | 0x80;
    snprintf(out, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", id[0], id[1], id[2],
             id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11], id[12], id[13], id[14], id[15]);
}
