/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/calibrate.h"

#include "analysis/analysis.h"
#include "analysis/report.h"
#include "capture/cupti_cost.h"
#include "cli/command.h"
#include "cli/installation.h"
#include "cli/temporary.h"
#include "driver/cuda.h"
#include "driver/cupti.h"
#include "driver/launch_probe.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    pairs = 5,
    PROBE_LAUNCHES = PROBE_WARM_LAUNCHES + PROBE_HOST_LAUNCHES + PROBE_GPU_LAUNCHES + PROBE_COLD_LAUNCHES
};

struct probe_answer {
    gpufl_status status;
    struct launch_times times;
    int cuda_version;
    uint32_t cupti_version;
    struct problem problem;
};

/* In a process that runs nothing else: CUDA is used once without CUPTI and once with it. dir: where a traced one records;
 * NULL: not traced. */
static void probe_child(int fd, const char *recorder, const char *dir)
{
    struct probe_answer answer = {0};
    struct cuda *cuda;
    struct cupti *cupti;
    if (dir && (setenv("CUDA_INJECTION64_PATH", recorder, 1) || setenv("GPUFL_INJECT", "1", 1) ||
                setenv("GPUFL_LOG_DIR", dir, 1) || setenv("GPUFL_PROFILING_ENGINE", "Trace", 1)))
        exit(1);
    answer.status = launch_probe_run(&answer.times, &answer.problem);
    if (answer.status == GPUFL_OK && cuda_load(&cuda, true, NULL) == GPUFL_OK)
        answer.cuda_version = cuda_driver_version(cuda);
    if (answer.status == GPUFL_OK && dir && cupti_load(&cupti, NULL) == GPUFL_OK)
        answer.cupti_version = cupti_version(cupti);
    exit(write(fd, &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 1); /* which closes the session */
}

static void probe_run(const char *recorder, const char *dir, struct probe_answer *answer)
{
    int ends[2];
    *answer = (struct probe_answer){.status = GPUFL_E_LIMIT, .problem = {"the measuring process could not be started"}};
    if (pipe(ends))
        return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        probe_child(ends[1], recorder, dir);
    }
    close(ends[1]);
    struct probe_answer read_answer;
    if (child > 0 && read(ends[0], &read_answer, sizeof read_answer) == (ssize_t)sizeof read_answer)
        *answer = read_answer;
    else if (child > 0)
        problem_set(&answer->problem, GPUFL_E_NO_DRIVER, "the measuring process ended without an answer");
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* What the session of a traced probe says of its launches; all 0 where it does not. */
struct probe_session {
    double callback_ns;           /* that gpufl's own callbacks took for each, which is not CUPTI's */
    double call_ns, call_cold_ns; /* how long they took */
};

/* The median of the launches from..from+count-1. */
static double call_median(const struct kernel_columns *kernels, size_t from, size_t count)
{
    double *durations = kernels->count == PROBE_LAUNCHES ? malloc(count * sizeof *durations) : NULL;
    double median = 0;
    for (size_t i = 0; durations && i < count; i++)
        durations[i] =
            kernels->api_duration_ns[from + i] == API_DURATION_UNKNOWN ? 0 : kernels->api_duration_ns[from + i];
    if (durations)
        median = median_of(durations, (int)count);
    free(durations);
    return median;
}

static struct probe_session probe_session_read(const char *dir)
{
    struct probe_session session = {0};
    struct session_model *model;
    struct problem problem = {""};
    if (session_load(&model, dir, &problem) != GPUFL_OK)
        return session;
    int64_t ns = model->overhead.is_known ? model->overhead.user_ns[USER_TIME_CALLBACKS] : 0;
    session.callback_ns = ns > 0 ? (double)ns / PROBE_LAUNCHES : 0;
    session.call_ns = call_median(&model->kernels, PROBE_WARM_LAUNCHES, PROBE_HOST_LAUNCHES);
    session.call_cold_ns = call_median(&model->kernels, PROBE_LAUNCHES - PROBE_COLD_LAUNCHES, PROBE_COLD_LAUNCHES);
    session_free(model);
    return session;
}

static int64_t cost_of(double ns)
{
    return ns < 0 ? 0 : ns > RECORD_COST_NS_MAX ? RECORD_COST_NS_MAX : (int64_t)(ns + 0.5);
}

/* Runs alternate between bare and traced, because the speed of a machine drifts. */
static gpufl_status measure(const char *recorder, const char *base, struct cupti_cost *cost, struct cupti_cost_key *key,
                            struct problem *problem)
{
    double measured[RECORD_COST_COUNT][pairs];
    for (int i = 0; i < pairs; i++) {
        struct probe_answer bare, traced;
        char dir[PATH_MAX];
        snprintf(dir, sizeof dir, "%s/%d", base, i);
        probe_run(recorder, NULL, &bare);
        if (bare.status == GPUFL_OK)
            probe_run(recorder, dir, &traced);
        const struct probe_answer *failed = bare.status != GPUFL_OK     ? &bare
                                            : traced.status != GPUFL_OK ? &traced
                                                                        : NULL;
        if (failed) {
            *problem = failed->problem;
            return failed->status;
        }
        struct probe_session session = probe_session_read(dir);
        measured[RECORD_COST_HOST][i] = traced.times.host_ns - bare.times.host_ns - session.callback_ns;
        measured[RECORD_COST_HOST_COLD][i] = traced.times.cold_ns - bare.times.cold_ns - session.callback_ns;
        measured[RECORD_COST_CALL][i] = session.call_ns;
        measured[RECORD_COST_CALL_COLD][i] = session.call_cold_ns;
        measured[RECORD_COST_GPU][i] = traced.times.gpu_ns - bare.times.gpu_ns;
        measured[RECORD_COST_GRAPH_NODE][i] = /* not measured by itself: in proportion */
            measured[RECORD_COST_GPU][i] * (double)record_costs[RECORD_COST_GRAPH_NODE].shipped_ns /
            (double)record_costs[RECORD_COST_GPU].shipped_ns;
        cupti_cost_key_fill(key, traced.cuda_version, traced.cupti_version);
        if (isatty(STDERR_FILENO))
            fprintf(stderr, "\r%d of %d pairs measured%s", i + 1, pairs, i + 1 == pairs ? "\n" : "");
    }
    *cost = (struct cupti_cost){.is_default = false};
    for (int i = 0; i < RECORD_COST_COUNT; i++)
        cost->ns[i] = cost_of(median_of(measured[i], pairs));
    if (cost->ns[RECORD_COST_HOST_COLD] < cost->ns[RECORD_COST_HOST]) /* no launch is cheaper with cold caches */
        cost->ns[RECORD_COST_HOST_COLD] = cost->ns[RECORD_COST_HOST];
    return GPUFL_OK;
}

int calibrate(void)
{
    char recorder[PATH_MAX], path[PATH_MAX], base[TEMPORARY_PATH_MAX];
    struct cupti_cost cost;
    struct cupti_cost_key key;
    struct problem problem = {"libgpufl_inject.so is not beside this program, nor in ../lib"};
    if (!temporary_directory_make("doctor", base))
        return EXIT_ENVIRONMENT;
    gpufl_status status = installation_find_recorder(recorder) ? GPUFL_OK : GPUFL_E_NOT_FOUND;
    if (status == GPUFL_OK)
        status = measure(recorder, base, &cost, &key, &problem);
    if (status == GPUFL_OK && !key.cupti_version)
        status = problem_set(&problem, GPUFL_E_UNSUPPORTED, "CUPTI did not record here; run 'gpufl doctor'");
    if (status == GPUFL_OK)
        status = cupti_cost_store(&cost, &key, path, &problem);
    temporary_directory_remove("doctor", base);
    if (status != GPUFL_OK) {
        command_error("doctor", "cannot calibrate: %s", problem.text);
        return EXIT_ENVIRONMENT;
    }
    printf("CUPTI's record of a kernel costs %lld ns on the launching thread (%lld ns with cold caches), %lld ns on a "
           "busy GPU\n"
           "kept in %s for %s, CUDA %d.%d and this CUPTI\n",
           (long long)cost.ns[RECORD_COST_HOST], (long long)cost.ns[RECORD_COST_HOST_COLD],
           (long long)cost.ns[RECORD_COST_GPU], path, key.cpu, key.cuda_version / 1000, key.cuda_version % 1000 / 10);
    return EXIT_GOOD;
}
