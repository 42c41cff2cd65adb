/* SPDX-License-Identifier: Apache-2.0 */
/* Where windows go that the server refuses for good: the body as it was sent, and beside it what it is and why it was
 * refused. One thread. */
#ifndef GPUFL_AGENT_QUARANTINE_H
#define GPUFL_AGENT_QUARANTINE_H

#include "agent/channel_stream.h"

/* Both files are on the disk when this returns GPUFL_OK; the directory is made when missing. */
NODISCARD gpufl_status quarantine_add(const char *dir, const char *session_id, enum channel channel,
                                      const struct stream_window *window, const char *reason, struct problem *problem);

#endif
