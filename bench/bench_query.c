/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to a session of many kernels in the embedded store: hotspots from sums, loading, hotspots and tiles from
 * the loaded session. usage: bench_query [KERNELS, default 2000000] */
#include "analysis/report_json.h"
#include "base/clock.h"
#include "logfile/log_line.h"
#include "server/query_cache.h"
#include "store/store_rollup.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SESSION_ID "0192f300-0000-7000-8000-00000000beef"
enum { batch_rows = 2048, write_batches = 256, kernel_names = 300, rounds = 20 };

static struct problem problem;

static void check(gpufl_status status)
{
    if (status == GPUFL_OK)
        return;
    fprintf(stderr, "bench_query: %s\n", problem.text);
    exit(1);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status, (void)kind, (void)at;
    return remove(path);
}

static void write_text(struct store_write *write, const char *text)
{
    struct log_line line = {.channel = CHANNEL_DEVICE, .file = ""};
    struct batch_view view = {0};
    struct json_document document = {0};
    char reason[LINE_REASON_SIZE];
    if (!log_line_decode(&line, &view, &document, text, strlen(text), reason)) {
        fprintf(stderr, "bench_query: %s\n", reason);
        exit(1);
    }
    check(store_write_line(write, &line, text, strlen(text), NULL, &problem));
    json_free(&document);
    batch_view_free(&view);
}

static struct store_write *write_begin(struct store *store)
{
    const struct store_identity identity = {.session_id = SESSION_ID, .window_id = "", .channel = CHANNEL_COUNT};
    struct store_write *write = NULL;
    enum store_delivery delivery;
    check(store_write_begin(store, &identity, &write, &delivery, &problem));
    return write;
}

static void write_commit(struct store_write *write)
{
    struct store_written written;
    check(store_write_commit(write, &written, &problem));
}

static void write_names(struct store *store)
{
    struct store_write *write = write_begin(store);
    write_text(write, "{\"version\":1,\"type\":\"job_start\",\"session_id\":\"" SESSION_ID
                      "\",\"pid\":7,\"app\":\"bench\",\"ts_ns\":1700000000000000000}");
    struct bytes names = {0};
    bytes_append_text(&names, "{\"version\":1,\"type\":\"dictionary_update\",\"session_id\":\"" SESSION_ID
                              "\",\"kernel_dict\":{");
    for (int i = 1; i <= kernel_names; i++)
        bytes_append_format(&names, "%s\"%d\":\"void kernel_%d<float>(float*, int)\"", i > 1 ? "," : "", i, i);
    bytes_append_text(&names, "}}");
    write_text(write, bytes_text(&names));
    bytes_free(&names);
    write_commit(write);
}

static void write_kernels(struct store *store, uint64_t kernels)
{
    static int64_t cells[KERNEL_COLUMN_COUNT][batch_rows];
    struct batch_column columns[KERNEL_COLUMN_COUNT] = {{0}};
    static const unsigned used[] = {KERNEL_DT_NS, KERNEL_DURATION_NS, KERNEL_KERNEL_ID, KERNEL_STREAM_ID,
                                    KERNEL_CORR_ID};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        columns[used[i]] = (struct batch_column){.cells = cells[used[i]], .present = true};
    struct batch_view view = {.info = &record_catalogue[RECORD_KERNEL_EVENT_BATCH],
                              .version = 1,
                              .seq = -1,
                              .row_capacity = batch_rows,
                              .columns = columns,
                              .session_id = SESSION_ID,
                              .session_id_size = sizeof SESSION_ID - 1};
    struct log_line line = {.type = RECORD_KERNEL_EVENT_BATCH,
                            .type_name = "kernel_event_batch",
                            .channel = CHANNEL_DEVICE,
                            .file = "",
                            .seq = -1,
                            .batch = &view};
    struct store_write *write = NULL;
    int64_t at_ns = INT64_C(1700000000000000000);
    uint64_t random = 88172645463325252u;
    for (uint64_t done = 0; done < kernels; done += view.row_count) {
        if (!write)
            write = write_begin(store);
        view.row_count = kernels - done < batch_rows ? (uint32_t)(kernels - done) : batch_rows;
        view.base_time_ns = at_ns;
        view.batch_id++;
        for (uint32_t row = 0; row < view.row_count; row++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            cells[KERNEL_DT_NS][row] = at_ns - view.base_time_ns;
            cells[KERNEL_DURATION_NS][row] = 1500 + (int64_t)(random % 4000);
            cells[KERNEL_KERNEL_ID][row] = 1 + (int64_t)(random >> 32) % kernel_names;
            cells[KERNEL_STREAM_ID][row] = 7;
            cells[KERNEL_CORR_ID][row] = (int64_t)(done + row) & INT32_MAX;
            at_ns += cells[KERNEL_DURATION_NS][row] + (int64_t)(random >> 50);
        }
        check(store_write_line(write, &line, "", 0, NULL, &problem));
        if (view.batch_id % write_batches == 0 || done + view.row_count >= kernels) {
            write_commit(write);
            write = NULL;
        }
    }
}

static bool sum_kernel(void *user, const struct store_kernel *kernel)
{
    *(uint64_t *)user += kernel->count;
    return true;
}

static double ms_since(int64_t start_ns)
{
    return (double)(clock_mono_ns() - start_ns) / 1e6;
}

/* Tiles from the whole session down to a thousandth of it. */
static void tiles(const struct query_session *session)
{
    enum { pixels = 2000, events_max = 8000 };
    static struct track_pixel out[pixels];
    static struct track_event events[events_max];
    const struct track_set *set = &session->tracks;
    double worst_ms = 0;
    for (int zoom = 1; zoom <= 1000; zoom *= 10) {
        int64_t span_ns = session->analysis.wall_ns / zoom, from_ns = session->analysis.start_ns + span_ns / 3;
        int64_t start_ns = clock_mono_ns();
        for (size_t i = 0; i < set->track_count; i++)
            if (track_events(set, &set->tracks[i], from_ns, from_ns + span_ns, events, events_max) == SIZE_MAX)
                track_pixels(set, &set->tracks[i], from_ns, from_ns + span_ns, pixels, out);
        double ms = ms_since(start_ns);
        worst_ms = ms > worst_ms ? ms : worst_ms;
    }
    printf("slowest timeline tile, loaded      %8.2f ms   (budget 50)\n", worst_ms);
}

int main(int argc, char **argv)
{
    uint64_t kernels = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000000, counted = 0;
    char dir[] = "/tmp/gpufl-bench-XXXXXX";
    struct store *store;
    struct query_cache *cache;
    struct query_session *session;
    const struct store_options options = {0};
    if (!mkdtemp(dir))
        return 1;
    check(store_open(&store, dir, &options, &problem));
    write_names(store);
    write_kernels(store, kernels);
    check(store_maintain(store, &problem));
    store_close(store);
    check(store_open(&store, dir, &options, &problem));
    check(query_cache_open(&cache, UINT64_C(8) << 30));
    printf("%llu kernels\n", (unsigned long long)kernels);

    int64_t start_ns = clock_mono_ns();
    check(store_kernels(store, SESSION_ID, sum_kernel, &counted, &problem));
    printf("hotspots, cold, from sums          %8.2f ms   (budget 300)\n", ms_since(start_ns));
    if (counted != kernels)
        fprintf(stderr, "bench_query: %llu kernels are counted\n", (unsigned long long)counted);
    struct timeline timeline;
    start_ns = clock_mono_ns();
    int64_t from_ns = INT64_C(1700000000000000000), span_ns = (int64_t)kernels * 12000;
    check(store_timeline(store, SESSION_ID, from_ns, from_ns + span_ns, span_ns / 2000, &timeline, &problem));
    printf("timeline tile, cold, from sums     %8.2f ms   (budget 50)\n", ms_since(start_ns));
    timeline_free(&timeline);
    start_ns = clock_mono_ns();
    check(query_cache_hold(cache, store, SESSION_ID, false, &session, &problem));
    printf("loading the whole session          %8.2f ms   %.2f M kernels/s\n", ms_since(start_ns),
           (double)kernels / ms_since(start_ns) / 1e3);
    start_ns = clock_mono_ns();
    for (int i = 0; i < rounds; i++) {
        struct query_session *again;
        check(query_cache_hold(cache, store, SESSION_ID, false, &again, &problem));
        struct bytes json = {0};
        counted = again->analysis.hotspot_count;
        for (size_t k = 0; k < counted; k++)
            json_hotspot(&again->analysis.hotspots[k], &json);
        bytes_free(&json);
        query_cache_release(cache, again);
    }
    printf("hotspots, loaded                   %8.2f ms   (budget 30; %llu names)\n", ms_since(start_ns) / rounds,
           (unsigned long long)counted);
    tiles(session);
    query_cache_release(cache, session);
    query_cache_close(cache);
    store_close(store);
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
