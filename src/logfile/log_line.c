/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/log_line.h"

#include "logfile/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

gpufl_status log_line_decode(struct log_line *line, struct batch_view *view, struct json_document *document,
                             const char *text, size_t size, char reason[LINE_REASON_SIZE])
{
    struct line_end end = line_end_read(text, size);
    if (end.crc == LINE_CRC_BAD) {
        snprintf(reason, LINE_REASON_SIZE, "CRC mismatch");
        return GPUFL_E_DAMAGED;
    }
    struct json_error error = {0};
    enum record_type type = line_type_guess(text, size);
    gpufl_status status = GPUFL_E_UNSUPPORTED;
    if (record_catalogue[type].is_batch)
        status = batch_decode(view, text, size, &error);
    if (status == GPUFL_E_UNSUPPORTED) {
        status = json_parse(document, text, size, &error);
        const struct json_value *name = status ? NULL : json_member(document->root, "type");
        if (!status && (!name || name->kind != JSON_STRING)) {
            snprintf(reason, LINE_REASON_SIZE, "not a record: the type is missing");
            return GPUFL_E_DAMAGED;
        }
        type = status ? RECORD_UNKNOWN : record_type_of(name->text, name->text_size);
        line->type_name = status ? "" : name->text;
        if (record_catalogue[type].is_batch)
            status = batch_decode(view, text, size, &error);
    }
    if (status) {
        snprintf(reason, LINE_REASON_SIZE, "byte %" PRIu32 ": %s", error.column,
                 error.text[0] ? error.text : "not readable");
        return status == GPUFL_E_NO_MEMORY ? status : GPUFL_E_DAMAGED;
    }
    bool is_batch = record_catalogue[type].is_batch;
    line->type = type = is_batch ? view->info->type : type;
    if (type != RECORD_UNKNOWN)
        line->type_name = record_catalogue[type].name;
    line->batch = is_batch ? view : NULL;
    line->object = is_batch ? NULL : document->root;
    line->seq = is_batch ? view->seq : json_get_int(document->root, "seq", -1);
    if (line->seq >= 0 && end.crc == LINE_CRC_NONE) {
        snprintf(reason, LINE_REASON_SIZE, "the CRC is missing");
        return GPUFL_E_DAMAGED;
    }
    return GPUFL_OK;
}

size_t log_line_identity(const struct log_line *line, char key[LINE_IDENTITY_MAX])
{
    int size;
    if (line->batch) {
        const struct batch_view *batch = line->batch;
        const struct batch_column *kind = &batch->columns[PROFILE_SAMPLE_SAMPLE_KIND];
        bool is_isa_map =
            line->type == RECORD_PROFILE_SAMPLE_BATCH && batch->row_count && kind->present && kind->cells[0] == 2;
        if (!is_isa_map)
            return 0;
        size = snprintf(key, LINE_IDENTITY_MAX, "%d|%.*s|%" PRId64, line->type,
                        (int)(batch->session_id_size < 100 ? batch->session_id_size : 100),
                        batch->session_id ? batch->session_id : "", batch->batch_id);
    } else {
        if (line->type == RECORD_UNKNOWN || line->type == RECORD_DICTIONARY_UPDATE ||
            record_catalogue[line->type].channel != CHANNEL_COUNT)
            return 0;
        size = snprintf(key, LINE_IDENTITY_MAX, "%d|%.100s|%" PRId64, line->type,
                        json_get_text(line->object, "session_id", ""), json_get_int(line->object, "ts_ns", -1));
    }
    return (size_t)size;
}

enum line_session log_line_session(const struct log_line *line, const char *session_id)
{
    const struct json_value *member = line->batch ? NULL : json_member(line->object, "session_id");
    const char *id = line->batch                             ? line->batch->session_id
                     : member && member->kind == JSON_STRING ? member->text
                                                             : NULL;
    size_t size = line->batch ? line->batch->session_id_size : id ? member->text_size : 0;
    if (!id)
        return LINE_SESSION_UNNAMED;
    bool is_same = size == strlen(session_id) && !memcmp(id, session_id, size);
    return is_same ? LINE_SESSION_SAME : LINE_SESSION_OTHER;
}
