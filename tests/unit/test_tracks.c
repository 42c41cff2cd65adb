/* SPDX-License-Identifier: Apache-2.0 */
#include "golden_session.h"

#include "analysis/tracks.h"

static const char *const sessions[] = {"trace", "sync_loop", "two_gpus", "launch_bound", "v1", "hostile", "killed"};

static int64_t pixels_busy(const struct track_set *set, const struct track *track, int64_t from_ns, int64_t to_ns,
                           uint32_t pixel_count, uint64_t *events)
{
    struct track_pixel *pixels = malloc(pixel_count * sizeof *pixels);
    assert_non_null(pixels);
    size_t count = track_pixels(set, track, from_ns, to_ns, pixel_count, pixels);
    int64_t busy_ns = 0;
    assert_true(count <= pixel_count);
    for (size_t i = 0; i < count; i++) {
        assert_true(pixels[i].pixel < pixel_count);
        assert_true(!i || pixels[i].pixel > pixels[i - 1].pixel);
        int64_t width_ns = track_pixel_start(from_ns, to_ns, pixel_count, pixels[i].pixel + 1) -
                           track_pixel_start(from_ns, to_ns, pixel_count, pixels[i].pixel);
        assert_true(pixels[i].busy_ns >= 0 && pixels[i].busy_ns <= width_ns);
        busy_ns += pixels[i].busy_ns;
        *events += pixels[i].count;
    }
    free(pixels);
    return busy_ns;
}

/* For any number of pixels and any borders between tiles. */
static void check_zooms(const struct track_set *set, const struct track *track)
{
    static const uint32_t zooms[] = {1, 2, 7, 100, 1000, TRACK_PIXELS_MAX};
    int64_t from_ns = track->first_ns, to_ns = track->last_ns + 1;
    for (size_t zoom = 0; zoom < sizeof zooms / sizeof *zooms; zoom++) {
        uint64_t events = 0;
        assert_int_equal(pixels_busy(set, track, from_ns, to_ns, zooms[zoom], &events), track->busy_ns);
        assert_int_equal(events, track->count);
    }
    for (uint32_t tiles = 2; tiles <= 64; tiles *= 2) {
        uint64_t events = 0;
        int64_t busy_ns = 0;
        for (uint32_t tile = 0; tile < tiles; tile++)
            busy_ns += pixels_busy(set, track, track_pixel_start(from_ns, to_ns, tiles, tile),
                                   track_pixel_start(from_ns, to_ns, tiles, tile + 1), 50, &events);
        assert_int_equal(busy_ns, track->busy_ns);
        assert_int_equal(events, track->count);
    }
}

static void tiles_of_golden_sessions_add_up_at_every_zoom(void **state)
{
    (void)state;
    size_t tracks = 0;
    for (size_t i = 0; i < sizeof sessions / sizeof *sessions; i++) {
        struct golden_session golden = golden_load(sessions[i]);
        struct track_set set;
        assert_int_equal(track_set_make(&set, golden.model), GPUFL_OK);
        for (size_t k = 0; k < set.track_count; k++, tracks++)
            check_zooms(&set, &set.tracks[k]);
        track_set_free(&set);
        golden_unload(&golden);
    }
    assert_true(tracks > 10);
}

/* Kernels of one stream, many more than a chunk holds, some overlapping, some without a duration. */
static struct session_model *busy_model(size_t count)
{
    struct session_model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    struct kernel_columns *kernels = &model->kernels;
    kernels->count = kernels->capacity = count;
    kernels->start_ns = calloc(count, sizeof *kernels->start_ns);
    kernels->duration_ns = calloc(count, sizeof *kernels->duration_ns);
    kernels->kernel_id = calloc(count, sizeof *kernels->kernel_id);
    kernels->stream_id = calloc(count, sizeof *kernels->stream_id);
    kernels->device = calloc(count, sizeof *kernels->device);
    assert_true(kernels->start_ns && kernels->duration_ns && kernels->kernel_id && kernels->stream_id &&
                kernels->device);
    uint64_t random = 88172645463325252u;
    int64_t at_ns = 1000000;
    for (size_t i = 0; i < count; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        at_ns += (int64_t)(random % 3000);
        kernels->start_ns[i] = at_ns;
        kernels->duration_ns[i] = i % 50 == 0 ? 0 : i % 97 == 0 ? 400000 : (int64_t)(random >> 20) % 2500;
        kernels->kernel_id[i] = (uint32_t)(i % 5);
    }
    return model;
}

static void overlapping_kernels_count_once_and_tiles_add_up(void **state)
{
    (void)state;
    struct session_model *model = busy_model(20000);
    struct track_set set;
    assert_int_equal(track_set_make(&set, model), GPUFL_OK);
    assert_int_equal(set.track_count, 1);
    /* The union of all intervals, by a simple sweep. */
    int64_t busy_ns = 0, end_ns = 0, sum_ns = 0;
    for (size_t i = 0; i < model->kernels.count; i++) {
        int64_t start_ns = model->kernels.start_ns[i], stop_ns = start_ns + model->kernels.duration_ns[i];
        start_ns = start_ns > end_ns ? start_ns : end_ns;
        busy_ns += stop_ns > start_ns ? stop_ns - start_ns : 0;
        end_ns = stop_ns > end_ns ? stop_ns : end_ns;
        sum_ns += model->kernels.duration_ns[i];
    }
    assert_int_equal(set.tracks[0].busy_ns, busy_ns);
    assert_true(sum_ns > busy_ns);
    check_zooms(&set, &set.tracks[0]);
    track_set_free(&set);
    session_free(model);
}

static void a_zoomed_tile_contains_every_event_that_overlaps_it(void **state)
{
    (void)state;
    struct session_model *model = busy_model(20000);
    struct track_set set;
    struct track_event *events = malloc(20000 * sizeof *events);
    assert_non_null(events);
    assert_int_equal(track_set_make(&set, model), GPUFL_OK);
    const struct kernel_columns *kernels = &model->kernels;
    int64_t first_ns = kernels->start_ns[0], span_ns = kernels->start_ns[19999] - first_ns;
    for (int part = 0; part < 40; part++) {
        int64_t from_ns = first_ns + span_ns / 40 * part, to_ns = from_ns + span_ns / 400;
        size_t expected = 0;
        for (size_t i = 0; i < kernels->count; i++) {
            int64_t end_ns = kernels->start_ns[i] + kernels->duration_ns[i];
            expected += kernels->start_ns[i] < to_ns && (end_ns > from_ns || kernels->start_ns[i] >= from_ns);
        }
        size_t count = track_events(&set, &set.tracks[0], from_ns, to_ns, events, 20000);
        assert_int_equal(count, expected);
        for (size_t i = 1; i < count; i++)
            assert_true(events[i].start_ns >= events[i - 1].start_ns);
        if (expected > 1)
            assert_int_equal(track_events(&set, &set.tracks[0], from_ns, to_ns, events, expected - 1), SIZE_MAX);
    }
    free(events);
    track_set_free(&set);
    session_free(model);
}

static void the_kernel_with_most_of_a_pixel_names_it(void **state)
{
    (void)state;
    struct session_model *model = busy_model(4000);
    struct track_pixel pixel;
    struct track_set set;
    for (size_t i = 0; i < model->kernels.count; i++) {
        model->kernels.kernel_id[i] = i % 3 == 0 ? 7 : (uint32_t)(i % 200) + 10;
        model->kernels.duration_ns[i] = i % 3 == 0 ? 2000 : 100;
    }
    assert_int_equal(track_set_make(&set, model), GPUFL_OK);
    assert_int_equal(track_pixels(&set, &set.tracks[0], set.tracks[0].first_ns, set.tracks[0].last_ns, 1, &pixel), 1);
    assert_int_equal(pixel.name, 7);
    track_set_free(&set);
    session_free(model);
}

static void a_time_span_without_events_is_empty(void **state)
{
    (void)state;
    struct session_model *model = busy_model(1000);
    struct track_pixel pixels[10];
    struct track_event event;
    struct track_set set;
    assert_int_equal(track_set_make(&set, model), GPUFL_OK);
    const struct track *track = &set.tracks[0];
    assert_int_equal(track_pixels(&set, track, 0, 1000, 10, pixels), 0);
    assert_int_equal(track_pixels(&set, track, track->last_ns + 1, INT64_MAX / 2, 10, pixels), 0);
    assert_int_equal(track_events(&set, track, track->last_ns + 1, INT64_MAX / 2, &event, 1), 0);
    assert_int_equal(track_pixels(&set, track, 5000, 5000, 10, pixels), 0);
    track_set_free(&set);
    session_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_of_golden_sessions_add_up_at_every_zoom),
        cmocka_unit_test(overlapping_kernels_count_once_and_tiles_add_up),
        cmocka_unit_test(a_zoomed_tile_contains_every_event_that_overlaps_it),
        cmocka_unit_test(the_kernel_with_most_of_a_pixel_names_it),
        cmocka_unit_test(a_time_span_without_events_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
