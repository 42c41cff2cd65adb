/* SPDX-License-Identifier: Apache-2.0 */
/* One line of a log file as it is sent to a server: checked, and in wire v1 format. Owns its memory and reuses it for
 * the next line. Single-threaded. */
#ifndef GPUFL_UPLOAD_WIRE_LINE_H
#define GPUFL_UPLOAD_WIRE_LINE_H

#include "format/batch.h"
#include "logfile/line.h"

struct wire_line {
    struct bytes text; /* LF included */
    struct batch_view view;
    uint64_t events; /* rows of a batch; 1 for a single record */
    enum record_type type;
    bool is_synthetic; /* a shutdown record written on behalf of a killed program */
};

/* text: without LF. GPUFL_E_DAMAGED: the line cannot be sent; GPUFL_E_NO_MEMORY: try again later. */
NODISCARD gpufl_status wire_line_make(struct wire_line *line, const char *text, size_t size);
void wire_line_free(struct wire_line *line);

#endif
