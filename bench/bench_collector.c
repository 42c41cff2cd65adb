/* SPDX-License-Identifier: Apache-2.0 */
/* From CUPTI's buffers and a thread's ring to lines on disk: decode, join with
 * calls, attribute, encode, write. Synthetic buffers of the layout CUPTI 13.0
 * writes, one kernel and one noted call per launch, 64 kernels in 80
 * configurations, on one core. The floor walks and decodes the same buffers and
 * throws the records away. */
#include "base/clock.h"
#include "capture/activity_joiner.h"
#include "capture/user_calls.h"
#include "driver/cupti_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { launches_total = 3000000, launches_per_buffer = 1000, kernel_count = 64 };

static int next_record(uint8_t *buffer, size_t valid, void **record)
{
    uint8_t *at = *record;
    if (at)
        at += CUPTI_ABI_KERNEL_BYTES_13_0;
    else
        at = buffer;
    if (at >= buffer + valid)
        return 12;
    *record = at;
    return 0;
}

static char names[kernel_count][96];

static size_t fill_buffer(uint8_t *buffer, uint32_t first_id, int64_t *now_ns)
{
    uint8_t *at = buffer;
    for (uint32_t i = 0; i < launches_per_buffer; i++) {
        uint32_t id = first_id + i, shape = id * 2654435761u >> 20;
        uint64_t launched_ns = (uint64_t)*now_ns + 2500 + shape % 700;
        struct cupti_abi_kernel kernel = {.kind = CUPTI_ABI_KIND_CONCURRENT_KERNEL,
                                          .registers_per_thread = 32,
                                          .start = launched_ns + 1000,
                                          .end = launched_ns + 1000 + 2000 + shape % 3000,
                                          .context_id = 1,
                                          .stream_id = 7,
                                          .grid = {(int)(id % 80 ? 132 : 264), 1, 1},
                                          .block = {256, 1, 1},
                                          .correlation_id = id,
                                          .name = names[id % kernel_count]};
        memcpy(at, &kernel, sizeof kernel);
        at += sizeof kernel;
        *now_ns += 5000 + shape % 500;
    }
    return (size_t)(at - buffer);
}

/* What the user's thread does at those launches. */
static void note_calls(uint32_t first_id)
{
    for (uint32_t i = 0; i < launches_per_buffer; i++) {
        const struct user_call call = {.correlation_id = first_id + i, .is_launch = true, .has_kernel = true};
        user_call_note(&call, true);
        user_call_note(&call, false);
    }
}

static void on_call(void *joiner, const struct user_call *call, const struct call_time *time)
{
    activity_joiner_user_call(joiner, call, time);
}

static void no_wake(void) {}

static uint64_t directory_bytes(const char *dir)
{
    char path[600];
    struct stat info;
    snprintf(path, sizeof path, "%s/device.log", dir);
    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

static double floor_rate(struct cupti *cupti, uint8_t *buffer)
{
    int64_t now_ns = clock_wall_ns(), spent_ns = 0;
    uint64_t kernels = 0;
    for (uint32_t id = 1; id < launches_total; id += launches_per_buffer) {
        size_t size = fill_buffer(buffer, id, &now_ns);
        int64_t start_ns = clock_mono_ns();
        struct activity_cursor cursor = {cupti, buffer, size, NULL};
        struct activity activity;
        while (activity_next(&cursor, &activity))
            kernels += activity.kind == ACTIVITY_KERNEL;
        spent_ns += clock_mono_ns() - start_ns;
    }
    return (double)kernels * 1e9 / (double)spent_ns;
}

int main(void)
{
    char dir[] = "/tmp/gpufl-bench-XXXXXX";
    if (!mkdtemp(dir))
        return 1;
    for (int i = 0; i < kernel_count; i++)
        snprintf(names[i], sizeof names[i],
                 "_ZN2at6native29vectorized_elementwise_kernelILi%dENS0_11FillFunctorIfEEEvT_", i);
    static struct cupti cupti;
    cupti.call.get_next_record = next_record;
    cupti_set_version(&cupti, 130001);
    const struct log_writer_options writer_options = {
        .base_dir = dir, .session_id = "01900000-0000-7000-8000-000000000000", .rotate_bytes = 1ull << 40};
    struct log_writer *writer;
    struct problem problem;
    struct recorder recorder;
    struct scope_history *history;
    struct activity_joiner *joiner;
    struct scope_tracker *tracker;
    struct tick_scale scale;
    uint8_t *buffer = malloc(launches_per_buffer * 256);
    if (!buffer || log_writer_open(&writer, &writer_options, &problem) != GPUFL_OK ||
        recorder_open(&recorder, writer, writer_options.session_id, "bench") != GPUFL_OK ||
        scope_history_make(&history) != GPUFL_OK)
        return 1;
    const struct activity_joiner_options options = {&recorder, history, &cupti, NULL, true, true, false};
    clock_setup(NULL);
    tick_scale_start(&scale);
    if (activity_joiner_make(&joiner, &options) != GPUFL_OK || thread_logs_setup(no_wake) != GPUFL_OK ||
        scope_tracker_make(&tracker, &recorder, &(struct thread_sink){.user = joiner, .on_call = on_call}) != GPUFL_OK)
        return 1;
    thread_logs_start();
    thread_log_scope_begin(&(struct scope_text){.name = "bench", .name_size = 5});
    int64_t now_ns = clock_wall_ns(), spent_ns = 0;
    for (uint32_t id = 1; id < launches_total; id += launches_per_buffer) {
        size_t size = fill_buffer(buffer, id, &now_ns);
        note_calls(id);
        tick_scale_update(&scale);
        int64_t start_ns = clock_mono_ns();
        scope_tracker_drain(tracker, &scale);
        activity_joiner_read(joiner, buffer, size);
        activity_joiner_settle(joiner);
        spent_ns += clock_mono_ns() - start_ns;
    }
    int64_t start_ns = clock_mono_ns();
    activity_joiner_finish(joiner);
    recorder_flush(&recorder, 0);
    spent_ns += clock_mono_ns() - start_ns;
    double rate = (double)activity_joiner_totals(joiner)->kernels * 1e9 / (double)spent_ns;
    double floor = floor_rate(&cupti, buffer);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("collector, kernels into the log    %6.2f M/s/core   (budget 3; decoding alone %.2f M/s: %.2f of it)\n",
           rate / 1e6, floor / 1e6, rate / floor);
    printf("plain bytes per kernel             %6.1f B          (budget 80)\n",
           (double)directory_bytes(log_writer_dir(writer)) / (double)activity_joiner_totals(joiner)->kernels);
    printf("peak memory of this program        %6.1f MiB        (budget 64)\n", (double)usage.ru_maxrss / 1024);
    scope_tracker_free(tracker);
    activity_joiner_free(joiner);
    scope_history_free(history);
    recorder_close(&recorder);
    log_writer_close(writer, 1000);
    free(buffer);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}
