/* SPDX-License-Identifier: Apache-2.0 */
/* How the listed files of a session are read: the coding of each file, and which of two files with the same lines is
 * used. Pure functions on a listing, any thread. */
#ifndef GPUFL_LOGFILE_SESSION_SOURCE_H
#define GPUFL_LOGFILE_SESSION_SOURCE_H

#include "logfile/line_source.h"
#include "logfile/session_dir.h"

enum line_coding session_file_coding(const struct session_file *file);
/* Two files with the same channel and number have the same lines: work on one of them was interrupted. The finished one
 * is used (a sealed file's footer proves that it is finished), and is_shadowed[index in items] of the other becomes
 * true. is_shadowed: files->log_count elements, all false. */
void session_files_mark_shadowed(const struct session_files *files, bool *is_shadowed);

#endif
