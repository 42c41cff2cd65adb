/* SPDX-License-Identifier: Apache-2.0 */
/* Insights of sessions with several GPUs: a share of the run refers to one GPU and never exceeds 100 %. */
#include "golden_session.h"

enum { us = 1000, ms = 1000000 };

static const struct insight *insight_find(const struct analysis *analysis, const char *rule)
{
    for (size_t i = 0; i < analysis->insight_count; i++)
        if (!strcmp(analysis->insights[i].rule, rule))
            return &analysis->insights[i];
    return NULL;
}

/* A column in which each value is repeated `copies` times. */
static void *column_repeated(void *column, size_t count, size_t size, size_t copies)
{
    if (!column)
        return NULL;
    char *repeated = calloc(count * copies + 1, size);
    assert_non_null(repeated);
    for (size_t i = 0; i < count * copies; i++)
        memcpy(repeated + i * size, (const char *)column + i / copies * size, size);
    free(column);
    return repeated;
}

/* Every kernel on each of `gpus` GPUs at the same time. */
static void kernels_spread(struct session_model *model, size_t gpus)
{
    struct kernel_columns *kernels = &model->kernels;
#define REPEAT(column) kernels->column = column_repeated(kernels->column, kernels->count, sizeof *kernels->column, gpus)
    REPEAT(start_ns);
    REPEAT(duration_ns);
    REPEAT(api_start_ns);
    REPEAT(api_duration_ns);
    REPEAT(kernel_id);
    REPEAT(launch_id);
    REPEAT(stream_id);
    REPEAT(thread_id);
    REPEAT(corr_id);
    REPEAT(scope);
    REPEAT(device);
    REPEAT(graph_id);
    REPEAT(stack_id);
#undef REPEAT
    kernels->count *= gpus;
    for (size_t i = 0; i < kernels->count; i++)
        kernels->device[i] = (uint16_t)(i % gpus);
}

static void analyse_again(struct golden_session *golden)
{
    analysis_free(&golden->analysis);
    assert_int_equal(analysis_make(&golden->analysis, golden->model), GPUFL_OK);
}

static void gpus_that_wait_for_launches_in_parallel_wait_as_long_as_one(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("launch_bound");
    const struct insight *insight = insight_find(&golden.analysis, "launch_bound");
    assert_non_null(insight);
    int64_t wait_ns = insight->impact_ns;
    assert_int_equal(wait_ns, 799 * 7 * us);
    assert_null(strstr(insight->text, "GPU 0"));
    kernels_spread(golden.model, 4);
    analyse_again(&golden);
    insight = insight_find(&golden.analysis, "launch_bound");
    assert_non_null(insight);
    assert_int_equal(insight->impact_ns, wait_ns);
    assert_non_null(strstr(
        insight->text,
        "Launch-bound: the GPU waited for launches in 56.0 % of the run on GPU 0, of that 5.59 ms in 1 series of"));
    assert_non_null(strstr(insight->text, "(800 kernels)"));
    assert_non_null(strstr(insight->text, "`train > forward` would save at most about 5.59 ms."));
    golden_unload(&golden);
}

static void the_gpu_that_waits_longest_for_launches_is_named(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("launch_bound");
    kernels_spread(golden.model, 2);
    struct kernel_columns *kernels = &golden.model->kernels;
    /* The first GPU has only the first 100 kernels, the second all. */
    for (size_t i = 200; i < kernels->count; i += 2)
        kernels->device[i] = 1;
    analyse_again(&golden);
    const struct insight *insight = insight_find(&golden.analysis, "launch_bound");
    assert_non_null(insight);
    assert_int_equal(insight->impact_ns, 799 * 7 * us);
    assert_non_null(strstr(insight->text, "of the run on GPU 1, of that "));
    golden_unload(&golden);
}

static void many_gpus_with_a_small_wait_each_are_not_launch_bound(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("launch_bound");
    golden.model->job.shutdown_ns += 190 * ms; /* 2.8 % of the run, on each */
    kernels_spread(golden.model, 4);
    analyse_again(&golden);
    assert_null(insight_find(&golden.analysis, "launch_bound"));
    golden_unload(&golden);
}

/* Pageable copies to the device, on `gpus` GPUs in parallel and `streams` streams on each. */
static void copies_make(struct session_model *model, size_t gpus, size_t streams, int64_t start_ns)
{
    enum { h2d = 1, pageable = 1, rounds = 3 };
    free(model->copies);
    model->copy_count = rounds * gpus * streams;
    model->copies = calloc(model->copy_count, sizeof *model->copies);
    assert_non_null(model->copies);
    for (size_t i = 0; i < model->copy_count; i++) {
        size_t round = i / (gpus * streams);
        model->copies[i] = (struct gpu_copy){.span = {.start_ns = start_ns + (int64_t)round * 2 * ms,
                                                      .duration_ns = 1 * ms,
                                                      .api_start_ns = TIME_UNKNOWN,
                                                      .api_duration_ns = API_DURATION_UNKNOWN,
                                                      .scope = ID_UNKNOWN,
                                                      .device = (uint16_t)(i % gpus)},
                                             .bytes = 1000000,
                                             .copy_kind = h2d,
                                             .src_kind = pageable};
    }
}

static void parallel_pageable_copies_take_the_time_of_one(void **state)
{
    (void)state;
    static const struct {
        size_t gpus, streams;
    } cases[] = {{1, 1}, {1, 4}, {4, 1}, {4, 4}};
    struct golden_session golden = golden_load("launch_bound");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        copies_make(golden.model, cases[i].gpus, cases[i].streams, golden.analysis.start_ns + 1 * ms);
        analyse_again(&golden);
        const struct insight *insight = insight_find(&golden.analysis, "pageable_copies");
        assert_non_null(insight);
        assert_int_equal(insight->impact_ns, 3 * ms);
        assert_non_null(strstr(insight->text, "at 1.00 GB/s"));
        assert_non_null(
            strstr(insight->text, cases[i].gpus > 1 ? "30.0 % of the run on GPU 0:" : "30.0 % of the run:"));
    }
    golden_unload(&golden);
}

static void many_gpus_with_a_short_pageable_copy_each_are_no_insight(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("launch_bound");
    golden.model->job.shutdown_ns += 390 * ms; /* 0.75 % of the run, on each */
    copies_make(golden.model, 4, 2, golden.analysis.start_ns + 1 * ms);
    analyse_again(&golden);
    assert_null(insight_find(&golden.analysis, "pageable_copies"));
    golden_unload(&golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_that_wait_for_launches_in_parallel_wait_as_long_as_one),
        cmocka_unit_test(the_gpu_that_waits_longest_for_launches_is_named),
        cmocka_unit_test(many_gpus_with_a_small_wait_each_are_not_launch_bound),
        cmocka_unit_test(parallel_pageable_copies_take_the_time_of_one),
        cmocka_unit_test(many_gpus_with_a_short_pageable_copy_each_are_no_insight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
