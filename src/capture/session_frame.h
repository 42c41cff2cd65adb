/* SPDX-License-Identifier: Apache-2.0 */
/* The records that frame every session, whoever writes it: job_start first,
 * shutdown last. The recorder's owner calls. */
#ifndef GPUFL_CAPTURE_SESSION_FRAME_H
#define GPUFL_CAPTURE_SESSION_FRAME_H

#include "capture/recorder.h"

struct session_frame {
    const char *dir;              /* of the session */
    const char *name;             /* train-3; "": it has none */
    const char *session_kind;     /* "trace" or "monitor" */
    const char *profiling_engine; /* as the wire names it */
    const char *driver_version;   /* "": not known */
    int cuda_driver_version;      /* 0: not known */
};
/* system: the members host, devices, ... as system_records_describe appends them to an empty string. */
void session_frame_start(struct recorder *recorder, const struct session_frame *frame, const struct bytes *system,
                         int64_t now_ns);
void session_frame_end(struct recorder *recorder, int64_t now_ns);

#endif
