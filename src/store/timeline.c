/* SPDX-License-Identifier: Apache-2.0 */
#include "store/timeline.h"

#include <stdlib.h>

enum {
    FINEST_BUCKETS = 4096,
    FINEST_SHIFT_MIN = 10,
    PIECES_PER_ROW = 4,
    FIELDS = 7,
    PIECES_MAX = 1 << 20,
    MERGE_COUNT = 1 << 20
};

/* The columns of a type that the timeline uses. */
struct work_layout {
    int device, stream, key; /* key -1: none */
};

static struct work_layout layout_of(enum record_type type)
{
    if (type == RECORD_KERNEL_EVENT_BATCH)
        return (struct work_layout){KERNEL_DEVICE_ID, KERNEL_STREAM_ID, KERNEL_KERNEL_ID};
    if (type == RECORD_MEMCPY_EVENT_BATCH)
        return (struct work_layout){MEMCPY_DEVICE_ID, MEMCPY_STREAM_ID, MEMCPY_COPY_KIND};
    return (struct work_layout){MEMSET_DEVICE_ID, MEMSET_STREAM_ID, -1};
}

uint64_t timeline_columns(enum record_type type)
{
    const struct record_info *info = &record_catalogue[type];
    struct work_layout layout = layout_of(type);
    uint64_t columns = UINT64_C(1) << layout.device | UINT64_C(1) << layout.stream;
    columns |= UINT64_C(1) << record_column_find(info, "dt_ns", 5);
    columns |= UINT64_C(1) << record_column_find(info, "duration_ns", 11);
    return layout.key < 0 ? columns : columns | UINT64_C(1) << layout.key;
}

void timeline_sums_free(struct timeline_sums *sums)
{
    free(sums->items);
    *sums = (struct timeline_sums){0};
}

static struct timeline_sum *sums_add(struct timeline_sums *sums)
{
    if (sums->count == sums->capacity) {
        size_t capacity = sums->capacity ? sums->capacity * 2 : 1024;
        struct timeline_sum *grown = realloc(sums->items, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        sums->items = grown;
        sums->capacity = capacity;
    }
    return &sums->items[sums->count++];
}

static int64_t cell_or_unknown(const struct row_buffer *rows, int column, uint32_t row)
{
    return column >= 0 && (rows->present >> column & 1) ? rows->columns[column][row] : CELL_UNKNOWN;
}

/* ---- rows to sums: a counting sort groups pieces of work by track and bucket, then they are summed by key ---- */

struct work_track {
    int64_t device_id, stream_id;
};
struct work_piece {
    uint32_t group; /* track * bucket_count + bucket - first */
    uint32_t key;
    int64_t ns;
    bool is_start;
};
struct work_grouping {
    const struct row_buffer *rows;
    uint32_t row_from, row_to;
    unsigned shift;
    int64_t first, last;
    struct work_layout layout;
    struct work_track *tracks;
    uint32_t track_count, last_track;
    struct work_piece *pieces, *sorted;
    size_t piece_count;
    uint32_t *starts; /* per group */
    size_t group_count;
};

static uint32_t track_of(struct work_grouping *work, uint32_t row)
{
    int64_t device_id = cell_or_unknown(work->rows, work->layout.device, row);
    int64_t stream_id = cell_or_unknown(work->rows, work->layout.stream, row);
    for (uint32_t step = 0; step < work->track_count; step++) {
        uint32_t i = (work->last_track + step) % work->track_count; /* rows come in runs of one stream */
        if (work->tracks[i].device_id == device_id && work->tracks[i].stream_id == stream_id)
            return work->last_track = i;
    }
    if (work->track_count == TIMELINE_TRACKS_MAX)
        return work->last_track = TIMELINE_TRACKS_MAX - 1;
    /* The last track collects the streams that exceed the limit; it has no stream number. */
    bool is_last = work->track_count == TIMELINE_TRACKS_MAX - 1;
    work->tracks[work->track_count] =
        is_last ? (struct work_track){CELL_UNKNOWN, CELL_UNKNOWN} : (struct work_track){device_id, stream_id};
    return work->last_track = work->track_count++;
}

/* The buckets of a row within the range; false when there are none. */
static bool row_buckets(const struct work_grouping *work, uint32_t row, int64_t *start_ns, int64_t *end_ns,
                        int64_t *from, int64_t *to)
{
    if (!row_times(work->rows, row, start_ns, end_ns))
        return false;
    *from = *start_ns >> work->shift;
    *to = *end_ns > *start_ns ? (*end_ns - 1) >> work->shift : *from;
    if (*from > work->last || *to < work->first)
        return false;
    *from = *from > work->first ? *from : work->first;
    *to = *to < work->last ? *to : work->last;
    return true;
}

/* Takes rows from row_from on until there are more than `most` pieces; row_to is after the last row taken. */
static size_t pieces_count(struct work_grouping *work, size_t most)
{
    size_t count = 0;
    int64_t start_ns, end_ns, from, to;
    for (work->row_to = work->row_from; work->row_to < work->rows->row_count && count <= most; work->row_to++)
        if (row_buckets(work, work->row_to, &start_ns, &end_ns, &from, &to))
            count += (size_t)(to - from) + 1;
    return count;
}

static void pieces_make(struct work_grouping *work)
{
    int64_t bucket_count = work->last - work->first + 1;
    for (uint32_t row = work->row_from; row < work->row_to; row++) {
        int64_t start_ns, end_ns, from, to;
        if (!row_buckets(work, row, &start_ns, &end_ns, &from, &to))
            continue;
        int64_t key = cell_or_unknown(work->rows, work->layout.key, row);
        uint32_t track = track_of(work, row);
        for (int64_t bucket = from; bucket <= to; bucket++) {
            int64_t begin_ns = bucket << work->shift, until_ns = begin_ns + (INT64_C(1) << work->shift);
            bool is_start = start_ns >= begin_ns;
            begin_ns = is_start ? start_ns : begin_ns;
            until_ns = end_ns < until_ns ? end_ns : until_ns;
            work->pieces[work->piece_count++] =
                (struct work_piece){.group = (uint32_t)(track * bucket_count + bucket - work->first),
                                    .key = key > 0 && key < UINT32_MAX ? (uint32_t)key : 0,
                                    .ns = until_ns - begin_ns,
                                    .is_start = is_start && start_ns < (bucket + 1) << work->shift};
        }
    }
}

static bool pieces_sort(struct work_grouping *work)
{
    work->group_count = (size_t)work->track_count * (size_t)(work->last - work->first + 1);
    work->starts = calloc(work->group_count + 1, sizeof *work->starts);
    work->sorted = malloc((work->piece_count + 1) * sizeof *work->sorted);
    if (!work->starts || !work->sorted)
        return false;
    for (size_t i = 0; i < work->piece_count; i++)
        work->starts[work->pieces[i].group + 1]++;
    for (size_t i = 1; i <= work->group_count; i++)
        work->starts[i] += work->starts[i - 1];
    for (size_t i = 0; i < work->piece_count; i++)
        work->sorted[work->starts[work->pieces[i].group]++] = work->pieces[i];
    return true; /* starts[g] is now the end of group g */
}

struct key_sums {
    uint32_t keys[1024];
    int64_t ns[1024];
    uint16_t used[1024];
    unsigned count;
};

/* Adds to the key's sum; false when the table is nearly full: the bucket's key is then the largest seen so far. */
static bool key_add(struct key_sums *sums, uint32_t key, int64_t ns)
{
    unsigned at = key * 2654435761u >> 22;
    while (sums->ns[at] >= 0 && sums->keys[at] != key)
        at = (at + 1) % 1024;
    if (sums->ns[at] < 0) {
        if (sums->count == 900)
            return false;
        sums->used[sums->count++] = (uint16_t)at;
        sums->keys[at] = key;
        sums->ns[at] = 0;
    }
    sum_add_ns(&sums->ns[at], ns);
    return true;
}

static bool groups_sum(struct work_grouping *work, struct timeline_sums *sums)
{
    struct key_sums *by_key = malloc(sizeof *by_key);
    if (!by_key)
        return false;
    memset(by_key->ns, 0xff, sizeof by_key->ns);
    by_key->count = 0;
    size_t bucket_count = (size_t)(work->last - work->first + 1);
    bool is_done = true;
    for (size_t group = 0, at = 0; is_done && group < work->group_count; group++) {
        size_t end = work->starts[group];
        if (at == end)
            continue;
        struct timeline_sum *sum = sums_add(sums);
        is_done = sum != NULL;
        if (!is_done)
            break;
        const struct work_track *track = &work->tracks[group / bucket_count];
        *sum = (struct timeline_sum){.type = work->rows->info->type,
                                     .device_id = track->device_id,
                                     .stream_id = track->stream_id,
                                     .bucket = work->first + (int64_t)(group % bucket_count),
                                     .key_ns = -1};
        for (; at < end; at++) {
            const struct work_piece *piece = &work->sorted[at];
            sum_add_ns(&sum->busy_ns, piece->ns);
            sum->count += piece->is_start;
            key_add(by_key, piece->key, piece->ns);
        }
        for (unsigned i = 0; i < by_key->count; i++) {
            unsigned slot = by_key->used[i];
            if (by_key->ns[slot] > sum->key_ns || (by_key->ns[slot] == sum->key_ns && by_key->keys[slot] < sum->key)) {
                sum->key_ns = by_key->ns[slot];
                sum->key = by_key->keys[slot];
            }
            by_key->ns[slot] = -1;
        }
        by_key->count = 0;
    }
    free(by_key);
    return is_done;
}

/* Takes rows from row_from on, as many as fit into memory at once. */
static gpufl_status work_add(struct work_grouping *work, struct timeline_sums *sums)
{
    size_t count = pieces_count(work, PIECES_MAX);
    gpufl_status status = GPUFL_E_NO_MEMORY;
    work->track_count = work->last_track = 0;
    work->piece_count = 0;
    work->starts = NULL;
    work->sorted = NULL;
    work->tracks = malloc(TIMELINE_TRACKS_MAX * sizeof *work->tracks);
    work->pieces = malloc((count + 1) * sizeof *work->pieces);
    if (!work->tracks || !work->pieces)
        goto cleanup;
    pieces_make(work);
    if (!pieces_sort(work) || !groups_sum(work, sums))
        goto cleanup;
    status = GPUFL_OK;
cleanup:
    free(work->tracks);
    free(work->pieces);
    free(work->sorted);
    free(work->starts);
    return status;
}

gpufl_status timeline_add_rows(struct timeline_sums *sums, const struct row_buffer *rows, unsigned shift, int64_t first,
                               int64_t last)
{
    struct work_grouping work = {.rows = rows, .shift = shift, .layout = layout_of(rows->info->type)};
    int64_t min_ns, max_ns;
    if (!row_buffer_span(rows, &min_ns, &max_ns))
        return GPUFL_OK;
    /* Only buckets that the rows overlap. */
    work.first = min_ns >> shift > first ? min_ns >> shift : first;
    work.last = max_ns >> shift < last ? max_ns >> shift : last;
    if (work.first > work.last)
        return GPUFL_OK;
    gpufl_status status = GPUFL_OK;
    for (; work.row_from < rows->row_count && !status; work.row_from = work.row_to) {
        status = work_add(&work, sums);
        if (sums->count > MERGE_COUNT)
            timeline_merge(sums);
    }
    return status;
}

unsigned timeline_finest(const struct row_buffer *rows)
{
    int64_t min_ns, max_ns;
    if (rows->row_count < TIMELINE_ROWS_MIN || !timeline_has(rows->info->type) ||
        !row_buffer_span(rows, &min_ns, &max_ns))
        return 0;
    struct work_grouping work = {.rows = rows, .shift = FINEST_SHIFT_MIN, .first = 0, .last = INT64_MAX};
    while (work.shift < 62 && (max_ns - min_ns) >> work.shift >= FINEST_BUCKETS)
        work.shift++;
    size_t most = (size_t)rows->row_count * PIECES_PER_ROW;
    while (work.shift < 62 && pieces_count(&work, most) > most)
        work.shift++;
    return work.shift;
}

/* ---- bytes ---- */

static int64_t *field_of(int64_t *cells, unsigned field, size_t count)
{
    return cells + field * count;
}

void timeline_encode(struct column_coder *coder, const struct timeline_sums *sums, struct bytes *out)
{
    size_t count = sums->count;
    int64_t *cells = malloc((FIELDS * count + 1) * sizeof *cells);
    if (!cells || count > COLUMN_ROWS_MAX) {
        out->failed = true;
        free(cells);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct timeline_sum *sum = &sums->items[i];
        const int64_t fields[FIELDS] = {sum->device_id, sum->stream_id, sum->bucket,        sum->busy_ns,
                                        sum->key,       sum->key_ns,    (int64_t)sum->count};
        for (unsigned f = 0; f < FIELDS; f++)
            field_of(cells, f, count)[i] = fields[f];
    }
    varint_append(out, count);
    for (unsigned f = 0; f < FIELDS && count; f++) {
        struct bytes column = {0};
        column_encode(coder, field_of(cells, f, count), count, &column);
        varint_append(out, column.size);
        bytes_append(out, column.data, column.size);
        out->failed |= column.failed;
        bytes_free(&column);
    }
    free(cells);
}

gpufl_status timeline_decode(struct column_coder *coder, enum record_type type, const void *data, size_t size,
                             unsigned shift, unsigned to_shift, int64_t first, int64_t last, struct timeline_sums *sums)
{
    const uint8_t *at = data, *end = at + size;
    uint64_t count, column_size;
    if (!varint_read(&at, end, &count) || count > COLUMN_ROWS_MAX || shift > to_shift || to_shift > 62)
        return GPUFL_E_DAMAGED;
    int64_t *cells = malloc((FIELDS * count + 1) * sizeof *cells);
    gpufl_status status = cells ? GPUFL_OK : GPUFL_E_NO_MEMORY;
    for (unsigned f = 0; f < FIELDS && count && !status; f++) {
        status = GPUFL_E_DAMAGED;
        if (!varint_read(&at, end, &column_size) || column_size > (size_t)(end - at))
            break;
        status = column_decode(coder, at, (size_t)column_size, field_of(cells, f, count), count);
        at += column_size;
    }
    for (size_t i = 0; i < count && !status; i++) {
        int64_t bucket = field_of(cells, 2, count)[i] >> (to_shift - shift);
        if (bucket < first || bucket > last)
            continue;
        struct timeline_sum *sum = sums_add(sums);
        if (!sum) {
            status = GPUFL_E_NO_MEMORY;
            break;
        }
        *sum = (struct timeline_sum){.type = type,
                                     .device_id = field_of(cells, 0, count)[i],
                                     .stream_id = field_of(cells, 1, count)[i],
                                     .bucket = bucket,
                                     .busy_ns = field_of(cells, 3, count)[i],
                                     .key = (uint32_t)field_of(cells, 4, count)[i],
                                     .key_ns = field_of(cells, 5, count)[i],
                                     .count = (uint64_t)field_of(cells, 6, count)[i]};
    }
    free(cells);
    return status;
}

static int sum_compare(const void *left, const void *right)
{
    const struct timeline_sum *a = left, *b = right;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    if (a->device_id != b->device_id)
        return a->device_id < b->device_id ? -1 : 1;
    if (a->stream_id != b->stream_id)
        return a->stream_id < b->stream_id ? -1 : 1;
    if (a->bucket != b->bucket)
        return a->bucket < b->bucket ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

static bool is_same_track(const struct timeline_sum *a, const struct timeline_sum *b)
{
    return a->type == b->type && a->device_id == b->device_id && a->stream_id == b->stream_id;
}

void timeline_merge(struct timeline_sums *sums)
{
    if (!sums->count)
        return;
    qsort(sums->items, sums->count, sizeof *sums->items, sum_compare);
    size_t kept = 0;
    int64_t key_ns = 0; /* of the current key; equal keys are adjacent */
    for (size_t i = 0; i < sums->count; i++) {
        struct timeline_sum *sum = &sums->items[kept], item = sums->items[i];
        bool is_same_bucket = i && is_same_track(sum, &item) && sum->bucket == item.bucket;
        key_ns = is_same_bucket && i && sums->items[i - 1].key == item.key ? key_ns : 0;
        sum_add_ns(&key_ns, item.key_ns);
        if (!is_same_bucket) {
            kept += i != 0;
            sums->items[kept] = item;
            continue;
        }
        sum_add_ns(&sum->busy_ns, item.busy_ns);
        sum->count += item.count;
        if (key_ns > sum->key_ns) {
            sum->key_ns = key_ns;
            sum->key = item.key;
        }
    }
    sums->count = kept + 1;
}

gpufl_status timeline_finish(const struct timeline_sums *sums, unsigned shift, struct timeline *timeline)
{
    *timeline = (struct timeline){.width_ns = INT64_C(1) << shift};
    size_t track_count = 0;
    for (size_t i = 0; i < sums->count; i++)
        track_count += !i || !is_same_track(&sums->items[i - 1], &sums->items[i]);
    timeline->tracks = calloc(track_count + 1, sizeof *timeline->tracks);
    timeline->buckets = malloc((sums->count + 1) * sizeof *timeline->buckets);
    if (!timeline->tracks || !timeline->buckets) {
        timeline_free(timeline);
        return GPUFL_E_NO_MEMORY;
    }
    for (size_t i = 0; i < sums->count; i++) {
        const struct timeline_sum *sum = &sums->items[i];
        if (!i || !is_same_track(sum - 1, sum))
            timeline->tracks[timeline->track_count++] = (struct timeline_track){
                .type = sum->type, .device_id = sum->device_id, .stream_id = sum->stream_id, .first = i};
        timeline->tracks[timeline->track_count - 1].count++;
        timeline->buckets[i] = (struct timeline_bucket){.start_ns = sum->bucket << shift,
                                                        .busy_ns = sum->busy_ns,
                                                        .key_ns = sum->key_ns,
                                                        .count = sum->count,
                                                        .key = sum->key};
        timeline->rows += sum->count;
    }
    timeline->bucket_count = sums->count;
    return GPUFL_OK;
}

void timeline_free(struct timeline *timeline)
{
    free(timeline->tracks);
    free(timeline->buckets);
    *timeline = (struct timeline){0};
}
