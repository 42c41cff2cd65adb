/* SPDX-License-Identifier: Apache-2.0 */
/* The first and the last record of a session, without reading what is between them: what a list of hundreds of sessions
 * needs. Single-threaded. */
#ifndef GPUFL_LOGFILE_SESSION_ENDS_H
#define GPUFL_LOGFILE_SESSION_ENDS_H

#include "format/json.h"

struct session_ends {
    struct json_document start, shutdown; /* root NULL: there is none */
    uint64_t bytes;                       /* of all files */
    bool is_live;                         /* its writer lives */
};

/* GPUFL_E_NOT_FOUND: it is no session. Nothing else is an error: what cannot be read is missing. */
NODISCARD gpufl_status session_ends_read(struct session_ends *ends, const char *path, struct problem *problem);
void session_ends_free(struct session_ends *ends);

#endif
