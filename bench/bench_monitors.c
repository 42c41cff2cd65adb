/* SPDX-License-Identifier: Apache-2.0 */
/* A fleet of monitors: each has its own connection and session and posts, once a second at its own moment, what a
 * `gpufl monitor` of a machine with 8 GPUs writes in that second. Latency counts from the moment at which the post was
 * due until its answer, which comes when it is on disk. `gpufl serve` has a separate core.
 * usage: bench_monitors [SECONDS, default 120] [MONITORS, default 2000] */
#include "base/clock.h"
#include "http_caller.h"
#include "logfile/line.h"
#include "serve_process.h"

#include "format/batch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <zlib.h>
#include <zstd.h>

enum { GPUS = 8, JOINING = 64, SETTLE_S = 30, MONITORS_MAX = 20000, EVENTS = 256, ZSTD_LEVEL = 3 };
enum { SLOW_EVERY = 10 /* posts with a list of processes, as the monitor has it */ };
#define SECOND_NS INT64_C(1000000000)
static const double budget_p99_ms = 250, budget_growth = 1.10; /* the allocator's scatter */

struct monitor {
    struct http_caller caller;
    char session_id[40];
    unsigned number;
    uint64_t seq, sequence, batch_id;
    int64_t due_ns; /* of its next post, or of the one that is not answered yet */
    bool is_waiting;
};

struct fleet {
    struct monitor *monitors;
    unsigned count, next; /* next: whose turn it is */
    int epoll;
    struct batch devices, host, processes;
    struct bytes plain, packed;
    ZSTD_CCtx *compressor;
    uint64_t random;
    int64_t *latencies_ns; /* of every answer */
    size_t answers, latency_capacity, late, in_flight;
    double joined_s; /* how long it took until all had a session */
};

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "bench_monitors: %s\n", what);
    exit(1);
}

static int64_t noise(struct fleet *fleet, uint32_t below)
{
    fleet->random = fleet->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int64_t)((fleet->random >> 33) % below);
}

/* ---- what a monitor writes ---- */

static void job_start_write(struct fleet *fleet, struct monitor *monitor)
{
    struct bytes *out = &fleet->plain;
    size_t begin = out->size;
    bytes_append_format(
        out,
        "{\"version\":1,\"type\":\"job_start\",\"session_id\":\"%s\",\"pid\":1,\"app\":\"gpufl-monitor\","
        "\"hostname\":\"node%05u\",\"ts_ns\":%" PRId64 ",\"session_kind\":\"monitor\",\"devices\":[",
        monitor->session_id, monitor->number, clock_wall_ns());
    for (int i = 0; i < GPUS; i++)
        bytes_append_format(out,
                            "%s{\"device_id\":%d,\"id\":%d,\"name\":\"NVIDIA H200\","
                            "\"uuid\":\"GPU-%08x-0000-4000-8000-%012d\"}",
                            i ? "," : "", i, i, monitor->number, i);
    bytes_append_format(out, "],\"seq\":%" PRIu64, ++monitor->seq);
    line_append_crc(out, begin);
}

static void devices_fill(struct fleet *fleet)
{
    for (int i = 0; i < GPUS; i++) {
        int64_t *row = batch_row(&fleet->devices);
        for (unsigned c = 0; c < fleet->devices.info->column_count; c++)
            row[c] = CELL_UNKNOWN;
        row[DEVICE_METRIC_DT_NS] = i * 20000;
        row[DEVICE_METRIC_DEVICE_ID] = i;
        row[DEVICE_METRIC_GPU_UTIL] = 90 + noise(fleet, 10);
        row[DEVICE_METRIC_MEM_UTIL] = 40 + noise(fleet, 20);
        row[DEVICE_METRIC_TEMP_C] = 50 + noise(fleet, 15);
        row[DEVICE_METRIC_POWER_MW] = 500000 + noise(fleet, 150000);
        row[DEVICE_METRIC_USED_MIB] = 120000 + noise(fleet, 100);
        row[DEVICE_METRIC_TOTAL_MIB] = 143771;
        row[DEVICE_METRIC_CLOCK_SM] = 1800 + noise(fleet, 180);
        row[DEVICE_METRIC_TEMP_MEM_C] = 60 + noise(fleet, 10);
        row[DEVICE_METRIC_ENERGY_UJ] = INT64_C(1000000000000) + noise(fleet, 1000000000);
        row[DEVICE_METRIC_CLOCK_MEM] = 3201;
        row[DEVICE_METRIC_PCIE_BW_BPS] = noise(fleet, 2000000000);
        row[DEVICE_METRIC_ECC_CORRECTED] = 0;
        row[DEVICE_METRIC_ECC_UNCORRECTED] = 0;
        row[DEVICE_METRIC_CLOCK_GFX] = 1800 + noise(fleet, 180);
        row[DEVICE_METRIC_POWER_LIMIT_MW] = 700000;
        row[DEVICE_METRIC_THROTTLE_REASONS] = 0;
        row[DEVICE_METRIC_PERF_STATE] = 0;
        row[DEVICE_METRIC_PCIE_RX_BPS] = noise(fleet, 1000000000);
        row[DEVICE_METRIC_PCIE_TX_BPS] = noise(fleet, 1000000000);
    }
}

static void batch_write(struct fleet *fleet, struct batch *batch, struct monitor *monitor, int64_t now_ns)
{
    size_t begin = fleet->plain.size;
    batch->base_time_ns = now_ns;
    batch->batch_id = monitor->batch_id;
    batch_encode(batch, monitor->session_id, "", &fleet->plain);
    bytes_append_format(&fleet->plain, ",\"seq\":%" PRIu64, ++monitor->seq);
    line_append_crc(&fleet->plain, begin);
}

static void processes_write(struct fleet *fleet, struct monitor *monitor, int64_t now_ns)
{
    for (int i = 0; i < GPUS; i++) {
        int64_t *row = batch_row(&fleet->processes);
        row[PROCESS_METRIC_DT_NS] = i * 20000;
        row[PROCESS_METRIC_DEVICE_ID] = i;
        row[PROCESS_METRIC_PID] = 4000 + i;
        row[PROCESS_METRIC_USED_MIB] = 119000 + noise(fleet, 100);
        row[PROCESS_METRIC_GPU_INSTANCE_ID] = CELL_UNKNOWN;
    }
    batch_write(fleet, &fleet->processes, monitor, now_ns);
}

static void lines_write(struct fleet *fleet, struct monitor *monitor)
{
    int64_t now_ns = clock_wall_ns();
    bytes_clear(&fleet->plain);
    if (!monitor->seq)
        job_start_write(fleet, monitor);
    devices_fill(fleet);
    int64_t *row = batch_row(&fleet->host);
    row[HOST_METRIC_DT_NS] = 0;
    row[HOST_METRIC_CPU_PCT_X100] = noise(fleet, 10000);
    row[HOST_METRIC_RAM_USED_MIB] = 200000 + noise(fleet, 1000);
    row[HOST_METRIC_RAM_TOTAL_MIB] = 2000000;
    row[HOST_METRIC_PROCESS_CPU_PCT_X100] = noise(fleet, 100);
    row[HOST_METRIC_PROCESS_RSS_MIB] = 12;
    batch_write(fleet, &fleet->devices, monitor, now_ns);
    if ((monitor->batch_id + monitor->number) % SLOW_EVERY == 0)
        processes_write(fleet, monitor, now_ns);
    batch_write(fleet, &fleet->host, monitor, now_ns);
    monitor->batch_id++;
}

static void monitor_post(struct fleet *fleet, struct monitor *monitor)
{
    lines_write(fleet, monitor);
    size_t bound = ZSTD_compressBound(fleet->plain.size);
    bytes_clear(&fleet->packed);
    if (fleet->plain.failed || !bytes_reserve(&fleet->packed, bound))
        die("no memory");
    fleet->packed.size = ZSTD_compressCCtx(fleet->compressor, fleet->packed.data, bound, fleet->plain.data,
                                           fleet->plain.size, ZSTD_LEVEL);
    const struct window window = {.session_id = monitor->session_id,
                                  .channel = "system",
                                  .coding = "zstd",
                                  .sequence = ++monitor->sequence,
                                  .body = fleet->packed.data,
                                  .size = fleet->packed.size,
                                  .crc32 = (uint32_t)crc32_z(0, (const Bytef *)fleet->packed.data, fleet->packed.size)};
    http_caller_send_window(&monitor->caller, &window);
    monitor->is_waiting = true;
    fleet->in_flight++;
}

/* ---- the fleet ---- */

static void monitor_answered(struct fleet *fleet, struct monitor *monitor)
{
    int status = http_caller_receive(&monitor->caller);
    if (!status)
        return;
    if (status != 202) {
        fprintf(stderr, "bench_monitors: %d: %s\n", status, bytes_text(&monitor->caller.answer));
        exit(1);
    }
    if (fleet->answers < fleet->latency_capacity)
        fleet->latencies_ns[fleet->answers++] = clock_mono_ns() - monitor->due_ns;
    monitor->is_waiting = false;
    monitor->due_ns += SECOND_NS;
    fleet->in_flight--;
}

static void answers_take(struct fleet *fleet, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(fleet->epoll, events, EVENTS, timeout_ms);
    if (count < 0 && errno != EINTR)
        die("epoll_wait failed");
    for (int i = 0; i < count; i++)
        monitor_answered(fleet, events[i].data.ptr);
}

static void fleet_open(struct fleet *fleet, unsigned count, unsigned seconds, uint16_t port)
{
    *fleet = (struct fleet){.count = count, .epoll = epoll_create1(0), .random = 1, .compressor = ZSTD_createCCtx()};
    fleet->latency_capacity = (size_t)count * (seconds + 1);
    fleet->monitors = calloc(count, sizeof *fleet->monitors);
    fleet->latencies_ns = malloc(fleet->latency_capacity * sizeof *fleet->latencies_ns);
    if (!fleet->monitors || !fleet->latencies_ns || !fleet->compressor || fleet->epoll < 0 ||
        batch_init(&fleet->devices, RECORD_DEVICE_METRIC_BATCH, GPUS) ||
        batch_init(&fleet->processes, RECORD_PROCESS_METRIC_BATCH, GPUS) ||
        batch_init(&fleet->host, RECORD_HOST_METRIC_BATCH, 1))
        die("no memory");
    for (unsigned i = 0; i < count; i++) {
        struct monitor *monitor = &fleet->monitors[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = monitor};
        monitor->number = i;
        snprintf(monitor->session_id, sizeof monitor->session_id, "0192f300-0000-7000-9000-%012u", i);
        http_caller_open(&monitor->caller, port);
        if (epoll_ctl(fleet->epoll, EPOLL_CTL_ADD, monitor->caller.fd, &event))
            die("epoll_ctl failed");
    }
    /* They join one after the other, some at a time. */
    int64_t start_ns = clock_mono_ns();
    for (unsigned i = 0; i < count; i++) {
        fleet->monitors[i].due_ns = start_ns;
        monitor_post(fleet, &fleet->monitors[i]);
        while (fleet->in_flight >= JOINING)
            answers_take(fleet, 1000);
    }
    while (fleet->in_flight)
        answers_take(fleet, 1000);
    fleet->joined_s = (double)(clock_mono_ns() - start_ns) / 1e9;
    fleet->answers = 0;
    /* Their moments are spread over the second. */
    start_ns = clock_mono_ns() + SECOND_NS / 10;
    for (unsigned i = 0; i < count; i++)
        fleet->monitors[i].due_ns = start_ns + (int64_t)i * SECOND_NS / count;
}

static void fleet_close(struct fleet *fleet)
{
    for (unsigned i = 0; i < fleet->count; i++)
        http_caller_close(&fleet->monitors[i].caller);
    batch_free(&fleet->devices);
    batch_free(&fleet->processes);
    batch_free(&fleet->host);
    bytes_free(&fleet->plain);
    bytes_free(&fleet->packed);
    ZSTD_freeCCtx(fleet->compressor);
    free(fleet->monitors);
    free(fleet->latencies_ns);
}

/* Posts what is due until the time is over, then waits for the last answers. A monitor whose answer is late posts
 * as soon as it has it, and the wait counts. */
static void fleet_run(struct fleet *fleet, int64_t until_ns)
{
    while (clock_mono_ns() < until_ns) {
        struct monitor *monitor = &fleet->monitors[fleet->next];
        int64_t wait_ns = monitor->due_ns - clock_mono_ns();
        if (wait_ns > SECOND_NS / 2 || monitor->is_waiting) {
            /* Its turn has passed while it waited for an answer. */
            fleet->late += monitor->is_waiting;
            if (monitor->is_waiting)
                answers_take(fleet, 1);
            if (!monitor->is_waiting && monitor->due_ns <= clock_mono_ns())
                continue;
        } else if (wait_ns > 0) {
            answers_take(fleet, wait_ns < 1000000 ? 0 : (int)(wait_ns / 1000000));
            continue;
        } else {
            monitor_post(fleet, monitor);
            answers_take(fleet, 0);
        }
        fleet->next = (fleet->next + 1) % fleet->count;
    }
    while (fleet->in_flight)
        answers_take(fleet, 1000);
}

static int latency_compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static double latency_ms(const struct fleet *fleet, double share)
{
    return fleet->answers ? (double)fleet->latencies_ns[(size_t)((double)(fleet->answers - 1) * share)] / 1e6 : 0;
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 120;
    unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 2000;
    struct rlimit files = {count * 2 + 256, count * 2 + 256};
    static struct fleet fleet;
    struct serve_process server;
    char dir[BENCH_DIR_SIZE];
    if (!seconds || !count || count > MONITORS_MAX)
        return 2;
    setrlimit(RLIMIT_NOFILE, &files);
    setvbuf(stdout, NULL, _IOLBF, 0);
    cores_divide();
    bench_dir_make(dir);
    serve_start(&server, dir);
    fleet_open(&fleet, count, seconds, server.port);
    unsigned settle_s = seconds > SETTLE_S ? SETTLE_S : seconds / 2;
    int64_t start_ns = clock_mono_ns();
    double cpu_s = serve_cpu_s(&server);
    fleet_run(&fleet, start_ns + settle_s * SECOND_NS);
    double early = (double)serve_rss_bytes(&server) / (1 << 20);
    fleet_run(&fleet, start_ns + seconds * SECOND_NS);
    double end = (double)serve_rss_bytes(&server) / (1 << 20);
    cpu_s = serve_cpu_s(&server) - cpu_s;
    double wall_s = (double)(clock_mono_ns() - start_ns) / 1e9;
    serve_stop(&server);
    qsort(fleet.latencies_ns, fleet.answers, sizeof *fleet.latencies_ns, latency_compare);
    printf("%u monitors, %d GPUs each, %u s: %zu posts, %.0f a second (%u wanted), %zu late\n", count, GPUS, seconds,
           fleet.answers, (double)fleet.answers / wall_s, count, fleet.late);
    printf("joining     %.2f s until all %u had begun a session, before the time that is measured\n", fleet.joined_s,
           count);
    printf("ingest      p50 %.1f ms, p99 %.1f ms, max %.1f ms   (budget: p99 %.0f)\n", latency_ms(&fleet, 0.5),
           latency_ms(&fleet, 0.99), latency_ms(&fleet, 1), budget_p99_ms);
    printf("server      %.1f %% of its core, %.1f MiB after %u s, %.1f MiB at the end (%.3f x)\n", 100 * cpu_s / wall_s,
           early, settle_s, end, end / early);
    bool is_met = latency_ms(&fleet, 0.99) < budget_p99_ms && end / early < budget_growth;
    fleet_close(&fleet);
    bench_dir_remove(dir);
    return is_met ? 0 : 1;
}
