/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/wire_line.h"

#include "format/json.h"
#include "logfile/log_line.h"

/* Sealed lines are converted back to v1's rows, with a CRC of the new text; other lines are copied. */
static gpufl_status line_shape(struct bytes *out, const struct log_line *line, const char *text, size_t size)
{
    static const char cols_key[] = "\"cols\":";
    bytes_clear(out);
    if (!line->batch || !memmem(text, size, cols_key, sizeof cols_key - 1)) {
        bytes_append(out, text, size);
        bytes_append_char(out, '\n');
        return out->failed ? GPUFL_E_NO_MEMORY : GPUFL_OK;
    }
    gpufl_status status = batch_expand(text, size, out);
    if (status || !out->size)
        return status == GPUFL_E_NO_MEMORY ? status : GPUFL_E_DAMAGED;
    if (line->seq >= 0) {
        out->size--; /* the brace */
        line_append_crc(out, 0);
    } else {
        bytes_append_char(out, '\n');
    }
    return out->failed ? GPUFL_E_NO_MEMORY : GPUFL_OK;
}

gpufl_status wire_line_make(struct wire_line *out, const char *text, size_t size)
{
    struct log_line line = {.line = 0};
    struct json_document document = {0};
    char reason[LINE_REASON_SIZE];
    gpufl_status status = log_line_decode(&line, &out->view, &document, text, size, reason);
    bool is_good = status == GPUFL_OK;
    out->type = is_good ? line.type : RECORD_UNKNOWN;
    out->is_synthetic = is_good && line.type == RECORD_SHUTDOWN && json_get_bool(line.object, "synthetic", false);
    out->events = line.batch ? line.batch->row_count : 1;
    if (is_good)
        status = line_shape(&out->text, &line, text, size);
    json_free(&document);
    return status;
}

void wire_line_free(struct wire_line *line)
{
    batch_view_free(&line->view);
    bytes_free(&line->text);
    *line = (struct wire_line){0};
}
