/* SPDX-License-Identifier: Apache-2.0 */
/* Cost of a scope: disabled, and recorded. Recorded scopes are timed in bursts
 * that fit the ring, with pauses for the collector, so that no dropped (and
 * cheaper) scope is ever counted. The floor is two reads of the tick counter. */
#include "base/clock.h"
#include "capture/thread_log.h"
#include "logfile/reader.h"

#include <gpufl/gpufl.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { burst = 600, bursts = 200, idle_pairs = 50000000 };

static double pair_ns_disabled(void)
{
    int64_t start_ns = clock_mono_ns();
    for (int i = 0; i < idle_pairs; i++) {
        gpufl_scope_begin("forward_pass");
        __asm__ volatile("" ::: "memory");
        gpufl_scope_end();
    }
    return (double)(clock_mono_ns() - start_ns) / idle_pairs;
}

/* scope_objects.cpp */
double tagged_scope_ns(void);
double monitor_call_ns(void);

static double floor_ns(void)
{
    uint64_t sum = 0;
    int64_t start_ns = clock_mono_ns();
    for (int i = 0; i < 10000000; i++) {
        sum += clock_ticks();
        __asm__ volatile("" : "+r"(sum)::"memory");
    }
    return 2.0 * (double)(clock_mono_ns() - start_ns) / 10000000;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void count_waiting(void *user, struct thread_log *log)
{
    *(uint64_t *)user += atomic_load(&log->ring.head) - atomic_load(&log->ring.tail);
}

/* Until the collector has read the last burst; on a busy machine that takes a while. */
static void wait_until_read(void)
{
    uint64_t waiting;
    do {
        usleep(1000);
        waiting = 0;
        thread_logs_visit(count_waiting, &waiting);
    } while (waiting);
}

/* Median over the bursts: a burst in which the machine did something else says nothing. */
static double pair_ns_recorded(void)
{
    static int64_t spent_ns[bursts];
    for (int i = 0; i < bursts; i++) {
        wait_until_read();
        int64_t start_ns = clock_mono_ns();
        for (int j = 0; j < burst; j++) {
            gpufl_scope_begin("forward_pass");
            gpufl_scope_end();
        }
        spent_ns[i] = clock_mono_ns() - start_ns;
    }
    qsort(spent_ns, bursts, sizeof *spent_ns, by_size);
    return (double)spent_ns[bursts / 2] / burst;
}

static bool ignore_line(void *user, const struct log_line *line)
{
    (void)user;
    (void)line;
    return true;
}

static uint64_t recorded_scopes(void)
{
    struct log_summary summary;
    if (log_read(gpufl_session_dir(), ignore_line, NULL, NULL, &summary, NULL) != GPUFL_OK)
        return 0;
    return summary.rows[RECORD_SCOPE_EVENT_BATCH] / 2;
}

int main(void)
{
    char dir[] = "/tmp/gpufl-bench-XXXXXX";
    if (!mkdtemp(dir))
        return 1;
    clock_setup(NULL);
    double disabled_ns = pair_ns_disabled(), tagged_ns = tagged_scope_ns(), monitor_ns = monitor_call_ns();
    gpufl_options options = GPUFL_OPTIONS_INIT;
    options.log_path = dir;
    if (gpufl_init(&options) != GPUFL_OK) {
        fprintf(stderr, "bench_scope: %s\n", gpufl_last_error());
        return 1;
    }
    double recorded_ns = pair_ns_recorded(), two_ticks_ns = floor_ns();
    gpufl_shutdown();
    if (recorded_scopes() != (uint64_t)burst * bursts) {
        fprintf(stderr, "bench_scope: %llu of %d scopes were recorded; the figure would be wrong\n",
                (unsigned long long)recorded_scopes(), burst * bursts);
        return 1;
    }
    printf("scope begin+end, disabled          %6.2f ns   (budget 2)\n", disabled_ns);
    printf("C++ scope with a tag, disabled     %6.2f ns   (budget 2)\n", tagged_ns);
    printf("C++ gpufl::monitor, disabled       %6.2f ns   (budget 2)\n", monitor_ns);
    printf("scope begin+end, recorded          %6.2f ns   (budget 40; two clock ticks %.2f ns: %.2f x)\n", recorded_ns,
           two_ticks_ns, recorded_ns / two_ticks_ns);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}
