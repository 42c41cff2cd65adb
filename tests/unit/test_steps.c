/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of handmade sessions; a whole report with steps is tests/golden/training_steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"

enum { rows_max = 4096, paths_max = 64 };
#define MS INT64_C(1000000)

/* A session with one stream and one thread; only the columns that steps need are filled. */
struct made {
    struct session_model model;
    struct analysis analysis;
    int64_t start_ns[rows_max], duration_ns[rows_max], api_start_ns[rows_max];
    uint32_t api_duration_ns[rows_max], kernel_id[rows_max], stream_id[rows_max], thread_id[rows_max], scope[rows_max];
    uint32_t launch_id[rows_max], corr_id[rows_max];
    uint16_t device[rows_max];
    struct scope_instance scopes[rows_max];
    const char *paths[paths_max], *kernels[paths_max];
};

static struct made *made;

static int setup(void **state)
{
    (void)state;
    made = calloc(1, sizeof *made);
    struct session_model *model = &made->model;
    model->kernels = (struct kernel_columns){.start_ns = made->start_ns,
                                             .duration_ns = made->duration_ns,
                                             .api_start_ns = made->api_start_ns,
                                             .api_duration_ns = made->api_duration_ns,
                                             .kernel_id = made->kernel_id,
                                             .launch_id = made->launch_id,
                                             .stream_id = made->stream_id,
                                             .thread_id = made->thread_id,
                                             .corr_id = made->corr_id,
                                             .scope = made->scope,
                                             .device = made->device};
    model->scopes = made->scopes;
    model->dictionaries[DICTIONARY_SCOPE_NAME] = (struct dictionary_table){made->paths, paths_max};
    model->dictionaries[DICTIONARY_KERNEL] = (struct dictionary_table){made->kernels, paths_max};
    for (int i = 1; i < paths_max; i++)
        made->kernels[i] = "k";
    struct job_info *job = &model->job;
    job->app = job->session_id = job->hostname = job->command = job->kind = job->requested_engine = "";
    job->engine = "Trace";
    job->driver_version = job->cuda_version = job->cupti_version = job->gpufl_version = "";
    job->start_ns = job->shutdown_ns = TIME_UNKNOWN;
    model->first_ns = 0;
    return made ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    analysis_free(&made->analysis);
    free(made);
    return 0;
}

static void kernel_add(uint32_t id, int64_t start_ns, int64_t duration_ns)
{
    size_t row = made->model.kernels.count++;
    made->start_ns[row] = start_ns;
    made->duration_ns[row] = duration_ns;
    made->api_start_ns[row] = TIME_UNKNOWN;
    made->api_duration_ns[row] = API_DURATION_UNKNOWN;
    made->kernel_id[row] = id;
    made->scope[row] = ID_UNKNOWN;
    made->model.last_ns = start_ns + duration_ns;
}

static void scope_add(uint32_t path, const char *name, int64_t begin_ns, int64_t duration_ns)
{
    made->paths[path] = name;
    made->scopes[made->model.scope_count++] = (struct scope_instance){.id = made->model.scope_count + 1,
                                                                      .begin_ns = begin_ns,
                                                                      .end_ns = begin_ns + duration_ns,
                                                                      .path_id = path,
                                                                      .parent = ID_UNKNOWN};
    made->model.last_ns = begin_ns + duration_ns > made->model.last_ns ? begin_ns + duration_ns : made->model.last_ns;
}

static const struct steps *steps(void)
{
    assert_int_equal(analysis_make(&made->analysis, &made->model), GPUFL_OK);
    return &made->analysis.steps;
}

static void a_repeated_scope_is_the_step_and_its_slow_beginning_is_warm_up(void **state)
{
    (void)state;
    int64_t at = 0;
    for (int i = 0; i < 20; i++) {
        int64_t ns = i < 3 ? 50 * MS : i == 11 ? 14 * MS : 10 * MS;
        scope_add(1, "work", at, ns);
        scope_add(2, "work|part", at + MS, ns - 2 * MS);
        kernel_add(1, at + MS, ns / 2);
        at += ns + MS / 10;
    }
    const struct steps *found = steps();
    assert_int_equal(found->source, STEPS_SCOPE);
    assert_int_equal(found->name_size, strlen("work"));
    assert_int_equal(found->count, 20);
    assert_int_equal(found->warmup, 3);
    assert_int_equal(found->whole.duration.max, 50 * MS);
    assert_int_equal(found->steady.duration.max, 14 * MS);
    assert_int_equal(found->steady.duration.p50, 10 * MS);
    assert_int_equal(found->slowest, 11);
    assert_int_equal(found->typical, 3);
    assert_int_equal(found->steady.busy_ns, 16 * 5 * MS + 7 * MS);
    assert_int_equal(found->whole.busy_ns, 3 * 25 * MS + found->steady.busy_ns);
    assert_true(found->steady.kernels == 1);
    bool has_scope = false, has_kernel = false;
    for (size_t i = 0; i < found->difference_count; i++) {
        const struct step_difference *difference = &found->differences[i];
        has_scope |= difference->what == STEP_SCOPE && !strcmp(difference->name, "work|part") &&
                     difference->slowest_ns == 12 * MS && difference->typical_ns == 8 * MS;
        has_kernel |= difference->what == STEP_KERNEL && difference->slowest_ns == 7 * MS;
    }
    assert_true(has_scope && has_kernel);
}

static void a_number_at_the_end_of_a_name_does_not_count(void **state)
{
    (void)state;
    static const char *const names[] = {"ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5"};
    for (int i = 0; i < 4; i++) {
        scope_add((uint32_t)i + 1, names[i], i * 10 * MS, 9 * MS);
        scope_add(5, "step", i * 10 * MS, 10 * MS);
        kernel_add(1, i * 10 * MS, MS);
    }
    const struct steps *found = steps();
    assert_int_equal(found->count, 4);
    assert_int_equal(found->name_size, strlen("ProfilerStep"));
    assert_memory_equal(found->name, "ProfilerStep", found->name_size);
    assert_int_equal(found->steady.duration.p50, 9 * MS);
}

static void a_scope_that_is_rare_or_an_operator_is_no_step(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        scope_add(1, "rare", i * 100 * MS, MS);
        scope_add(2, "aten::mm", i * 100 * MS, 90 * MS);
        scope_add(3, "cub::Sort [CCCL]", i * 100 * MS, 90 * MS);
        if (i < 3)
            scope_add(4, "epoch", i * 300 * MS, 299 * MS);
    }
    kernel_add(1, 0, MS);
    const struct steps *found = steps();
    assert_int_equal(found->source, STEPS_NONE);
    assert_non_null(found->none_because);
}

static void kernels_that_repeat_in_order_are_steps_from_idle_time_to_idle_time(void **state)
{
    (void)state;
    int64_t at = 0;
    for (int i = 0; i < 30; i++) {
        at += 5 * MS; /* before kernel 1 */
        for (int layer = 0; layer < 4; layer++)
            for (uint32_t id = 1; id <= 3; id++, at += MS + MS / 10)
                kernel_add(layer == 0 && id == 1 ? 1 : id + 1, at, MS);
        kernel_add(9, at, MS);
        at += MS;
    }
    const struct steps *found = steps();
    assert_int_equal(found->source, STEPS_PERIOD);
    assert_int_equal(found->period, 13);
    assert_int_equal(found->count, 29);
    assert_int_equal(found->items[1].begin_ns, made->start_ns[13]);
    assert_true(found->steady.kernels == 13);
}

static void one_kernel_again_and_again_is_no_period(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++)
        kernel_add(1, i * MS, MS / 2);
    assert_int_equal(steps()->source, STEPS_NONE);
}

static void kernels_at_random_have_no_period(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int i = 0; i < 4000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        kernel_add((uint32_t)(seed >> 60) + 1, i * MS, MS / 2);
    }
    assert_int_equal(steps()->source, STEPS_NONE);
}

static void without_three_even_steps_in_a_row_there_is_no_warm_up(void **state)
{
    (void)state;
    int64_t at = 0;
    for (int i = 0; i < 12; i++) {
        int64_t ns = i % 3 ? 10 * MS : 30 * MS;
        scope_add(1, "step", at, ns);
        kernel_add(1, at, MS);
        at += ns;
    }
    assert_int_equal(steps()->warmup, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_repeated_scope_is_the_step_and_its_slow_beginning_is_warm_up, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_number_at_the_end_of_a_name_does_not_count, setup, teardown),
        cmocka_unit_test_setup_teardown(a_scope_that_is_rare_or_an_operator_is_no_step, setup, teardown),
        cmocka_unit_test_setup_teardown(kernels_that_repeat_in_order_are_steps_from_idle_time_to_idle_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_kernel_again_and_again_is_no_period, setup, teardown),
        cmocka_unit_test_setup_teardown(kernels_at_random_have_no_period, setup, teardown),
        cmocka_unit_test_setup_teardown(without_three_even_steps_in_a_row_there_is_no_warm_up, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
