/* SPDX-License-Identifier: Apache-2.0 */
/* How the listed files of a session are read: which coding each has, and which of two files that hold the same lines
 * counts. Pure functions on a listing, any thread. */
#ifndef GPUFL_LOGFILE_SESSION_SOURCE_H
#define GPUFL_LOGFILE_SESSION_SOURCE_H

#include "logfile/line_source.h"
#include "logfile/session_dir.h"

enum line_coding session_file_coding(const struct session_file *file);
/* Two files with the same channel and number hold the same lines: work on one of them was interrupted. The finished one
 * counts, which for a sealed file its footer proves; the other's is_shadowed[index in items] becomes true. is_shadowed:
 * files->log_count of them, false. */
void session_files_mark_shadowed(const struct session_files *files, bool *is_shadowed);

#endif
