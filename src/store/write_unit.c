/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write_unit.h"

#include "base/crc32c.h"
#include "logfile/log_line.h"
#include "store/segment_columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

enum { LEVEL_STEP = 2, LINES_FLUSH_BYTES = 1 << 20, LINES_PACK_MIN = 200, LINES_PLAIN_MAX = 128 << 20 };
#define ROWS_FLUSH_BYTES ((size_t)24 << 20)

void sequence_kind_name(unsigned kind, char name[SEQUENCE_NAME_MAX])
{
    if (kind < CHANNEL_COUNT)
        snprintf(name, SEQUENCE_NAME_MAX, "seq:%s", channel_names[kind]);
    else if (kind == SEQUENCE_REPEATED)
        snprintf(name, SEQUENCE_NAME_MAX, "batch:repeated");
    else
        snprintf(name, SEQUENCE_NAME_MAX, "batch:%s", record_catalogue[kind - CHANNEL_COUNT].name);
}

unsigned sequence_kind_of(const char *name)
{
    char text[SEQUENCE_NAME_MAX];
    unsigned kind = 0;
    for (; kind < SEQUENCE_KINDS; kind++) {
        sequence_kind_name(kind, text);
        if (!strcmp(text, name))
            break;
    }
    return kind;
}

void segment_free(struct segment *segment)
{
    bytes_free(&segment->bytes);
    for (unsigned i = 0; i < segment->level_count; i++)
        bytes_free(&segment->levels[i].bytes);
    *segment = (struct segment){0};
}

/* Makes the timeline levels, from the finest up until a few buckets are left. */
static gpufl_status levels_make(struct column_coder *coder, const struct row_buffer *rows, struct segment *segment)
{
    unsigned shift = timeline_finest(rows);
    while (shift && shift <= 62 && segment->level_count < TIMELINE_LEVELS_MAX) {
        struct timeline_sums sums = {0};
        gpufl_status status = timeline_add_rows(&sums, rows, shift, 0, INT64_MAX);
        struct segment_level *level = &segment->levels[segment->level_count++];
        level->shift = shift;
        if (!status)
            timeline_encode(coder, &sums, &level->bytes);
        timeline_sums_free(&sums);
        if (status || level->bytes.failed)
            return GPUFL_E_NO_MEMORY;
        if ((segment->max_ns >> shift) - (segment->min_ns >> shift) < 4)
            break;
        shift += LEVEL_STEP;
    }
    return GPUFL_OK;
}

gpufl_status segment_make(struct column_coder *coder, const struct row_buffer *rows, struct segment *segment)
{
    *segment = (struct segment){.type = rows->info->type,
                                .channel = rows->info->channel,
                                .rows = rows->row_count,
                                .min_ns = CELL_UNKNOWN,
                                .max_ns = CELL_UNKNOWN,
                                .present = segment_columns(rows)};
    segment_encode(coder, rows, segment->present, &segment->bytes);
    gpufl_status status = segment->bytes.failed ? GPUFL_E_NO_MEMORY : GPUFL_OK;
    if (!status && row_buffer_span(rows, &segment->min_ns, &segment->max_ns))
        status = levels_make(coder, rows, segment);
    if (status)
        segment_free(segment);
    return status;
}

/* 'R' for plain, 'Z' for compressed; CRC-32C of the plain bytes; their size; the bytes. */
void lines_encode(struct column_coder *coder, const char *lines, size_t size, struct bytes *out)
{
    size_t packed = 0, bound = ZSTD_compressBound(size), head = out->size;
    uint32_t crc = crc32c(0, lines, size);
    bytes_append_char(out, 'R');
    bytes_append(out, &crc, sizeof crc);
    varint_append(out, size);
    if (size >= LINES_PACK_MIN && bytes_reserve(out, bound)) {
        packed = column_coder_pack(coder, out->data + out->size, bound, lines, size);
        packed = packed >= size ? 0 : packed;
    }
    if (packed) {
        out->data[head] = 'Z';
        out->size += packed;
    } else {
        bytes_append(out, lines, size);
    }
}

struct lines_head {
    bool is_packed;
    uint32_t crc;
    uint64_t plain;
};

/* Advances *at past the head. */
static bool lines_head_read(struct lines_head *head, const uint8_t **at, const uint8_t *end)
{
    if ((size_t)(end - *at) < 1 + sizeof head->crc || (**at != 'R' && **at != 'Z'))
        return false;
    head->is_packed = *(*at)++ == 'Z';
    memcpy(&head->crc, *at, sizeof head->crc);
    *at += sizeof head->crc;
    return varint_read(at, end, &head->plain) && head->plain && head->plain <= LINES_PLAIN_MAX;
}

gpufl_status lines_plain_size(const void *data, size_t size, uint64_t *plain)
{
    const uint8_t *at = data;
    struct lines_head head;
    if (!lines_head_read(&head, &at, at + size))
        return GPUFL_E_DAMAGED;
    *plain = head.plain;
    return GPUFL_OK;
}

gpufl_status lines_decode(struct column_coder *coder, const void *data, size_t size, struct bytes *out)
{
    const uint8_t *at = data, *end = at + size;
    struct lines_head head;
    if (!lines_head_read(&head, &at, end))
        return GPUFL_E_DAMAGED;
    size_t plain = (size_t)head.plain;
    if (!bytes_reserve(out, plain))
        return GPUFL_E_NO_MEMORY;
    char *lines = out->data + out->size;
    if (head.is_packed ? !column_coder_unpack(coder, lines, plain, at, (size_t)(end - at))
                       : (size_t)(end - at) != plain)
        return GPUFL_E_DAMAGED;
    if (!head.is_packed)
        memcpy(lines, at, plain);
    if (crc32c(0, lines, plain) != head.crc || lines[plain - 1] != '\n')
        return GPUFL_E_DAMAGED;
    out->size += plain;
    return GPUFL_OK;
}

void write_unit_init(struct write_unit *unit, const struct store_identity *identity, uint64_t bytes_max)
{
    snprintf(unit->session_id, sizeof unit->session_id, "%s", identity->session_id);
    snprintf(unit->window_id, sizeof unit->window_id, "%s", identity->window_id ? identity->window_id : "");
    unit->channel = identity->channel;
    unit->crc = identity->crc;
    unit->bytes_max = bytes_max;
    write_sums_init(&unit->sums);
    column_coder_init(&unit->coder, 1);
}

void write_unit_free(struct write_unit *unit)
{
    for (unsigned i = 0; i < SEQUENCE_KINDS; i++) {
        sequence_set_free(&unit->known[i]);
        sequence_set_free(&unit->added[i]);
    }
    for (unsigned i = 0; i < RECORD_TYPE_COUNT; i++)
        row_buffer_free(&unit->rows[i]);
    for (size_t i = 0; i < unit->record_count; i++)
        bytes_free(&unit->records[i].bytes);
    for (size_t i = 0; i < unit->segment_count; i++)
        segment_free(&unit->segments[i]);
    free(unit->records);
    free(unit->segments);
    write_sums_free(&unit->sums);
    column_coder_free(&unit->coder);
}

uint64_t write_unit_bytes(const struct write_unit *unit)
{
    uint64_t bytes = unit->segment_bytes + write_sums_bytes(&unit->sums);
    for (unsigned i = 0; i < RECORD_TYPE_COUNT; i++)
        bytes += row_buffer_bytes(&unit->rows[i]);
    for (size_t i = 0; i < unit->record_count; i++)
        bytes += unit->records[i].bytes.capacity;
    return bytes;
}

static struct segment *segment_add(struct write_unit *unit)
{
    if (unit->segment_count == unit->segment_capacity) {
        size_t capacity = unit->segment_capacity ? unit->segment_capacity * 2 : 8;
        struct segment *grown = realloc(unit->segments, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        unit->segments = grown;
        unit->segment_capacity = capacity;
    }
    struct segment *segment = &unit->segments[unit->segment_count++];
    *segment = (struct segment){0};
    return segment;
}

static void segment_count_bytes(struct write_unit *unit, const struct segment *segment)
{
    unit->segment_bytes += segment->bytes.size;
    for (unsigned i = 0; i < segment->level_count; i++)
        unit->segment_bytes += segment->levels[i].bytes.size;
}

static gpufl_status rows_flush(struct write_unit *unit, struct row_buffer *rows)
{
    if (!rows->row_count)
        return GPUFL_OK;
    struct segment *segment = segment_add(unit);
    if (!segment || !write_sums_rows(&unit->sums, rows))
        return GPUFL_E_NO_MEMORY;
    gpufl_status status = segment_make(&unit->coder, rows, segment);
    segment_count_bytes(unit, segment);
    row_buffer_clear(rows);
    return status;
}

static gpufl_status records_flush(struct write_unit *unit, struct record_lines *records)
{
    if (!records->count)
        return GPUFL_OK;
    struct segment *segment = segment_add(unit);
    if (!segment)
        return GPUFL_E_NO_MEMORY;
    *segment = (struct segment){.type = records->type,
                                .channel = records->channel,
                                .rows = records->count,
                                .min_ns = CELL_UNKNOWN,
                                .max_ns = CELL_UNKNOWN};
    lines_encode(&unit->coder, records->bytes.data, records->bytes.size, &segment->bytes);
    segment_count_bytes(unit, segment);
    bytes_clear(&records->bytes);
    records->count = 0;
    return segment->bytes.failed ? GPUFL_E_NO_MEMORY : GPUFL_OK;
}

gpufl_status write_unit_finish(struct write_unit *unit, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < unit->record_count && !status; i++)
        status = records_flush(unit, &unit->records[i]);
    for (unsigned i = 0; i < RECORD_TYPE_COUNT && !status; i++) {
        status = rows_flush(unit, &unit->rows[i]);
        if (!status)
            row_buffer_free(&unit->rows[i]);
    }
    return status ? problem_set(problem, status, "no memory for a delivery of session %s", unit->session_id) : status;
}

/* Returns the kind of number that identifies the line, and the number; SEQUENCE_KINDS: the line has none. */
static unsigned line_sequence(const struct write_unit *unit, const struct log_line *line, uint64_t *value)
{
    char key[LINE_IDENTITY_MAX];
    bool is_numbered = line->batch && line->batch->batch_id >= 0;
    bool is_shared = is_numbered && log_line_identity(line, key);
    if (is_shared || (is_numbered && line->seq < 0 && !unit->window_id[0])) {
        *value = (uint64_t)line->batch->batch_id;
        return is_shared ? SEQUENCE_REPEATED : CHANNEL_COUNT + line->type;
    }
    *value = line->seq < 0 ? 0 : (uint64_t)line->seq;
    return line->seq < 0 ? SEQUENCE_KINDS : (unsigned)line->channel;
}

static gpufl_status batch_take(struct write_unit *unit, const struct batch_view *view)
{
    struct row_buffer *rows = &unit->rows[view->info->type];
    gpufl_status status = GPUFL_OK;
    if (rows->info != view->info)
        row_buffer_start(rows, view->info);
    for (uint32_t from = 0; from < view->row_count && !status;) {
        uint32_t count = view->row_count - from, room = SEGMENT_ROWS - rows->row_count;
        count = count < room ? count : room;
        if (!row_buffer_append(rows, view, from, count))
            return GPUFL_E_NO_MEMORY;
        from += count;
        if (rows->row_count == SEGMENT_ROWS)
            status = rows_flush(unit, rows);
    }
    unit->sums.facts.rows += view->row_count;
    size_t bytes = 0;
    for (unsigned i = 0; i < RECORD_TYPE_COUNT; i++)
        bytes += row_buffer_bytes(&unit->rows[i]);
    for (unsigned i = 0; i < RECORD_TYPE_COUNT && bytes > ROWS_FLUSH_BYTES && !status; i++) {
        status = rows_flush(unit, &unit->rows[i]);
        row_buffer_free(&unit->rows[i]);
    }
    return status;
}

static gpufl_status record_take(struct write_unit *unit, const struct log_line *line, const char *text, size_t size)
{
    struct record_lines *records = NULL;
    for (size_t i = 0; i < unit->record_count && !records; i++)
        if (unit->records[i].type == line->type && unit->records[i].channel == line->channel)
            records = &unit->records[i];
    if (!records) {
        if (unit->record_count == unit->record_capacity) {
            size_t capacity = unit->record_capacity ? unit->record_capacity * 2 : 16;
            struct record_lines *grown = realloc(unit->records, capacity * sizeof *grown);
            if (!grown)
                return GPUFL_E_NO_MEMORY;
            unit->records = grown;
            unit->record_capacity = capacity;
        }
        records = &unit->records[unit->record_count++];
        *records = (struct record_lines){.type = line->type, .channel = line->channel};
    }
    bytes_append(&records->bytes, text, size);
    bytes_append_char(&records->bytes, '\n');
    records->count++;
    if (records->bytes.failed || !write_sums_record(&unit->sums, line->type, line->object))
        return GPUFL_E_NO_MEMORY;
    return records->bytes.size > LINES_FLUSH_BYTES ? records_flush(unit, records) : GPUFL_OK;
}

gpufl_status write_unit_line(struct write_unit *unit, const struct log_line *line, const char *text, size_t size,
                             bool *is_repeated, struct problem *problem)
{
    if (is_repeated)
        *is_repeated = false;
    if (!line->batch == !line->object || (unsigned)line->channel >= CHANNEL_COUNT ||
        (line->object && (!size || memchr(text, '\n', size))))
        return problem_set(problem, GPUFL_E_INVALID, "not a line of a log");
    if (log_line_session(line, unit->session_id) == LINE_SESSION_OTHER)
        return problem_set(problem, GPUFL_E_INVALID, "a line of another session than %s", unit->session_id);
    uint64_t value;
    unsigned kind = line_sequence(unit, line, &value);
    gpufl_status status = GPUFL_OK;
    unit->has_unnumbered = unit->has_unnumbered || kind == SEQUENCE_KINDS;
    if (kind < SEQUENCE_KINDS) {
        if (sequence_set_has(&unit->known[kind], value) || sequence_set_has(&unit->added[kind], value)) {
            if (is_repeated)
                *is_repeated = true;
            unit->repeated_lines++;
            return GPUFL_OK;
        }
        status = sequence_set_add(&unit->added[kind], value, value);
    }
    unit->lines++;
    unit->sums.facts.lines++;
    if (!status)
        status = line->batch ? batch_take(unit, line->batch) : record_take(unit, line, text, size);
    if (status)
        return problem_set(problem, status, "no memory for a delivery of session %s", unit->session_id);
    if (write_unit_bytes(unit) > unit->bytes_max)
        return problem_set(problem, GPUFL_E_LIMIT, "a delivery of session %s needs more than %" PRIu64 " MiB",
                           unit->session_id, unit->bytes_max >> 20);
    return GPUFL_OK;
}
