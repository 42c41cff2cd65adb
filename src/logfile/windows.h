/* SPDX-License-Identifier: Apache-2.0 */
/* GPUFlight's published windows: their sidecars, loss markers and numbering.
 * On the thread of whoever reads the directory. */
#ifndef GPUFL_LOGFILE_WINDOWS_H
#define GPUFL_LOGFILE_WINDOWS_H

#include "logfile/reader.h"
#include "logfile/session_dir.h"

/* Compares an open window with its sidecar; false with the reason when they differ. No sidecar: true. */
bool window_matches_sidecar(const struct session_files *files, const struct session_file *window, int fd,
                            struct problem *problem);
/* The window's name by its sidecar; false when that has none that is a UUID. */
bool window_sidecar_id(const struct session_files *files, const struct session_file *window,
                       char id[SESSION_ID_SIZE + 1]);
/* Reports loss markers and windows that are missing without one. */
void windows_report_holes(const struct session_files *files, log_issue_fn on_issue, void *user);

#endif
