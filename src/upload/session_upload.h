/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads one session: its files, cut into windows, except for windows that the server has acknowledged before.
 * Single-threaded. */
#ifndef GPUFL_UPLOAD_SESSION_UPLOAD_H
#define GPUFL_UPLOAD_SESSION_UPLOAD_H

#include "upload/uploader.h"

/* The result for all sessions of one call. */
struct upload_count {
    uint64_t sessions, files_uploaded, files_already_sent, files_skipped, events, bytes;
    uint64_t unconfirmed;      /* sessions sent before that the server could not confirm */
    uint64_t left_out_lines;   /* unreadable lines, which were not sent */
    uint64_t rejected_lines;   /* lines that the server rejected from accepted bodies */
    char rejected_reason[120]; /* of the first rejected line */
    char cursor_reason[120];   /* why the cursor could not be saved */
    char session_id[65];       /* of the last of `sessions` */
    struct problem first;      /* the first thing that was not sent, and why */
    gpufl_status first_status; /* GPUFL_E_IO: the server refused it; GPUFL_E_DAMAGED: it cannot be read */
};

/* GPUFL_OK: the server has every readable file, or count->first names one that it does not have. GPUFL_E_BUSY: the
 * session is still being written. Other statuses: nothing more will get through (see the uploader's problem), or the
 * directory cannot be read. */
NODISCARD gpufl_status session_upload(const char *dir, struct uploader *uploader, struct upload_count *count,
                                      struct problem *problem);

#endif
