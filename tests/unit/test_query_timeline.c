/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles as clients read them: a description followed by little-endian columns. */
#include "query_fixture.h"

static struct query_app app, stored; /* stored: every session is too large to load without exact=true */
static char h200[64], trace[64];

static int set_up(void **state)
{
    (void)state;
    const struct query_options options = {0}, rollups = {.exact_kernels = 1};
    fixture_session_id(H200_DIR, h200);
    fixture_session_id("tests/golden/trace", trace);
    query_app_start(&app, &options);
    query_app_start(&stored, &rollups);
    query_app_add(&app, H200_DIR);
    query_app_add(&app, "tests/golden/trace");
    query_app_add(&stored, H200_DIR);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    query_app_stop(&app);
    query_app_stop(&stored);
    return 0;
}

struct tile {
    struct answer answer;
    struct json_document text;
    const unsigned char *data;
    size_t data_size;
};

static uint32_t read_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static struct tile tile_get(struct query_app *from, const char *target)
{
    struct tile tile = {.answer = query_ask(from, "GET", target, "", NULL)};
    char type[64];
    if (tile.answer.status != 200)
        fail_msg("%s: %d %s", target, tile.answer.status, tile.answer.body);
    assert_non_null(answer_header(&tile.answer, "Content-Type", type, sizeof type));
    assert_string_equal(type, QUERY_COLUMNS_TYPE);
    const unsigned char *bytes = (const unsigned char *)tile.answer.body;
    assert_true(tile.answer.size >= 16 && !memcmp(bytes, "GFLCOLS1", 8));
    uint32_t size = read_u32(bytes + 8);
    assert_true(size % 8 == 0 && size <= tile.answer.size - 16);
    assert_int_equal(json_parse(&tile.text, tile.answer.body + 16, size, NULL), GPUFL_OK);
    tile.data = bytes + 16 + size;
    tile.data_size = tile.answer.size - 16 - size;
    return tile;
}

static void tile_free(struct tile *tile)
{
    json_free(&tile->text);
    answer_free(&tile->answer);
}

/* A cell of a track's column. */
static int64_t cell_at(const struct tile *tile, const struct json_value *track, const char *name, size_t row)
{
    const struct json_value *column = json_member(track, "columns")->child;
    while (column && strcmp(json_get_text(column, "name", ""), name) != 0)
        column = column->next;
    assert_non_null(column);
    bool is_wide = !strcmp(json_get_text(column, "type", ""), "i64");
    size_t offset = (size_t)json_get_int(column, "offset", -1) + row * (is_wide ? 8 : 4);
    assert_true(offset + (is_wide ? 8 : 4) <= tile->data_size);
    uint64_t low = read_u32(tile->data + offset), high = is_wide ? read_u32(tile->data + offset + 4) : 0;
    return (int64_t)(low | high << 32);
}

/* Busy time and count of one track in a tile; merges exact events as the server does. */
static int64_t busy_of(const struct tile *tile, const char *id, int64_t *count)
{
    for (const struct json_value *track = json_member(tile->text.root, "tracks")->child; track; track = track->next) {
        if (strcmp(json_get_text(track, "id", ""), id) != 0)
            continue;
        int64_t rows = json_get_int(track, "rows", -1), busy_ns = 0, end_ns = INT64_MIN;
        int64_t from_ns = json_get_int(tile->text.root, "from_ns", -1),
                to_ns = json_get_int(tile->text.root, "to_ns", -1);
        bool is_exact = json_get_bool(track, "is_exact", false);
        for (size_t row = 0; row < (size_t)rows; row++) {
            int64_t start_ns = cell_at(tile, track, "start_ns", row);
            if (!is_exact) {
                busy_ns += cell_at(tile, track, "busy_ns", row);
                *count += cell_at(tile, track, "count", row);
                continue;
            }
            int64_t stop_ns = start_ns + cell_at(tile, track, "duration_ns", row);
            *count += start_ns >= from_ns;
            start_ns = start_ns < from_ns ? from_ns : start_ns < end_ns ? end_ns : start_ns;
            stop_ns = stop_ns > to_ns ? to_ns : stop_ns;
            busy_ns += stop_ns > start_ns ? stop_ns - start_ns : 0;
            end_ns = stop_ns > end_ns ? stop_ns : end_ns;
        }
        return busy_ns;
    }
    return 0;
}

static void busy_time_over_tiles_is_the_total_at_every_zoom(void **state)
{
    (void)state;
    char target[256];
    const char *const ids[] = {h200, trace};
    for (size_t s = 0; s < 2; s++) {
        snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline/tracks", ids[s]);
        struct json_document tracks = query_get(&app, target);
        int64_t start_ns = json_get_int(tracks.root, "start_ns", -1), end_ns = json_get_int(tracks.root, "end_ns", -1);
        unsigned kinds = 0;
        for (const struct json_value *track = json_member(tracks.root, "tracks")->child; track; track = track->next) {
            const char *id = json_get_text(track, "id", "");
            kinds++;
            for (int tiles = 1; tiles <= 64; tiles *= 8) {
                int64_t busy_ns = 0, count = 0;
                for (int i = 0; i < tiles; i++) {
                    int64_t from_ns = track_pixel_start(start_ns, end_ns + 1, (uint32_t)tiles, (uint32_t)i);
                    int64_t to_ns = track_pixel_start(start_ns, end_ns + 1, (uint32_t)tiles, (uint32_t)i + 1);
                    snprintf(target, sizeof target,
                             "/api/v1/sessions/%s/timeline?from_ns=%lld&to_ns=%lld&pixels=100&tracks=%s", ids[s],
                             (long long)from_ns, (long long)to_ns, id);
                    struct tile tile = tile_get(&app, target);
                    assert_int_equal(json_member(tile.text.root, "tracks")->count, 1);
                    busy_ns += busy_of(&tile, id, &count);
                    tile_free(&tile);
                }
                assert_int_equal(busy_ns, json_get_int(track, "busy_ns", -1));
                assert_true(count <= json_get_int(track, "count", -1));
            }
        }
        assert_true(kinds > 1);
        json_free(&tracks);
    }
}

static void names_of_a_tile_are_those_of_its_rows(void **state)
{
    (void)state;
    char target[256];
    snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline?pixels=200", trace);
    struct tile tile = tile_get(&app, target);
    const struct json_value *names = json_member(tile.text.root, "names");
    assert_true(names->count > 0);
    for (const struct json_value *track = json_member(tile.text.root, "tracks")->child; track; track = track->next) {
        const char *kind = json_get_text(track, "kind", "");
        if (strcmp(kind, "kernels") != 0 && strcmp(kind, "scopes") != 0)
            continue;
        for (size_t row = 0; row < (size_t)json_get_int(track, "rows", -1); row++) {
            int64_t name = cell_at(&tile, track, "name", row);
            const struct json_value *at = names->child;
            while (at && (json_get_int(at, "name", -1) != name || strcmp(json_get_text(at, "kind", ""), kind) != 0))
                at = at->next;
            assert_non_null(at);
        }
    }
    tile_free(&tile);
}

/* The store's sums divide time at powers of two and count overlapping work twice; counts and totals are exact. */
static void a_large_session_is_answered_from_sums_until_it_is_loaded(void **state)
{
    (void)state;
    char target[256];
    struct query_metrics metrics;
    snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline?pixels=50", h200);
    struct tile tile = tile_get(&stored, target);
    int64_t count = 0, kernels = 0;
    bool has_sums = false;
    for (const struct json_value *track = json_member(tile.text.root, "tracks")->child; track; track = track->next) {
        has_sums = has_sums || !json_get_bool(track, "is_exact", true);
        if (!strcmp(json_get_text(track, "kind", ""), "kernels"))
            busy_of(&tile, json_get_text(track, "id", ""), &count);
    }
    assert_true(has_sums);
    tile_free(&tile);
    query_metrics_read(&stored.query, &metrics);
    assert_int_equal(metrics.loads, 0);

    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels?limit=1000", h200);
    struct json_document sums = query_get(&stored, target), exact = query_get(&app, target);
    kernels = json_get_int(exact.root, "count", -1);
    assert_int_equal(count, kernels);
    assert_false(json_get_bool(sums.root, "is_exact", true));
    assert_true(json_get_bool(exact.root, "is_exact", false));
    assert_int_equal(json_get_int(sums.root, "count", -1), kernels);
    assert_int_equal(json_get_int(sums.root, "total_ns", -1), json_get_int(exact.root, "total_ns", -2));
    const struct json_value *a = json_member(sums.root, "kernels")->child,
                            *b = json_member(exact.root, "kernels")->child;
    for (; a && b; a = a->next, b = b->next) {
        static const char *const keys[] = {"kernel_id", "count", "total_ns", "min_ns", "max_ns"};
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            assert_int_equal(json_get_int(a, keys[i], -1), json_get_int(b, keys[i], -2));
        /* Estimated within a bin that spans a factor of two. */
        double estimate = (double)json_get_int(a, "median_ns", -1), median = (double)json_get_int(b, "median_ns", -1);
        assert_true(estimate <= 2 * median + 1 && median <= 2 * estimate + 1);
    }
    assert_true(!a && !b);
    json_free(&sums);
    json_free(&exact);
    query_metrics_read(&stored.query, &metrics);
    assert_int_equal(metrics.loads, 0);

    snprintf(target, sizeof target, "/api/v1/sessions/%s", h200);
    struct json_document light = query_get(&stored, target), whole = query_get(&app, target);
    assert_true(json_get_bool(light.root, "is_partial", false));
    assert_int_equal(json_member(light.root, "time")->kind, JSON_NULL);
    assert_true(json_is_equal(json_member(light.root, "session"), json_member(whole.root, "session")));
    assert_int_equal(json_get_int(json_member(light.root, "completeness"), "kernels", -1), kernels);
    json_free(&light);
    json_free(&whole);

    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels?exact=true", h200);
    exact = query_get(&stored, target);
    assert_true(json_get_bool(exact.root, "is_exact", false));
    json_free(&exact);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels", h200);
    exact = query_get(&stored, target);
    assert_true(json_get_bool(exact.root, "is_exact", false));
    json_free(&exact);
}

static void few_rows_of_a_large_session_are_returned_one_by_one(void **state)
{
    (void)state;
    char target[256];
    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels/1/instances?limit=1", h200);
    struct json_document first = query_get(&app, target);
    int64_t at_ns = json_get_int(json_member(first.root, "instances")->child, "start_ns", -1);
    json_free(&first);
    const struct query_options rollups = {.exact_kernels = 1};
    struct query_app cold;
    query_app_start(&cold, &rollups);
    query_app_add(&cold, H200_DIR);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline?from_ns=%lld&to_ns=%lld&pixels=1000", h200,
             (long long)at_ns, (long long)at_ns + 100000);
    struct tile zoomed = tile_get(&cold, target), exact = tile_get(&app, target);
    unsigned compared = 0;
    for (const struct json_value *track = json_member(zoomed.text.root, "tracks")->child; track; track = track->next) {
        assert_true(json_get_bool(track, "is_exact", false));
        int64_t count = 0, exact_count = 0;
        const char *id = json_get_text(track, "id", "");
        assert_int_equal(busy_of(&zoomed, id, &count), busy_of(&exact, id, &exact_count));
        assert_int_equal(count, exact_count);
        compared += count > 0;
    }
    assert_true(compared > 0);
    tile_free(&zoomed);
    tile_free(&exact);
    query_app_stop(&cold);
}

/* Drops all loaded sessions. */
static void reopen(struct query_app *from, const struct query_options *options)
{
    struct problem problem = {""};
    query_close(&from->query);
    assert_int_equal(query_open(&from->query, from->store, options, &problem), GPUFL_OK);
}

static uint64_t loads_of(const struct query_app *from)
{
    struct query_metrics metrics;
    query_metrics_read(&from->query, &metrics);
    return metrics.loads;
}

/* Checks that both give byte-identical answers to the same query. */
static void assert_same(struct query_app *from, const char *session, const char *rest)
{
    char target[256];
    snprintf(target, sizeof target, "/api/v1/sessions/%s/%s", session, rest);
    struct answer answer = query_ask(from, "GET", target, "", NULL),
                  expected = query_ask(&app, "GET", target, "", NULL);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.size, expected.size);
    assert_memory_equal(answer.body, expected.body, answer.size);
    answer_free(&answer);
    answer_free(&expected);
}

static bool tile_is_exact(struct query_app *from)
{
    char target[256];
    bool is_exact = false;
    snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline?pixels=50", h200);
    struct tile tile = tile_get(from, target);
    for (const struct json_value *track = json_member(tile.text.root, "tracks")->child; track; track = track->next)
        is_exact = is_exact || !strcmp(json_get_text(track, "kind", ""), "launches");
    tile_free(&tile);
    return is_exact;
}

static void a_tile_does_not_wait_for_the_session_and_is_otherwise_the_same(void **state)
{
    (void)state;
    const struct query_options prompt = {.quick_rows = 1};
    char target[256];
    reopen(&stored, &prompt);
    assert_false(tile_is_exact(&stored));
    snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline/tracks?exact=false", h200);
    struct json_document tracks = query_get(&stored, target);
    assert_false(json_get_bool(tracks.root, "is_exact", true));
    json_free(&tracks);
    assert_int_equal(loads_of(&stored), 0);

    assert_same(&stored, h200, "kernels?limit=1000&bins=20");
    assert_same(&stored, h200, "kernels?device=0&sort=p99");
    assert_int_equal(loads_of(&stored), 1);
    assert_false(tile_is_exact(&stored)); /* its tracks do not exist yet */
    assert_same(&stored, h200, "timeline/tracks");
    assert_true(tile_is_exact(&stored));
    assert_same(&stored, h200, "timeline?pixels=50");
    assert_same(&stored, h200, "timeline/tracks?exact=false");
    assert_int_equal(loads_of(&stored), 1);

    reopen(&stored, &prompt);
    assert_same(&stored, h200, "timeline?pixels=500&exact=true");
    reopen(&stored, &prompt);
    snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels/5/instances?limit=1", h200);
    struct json_document first = query_get(&app, target);
    snprintf(target, sizeof target, "timeline/event?track=kernels-0-7&start_ns=%lld",
             (long long)json_get_int(json_member(first.root, "instances")->child, "start_ns", -1));
    json_free(&first);
    assert_same(&stored, h200, target);
}

static void sessions_at_the_limits_are_still_loaded(void **state)
{
    (void)state;
    char target[256];
    snprintf(target, sizeof target, "/api/v1/sessions/%s", h200);
    struct json_document session = query_get(&app, target);
    int64_t rows = json_get_int(json_member(session.root, "catalog"), "rows", -1);
    int64_t kernels = json_get_int(json_member(session.root, "catalog"), "kernels", -1);
    json_free(&session);
    assert_true(rows > kernels && kernels > 1);
    for (int64_t above = -1; above <= 1; above++) {
        reopen(&stored, &(struct query_options){.quick_rows = rows + above});
        assert_int_equal(tile_is_exact(&stored), above >= 0);
        assert_int_equal(loads_of(&stored), above >= 0);
        assert_same(&stored, h200, "timeline/tracks");
        assert_true(tile_is_exact(&stored));

        reopen(&stored, &(struct query_options){.exact_kernels = kernels + above});
        snprintf(target, sizeof target, "/api/v1/sessions/%s/kernels", h200);
        struct json_document list = query_get(&stored, target);
        assert_int_equal(json_get_bool(list.root, "is_exact", above < 0), above >= 0);
        assert_int_equal(json_get_int(list.root, "count", -1), kernels);
        json_free(&list);
        assert_int_equal(loads_of(&stored), above >= 0);
    }
}

static void tracks_from_sums_are_named_as_those_of_the_loaded_session(void **state)
{
    (void)state;
    static const char *const sessions[] = {H200_DIR, "tests/golden/v1", "tests/golden/two_gpus"};
    query_app_add(&stored, sessions[1]);
    query_app_add(&stored, sessions[2]);
    reopen(&stored, &(struct query_options){.quick_rows = 1});
    for (size_t s = 0; s < sizeof sessions / sizeof *sessions; s++) {
        char id[64], target[256];
        fixture_session_id(sessions[s], id);
        snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline/tracks?exact=false", id);
        struct json_document sums = query_get(&stored, target);
        *strchr(target, '?') = '\0';
        struct json_document whole = query_get(&stored, target);
        assert_int_equal(json_get_int(sums.root, "start_ns", -1), json_get_int(whole.root, "start_ns", -2));
        assert_int_equal(json_get_int(sums.root, "end_ns", -1), json_get_int(whole.root, "end_ns", -2));
        const struct json_value *track = json_member(sums.root, "tracks")->child;
        assert_non_null(track);
        for (; track; track = track->next) {
            const struct json_value *at = json_member(whole.root, "tracks")->child;
            while (at && strcmp(json_get_text(at, "id", ""), json_get_text(track, "id", "")) != 0)
                at = at->next;
            if (!at)
                fail_msg("%s: only the sums have %s", sessions[s], json_get_text(track, "id", ""));
            assert_int_equal(json_get_int(track, "count", -1), json_get_int(at, "count", -2));
        }
        json_free(&sums);
        json_free(&whole);
    }
}

static void impossible_time_spans_are_rejected(void **state)
{
    (void)state;
    static const char *const queries[] = {"from_ns=5&to_ns=5", "from_ns=9&to_ns=5", "pixels=0", "pixels=100000",
                                          "pixels=x",          "from_ns=-1",        "unknown=1"};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        char target[256];
        snprintf(target, sizeof target, "/api/v1/sessions/%s/timeline?%s", trace, queries[i]);
        struct json_document error = query_json(&app, 400, "GET", target, "", NULL);
        assert_string_equal(json_get_text(json_member(error.root, "error"), "code", ""), "parameter_invalid");
        json_free(&error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_time_over_tiles_is_the_total_at_every_zoom),
        cmocka_unit_test(names_of_a_tile_are_those_of_its_rows),
        cmocka_unit_test(a_large_session_is_answered_from_sums_until_it_is_loaded),
        cmocka_unit_test(few_rows_of_a_large_session_are_returned_one_by_one),
        cmocka_unit_test(a_tile_does_not_wait_for_the_session_and_is_otherwise_the_same),
        cmocka_unit_test(sessions_at_the_limits_are_still_loaded),
        cmocka_unit_test(tracks_from_sums_are_named_as_those_of_the_loaded_session),
        cmocka_unit_test(impossible_time_spans_are_rejected),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
