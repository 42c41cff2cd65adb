/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the text of one line to a log_line: checks its CRC, determines its type, decodes its batch or object. Pure
 * functions on the caller's memory, any thread. */
#ifndef GPUFL_LOGFILE_LOG_LINE_H
#define GPUFL_LOGFILE_LOG_LINE_H

#include "logfile/reader.h"

enum { LINE_REASON_SIZE = 256, LINE_IDENTITY_MAX = 256 };

/* text: without LF. Batches are decoded into view, everything else into document, which the caller frees; line points
 * into them, and its position (channel, file, line) is left unchanged. GPUFL_E_DAMAGED: see reason; GPUFL_E_NO_MEMORY:
 * the line was not checked. */
NODISCARD gpufl_status log_line_decode(struct log_line *line, struct batch_view *view, struct json_document *document,
                                       const char *text, size_t size, char reason[LINE_REASON_SIZE]);

/* Some lines are written to several channels and count once. Returns the size of the key that identifies such a line, 0
 * for every other line. */
size_t log_line_identity(const struct log_line *line, char key[LINE_IDENTITY_MAX]);

enum line_session { LINE_SESSION_SAME, LINE_SESSION_OTHER, LINE_SESSION_UNNAMED };
/* Whether a decoded line belongs to the session. Wire v1 lines may not name a session. */
enum line_session log_line_session(const struct log_line *line, const char *session_id);

#endif
