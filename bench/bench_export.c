/* SPDX-License-Identifier: Apache-2.0 */
/* Exporting: the recorded H200 session in each format, from the loaded model to a file, on one core. The floor is writing
 * the same bytes with fwrite. Processor time, because the disk is not ours to measure; best of several rounds.
 * bench_export --memory N: the memory that it takes to export N made-up kernels, as a whole process. */
#include "base/clock.h"
#include "export/export.h"
#include "logfile/log_line.h"
#include "training_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { rounds = 3, block_bytes = 256 << 10 };

static int64_t floor_ns(const char *path, uint64_t bytes)
{
    static char block[block_bytes];
    int64_t start_ns = clock_thread_cpu_ns();
    FILE *file = fopen(path, "wb");
    for (uint64_t done = 0; file && done < bytes; done += block_bytes)
        fwrite(block, 1, bytes - done < block_bytes ? bytes - done : block_bytes, file);
    if (!file || fflush(file) != 0 || fsync(fileno(file)) != 0 || fclose(file) != 0)
        return 0;
    return clock_thread_cpu_ns() - start_ns;
}

static bool format_measure(const struct session_model *model, enum export_format format, const char *path)
{
    int64_t best_ns = INT64_MAX, best_floor_ns = INT64_MAX;
    struct export_result result = {0};
    for (int i = 0; i < rounds; i++) {
        struct problem problem = {""};
        struct export_options options = {.format = format,
                                         .output = path,
                                         .may_replace = true,
                                         .table = format == EXPORT_CSV ? "kernels" : NULL,
                                         .from_ms = NAN,
                                         .to_ms = NAN};
        int64_t start_ns = clock_thread_cpu_ns();
        if (export_session(model, &options, &result, &problem) != GPUFL_OK) {
            fprintf(stderr, "bench_export: %s\n", problem.text);
            return false;
        }
        int64_t took_ns = clock_thread_cpu_ns() - start_ns, wrote_ns = floor_ns(path, result.bytes);
        best_ns = took_ns < best_ns ? took_ns : best_ns;
        best_floor_ns = wrote_ns < best_floor_ns ? wrote_ns : best_floor_ns;
    }
    double kernels = (double)model->kernels.count;
    printf(
        "export %-10s %6.2f M kernels/s/core   %5.0f bytes a kernel, %5.0f MB/s   (writing these bytes alone: %.2f M "
        "kernels/s)\n",
        export_format_names[format], kernels * 1e3 / (double)best_ns, (double)result.bytes / kernels,
        (double)result.bytes * 1e3 / (double)best_ns, kernels * 1e3 / (double)best_floor_ns);
    return true;
}

/* A made-up run as session_load wants it, without a disk: lines are encoded, decoded and forgotten. */
struct made_up {
    uint64_t kernels;
    struct batch_view view;
};

static bool lines_deliver(struct made_up *run, const struct bytes *text, log_line_fn on_line, void *user)
{
    bool goes_on = true;
    const char *end;
    for (size_t at = 0; goes_on && (end = memchr(text->data + at, '\n', text->size - at));) {
        struct log_line line = {.channel = CHANNEL_DEVICE};
        struct json_document document = {0};
        char reason[LINE_REASON_SIZE];
        size_t size = (size_t)(end - text->data) - at;
        goes_on = log_line_decode(&line, &run->view, &document, text->data + at, size, reason) && on_line(user, &line);
        json_free(&document);
        at += size + 1;
    }
    return goes_on;
}

static gpufl_status made_up_read(void *user, log_line_fn on_line, log_issue_fn on_issue, void *line_user,
                                 struct log_summary *summary, struct problem *problem)
{
    static const char id[] = "0192f300-0000-7000-8000-000000000001";
    struct made_up *run = user;
    struct training_run training;
    struct batch batch;
    struct bytes text = {0};
    (void)on_issue, (void)summary;
    if (batch_init(&batch, RECORD_KERNEL_EVENT_BATCH, TRAINING_BATCH_ROWS) != GPUFL_OK)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    training_run_init(&training, 1);
    training_run_begin(id, &text);
    bool goes_on = lines_deliver(run, &text, on_line, line_user);
    for (uint64_t done = 0, seq = 2; goes_on && done < run->kernels; done += TRAINING_BATCH_ROWS) {
        bytes_clear(&text);
        training_run_batch(&training, &batch, id, ++seq, &text);
        goes_on = lines_deliver(run, &text, on_line, line_user);
    }
    batch_free(&batch);
    batch_view_free(&run->view);
    bytes_free(&text);
    return goes_on ? GPUFL_OK : problem_set(problem, GPUFL_E_DAMAGED, "the generated session is invalid");
}

static long peak_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1000;
}

static int memory_measure(uint64_t kernels)
{
    static const enum export_format formats[] = {EXPORT_PPROF, EXPORT_OTLP, EXPORT_CHROME, EXPORT_PERFETTO};
    struct made_up run = {.kernels = kernels};
    struct session_model *model;
    struct problem problem = {""};
    if (session_load_from(&model, made_up_read, &run, 0, &problem) != GPUFL_OK) {
        fprintf(stderr, "bench_export: %s\n", problem.text);
        return 1;
    }
    printf("memory with %zu kernels loaded: %ld MB\n", model->kernels.count, peak_mb());
    bool is_good = true;
    for (size_t i = 0; i < sizeof formats / sizeof *formats && is_good; i++) {
        struct export_options options = {.format = formats[i], .output = "/dev/null", .from_ms = NAN, .to_ms = NAN};
        struct export_result result;
        is_good = export_session(model, &options, &result, &problem) == GPUFL_OK;
        printf("... and exported as %-10s %ld MB   (budget 1000 for 10 M kernels)\n", export_format_names[formats[i]],
               peak_mb());
    }
    session_free(model);
    return is_good ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--memory") == 0)
        return memory_measure(strtoull(argv[2], NULL, 10));
    const char *session = argc > 1 ? argv[1] : "examples/recorded/h200-training", *base = getenv("TMPDIR");
    char dir[256], path[300];
    struct session_model *model;
    struct problem problem = {""};
    snprintf(dir, sizeof dir, "%.200s/gpufl-bench-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(dir) || session_load(&model, session, &problem) != GPUFL_OK) {
        fprintf(stderr, "bench_export: %s\n", problem.text[0] ? problem.text : "no temporary directory");
        return 1;
    }
    snprintf(path, sizeof path, "%s/export", dir);
    bool is_good = true;
    for (unsigned format = 0; format < EXPORT_FORMAT_COUNT && is_good; format++)
        is_good = format_measure(model, (enum export_format)format, path);
    unlink(path);
    rmdir(dir);
    session_free(model);
    return is_good ? 0 : 1;
}
