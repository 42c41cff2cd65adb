/* SPDX-License-Identifier: Apache-2.0 */
/* Segments back to lines. */
#include "base/intern.h"
#include "logfile/log_line.h"
#include "store/sqlite_store.h"

#include <stdlib.h>

enum { RANK_CHANNEL = 1000, RANK_SHUTDOWN = 400, RANK_BATCH = 500 };
#define SEEN_BYTES_MAX ((size_t)8 << 20)

/* job_start, then by channel (scopes before the kernels that refer to them): records, the shutdown record as the last
 * of them, then batches, scopes first. */
static uint32_t delivery_rank(enum record_type type, enum channel channel)
{
    static const uint32_t channel_ranks[CHANNEL_COUNT + 1] = {
        [CHANNEL_SYSTEM] = 1, [CHANNEL_SCOPE] = 2, [CHANNEL_DEVICE] = 3, [CHANNEL_SASS] = 4, [CHANNEL_COUNT] = 5};
    if (type == RECORD_JOB_START)
        return channel_ranks[channel];
    uint32_t rank = channel_ranks[channel] * RANK_CHANNEL;
    if (record_catalogue[type].is_batch)
        return rank + RANK_BATCH + (type == RECORD_SCOPE_EVENT_BATCH ? 0 : (uint32_t)type);
    return rank + (type == RECORD_SHUTDOWN ? RANK_SHUTDOWN : (uint32_t)type);
}
_Static_assert((int)RECORD_TYPE_COUNT < (int)RANK_SHUTDOWN, "ranks overlap");

static int segment_compare(const void *left, const void *right)
{
    const struct stored_segment *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->position != b->position)
        return a->position < b->position ? -1 : 1;
    return a->segment < b->segment ? -1 : a->segment > b->segment;
}

static struct stored_segment *segments_add(struct stored_segments *list)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64;
        struct stored_segment *grown = realloc(list->items, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        list->items = grown;
        list->capacity = capacity;
    }
    return &list->items[list->count++];
}

gpufl_status segments_list(struct sqlite_store *store, struct connection *reader, int64_t session,
                           const struct record_set *types, struct stored_segments *out, struct problem *problem)
{
    sqlite3_stmt *statement;
    *out = (struct stored_segments){0};
    gpufl_status status = statement_open(reader, &statement, problem,
                                         "SELECT segment, channel, position, layout, rows, min_ns, max_ns, bytes FROM"
                                         " segment WHERE session=?",
                                         "i", session);
    for (bool has_row = true; !status;) {
        status = statement_next(reader, statement, &has_row, problem);
        if (status || !has_row)
            break;
        const struct layout *layout = layout_get(store, reader, sqlite3_column_int64(statement, 3), problem);
        if (layout && !record_set_has(types, layout->type))
            continue;
        struct stored_segment *segment = layout ? segments_add(out) : NULL;
        if (!segment) {
            status =
                layout ? problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a list of segments") : GPUFL_E_DAMAGED;
            break;
        }
        *segment = (struct stored_segment){.segment = sqlite3_column_int64(statement, 0),
                                           .channel = channel_parse(row_text(statement, 1)),
                                           .position = sqlite3_column_int64(statement, 2),
                                           .layout = layout,
                                           .layout_id = layout->layout,
                                           .rows = sqlite3_column_int64(statement, 4),
                                           .min_ns = row_integer(statement, 5),
                                           .max_ns = row_integer(statement, 6),
                                           .bytes = sqlite3_column_int64(statement, 7)};
        segment->rank = delivery_rank(layout->type, segment->channel);
    }
    if (status) {
        free(out->items);
        *out = (struct stored_segments){0};
    } else if (out->count) {
        qsort(out->items, out->count, sizeof *out->items, segment_compare);
    }
    return status;
}

gpufl_status segment_fetch(struct connection *reader, const struct stored_segment *segment, const void **data,
                           size_t *size, struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = false;
    gpufl_status status =
        statement_open(reader, &statement, problem, "SELECT data FROM segment WHERE segment=?", "i", segment->segment);
    if (!status)
        status = statement_next(reader, statement, &has_row, problem);
    if (status)
        return status;
    *data = has_row ? sqlite3_column_blob(statement, 0) : NULL;
    *size = has_row ? (size_t)sqlite3_column_bytes(statement, 0) : 0;
    return *data ? GPUFL_OK
                 : problem_set(problem, GPUFL_E_DAMAGED, "segment %lld has no data", (long long)segment->segment);
}

gpufl_status segment_rows(struct connection *reader, struct column_coder *coder, const struct stored_segment *segment,
                          uint64_t wanted, struct row_buffer *rows, struct problem *problem)
{
    const void *data;
    size_t size;
    row_buffer_start(rows, &record_catalogue[segment->layout->type]);
    gpufl_status status = segment_fetch(reader, segment, &data, &size, problem);
    if (status)
        return status;
    status = segment_decode(coder, data, size, segment->layout->order, segment->layout->count, wanted, rows);
    if (!status && rows->row_count != segment->rows)
        status = GPUFL_E_DAMAGED;
    return status ? problem_set(problem, status, "segment %lld (%s) cannot be read", (long long)segment->segment,
                                record_catalogue[segment->layout->type].name)
                  : GPUFL_OK;
}

struct reading {
    const struct store_range *range;
    log_line_fn on_line;
    void *user;
    struct connection *reader;
    struct column_coder coder;
    struct row_buffer rows;
    struct batch_column columns[ROW_COLUMNS_MAX];
    struct bytes lines;
    struct intern seen;
    bool has_range, is_stopped;
};

static bool is_outside(const struct reading *reading, const struct stored_segment *segment)
{
    const struct record_info *info = &record_catalogue[segment->layout->type];
    if (!reading->has_range || !info->is_batch || record_column_find(info, "dt_ns", 5) < 0)
        return false;
    return segment->min_ns == CELL_UNKNOWN || segment->min_ns >= reading->range->to_ns ||
           segment->max_ns < reading->range->from_ns;
}

static gpufl_status batch_deliver(struct reading *reading, const struct stored_segment *segment,
                                  struct problem *problem)
{
    const struct store_range *range = reading->range;
    struct row_buffer *rows = &reading->rows;
    row_buffer_start(rows, &record_catalogue[segment->layout->type]);
    bool is_cut = reading->has_range && rows->time_column >= 0 &&
                  (segment->min_ns < range->from_ns || segment->max_ns >= range->to_ns);
    uint64_t wanted = range->columns;
    if (wanted && is_cut && rows->time_column >= 0)
        wanted |= UINT64_C(1) << rows->time_column;
    if (wanted && is_cut && rows->duration_column >= 0)
        wanted |= UINT64_C(1) << rows->duration_column;
    gpufl_status status = segment_rows(reading->reader, &reading->coder, segment, wanted, rows, problem);
    if (status)
        return status;
    if (is_cut)
        row_buffer_cut(rows, range->from_ns, range->to_ns);
    if (range->columns)
        rows->present &= range->columns;
    if (!rows->row_count)
        return GPUFL_OK;
    struct batch_view view;
    row_buffer_view(rows, &view, reading->columns);
    view.session_id = range->session_id;
    view.session_id_size = (uint32_t)strlen(range->session_id);
    const struct log_line line = {.type = rows->info->type,
                                  .type_name = rows->info->name,
                                  .channel = segment->channel,
                                  .file = "",
                                  .seq = -1,
                                  .batch = &view};
    reading->is_stopped = !reading->on_line(reading->user, &line);
    return GPUFL_OK;
}

static bool is_repetition(struct reading *reading, const struct log_line *line)
{
    char key[LINE_IDENTITY_MAX];
    size_t size = log_line_identity(line, key);
    bool is_new = true;
    if (size)
        intern_id(&reading->seen, key, size, &is_new);
    return !is_new;
}

static gpufl_status records_deliver(struct reading *reading, const struct stored_segment *segment,
                                    struct problem *problem)
{
    const void *data;
    size_t size;
    bytes_clear(&reading->lines);
    gpufl_status status = segment_fetch(reading->reader, segment, &data, &size, problem);
    if (!status)
        status = lines_decode(&reading->coder, data, size, &reading->lines);
    const char *at = reading->lines.data, *end = at ? at + reading->lines.size : NULL;
    while (!status && at < end && !reading->is_stopped) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        struct log_line line = {.channel = segment->channel, .file = ""};
        struct batch_view view = {0};
        struct json_document document = {0};
        char reason[LINE_REASON_SIZE];
        bool is_good = newline && log_line_decode(&line, &view, &document, at, (size_t)(newline - at), reason);
        if (is_good && line.object && !is_repetition(reading, &line))
            reading->is_stopped = !reading->on_line(reading->user, &line);
        json_free(&document);
        batch_view_free(&view);
        status = is_good ? GPUFL_OK : GPUFL_E_DAMAGED;
        at = newline ? newline + 1 : end;
    }
    return status ? problem_set(problem, status, "segment %lld (records) cannot be read", (long long)segment->segment)
                  : GPUFL_OK;
}

gpufl_status sqlite_read(struct store *base, const struct store_range *range, log_line_fn on_line, void *user,
                         struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct reading *reading = calloc(1, sizeof *reading);
    struct stored_segments segments = {0};
    int64_t session;
    if (!reading)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to read session %s", range->session_id);
    *reading =
        (struct reading){.range = range, .on_line = on_line, .user = user, .has_range = range->from_ns || range->to_ns};
    reading->seen.text_bytes_max = SEEN_BYTES_MAX;
    gpufl_status status = column_coder_init(&reading->coder, 1);
    if (status)
        problem_set(problem, status, "no memory to read session %s", range->session_id);
    else
        status = reader_begin(store, &reading->reader, problem);
    if (!status)
        status = session_find(reading->reader, range->session_id, &session, problem);
    if (!status)
        status = segments_list(store, reading->reader, session, &range->types, &segments, problem);
    for (size_t i = 0; i < segments.count && !status && !reading->is_stopped; i++) {
        const struct stored_segment *segment = &segments.items[i];
        if (is_outside(reading, segment))
            continue;
        status = record_catalogue[segment->layout->type].is_batch ? batch_deliver(reading, segment, problem)
                                                                  : records_deliver(reading, segment, problem);
    }
    if (reading->reader)
        reader_end(store, reading->reader);
    free(segments.items);
    column_coder_free(&reading->coder);
    row_buffer_free(&reading->rows);
    bytes_free(&reading->lines);
    intern_free(&reading->seen);
    free(reading);
    return status;
}
