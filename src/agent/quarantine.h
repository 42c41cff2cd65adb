/* SPDX-License-Identifier: Apache-2.0 */
/* Stores windows that the server refuses permanently: the body as it was sent, and a note with its identity and the
 * reason. Single-threaded. */
#ifndef GPUFL_AGENT_QUARANTINE_H
#define GPUFL_AGENT_QUARANTINE_H

#include "agent/channel_stream.h"

/* Both files are durable when this returns GPUFL_OK; creates the directory if missing. */
NODISCARD gpufl_status quarantine_add(const char *dir, const char *session_id, enum channel channel,
                                      const struct stream_window *window, const char *reason, struct problem *problem);

/* The size of the windows in quarantine. Other files in the directory do not count. */
uint64_t quarantine_bytes(const char *dir);

struct quarantine_drop {
    uint64_t windows, bytes;
};
/* Deletes the oldest windows until `wanted` bytes are free or no window is left; other files stay. */
void quarantine_make_room(const char *dir, uint64_t wanted, struct quarantine_drop *drop);

#endif
