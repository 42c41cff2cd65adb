/* SPDX-License-Identifier: Apache-2.0 */
/* The first and last record of every session: job_start and shutdown. Called by the recorder's owner. */
#ifndef GPUFL_CAPTURE_SESSION_FRAME_H
#define GPUFL_CAPTURE_SESSION_FRAME_H

#include "capture/recorder.h"

struct session_frame {
    const char *dir;              /* of the session */
    const char *name;             /* e.g. train-3; "": none */
    const char *session_kind;     /* "trace" or "monitor" */
    const char *profiling_engine; /* spelled as in the log */
    const char *driver_version;   /* "": not known */
    int cuda_driver_version;      /* 0: not known */
};
/* system: the members host, devices, ... as system_records_describe appends them to an empty string. */
void session_frame_start(struct recorder *recorder, const struct session_frame *frame, const struct bytes *system,
                         int64_t now_ns);
void session_frame_end(struct recorder *recorder, int64_t now_ns);

#endif
