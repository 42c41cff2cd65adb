/* SPDX-License-Identifier: Apache-2.0 */
/* GPUFlight's published windows: their sidecars, loss markers and numbering. Called by the thread that reads the
 * directory. */
#ifndef GPUFL_LOGFILE_WINDOWS_H
#define GPUFL_LOGFILE_WINDOWS_H

#include "logfile/reader.h"
#include "logfile/session_dir.h"

/* Compares an open window with its sidecar; false: they differ, see problem. Without a sidecar: true. */
bool window_matches_sidecar(const struct session_files *files, const struct session_file *window, int fd,
                            struct problem *problem);
/* The window's id from its sidecar; false: there is none, or it is not a UUID. */
bool window_sidecar_id(const struct session_files *files, const struct session_file *window,
                       char id[SESSION_ID_SIZE + 1]);
/* Reports loss markers, and missing windows without a loss marker. */
void windows_report_missing(const struct session_files *files, log_issue_fn on_issue, void *user);

#endif
