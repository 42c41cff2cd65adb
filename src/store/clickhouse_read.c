/* SPDX-License-Identifier: Apache-2.0 */
/* Reads segments from ClickHouse, many at a time, and turns them into lines and timelines. */
#include "store/clickhouse_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { FETCH_BYTES = 16 << 20, FETCH_COUNT = 4096, LIST_TRIES = 50, LIST_WAIT_MS = 100 };

static void types_append(struct bytes *sql, const struct record_set *types)
{
    bool is_first = true;
    uint64_t any = 0;
    for (unsigned i = 0; i < sizeof types->bits / sizeof *types->bits; i++)
        any |= types->bits[i];
    if (!any)
        return;
    for (unsigned type = 0; type < RECORD_TYPE_COUNT; type++) {
        if (!record_set_has(types, (enum record_type)type))
            continue;
        bytes_append_text(sql, is_first ? " AND type IN (" : ",");
        ch_quote_text(sql, layout_type_name((enum record_type)type));
        is_first = false;
    }
    bytes_append_text(sql, is_first ? "" : ")");
}

static gpufl_status segment_take(struct ch_store *store, struct ch_rows *rows, struct stored_segments *out,
                                 struct problem *problem)
{
    struct stored_segment *segment = segments_add(out);
    if (!segment)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a list of segments");
    segment->segment = (int64_t)ch_u64(rows);
    segment->number = ch_u32(rows);
    segment->position = ch_i64(rows);
    const char *type = ch_text(rows, NULL);
    segment->channel = channel_parse(ch_text(rows, NULL));
    segment->layout = ch_layout_get(store, type, ch_text(rows, NULL), problem);
    segment->rows = ch_u32(rows);
    segment->min_ns = ch_i64(rows);
    segment->max_ns = ch_i64(rows);
    segment->bytes = (int64_t)ch_u64(rows);
    return segment->layout ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

/* *expected: how many segments the session's writes have, of any type; *found: how many a replica has. */
static gpufl_status segments_count(struct ch_store *store, const char *session_id, uint32_t generation,
                                   uint64_t *expected, uint64_t *found, struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    bytes_append_text(&sql, "SELECT toUInt64(sum(segments)), (SELECT toUInt64(uniqExact(write_id, number)) FROM segment"
                            " WHERE session_id = ");
    ch_quote_text(&sql, session_id);
    bytes_append_text(&sql, " AND write_id GLOBAL IN (SELECT write_id FROM write");
    ch_session_where(&sql, session_id, generation);
    bytes_append_text(&sql, ")) FROM write");
    ch_session_where(&sql, session_id, generation);
    gpufl_status status = ch_select(store->client, &sql, &rows, problem);
    *expected = *found = 0;
    if (!status && ch_rows_next(&rows)) {
        *expected = ch_u64(&rows);
        *found = ch_u64(&rows);
    }
    if (!status)
        status = ch_rows_end(&rows, problem);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

/* A replica that was down may lack committed segments: wait for them instead of returning wrong data. */
static gpufl_status segments_await(struct ch_store *store, const char *session_id, uint32_t generation,
                                   struct problem *problem)
{
    uint64_t expected = 0, found = 0;
    for (unsigned tries = 0; tries < LIST_TRIES; tries++) {
        gpufl_status status = segments_count(store, session_id, generation, &expected, &found, problem);
        if (status || found >= expected)
            return status;
        nanosleep(&(struct timespec){.tv_nsec = LIST_WAIT_MS * 1000000L}, NULL);
    }
    return problem_set(problem, GPUFL_E_BUSY,
                       "a ClickHouse replica is missing data of session %s (%" PRIu64 " of %" PRIu64
                       " segments); try again",
                       session_id, found, expected);
}

static gpufl_status segments_read(struct ch_store *store, const char *session_id, const struct record_set *types,
                                  struct stored_segments *out, struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    uint32_t generation;
    *out = (struct stored_segments){0};
    gpufl_status status = ch_session_find(store, session_id, &generation, problem);
    if (!status)
        status = segments_await(store, session_id, generation, problem);
    if (status)
        return status;
    bytes_append_text(&sql, "SELECT write_id, number, received_ns, type, channel, columns, rows, min_ns, max_ns, bytes"
                            " FROM segment WHERE session_id = ");
    ch_quote_text(&sql, session_id);
    types_append(&sql, types);
    bytes_append_text(&sql, " AND write_id GLOBAL IN (SELECT write_id FROM write");
    ch_session_where(&sql, session_id, generation);
    bytes_append_text(&sql, ") LIMIT 1 BY write_id, number");
    status = ch_select(store->client, &sql, &rows, problem);
    while (!status && ch_rows_next(&rows))
        status = segment_take(store, &rows, out, problem);
    if (!status)
        status = ch_rows_end(&rows, problem);
    if (status) {
        free(out->items);
        *out = (struct stored_segments){0};
    } else {
        segments_sort(out);
    }
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

/* ---- bytes ---- */

struct piece {
    uint64_t write_id;
    uint32_t number;
    uint8_t shift;
    const char *data;
    size_t size;
};
/* The segments of a list, fetched in list order. */
struct source {
    struct ch_store *store;
    const char *session_id;
    const struct stored_segments *segments;
    struct ch_rows rows, levels;
    struct piece *pieces, *level_pieces;
    size_t piece_count, level_count;
};

static int piece_compare(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    if (a->write_id != b->write_id)
        return a->write_id < b->write_id ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static const struct piece *piece_find(const struct piece *pieces, size_t count, const struct stored_segment *segment)
{
    const struct piece key = {.write_id = (uint64_t)segment->segment, .number = segment->number};
    return count ? bsearch(&key, pieces, count, sizeof *pieces, piece_compare) : NULL;
}

/* what: two more columns, a UInt8 and a String. */
static gpufl_status pieces_read(struct source *source, const char *what, size_t from, size_t count,
                                struct ch_rows *rows, struct piece **pieces, size_t *piece_count,
                                struct problem *problem)
{
    struct bytes sql = {0};
    const struct stored_segment *items = source->segments->items;
    bytes_append_format(&sql, "SELECT write_id, number, %s FROM segment WHERE session_id = ", what);
    ch_quote_text(&sql, source->session_id);
    bytes_append_text(&sql, " AND (type, write_id, number) IN (");
    for (size_t i = from; i < from + count; i++) {
        bytes_append_text(&sql, i > from ? ",(" : "(");
        ch_quote_text(&sql, layout_type_name(items[i].layout->type));
        bytes_append_format(&sql, ",%" PRIu64 ",%u)", (uint64_t)items[i].segment, items[i].number);
    }
    bytes_append_text(&sql, ") LIMIT 1 BY write_id, number");
    gpufl_status status = ch_select(source->store->client, &sql, rows, problem);
    free(*pieces);
    *pieces = calloc(count + 1, sizeof **pieces);
    *piece_count = 0;
    if (!status && !*pieces) {
        status = GPUFL_E_NO_MEMORY;
        (void)problem_set(problem, status, "no memory to read session %s", source->session_id);
    }
    while (!status && ch_rows_next(rows) && *piece_count < count) {
        struct piece *piece = &(*pieces)[(*piece_count)++];
        piece->write_id = ch_u64(rows);
        piece->number = ch_u32(rows);
        piece->shift = ch_u8(rows);
        piece->data = ch_text(rows, &piece->size);
    }
    if (!status)
        status = ch_rows_end(rows, problem);
    if (status)
        *piece_count = 0;
    else if (*piece_count)
        qsort(*pieces, *piece_count, sizeof **pieces, piece_compare);
    bytes_free(&sql);
    return status;
}

static gpufl_status source_fetch(void *user, const struct stored_segment *segment, const void **data, size_t *size,
                                 struct problem *problem)
{
    struct source *source = user;
    const struct piece *piece = piece_find(source->pieces, source->piece_count, segment);
    if (!piece) {
        size_t from = (size_t)(segment - source->segments->items), count = 0;
        for (int64_t bytes = 0; from + count < source->segments->count && count < FETCH_COUNT && bytes < FETCH_BYTES;)
            bytes += source->segments->items[from + count++].bytes;
        gpufl_status status = pieces_read(source, "toUInt8(0), data", from, count, &source->rows, &source->pieces,
                                          &source->piece_count, problem);
        if (status)
            return status;
        piece = piece_find(source->pieces, source->piece_count, segment);
    }
    if (!piece)
        return problem_set(problem, GPUFL_E_BUSY, "a ClickHouse replica is missing data of session %s; try again",
                           source->session_id);
    *data = piece->data;
    *size = piece->size;
    return GPUFL_OK;
}

static gpufl_status source_fetch_level(void *user, const struct stored_segment *segment, unsigned *shift,
                                       const void **data, size_t *size, struct problem *problem)
{
    struct source *source = user;
    if (segment->rows < TIMELINE_ROWS_MIN)
        return GPUFL_OK; /* too small to have levels */
    const struct piece *piece = piece_find(source->level_pieces, source->level_count, segment);
    if (!piece) {
        char what[320];
        size_t from = (size_t)(segment - source->segments->items), count = source->segments->count - from;
        snprintf(what, sizeof what,
                 "toUInt8(arrayReduce('max', arrayConcat([toUInt8(0)], arrayFilter(s -> s <= %u, shifts)))) AS best,"
                 " levels[indexOf(shifts, best)]",
                 *shift);
        gpufl_status status = pieces_read(source, what, from, count < FETCH_COUNT ? count : FETCH_COUNT,
                                          &source->levels, &source->level_pieces, &source->level_count, problem);
        if (status)
            return status;
        piece = piece_find(source->level_pieces, source->level_count, segment);
    }
    if (!piece || !piece->size)
        return GPUFL_OK;
    *shift = piece->shift;
    *data = piece->data;
    *size = piece->size;
    return GPUFL_OK;
}

static void source_free(struct source *source)
{
    ch_rows_free(&source->rows);
    ch_rows_free(&source->levels);
    free(source->pieces);
    free(source->level_pieces);
}

gpufl_status ch_read(struct store *base, const struct store_range *range, log_line_fn on_line, void *user,
                     struct problem *problem)
{
    struct stored_segments segments;
    gpufl_status status = segments_read(ch_store_of(base), range->session_id, &range->types, &segments, problem);
    if (status)
        return status;
    segments_cut(&segments, range);
    struct source source = {.store = ch_store_of(base), .session_id = range->session_id, .segments = &segments};
    const struct segment_source fetched = {.fetch = source_fetch, .fetch_level = source_fetch_level, .user = &source};
    status = segments_deliver(&fetched, &segments, range, on_line, user, problem);
    source_free(&source);
    free(segments.items);
    return status;
}

gpufl_status ch_timeline(struct store *base, const char *session_id, int64_t from_ns, int64_t to_ns, unsigned shift,
                         struct timeline *timeline, struct problem *problem)
{
    struct stored_segments segments;
    const struct record_set types = timeline_types();
    /* Whole buckets at both ends. */
    const struct store_range range = {
        .session_id = session_id, .from_ns = from_ns >> shift << shift, .to_ns = (((to_ns - 1) >> shift) + 1) << shift};
    gpufl_status status = segments_read(ch_store_of(base), session_id, &types, &segments, problem);
    if (status)
        return status;
    segments_cut(&segments, &range);
    struct source source = {.store = ch_store_of(base), .session_id = session_id, .segments = &segments};
    const struct segment_source fetched = {.fetch = source_fetch, .fetch_level = source_fetch_level, .user = &source};
    status = segments_timeline(&fetched, &segments, from_ns, to_ns, shift, timeline, problem);
    source_free(&source);
    free(segments.items);
    return status;
}

/* ---- check ---- */

struct checking {
    struct ch_store *store;
    struct column_coder coder;
    struct row_buffer rows;
    struct bytes lines;
    store_issue_fn on_issue;
    void *user;
};

static void PRINTF_LIKE(2, 3) issue(const struct checking *checking, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    checking->on_issue(checking->user, text);
}

static bool session_check(void *user, const struct store_session *session)
{
    struct checking *checking = user;
    const struct record_set all = {{0}};
    struct stored_segments segments = {0};
    struct problem problem = {""};
    int64_t found = 0;
    if (segments_read(checking->store, session->session_id, &all, &segments, &problem)) {
        issue(checking, "session %s: %s", session->session_id, problem.text);
        return true;
    }
    struct source source = {.store = checking->store, .session_id = session->session_id, .segments = &segments};
    const struct segment_source fetched = {.fetch = source_fetch, .fetch_level = source_fetch_level, .user = &source};
    for (size_t i = 0; i < segments.count; i++) {
        const struct stored_segment *segment = &segments.items[i];
        found += record_catalogue[segment->layout->type].is_batch ? segment->rows : 0;
        if (!segment_is_whole(&fetched, &checking->coder, segment, &checking->rows, &checking->lines))
            issue(checking, "session %s: segment %016" PRIx64 ".%u (%s) is damaged", session->session_id,
                  (uint64_t)segment->segment, segment->number, layout_type_name(segment->layout->type));
    }
    if (found != session->rows)
        issue(checking, "session %s: %lld rows, the catalog says %lld", session->session_id, (long long)found,
              (long long)session->rows);
    source_free(&source);
    free(segments.items);
    return true;
}

gpufl_status ch_check(struct store *base, store_issue_fn on_issue, void *user, struct problem *problem)
{
    struct checking checking = {.store = ch_store_of(base), .on_issue = on_issue, .user = user};
    char cursor[STORE_CURSOR_MAX] = "", next[STORE_CURSOR_MAX];
    gpufl_status status;
    column_coder_init(&checking.coder, 1);
    do {
        const struct store_session_filter filter = {
            .state = -1, .sort = STORE_SORT_RECEIVED, .is_ascending = true, .cursor = cursor, .limit = STORE_PAGE_MAX};
        status = ch_sessions(base, &filter, session_check, &checking, next, problem);
        memcpy(cursor, next, sizeof cursor);
    } while (!status && cursor[0]);
    column_coder_free(&checking.coder);
    row_buffer_free(&checking.rows);
    bytes_free(&checking.lines);
    return status;
}
