/* SPDX-License-Identifier: Apache-2.0 */
/* Removes the rows from an old segment, so that a session stays below its limit. Records that later ones refer to
 * (record_info.is_kept) stay. For each type, the first removed line is replaced by a loss record with reason
 * max_log_bytes, which counts rows and lines and explains the gap in the numbers to readers. The channel's previous
 * trimmed segment is merged into this one, so that there is one per channel. Single-threaded. */
#ifndef GPUFL_LOGFILE_SEGMENT_TRIM_H
#define GPUFL_LOGFILE_SEGMENT_TRIM_H

#include "format/json.h"
#include "logfile/segment.h"

#define SEGMENT_TRIM_REASON "max_log_bytes"

/* older: index of the previous trimmed segment, 0: none; it is removed when this one is complete. *bytes: of the new
 * file. */
NODISCARD gpufl_status segment_trim(int dir_fd, const char *session_id, enum channel channel, uint64_t older,
                                    uint64_t index, uint64_t *bytes, struct problem *problem);

/* Reads a loss record of trimming; false: it is another kind of loss record. */
struct trimmed_rows {
    enum record_type type;
    uint64_t rows, lines; /* lines: including the line of the loss record itself */
};
bool trimmed_rows_read(const struct json_value *loss, struct trimmed_rows *trimmed);

#endif
