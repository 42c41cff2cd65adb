/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a session directory into the store, as an upload would do, but without a network and without a note in the
 * directory, which is only read. One thread at a time. */
#ifndef GPUFL_SERVER_SESSION_IMPORT_H
#define GPUFL_SERVER_SESSION_IMPORT_H

#include "server/ingest.h"

struct session_import {
    struct ingest *ingest;      /* borrowed */
    bool (*is_cancelled)(void); /* called about every MiB; NULL: never */
    char session_id[STORE_SESSION_ID_MAX + 1];
    uint64_t lines, rejected_lines, unread_files;
};

/* GPUFL_OK: at least one line is stored. GPUFL_E_DAMAGED: none is. GPUFL_E_BUSY: cancelled. A session that is still
 * being written is read as it is now. */
NODISCARD gpufl_status session_import_run(struct session_import *import, const char *dir, struct problem *problem);

#endif
