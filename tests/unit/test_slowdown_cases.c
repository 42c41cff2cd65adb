/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates programs with and without recording, with known costs: the slowdown that the analysis estimates from the
 * recorded data must be within a third of the difference. No clock is read. The cases are those of
 * tests/device/slowdown_check.py. */
#include "golden_session.h"

#include "capture/observed_calls.h"

enum { us = 1000, ms = 1000000, launches = 800 /* as many kernels as the golden session has */ };

/* What the program does, and what CUPTI and gpufl add to it. Each step: launches, a wait for the GPU, a pause. */
struct program {
    int64_t work_ns;   /* of the host, before a launch */
    int64_t launch_ns; /* the call */
    int64_t kernel_ns;
    int64_t pause_ns; /* between steps, where the program waits for something else */
    int per_step;
};
struct costs {
    int64_t callback_ns, stack_ns, record_host_ns, record_gpu_ns;
    int sampled_from, sampled_to; /* launches: PC sampling */
    int64_t sampled_ns;           /* is added to each call */
    int counted_from, counted_to; /* SASS counters */
    int64_t counted_ns;           /* is added to each call */
    int kernel_factor;            /* and the factor for the duration of kernels */
    int64_t patch_ns;             /* for each of the first eight launches of a window */
    int64_t gate_ns;              /* at the end of either */
    int64_t replay_ns;            /* for each launch, instead of its kernel's run */
};

struct simulation {
    int64_t wall_ns;
    struct observed_calls calls;
    int64_t user_ns[USER_TIME_COUNT];
};

static enum call_state state_at(const struct costs *costs, int launch)
{
    return launch >= costs->counted_from && launch < costs->counted_to   ? CALLS_COUNTED
           : launch >= costs->sampled_from && launch < costs->sampled_to ? CALLS_SAMPLED
                                                                         : CALLS_PLAIN;
}

/* One launch at host_ns, added to the row of kernels if the recorder sees it; returns the host's time after it. */
static int64_t launch(const struct program *program, const struct costs *costs, int number, int64_t host_ns,
                      int64_t *gpu_ns, struct simulation *simulation, struct kernel_columns *kernels)
{
    enum call_state state = state_at(costs, number);
    bool is_counted = state == CALLS_COUNTED, has_record = !is_counted && !costs->replay_ns;
    bool is_switch = number && state_at(costs, number - 1) != state;
    int64_t start_ns = host_ns + costs->stack_ns;
    host_ns = start_ns + program->launch_ns + costs->callback_ns + (has_record ? costs->record_host_ns : 0);
    if (is_switch)
        host_ns += costs->gate_ns;
    if (state == CALLS_SAMPLED)
        host_ns += costs->sampled_ns;
    if (is_counted)
        host_ns += costs->counted_ns + (number < costs->counted_from + 8 ? costs->patch_ns : 0);
    if (costs->replay_ns) /* the kernel has run when the call returns */
        host_ns += costs->replay_ns;
    int64_t kernel_ns = program->kernel_ns * (is_counted && costs->kernel_factor ? costs->kernel_factor : 1);
    int64_t begin_ns = *gpu_ns > host_ns ? *gpu_ns : host_ns;
    if (costs->replay_ns)
        begin_ns = host_ns - kernel_ns;
    *gpu_ns = begin_ns + kernel_ns;
    int64_t busy_ns = *gpu_ns;
    if (has_record)
        *gpu_ns += costs->record_gpu_ns;
    simulation->user_ns[USER_TIME_GATE] += is_switch ? costs->gate_ns : 0;
    simulation->user_ns[USER_TIME_STACKS] += costs->stack_ns;
    simulation->user_ns[USER_TIME_CALLBACKS] += costs->callback_ns;
    simulation->user_ns[USER_TIME_REPLAY] += costs->replay_ns ? host_ns - start_ns : 0;
    observed_calls_add(&simulation->calls, state, start_ns, host_ns, true);
    if (kernels && has_record) {
        size_t at = kernels->count++;
        kernels->api_start_ns[at] = start_ns;
        kernels->api_duration_ns[at] = (uint32_t)(host_ns - start_ns);
        kernels->start_ns[at] = begin_ns;
        kernels->duration_ns[at] = busy_ns - begin_ns;
        kernels->thread_id[at] = 7;
    }
    return host_ns;
}

/* kernels: NULL: not recorded. */
static void simulate(const struct program *program, const struct costs *costs, int64_t from_ns,
                     struct kernel_columns *kernels, struct simulation *simulation)
{
    int64_t host_ns = from_ns, gpu_ns = 0;
    memset(simulation, 0, sizeof *simulation);
    for (int i = 0; i < launches; i++) {
        host_ns = launch(program, costs, i, host_ns + program->work_ns, &gpu_ns, simulation, kernels);
        if ((i + 1) % program->per_step)
            continue;
        int64_t waited_ns = gpu_ns > host_ns ? gpu_ns : host_ns;
        observed_calls_add(&simulation->calls, state_at(costs, i), host_ns, waited_ns, false);
        host_ns = waited_ns + program->pause_ns;
    }
    simulation->wall_ns = host_ns - from_ns;
}

static void overhead_fill(struct session_overhead *overhead, const struct simulation *simulation)
{
    for (int i = 0; i < CALL_STATE_COUNT; i++)
        overhead->calls[i] =
            (struct call_state_use){(int64_t)simulation->calls.states[i].launches, simulation->calls.states[i].calls_ns,
                                    observed_calls_typical_ns(&simulation->calls, (enum call_state)i)};
    for (int i = 0; i < USER_TIME_COUNT; i++)
        overhead->user_ns[i] = simulation->user_ns[i];
    overhead->wall_ns = simulation->wall_ns;
}

/* The host was calibrated: 2 us a launch in a loop, where a call took 6 us, and 4 us where it took 10. */
static void check(const struct program *program, const struct costs *costs, bool is_least)
{
    static const struct costs none;
    struct golden_session golden = golden_load("launch_bound");
    struct session_model *model = golden.model;
    int64_t from_ns = model->kernels.api_start_ns[0];
    struct simulation *alone = malloc(sizeof *alone), *recorded = malloc(sizeof *recorded);
    assert_true(alone && recorded);
    simulate(program, &none, from_ns, NULL, alone);
    model->kernels.count = 0;
    simulate(program, costs, from_ns, &model->kernels, recorded);
    model->job.shutdown_ns = from_ns + recorded->wall_ns;
    model->overhead = (struct session_overhead){.is_known = true,
                                                .record_cost_ns = {[RECORD_COST_HOST] = 2 * us,
                                                                   [RECORD_COST_HOST_COLD] = 4 * us,
                                                                   [RECORD_COST_CALL] = 6 * us,
                                                                   [RECORD_COST_CALL_COLD] = 10 * us,
                                                                   [RECORD_COST_GPU] = 250}};
    overhead_fill(&model->overhead, recorded);
    analysis_free(&golden.analysis);
    assert_int_equal(analysis_make(&golden.analysis, model), GPUFL_OK);
    const struct slowdown *slowdown = &golden.analysis.slowdown;
    double measured = (double)recorded->wall_ns / (double)alone->wall_ns - 1;
    assert_true(slowdown->is_known);
    assert_int_equal(slowdown->is_least, is_least);
    if (slowdown->fraction < measured * 2 / 3 || slowdown->fraction > measured * 4 / 3)
        fail_msg("%.2f %% reported, %.2f %% in truth", slowdown->fraction * 100, measured * 100);
    free(alone);
    free(recorded);
    golden_unload(&golden);
}

static const struct program tiny = {.work_ns = 300, .launch_ns = 4 * us, .kernel_ns = us, .per_step = 100};
static const struct program launch_bound = {
    .work_ns = 12 * us, .launch_ns = 6 * us, .kernel_ns = 3 * us, .per_step = 8, .pause_ns = 10 * ms};
static const struct program busy_launch_bound = {
    .work_ns = 12 * us, .launch_ns = 6 * us, .kernel_ns = 3 * us, .per_step = 8};

static void tiny_launches(void **state)
{
    (void)state;
    check(&tiny, &(struct costs){.callback_ns = 250, .record_host_ns = 2 * us, .record_gpu_ns = 250}, false);
}

static void tiny_launches_with_stacks(void **state)
{
    (void)state;
    const struct costs costs = {.callback_ns = 250, .stack_ns = 6 * us, .record_host_ns = 2 * us, .record_gpu_ns = 250};
    check(&tiny, &costs, false);
}

static void launch_bound_steps(void **state)
{
    (void)state;
    check(&busy_launch_bound, &(struct costs){.callback_ns = 250, .record_host_ns = 3400, .record_gpu_ns = 250}, false);
}

static void gpu_bound_steps(void **state)
{
    (void)state;
    const struct program program = {.work_ns = 10 * us, .launch_ns = 6 * us, .kernel_ns = 400 * us, .per_step = 100};
    check(&program, &(struct costs){.callback_ns = 250, .record_host_ns = 3400, .record_gpu_ns = 250}, false);
}

static void launch_bound_steps_with_pc_sampling(void **state)
{
    (void)state;
    const struct costs costs = {.callback_ns = 250,
                                .record_host_ns = 3400,
                                .record_gpu_ns = 250,
                                .sampled_to = 400,
                                .sampled_ns = 3 * us,
                                .gate_ns = 55 * ms};
    check(&launch_bound, &costs, false);
}

static void launch_bound_steps_with_deep(void **state)
{
    (void)state;
    const struct costs costs = {.callback_ns = 250,
                                .record_host_ns = 3400,
                                .record_gpu_ns = 250,
                                .counted_to = 200,
                                .counted_ns = 100 * us,
                                .kernel_factor = 150,
                                .patch_ns = 20 * ms,
                                .sampled_from = 200,
                                .sampled_to = launches,
                                .sampled_ns = 2 * us,
                                .gate_ns = 80 * ms};
    check(&launch_bound, &costs, true); /* the cost of sampling is unknown */
}

static void few_kernels_with_range_profiler(void **state)
{
    (void)state;
    const struct program program = {
        .work_ns = 12 * us, .launch_ns = 6 * us, .kernel_ns = 3 * us, .per_step = 3, .pause_ns = 5 * ms};
    check(&program, &(struct costs){.replay_ns = 200 * ms, .callback_ns = 250}, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiny_launches),
        cmocka_unit_test(tiny_launches_with_stacks),
        cmocka_unit_test(launch_bound_steps),
        cmocka_unit_test(gpu_bound_steps),
        cmocka_unit_test(launch_bound_steps_with_pc_sampling),
        cmocka_unit_test(launch_bound_steps_with_deep),
        cmocka_unit_test(few_kernels_with_range_profiler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
