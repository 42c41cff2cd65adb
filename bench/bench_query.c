/* SPDX-License-Identifier: Apache-2.0 */
/* Questions over HTTP to a session of many kernels in the embedded store: hotspots and timeline tiles at random zooms,
 * of a server that has just started and of one that has answered before, from the store's sums and, where everything
 * was asked for, from the loaded session. `gpufl serve` has a separate core.
 * usage: bench_query [million kernels, default 10] */
#include "base/clock.h"
#include "http_caller.h"
#include "serve_process.h"
#include "training_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#define SESSION_ID "0192f300-0000-7000-8000-00000000beef"
#define SESSION_PATH "/api/v1/sessions/" SESSION_ID
enum { WINDOW_BATCHES = 28, STARTS = 5, REPEATS = 50, TILES = 300, PIXELS = 2000, TIMES_MAX = 1024 };
static const double budget_cold_ms = 300, budget_warm_ms = 30, budget_tile_ms = 50;

struct times {
    double ms[TIMES_MAX];
    size_t count;
};

static int times_compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Prints and returns whether the slowest is within the budget. */
static bool times_print(const char *what, struct times *times, double budget_ms)
{
    qsort(times->ms, times->count, sizeof *times->ms, times_compare);
    double most_ms = times->ms[times->count - 1];
    printf("%-44s p50 %7.2f  p99 %7.2f  max %7.2f ms of %3zu", what, times->ms[times->count / 2],
           times->ms[(times->count - 1) * 99 / 100], most_ms, times->count);
    if (budget_ms > 0)
        printf("   (budget %.0f)", budget_ms);
    printf("\n");
    times->count = 0;
    return budget_ms <= 0 || most_ms < budget_ms;
}

static void ask(struct http_caller *caller, const char *target, struct times *times)
{
    int64_t start_ns = clock_mono_ns();
    int status = http_caller_get(caller, target);
    if (times->count < TIMES_MAX)
        times->ms[times->count++] = (double)(clock_mono_ns() - start_ns) / 1e6;
    if (status != 200) {
        fprintf(stderr, "bench_query: %s: %d: %s\n", target, status, bytes_text(&caller->answer));
        exit(1);
    }
}

/* Through the real path; the moment at which the run ends. */
static int64_t session_send(const struct serve_process *server, uint64_t kernels)
{
    struct http_caller caller;
    struct training_run run;
    struct batch batch;
    struct bytes body = {0};
    uint64_t seq = 3, sequence = 0;
    training_run_init(&run, 1);
    if (batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, TRAINING_BATCH_ROWS))
        exit(1);
    http_caller_open(&caller, server->port);
    for (uint64_t done = 0; done < kernels;) {
        bytes_clear(&body);
        if (!done)
            training_run_begin(SESSION_ID, &body);
        for (int i = 0; i < WINDOW_BATCHES && done < kernels; i++, done += TRAINING_BATCH_ROWS)
            training_run_batch(&run, &batch, SESSION_ID, seq++, &body);
        const struct window window = {.session_id = SESSION_ID,
                                      .channel = "device",
                                      .coding = "identity",
                                      .sequence = ++sequence,
                                      .body = body.data,
                                      .size = body.size,
                                      .crc32 = (uint32_t)crc32_z(0, (const Bytef *)body.data, body.size)};
        http_caller_post_window(&caller, &window);
    }
    http_caller_complete(&caller, SESSION_ID);
    http_caller_close(&caller);
    batch_free(&batch);
    bytes_free(&body);
    return run.time_ns;
}

static void hotspots(const char *dir, bool *is_met)
{
    static struct times cold, warm;
    for (int start = 0; start < STARTS; start++) {
        struct serve_process server;
        struct http_caller caller;
        serve_start(&server, dir);
        http_caller_open(&caller, server.port);
        ask(&caller, SESSION_PATH "/kernels", &cold);
        for (int i = 0; i < REPEATS / STARTS; i++)
            ask(&caller, SESSION_PATH "/kernels", &warm);
        http_caller_close(&caller);
        serve_stop(&server);
    }
    *is_met &= times_print("hotspots, server just started", &cold, budget_cold_ms);
    *is_met &= times_print("hotspots, again", &warm, budget_warm_ms);
}

/* From the whole session down to a millionth of it, anywhere. */
static void tile_ask(struct http_caller *caller, uint64_t *random, int64_t end_ns, struct times *times)
{
    char target[256];
    int64_t all_ns = end_ns - TRAINING_START_NS;
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    int64_t span_ns = all_ns >> (*random >> 60) >> (*random >> 58 & 3);
    span_ns = span_ns > PIXELS ? span_ns : PIXELS;
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    int64_t from_ns = TRAINING_START_NS + (int64_t)((*random >> 1) % (uint64_t)(all_ns - span_ns + 1));
    snprintf(target, sizeof target, SESSION_PATH "/timeline?from_ns=%" PRId64 "&to_ns=%" PRId64 "&pixels=%d", from_ns,
             from_ns + span_ns, PIXELS);
    ask(caller, target, times);
}

static void tiles(const char *dir, int64_t end_ns, bool *is_met)
{
    static struct times cold, warm, whole, loaded;
    uint64_t random = 7;
    struct serve_process server;
    struct http_caller caller;
    for (int start = 0; start < STARTS; start++) {
        serve_start(&server, dir);
        http_caller_open(&caller, server.port);
        if (start % 2)
            tile_ask(&caller, &random, end_ns, &cold);
        else
            ask(&caller, SESSION_PATH "/timeline?pixels=2000", &cold);
        if (start + 1 == STARTS)
            break;
        http_caller_close(&caller);
        serve_stop(&server);
    }
    *is_met &= times_print("timeline tile, server just started", &cold, budget_tile_ms);
    for (int i = 0; i < TILES; i++)
        tile_ask(&caller, &random, end_ns, &warm);
    for (int i = 0; i < REPEATS; i++)
        ask(&caller, SESSION_PATH "/timeline?pixels=2000", &warm);
    *is_met &= times_print("timeline tiles, random zooms", &warm, budget_tile_ms);
    ask(&caller, SESSION_PATH "/kernels?exact=true", &whole);
    times_print("hotspots, all kernels loaded for it", &whole, 0);
    ask(&caller, SESSION_PATH "/timeline/tracks?exact=true", &whole);
    times_print("tracks, made of the loaded session", &whole, 0);
    for (int i = 0; i < REPEATS; i++)
        ask(&caller, SESSION_PATH "/kernels", &whole);
    *is_met &= times_print("hotspots, of the loaded session", &whole, budget_warm_ms);
    for (int i = 0; i < TILES; i++)
        tile_ask(&caller, &random, end_ns, &loaded);
    *is_met &= times_print("timeline tiles, of the loaded session", &loaded, budget_tile_ms);
    http_caller_close(&caller);
    serve_stop(&server);
}

int main(int argc, char **argv)
{
    double millions = argc > 1 ? strtod(argv[1], NULL) : 10;
    uint64_t kernels = (uint64_t)(millions * 1e6) / TRAINING_BATCH_ROWS * TRAINING_BATCH_ROWS;
    struct serve_process server;
    char dir[BENCH_DIR_SIZE];
    bool is_met = true;
    if (!kernels)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    cores_divide();
    bench_dir_make(dir);
    serve_start(&server, dir);
    int64_t start_ns = clock_mono_ns();
    int64_t end_ns = session_send(&server, kernels);
    printf("%.1f M kernels, sent in %.1f s by one connection\n", (double)kernels / 1e6,
           (double)(clock_mono_ns() - start_ns) / 1e9);
    serve_stop(&server);
    hotspots(dir, &is_met);
    tiles(dir, end_ns, &is_met);
    bench_dir_remove(dir);
    return is_met ? 0 : 1;
}
