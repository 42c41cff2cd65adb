/* SPDX-License-Identifier: Apache-2.0 */
/* Ingest through HTTP: prepared windows of kernels, posted over the loopback to `gpufl serve` on a separate core and
 * counted when the server has acknowledged them, which it does when they are on disk. Beside it the floors of the same
 * run: the same rows into a plain SQLite table, and decoding the same lines alone.
 * usage: bench_ingest [million kernels, default 4] [rounds, default 3] [connections, default 4] */
#include "base/clock.h"
#include "format/json.h"
#include "http_caller.h"
#include "serve_process.h"
#include "training_run.h"

#include <inttypes.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

enum { WINDOW_BATCHES = 28 /* about 4 MiB, the agent's */, ZSTD_LEVEL = 3, SENDERS_MAX = 64, FLOOR_WINDOWS = 4 };
static const double budget_rows_per_s = 1e6;

/* A session on its way: everything that one connection posts. */
struct sender {
    char session_id[40];
    const char *coding;
    struct bytes *bodies; /* owned */
    uint32_t *crcs;       /* owned */
    size_t window_count;
    uint64_t rows;
    uint16_t port;
    pthread_t thread;
};

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "bench_ingest: %s\n", what);
    exit(1);
}

static void window_pack(struct bytes *plain, struct bytes *packed)
{
    size_t bound = ZSTD_compressBound(plain->size);
    if (!bytes_reserve(packed, bound))
        die("no memory");
    packed->size = ZSTD_compress(packed->data, bound, plain->data, plain->size, ZSTD_LEVEL);
    if (ZSTD_isError(packed->size))
        die("zstd failed");
}

static void sender_prepare(struct sender *sender, unsigned number, const char *coding, size_t window_count)
{
    struct training_run run;
    struct batch batch;
    uint64_t seq = 3;
    *sender = (struct sender){.coding = coding, .window_count = window_count};
    snprintf(sender->session_id, sizeof sender->session_id, "0192f300-0000-7000-8000-%012u", number);
    sender->bodies = calloc(window_count, sizeof *sender->bodies);
    sender->crcs = calloc(window_count, sizeof *sender->crcs);
    training_run_init(&run, number + 1);
    if (!sender->bodies || !sender->crcs || batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, TRAINING_BATCH_ROWS))
        die("no memory");
    for (size_t i = 0; i < window_count; i++) {
        struct bytes plain = {0};
        if (!i)
            training_run_begin(sender->session_id, &plain);
        for (int k = 0; k < WINDOW_BATCHES; k++, sender->rows += TRAINING_BATCH_ROWS)
            training_run_batch(&run, &batch, sender->session_id, seq++, &plain);
        if (plain.failed)
            die("no memory");
        if (!strcmp(coding, "zstd")) {
            window_pack(&plain, &sender->bodies[i]);
            bytes_free(&plain);
        } else {
            sender->bodies[i] = plain;
        }
        sender->crcs[i] = (uint32_t)crc32_z(0, (const Bytef *)sender->bodies[i].data, sender->bodies[i].size);
    }
    batch_free(&batch);
}

static void sender_free(struct sender *sender)
{
    for (size_t i = 0; i < sender->window_count; i++)
        bytes_free(&sender->bodies[i]);
    free(sender->bodies);
    free(sender->crcs);
}

static void *sender_run(void *arg)
{
    const struct sender *sender = arg;
    struct http_caller caller;
    http_caller_open(&caller, sender->port);
    for (size_t i = 0; i < sender->window_count; i++) {
        const struct window window = {.session_id = sender->session_id,
                                      .channel = "device",
                                      .coding = sender->coding,
                                      .sequence = i + 1,
                                      .body = sender->bodies[i].data,
                                      .size = sender->bodies[i].size,
                                      .crc32 = sender->crcs[i]};
        http_caller_post_window(&caller, &window);
    }
    http_caller_close(&caller);
    return NULL;
}

/* What the server says that it has. */
static void rows_check(const struct sender *sender)
{
    struct http_caller caller;
    struct json_document document = {0};
    char target[96];
    http_caller_open(&caller, sender->port);
    snprintf(target, sizeof target, "/api/v1/sessions/%.40s", sender->session_id);
    if (http_caller_get(&caller, target) != 200 ||
        json_parse(&document, caller.answer.data + caller.body_at, caller.answer.size - caller.body_at, NULL))
        die("the session is not there");
    int64_t kernels = json_get_int(json_member(document.root, "catalog"), "kernels", -1);
    if (kernels != (int64_t)sender->rows) {
        fprintf(stderr, "bench_ingest: %" PRIu64 " kernels were sent, %" PRId64 " are there\n", sender->rows, kernels);
        exit(1);
    }
    json_free(&document);
    http_caller_close(&caller);
}

struct rates {
    double wall, server_cpu, own_cpu; /* rows per second of each */
};

static struct rates round_run(struct sender *senders, unsigned count)
{
    struct serve_process server;
    char dir[BENCH_DIR_SIZE];
    uint64_t rows = 0;
    bench_dir_make(dir);
    serve_start(&server, dir);
    double cpu_s = serve_cpu_s(&server);
    int64_t start_ns = clock_mono_ns(), own_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (unsigned i = 0; i < count; i++) {
        senders[i].port = server.port;
        rows += senders[i].rows;
        if (pthread_create(&senders[i].thread, NULL, sender_run, &senders[i]))
            die("no thread");
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(senders[i].thread, NULL);
    double wall_s = (double)(clock_mono_ns() - start_ns) / 1e9;
    double own_s = (double)(clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - own_ns) / 1e9;
    cpu_s = serve_cpu_s(&server) - cpu_s;
    for (unsigned i = 0; i < count; i++)
        rows_check(&senders[i]);
    serve_stop(&server);
    bench_dir_remove(dir);
    return (struct rates){(double)rows / wall_s, (double)rows / cpu_s, (double)rows / own_s};
}

/* Best of the rounds: the machine's other work is not ours to measure. */
static double coding_run(const char *coding, size_t windows, unsigned rounds, unsigned connections)
{
    static struct sender senders[SENDERS_MAX];
    struct rates best = {0};
    uint64_t bytes = 0, rows = 0;
    for (unsigned i = 0; i < connections; i++) {
        sender_prepare(&senders[i], i, coding, windows);
        rows += senders[i].rows;
        for (size_t k = 0; k < windows; k++)
            bytes += senders[i].bodies[k].size;
    }
    for (unsigned round = 0; round < rounds; round++) {
        struct rates rates = round_run(senders, connections);
        printf("  %-9s round %u      %6.2f M rows/s\n", coding, round + 1, rates.wall / 1e6);
        best = rates.wall > best.wall ? rates : best;
    }
    printf("%-9s best of %u      %6.2f M rows/s durable, %.2f x the budget of 1 M; %.2f M rows/s of server CPU,"
           " %.1f of the generator's; %.1f bytes a row sent\n",
           coding, rounds, best.wall / 1e6, best.wall / budget_rows_per_s, best.server_cpu / 1e6, best.own_cpu / 1e6,
           (double)bytes / (double)rows);
    for (unsigned i = 0; i < connections; i++)
        sender_free(&senders[i]);
    return best.wall;
}

/* ---- floors ---- */

static double decode_floor(const struct sender *sender)
{
    struct batch_view view = {0};
    uint64_t rows = 0;
    int64_t start_ns = clock_mono_ns();
    for (size_t i = 0; i < sender->window_count; i++) {
        const char *at = sender->bodies[i].data, *end = at + sender->bodies[i].size;
        for (const char *feed; at < end && (feed = memchr(at, '\n', (size_t)(end - at))); at = feed + 1)
            if (!batch_decode(&view, at, (size_t)(feed - at), NULL))
                rows += view.row_count;
    }
    double seconds = (double)(clock_mono_ns() - start_ns) / 1e9;
    batch_view_free(&view);
    return (double)rows / seconds;
}

static void sql(sqlite3 *db, const char *text)
{
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(db));
}

/* One row a kernel, one transaction a window, as durable as the store. */
static double sqlite_floor(void)
{
    char dir[BENCH_DIR_SIZE], path[BENCH_DIR_SIZE + 16], text[512] = "CREATE TABLE kernel(";
    sqlite3 *db;
    sqlite3_stmt *insert;
    struct training_run run;
    int64_t cells[TRAINING_COLUMNS];
    uint64_t rows = 0;
    bench_dir_make(dir);
    snprintf(path, sizeof path, "%s/floor.db", dir);
    if (sqlite3_open(path, &db) != SQLITE_OK)
        die("no database");
    sql(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL");
    for (int c = 0; c < TRAINING_COLUMNS; c++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "c%d INTEGER%s", c,
                 c + 1 < TRAINING_COLUMNS ? "," : ")");
    sql(db, text);
    snprintf(text, sizeof text, "INSERT INTO kernel VALUES(");
    for (int c = 0; c < TRAINING_COLUMNS; c++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "?%s", c + 1 < TRAINING_COLUMNS ? "," : ")");
    if (sqlite3_prepare_v2(db, text, -1, &insert, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(db));
    training_run_init(&run, 1);
    int64_t start_ns = clock_mono_ns();
    for (int window = 0; window < FLOOR_WINDOWS; window++) {
        sql(db, "BEGIN");
        for (int i = 0; i < WINDOW_BATCHES * TRAINING_BATCH_ROWS; i++, rows++) {
            training_run_row(&run, TRAINING_START_NS, cells);
            for (int c = 0; c < TRAINING_COLUMNS; c++)
                sqlite3_bind_int64(insert, c + 1, cells[c]);
            if (sqlite3_step(insert) != SQLITE_DONE)
                die(sqlite3_errmsg(db));
            sqlite3_reset(insert);
        }
        sql(db, "COMMIT");
    }
    double seconds = (double)(clock_mono_ns() - start_ns) / 1e9;
    sqlite3_finalize(insert);
    sqlite3_close(db);
    bench_dir_remove(dir);
    return (double)rows / seconds;
}

int main(int argc, char **argv)
{
    uint64_t kernels = (argc > 1 ? strtoull(argv[1], NULL, 10) : 4) * 1000000;
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 3;
    unsigned connections = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 4;
    if (!kernels || !rounds || !connections || connections > SENDERS_MAX)
        return 2;
    size_t windows = (size_t)(kernels / connections / (WINDOW_BATCHES * TRAINING_BATCH_ROWS) + 1);
    cores_divide();
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct sender sample;
    sender_prepare(&sample, 0, "identity", FLOOR_WINDOWS);
    double decode = decode_floor(&sample), plain = sqlite_floor();
    sender_free(&sample);
    printf("%u connections, windows of %d kernels\n", connections, WINDOW_BATCHES * TRAINING_BATCH_ROWS);
    printf("floor: decoding the lines alone     %6.2f M rows/s\n", decode / 1e6);
    printf("floor: a plain SQLite row a kernel  %6.2f M rows/s\n", plain / 1e6);
    bool is_met = true;
    static const char *const codings[] = {"identity", "zstd"};
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
        double rate = coding_run(codings[i], windows, rounds, connections);
        printf("%-9s %.2f x plain SQLite rows, %.2f of decoding alone\n", codings[i], rate / plain, rate / decode);
        is_met = is_met && rate >= budget_rows_per_s;
    }
    return is_met ? 0 : 1;
}
