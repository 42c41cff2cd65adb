/* SPDX-License-Identifier: Apache-2.0 */
/* One session on its way to the server: its files, cut into windows, minus what the server has acknowledged before.
 * Single-threaded. */
#ifndef GPUFL_UPLOAD_SESSION_UPLOAD_H
#define GPUFL_UPLOAD_SESSION_UPLOAD_H

#include "upload/courier.h"

/* What became of all sessions of one call. */
struct upload_count {
    uint64_t sessions, files_uploaded, files_already_sent, files_skipped, events, bytes;
    uint64_t unconfirmed;      /* sessions sent before, and the server did not say if it has them */
    uint64_t left_out_lines;   /* could not be read, and are not with the server */
    uint64_t rejected_lines;   /* the server took the body, but not these lines */
    char rejected_reason[120]; /* of the first */
    char cursor_reason[120];   /* why what was sent could not be remembered */
    struct problem first;      /* the first thing that was not sent, and why */
    gpufl_status first_status; /* GPUFL_E_IO: the server did not take it; GPUFL_E_DAMAGED: it cannot be read */
};

/* GPUFL_OK: every file that can be read is with the server, or count->first says which is not. GPUFL_E_BUSY: still being
 * written. Another status: nothing more will get through (then the courier's problem says why), or the directory cannot
 * be read. */
NODISCARD gpufl_status session_upload(const char *dir, struct courier *courier, struct upload_count *count,
                                      struct problem *problem);

#endif
