/* SPDX-License-Identifier: Apache-2.0 */
/* Where windows go that the server refuses for good: the body as it was sent, and beside it what it is and why it was
 * refused. One thread. */
#ifndef GPUFL_AGENT_QUARANTINE_H
#define GPUFL_AGENT_QUARANTINE_H

#include "agent/channel_stream.h"

/* Both files are on the disk when this returns GPUFL_OK; the directory is made when missing. */
NODISCARD gpufl_status quarantine_add(const char *dir, const char *session_id, enum channel channel,
                                      const struct stream_window *window, const char *reason, struct problem *problem);

/* How much the windows in quarantine take. Other files in the directory do not count. */
uint64_t quarantine_bytes(const char *dir);

struct quarantine_drop {
    uint64_t windows, bytes;
};
/* Deletes the oldest windows until `wanted` bytes are free or none is left; other files stay. */
void quarantine_make_room(const char *dir, uint64_t wanted, struct quarantine_drop *drop);

#endif
