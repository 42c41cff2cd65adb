/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/bounded_start.h"

#include "base/log.h"
#include "base/stages.h"
#include "base/user_time.h"
#include "driver/cuda.h"
#include "driver/library.h"
#include "sdk/session_mutex.h"

struct start {
    void (*run)(struct start *start);
    void *cuda_context; /* current on the thread that starts the session; NULL: none */
    const char *call;   /* the call that did not return; NULL: all did */
    /* For the sampler. */
    const struct system_sampler_options *sampler_options;
    struct system_sampler *sampler;
    struct bytes described;
    struct problem gpu_problem;
    gpufl_status status;
    /* For the trace. */
    struct collector *collector;
    struct trace_grant *grant;
};

static void run_elsewhere(void *user)
{
    struct start *start = user;
    struct cuda *cuda = NULL;
    session_mutex_borrow();
    bool has_context = start->cuda_context && cuda_load(&cuda, false, NULL) == GPUFL_OK &&
                       cuda_context_push(cuda, start->cuda_context);
    start->run(start);
    if (has_context)
        cuda_context_pop(cuda);
    session_mutex_give_back();
}

static void on_failure(void *user, size_t index, enum stage_end end, const char *call)
{
    struct start *start = user;
    (void)index, (void)end;
    start->call = call;
}

/* False: a call did not return; what the function had begun is left as it is. */
static bool run_bounded(struct start *start, uint32_t limit_ms, bool is_injected)
{
    static const struct stage stages[] = {{run_elsewhere, STAGE_UNLIMITED, STAGE_UNLIMITED}};
    const struct stage_plan plan = {stages, 1, "gpufl-start", limit_ms * INT64_C(1000000), on_failure};
    struct cuda *cuda;
    start->call = NULL;
    if (is_injected || !library_loads_on_other_threads()) {
        start->run(start);
        return true;
    }
    start->cuda_context = cuda_load(&cuda, false, NULL) == GPUFL_OK ? cuda_current_context(cuda) : NULL;
    stages_run(&plan, start, limit_ms * INT64_C(1000000));
    return !start->call;
}

static uint64_t sampler_ticks; /* under the session's mutex: the collector, which adds this up, is created after the
                                * sampler */

static void make_sampler(struct start *start)
{
    struct system_sampler *sampler = NULL;
    start->status = system_sampler_start(&sampler, start->sampler_options, &start->gpu_problem);
    if (start->status == GPUFL_OK)
        system_sampler_describe(sampler, &start->described);
    start->sampler = sampler;
}

gpufl_status bounded_start_sampler(struct system_sampler **out, const struct system_sampler_options *options,
                                   uint32_t limit_ms, bool is_injected, struct bytes *described,
                                   struct problem *gpu_problem)
{
    enum { tries = 2 }; /* with NVML, and without */
    struct start start = {.run = make_sampler, .sampler_options = options};
    clock_setup(NULL);
    uint64_t start_ticks = clock_ticks();
    for (int i = 0; i < tries; i++) {
        start.described = (struct bytes){0};
        if (run_bounded(&start, limit_ms, is_injected))
            break;
        log_message(GPUFL_LOG_WARNING, "%s did not return within %u ms; the session starts without it", start.call,
                    limit_ms);
        start.status = GPUFL_E_NOT_RUNNING;
        start.sampler = NULL;
    }
    sampler_ticks = clock_ticks() - start_ticks;
    *out = start.sampler;
    *described = start.described;
    *gpu_problem = start.gpu_problem;
    return start.status;
}

static void trace_cupti(struct start *start)
{
    collector_trace(start->collector, start->grant);
}

static void trace_amd(struct start *start)
{
    collector_trace_amd(start->collector, &start->grant->amd);
}

static gpufl_status not_returned(const struct start *start, uint32_t limit_ms, struct problem *problem)
{
    return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s did not return within %u ms, and is not called again",
                       start->call, limit_ms);
}

void bounded_start_trace(struct collector *collector, uint32_t limit_ms, bool is_injected, struct trace_grant *grant)
{
    struct start start = {.run = trace_cupti, .collector = collector, .grant = grant};
    uint64_t start_ticks = clock_ticks();
    if (!run_bounded(&start, limit_ms, is_injected)) {
        collector_drop_cupti(collector);
        grant->status = not_returned(&start, limit_ms, &grant->problem);
    }
    start.run = trace_amd;
    if (!run_bounded(&start, limit_ms, is_injected)) {
        collector_drop_amd(collector);
        grant->amd.is_tried = true;
        grant->amd.status = not_returned(&start, limit_ms, &grant->amd.problem);
    }
    user_time_add(USER_TIME_START, clock_ticks() - start_ticks + sampler_ticks);
}
