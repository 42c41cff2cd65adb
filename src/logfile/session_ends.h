/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the first and the last record of a session without reading what is between them, for lists of hundreds of
 * sessions. Single-threaded. */
#ifndef GPUFL_LOGFILE_SESSION_ENDS_H
#define GPUFL_LOGFILE_SESSION_ENDS_H

#include "format/json.h"

struct session_ends {
    struct json_document start, shutdown; /* root NULL: none */
    uint64_t bytes;                       /* of all files */
    bool is_live;                         /* its writer is running */
};

/* GPUFL_E_NOT_FOUND: there is no session. Nothing else is an error: unreadable records are missing. */
NODISCARD gpufl_status session_ends_read(struct session_ends *ends, const char *path, struct problem *problem);
void session_ends_free(struct session_ends *ends);

#endif
