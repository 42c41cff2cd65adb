/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded store with 10 million kernels: durable ingest, bytes per kernel, scans, sums, timeline tiles.
 * usage: bench_store [million kernels] */
#include "base/clock.h"
#include "serve_process.h"
#include "store/store_catalog.h"
#include "store/store_rollup.h"
#include "training_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { BATCH_ROWS = TRAINING_BATCH_ROWS, WINDOW_BATCHES = 64, TILES = 40 };
static const char session_id[] = "0192f300-0000-7000-8000-0000000000be";

static void must(gpufl_status status, const struct problem *problem)
{
    if (!status)
        return;
    fprintf(stderr, "bench_store: %s\n", problem->text);
    exit(1);
}

/* A batch of the run, already in columns. */
static void batch_fill(struct training_run *run, struct batch_view *view)
{
    int64_t row[TRAINING_COLUMNS];
    view->base_time_ns = run->time_ns;
    for (uint32_t i = 0; i < BATCH_ROWS; i++) {
        training_run_row(run, view->base_time_ns, row);
        for (unsigned c = 0; c < TRAINING_COLUMNS; c++)
            view->columns[c].cells[i] = row[c];
    }
}

static double since_ms(int64_t start_ns)
{
    return (double)(clock_mono_ns() - start_ns) / 1e6;
}

static double cpu_s(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static void ingest(struct store *store, uint64_t kernels)
{
    struct training_run run;
    struct batch_column columns[KERNEL_COLUMN_COUNT] = {{0}};
    struct batch_view view = {.info = &record_catalogue[RECORD_KERNEL_EVENT_BATCH],
                              .version = 1,
                              .seq = -1,
                              .row_count = BATCH_ROWS,
                              .columns = columns,
                              .session_id = session_id,
                              .session_id_size = sizeof session_id - 1};
    struct problem problem = {""};
    int64_t *cells = malloc((size_t)TRAINING_COLUMNS * BATCH_ROWS * sizeof *cells), seq = 0, filling_ns = 0;
    if (!cells)
        exit(1);
    for (unsigned c = 0; c < TRAINING_COLUMNS; c++)
        columns[c] = (struct batch_column){.cells = cells + (size_t)c * BATCH_ROWS, .present = true};
    training_run_init(&run, 1);
    int64_t start_ns = clock_mono_ns();
    double cpu_start_s = cpu_s();
    for (uint64_t done = 0, window = 0; done < kernels; window++) {
        struct store_write *write = NULL;
        struct store_written written;
        enum store_delivery delivery;
        char window_id[32];
        snprintf(window_id, sizeof window_id, "%llu", (unsigned long long)window);
        const struct store_identity identity = {
            .session_id = session_id, .window_id = window_id, .channel = CHANNEL_DEVICE};
        must(store_write_begin(store, &identity, &write, &delivery, &problem), &problem);
        for (int i = 0; i < WINDOW_BATCHES && done < kernels; i++, done += BATCH_ROWS) {
            int64_t fill_ns = clock_mono_ns();
            batch_fill(&run, &view);
            filling_ns += clock_mono_ns() - fill_ns;
            const struct log_line line = {
                .type = RECORD_KERNEL_EVENT_BATCH, .channel = CHANNEL_DEVICE, .file = "", .seq = ++seq, .batch = &view};
            must(store_write_line(write, &line, "", 0, NULL, &problem), &problem);
        }
        must(store_write_commit(write, &written, &problem), &problem);
    }
    double wall_s = since_ms(start_ns) / 1e3 - (double)filling_ns / 1e9;
    double own_cpu_s = cpu_s() - cpu_start_s - (double)filling_ns / 1e9;
    printf("ingest      %6.2f M kernels/s durable, wall; %.2f M kernels/s of CPU (windows of %d)\n",
           (double)kernels / wall_s / 1e6, (double)kernels / own_cpu_s / 1e6, BATCH_ROWS * WINDOW_BATCHES);
    free(cells);
}

struct grouping {
    uint64_t count[TRAINING_KERNEL_NAMES + 1];
    int64_t total_ns[TRAINING_KERNEL_NAMES + 1];
};

static bool group_rows(void *user, const struct log_line *line)
{
    struct grouping *groups = user;
    const int64_t *ids = line->batch->columns[KERNEL_KERNEL_ID].cells;
    const int64_t *durations = line->batch->columns[KERNEL_DURATION_NS].cells;
    for (uint32_t i = 0; i < line->batch->row_count; i++) {
        size_t id = (uint64_t)ids[i] <= TRAINING_KERNEL_NAMES ? (size_t)ids[i] : 0;
        groups->count[id]++;
        groups->total_ns[id] += durations[i];
    }
    return true;
}

static bool touch_rows(void *user, const struct log_line *line)
{
    *(uint64_t *)user += line->batch->row_count;
    return true;
}

static bool take_kernel(void *user, const struct store_kernel *kernel)
{
    *(int64_t *)user += kernel->total_ns;
    return true;
}

static void scan(struct store *store, const char *state)
{
    struct problem problem = {""};
    struct store_range range = {.session_id = session_id,
                                .columns = UINT64_C(1) << KERNEL_KERNEL_ID | UINT64_C(1) << KERNEL_DURATION_NS};
    struct grouping groups = {{0}, {0}};
    uint64_t rows = 0;
    int64_t total_ns = 0;
    record_set_add(&range.types, RECORD_KERNEL_EVENT_BATCH);
    int64_t start_ns = clock_mono_ns();
    must(store_read(store, &range, group_rows, &groups, &problem), &problem);
    printf("group all   %6.1f ms %s\n", since_ms(start_ns), state);
    range.columns = 0;
    start_ns = clock_mono_ns();
    must(store_read(store, &range, touch_rows, &rows, &problem), &problem);
    printf("read all    %6.1f ms %s, %.0f M rows/s\n", since_ms(start_ns), state,
           (double)rows / since_ms(start_ns) / 1e3);
    start_ns = clock_mono_ns();
    must(store_kernels(store, session_id, take_kernel, &total_ns, &problem), &problem);
    printf("hotspots    %6.2f ms %s, from sums\n", since_ms(start_ns), state);
}

static bool take_span(void *user, const struct store_session *session)
{
    int64_t *span = user;
    span[0] = TRAINING_START_NS;
    span[1] = session->end_ns;
    return true;
}

static void tiles(struct store *store)
{
    struct problem problem = {""};
    int64_t span[2];
    uint64_t random = 7;
    double worst_ms = 0;
    must(store_session(store, session_id, take_span, span, &problem), &problem);
    for (int64_t pixels_ns = (span[1] - span[0]) / 2000; pixels_ns > 500; pixels_ns /= 4) {
        double sum_ms = 0, most_ms = 0;
        for (int i = 0; i < TILES; i++) {
            struct timeline timeline;
            random = random * UINT64_C(6364136223846793005) + 1;
            int64_t room_ns = span[1] - span[0] - pixels_ns * 2000;
            int64_t from_ns = span[0] + (room_ns > 0 ? (int64_t)((random >> 1) % (uint64_t)room_ns) : 0);
            int64_t start_ns = clock_mono_ns();
            must(store_timeline(store, session_id, from_ns, from_ns + pixels_ns * 2000, pixels_ns, &timeline, &problem),
                 &problem);
            double ms = since_ms(start_ns);
            sum_ms += ms;
            most_ms = ms > most_ms ? ms : most_ms;
            timeline_free(&timeline);
        }
        printf("tile        %6.2f ms mean, %6.2f ms worst, %8.3f ms a pixel\n", sum_ms / TILES, most_ms,
               (double)pixels_ns / 1e6);
        worst_ms = most_ms > worst_ms ? most_ms : worst_ms;
    }
    printf("tile        %6.2f ms worst of all\n", worst_ms);
}

int main(int argc, char **argv)
{
    uint64_t kernels = (argc > 1 ? strtoull(argv[1], NULL, 10) : 10) * 1000000 / BATCH_ROWS * BATCH_ROWS;
    char dir[BENCH_DIR_SIZE];
    struct store *store = NULL;
    struct store_stats stats;
    struct problem problem = {""};
    if (!kernels)
        return 2;
    bench_dir_make(dir);
    must(store_open(&store, dir, NULL, &problem), &problem);
    printf("%.1f M kernels\n", (double)kernels / 1e6);
    ingest(store, kernels);
    must(store_stats(store, &stats, &problem), &problem);
    printf("on disk     %6.2f bytes a kernel in segments and tiles, %.1f MB of database\n",
           (double)stats.segment_bytes / (double)kernels, (double)stats.bytes / 1e6);
    store_close(store);
    must(store_open(&store, dir, NULL, &problem), &problem);
    scan(store, "after opening");
    scan(store, "again");
    tiles(store);
    store_close(store);
    bench_dir_remove(dir);
    return 0;
}
