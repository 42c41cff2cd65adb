/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the rows out of an old segment, so that a session stays below its limit. What later records refer to
 * (record_info.is_kept) stays. In place of the first line of each type that goes there is a loss record with reason
 * max_log_bytes, which counts rows and lines: readers take the gap in the numbers for what it is. The channel's older
 * trimmed segment is merged into this one, so that there is one of them per channel. One thread. */
#ifndef GPUFL_LOGFILE_SEGMENT_TRIM_H
#define GPUFL_LOGFILE_SEGMENT_TRIM_H

#include "format/json.h"
#include "logfile/segment.h"

#define SEGMENT_TRIM_REASON "max_log_bytes"

/* older: index of the trimmed segment before it, 0: none; removed when this one is whole. *bytes: of the new file. */
NODISCARD gpufl_status segment_trim(int dir_fd, const char *session_id, enum channel channel, uint64_t older,
                                    uint64_t index, uint64_t *bytes, struct problem *problem);

/* What a loss record of trimming says; false: it is another one. */
struct trimmed_rows {
    enum record_type type;
    uint64_t rows, lines; /* lines: with that of the loss record itself */
};
bool trimmed_rows_read(const struct json_value *loss, struct trimmed_rows *trimmed);

#endif
