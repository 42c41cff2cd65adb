/* SPDX-License-Identifier: Apache-2.0 */
/* The id of the session in a directory, and the host that recorded it. Both come from the log and are not trusted. Any
 * thread. */
#ifndef GPUFL_LOGFILE_SESSION_ORIGIN_H
#define GPUFL_LOGFILE_SESSION_ORIGIN_H

#include "base/status.h"

struct session_origin {
    char id[129];   /* the recorded id; if missing, the directory's name if that is an id */
    char host[256]; /* "": not recorded */
};

/* GPUFL_E_DAMAGED: the session has no id. */
NODISCARD gpufl_status session_origin_read(struct session_origin *origin, const char *dir, struct problem *problem);

#endif
