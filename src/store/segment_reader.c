/* SPDX-License-Identifier: Apache-2.0 */
#include "store/segment_reader.h"

#include "base/intern.h"
#include "logfile/log_line.h"
#include "store/write_unit.h"

#include <stdio.h>
#include <stdlib.h>

enum { RANK_CHANNEL = 1000, RANK_SHUTDOWN = 400, RANK_BATCH = 500 };
#define SEEN_BYTES_MAX ((size_t)8 << 20)

/* ---- layouts ---- */

const char *layout_type_name(enum record_type type)
{
    return type == RECORD_UNKNOWN ? "" : record_catalogue[type].name;
}

void layout_names(enum record_type type, uint64_t columns, char names[LAYOUT_NAMES_MAX])
{
    const struct record_info *info = &record_catalogue[type];
    size_t size = 0;
    names[0] = '\0';
    for (unsigned i = 0; i < info->column_count && i < ROW_COLUMNS_MAX; i++)
        if (columns >> i & 1)
            size +=
                (size_t)snprintf(names + size, LAYOUT_NAMES_MAX - size, "%s%s", size ? "," : "", info->columns[i].name);
}

struct layout *layout_parse(int64_t id, const char *type_name, const char *columns)
{
    struct layout *layout = calloc(1, sizeof *layout);
    if (!layout)
        return NULL;
    layout->layout = id;
    layout->type = record_type_of(type_name, strlen(type_name));
    for (const char *at = columns; *at && layout->count < ROW_COLUMNS_MAX;) {
        size_t size = strcspn(at, ",");
        layout->order[layout->count++] = record_column_find(&record_catalogue[layout->type], at, size);
        at += size + (at[size] == ',');
    }
    return layout;
}

/* ---- lists ---- */

/* Order: job_start; then per channel (scopes before the kernels that refer to them) the records, the shutdown record
 * last; then batches, scopes first. */
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
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return a->segment < b->segment ? -1 : a->segment > b->segment;
}

struct stored_segment *segments_add(struct stored_segments *list)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64;
        struct stored_segment *grown = realloc(list->items, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        list->items = grown;
        list->capacity = capacity;
    }
    struct stored_segment *segment = &list->items[list->count++];
    *segment = (struct stored_segment){0};
    return segment;
}

void segments_sort(struct stored_segments *list)
{
    for (size_t i = 0; i < list->count; i++)
        list->items[i].rank = delivery_rank(list->items[i].layout->type, list->items[i].channel);
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, segment_compare);
}

static bool is_outside(const struct stored_segment *segment, const struct store_range *range)
{
    const struct record_info *info = &record_catalogue[segment->layout->type];
    if (!info->is_batch || record_column_find(info, "dt_ns", 5) < 0)
        return false;
    return segment->min_ns == CELL_UNKNOWN || segment->min_ns >= range->to_ns || segment->max_ns < range->from_ns;
}

void segments_cut(struct stored_segments *list, const struct store_range *range)
{
    size_t kept = 0;
    for (size_t i = 0; (range->from_ns || range->to_ns) && i < list->count; i++)
        if (!is_outside(&list->items[i], range))
            list->items[kept++] = list->items[i];
    if (range->from_ns || range->to_ns)
        list->count = kept;
}

/* ---- lines ---- */

gpufl_status segment_rows_read(const struct segment_source *source, struct column_coder *coder,
                               const struct stored_segment *segment, uint64_t wanted, struct row_buffer *rows,
                               struct problem *problem)
{
    const void *data;
    size_t size;
    row_buffer_start(rows, &record_catalogue[segment->layout->type]);
    gpufl_status status = source->fetch(source->user, segment, &data, &size, problem);
    if (status)
        return status;
    status = segment_decode(coder, data, size, segment->layout->order, segment->layout->count, wanted, rows);
    if (!status && rows->row_count != segment->rows)
        status = GPUFL_E_DAMAGED;
    return status ? problem_set(problem, status, "segment %lld (%s) cannot be read", (long long)segment->segment,
                                record_catalogue[segment->layout->type].name)
                  : GPUFL_OK;
}

bool segment_is_whole(const struct segment_source *source, struct column_coder *coder,
                      const struct stored_segment *segment, struct row_buffer *rows, struct bytes *lines)
{
    const void *data;
    size_t size;
    int64_t count = 0;
    if (record_catalogue[segment->layout->type].is_batch)
        return !segment_rows_read(source, coder, segment, 0, rows, NULL);
    bytes_clear(lines);
    if (source->fetch(source->user, segment, &data, &size, NULL) || lines_decode(coder, data, size, lines))
        return false;
    for (size_t i = 0; i < lines->size; i++)
        count += lines->data[i] == '\n';
    return count == segment->rows;
}

struct reading {
    const struct store_range *range;
    log_line_fn on_line;
    void *user;
    const struct segment_source *source;
    struct column_coder coder;
    struct row_buffer rows;
    struct batch_column columns[ROW_COLUMNS_MAX];
    struct bytes lines;
    struct intern seen;
    bool has_range, is_stopped;
};

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
    gpufl_status status = segment_rows_read(reading->source, &reading->coder, segment, wanted, rows, problem);
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
    bool is_new = false;
    return size && intern_id(&reading->seen, key, size, &is_new) && !is_new;
}

static gpufl_status records_deliver(struct reading *reading, const struct stored_segment *segment,
                                    struct problem *problem)
{
    const void *data;
    size_t size;
    bytes_clear(&reading->lines);
    gpufl_status status = reading->source->fetch(reading->source->user, segment, &data, &size, problem);
    if (!status)
        status = lines_decode(&reading->coder, data, size, &reading->lines);
    const char *at = reading->lines.data, *end = at ? at + reading->lines.size : NULL;
    while (!status && at < end && !reading->is_stopped) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        struct log_line line = {.channel = segment->channel, .file = ""};
        struct batch_view view = {0};
        struct json_document document = {0};
        char reason[LINE_REASON_SIZE];
        status =
            newline ? log_line_decode(&line, &view, &document, at, (size_t)(newline - at), reason) : GPUFL_E_DAMAGED;
        if (!status && line.object && !is_repetition(reading, &line))
            reading->is_stopped = !reading->on_line(reading->user, &line);
        json_free(&document);
        batch_view_free(&view);
        at = newline ? newline + 1 : end;
    }
    return status ? problem_set(problem, status, "segment %lld (records) cannot be read", (long long)segment->segment)
                  : GPUFL_OK;
}

gpufl_status segments_deliver(const struct segment_source *source, const struct stored_segments *segments,
                              const struct store_range *range, log_line_fn on_line, void *user, struct problem *problem)
{
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to read session %s", range->session_id);
    *reading = (struct reading){.range = range,
                                .on_line = on_line,
                                .user = user,
                                .source = source,
                                .has_range = range->from_ns || range->to_ns};
    reading->seen.text_bytes_max = SEEN_BYTES_MAX;
    gpufl_status status = GPUFL_OK;
    column_coder_init(&reading->coder, 1);
    for (size_t i = 0; i < segments->count && !status && !reading->is_stopped; i++) {
        const struct stored_segment *segment = &segments->items[i];
        status = record_catalogue[segment->layout->type].is_batch ? batch_deliver(reading, segment, problem)
                                                                  : records_deliver(reading, segment, problem);
    }
    column_coder_free(&reading->coder);
    row_buffer_free(&reading->rows);
    bytes_free(&reading->lines);
    intern_free(&reading->seen);
    free(reading);
    return status;
}

/* ---- timeline ---- */

struct timeline_query {
    const struct segment_source *source;
    struct column_coder coder;
    struct row_buffer rows;
    struct timeline_sums sums;
    unsigned shift;
    int64_t first, last;
};

/* Uses the coarsest stored level that is fine enough, else the rows. */
static gpufl_status segment_sum(struct timeline_query *query, const struct stored_segment *segment,
                                struct problem *problem)
{
    enum record_type type = segment->layout->type;
    unsigned shift = query->shift;
    const void *data = NULL;
    size_t size = 0;
    gpufl_status status = query->source->fetch_level(query->source->user, segment, &shift, &data, &size, problem);
    if (status)
        return status;
    if (data) {
        status = timeline_decode(&query->coder, type, data, size, shift, query->shift, query->first, query->last,
                                 &query->sums);
    } else {
        status =
            segment_rows_read(query->source, &query->coder, segment, timeline_columns(type), &query->rows, problem);
        if (!status)
            status = timeline_add_rows(&query->sums, &query->rows, query->shift, query->first, query->last);
    }
    return status ? problem_set(problem, status, "the timeline of segment %lld cannot be read",
                                (long long)segment->segment)
                  : GPUFL_OK;
}

struct record_set timeline_types(void)
{
    struct record_set types = {{0}};
    record_set_add(&types, RECORD_KERNEL_EVENT_BATCH);
    record_set_add(&types, RECORD_MEMCPY_EVENT_BATCH);
    record_set_add(&types, RECORD_MEMSET_EVENT_BATCH);
    return types;
}

gpufl_status segments_timeline(const struct segment_source *source, const struct stored_segments *segments,
                               int64_t from_ns, int64_t to_ns, unsigned shift, struct timeline *timeline,
                               struct problem *problem)
{
    struct timeline_query query = {
        .source = source, .shift = shift, .first = from_ns >> shift, .last = (to_ns - 1) >> shift};
    gpufl_status status = GPUFL_OK;
    column_coder_init(&query.coder, 1);
    for (size_t i = 0; i < segments->count && !status; i++) {
        const struct stored_segment *segment = &segments->items[i];
        if (segment->min_ns != CELL_UNKNOWN && segment->min_ns >> shift <= query.last &&
            segment->max_ns >> shift >= query.first)
            status = segment_sum(&query, segment, problem);
    }
    if (!status) {
        timeline_merge(&query.sums);
        status = timeline_finish(&query.sums, shift, timeline);
        if (status)
            problem_set(problem, status, "no memory for a timeline");
    }
    column_coder_free(&query.coder);
    row_buffer_free(&query.rows);
    timeline_sums_free(&query.sums);
    return status;
}
