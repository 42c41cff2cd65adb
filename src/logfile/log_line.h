/* SPDX-License-Identifier: Apache-2.0 */
/* From the text of one line to a log_line: its CRC is checked, its type found, its batch or object decoded.
 * Pure functions on the caller's memory, any thread. */
#ifndef GPUFL_LOGFILE_LOG_LINE_H
#define GPUFL_LOGFILE_LOG_LINE_H

#include "logfile/reader.h"

enum { LINE_REASON_SIZE = 256, LINE_IDENTITY_MAX = 256 };

/* text: without LF. Batches go to view, everything else to document, which is the caller's to free; line points
 * into them and keeps its place (channel, file, line). GPUFL_E_DAMAGED with the reason; GPUFL_E_NO_MEMORY: nothing is
 * known of the line. */
NODISCARD gpufl_status log_line_decode(struct log_line *line, struct batch_view *view, struct json_document *document,
                                       const char *text, size_t size, char reason[LINE_REASON_SIZE]);

/* Some lines are written to several channels and count once: the size of the key that such a line shares with its
 * repetitions, 0 for every other line. */
size_t log_line_identity(const struct log_line *line, char key[LINE_IDENTITY_MAX]);

enum line_session { LINE_SESSION_SAME, LINE_SESSION_OTHER, LINE_SESSION_UNNAMED };
/* Whether a decoded line belongs to the session. Lines of wire v1 may name none. */
enum line_session log_line_session(const struct log_line *line, const char *session_id);

#endif
