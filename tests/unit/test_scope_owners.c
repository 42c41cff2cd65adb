/* SPDX-License-Identifier: Apache-2.0 */
/* Whose time kernels are when a session is read: operators are separated from the program's scopes, and work of threads without
 * scopes is inferred only where it is clear who waits for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/analysis.h"

enum { main_thread = 10, other_thread = 20, third_thread = 30, user = 0, nvtx = 1, us = 1000 };

struct fixture {
    char dir[64];
    struct bytes scopes, kernels, names, tags;
    uint64_t scope_count, kernel_count;
    char paths[16][128];
    struct session_model *model;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    snprintf(fixture->dir, sizeof fixture->dir, "/tmp/gpufl-owners-XXXXXX");
    assert_non_null(mkdtemp(fixture->dir));
    *state = fixture;
    return 0;
}

static const char *file_of(const struct fixture *fixture, const char *channel)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s.log", fixture->dir, channel);
    return path;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    session_free(fixture->model);
    unlink(file_of(fixture, "scope"));
    unlink(file_of(fixture, "device"));
    rmdir(fixture->dir);
    bytes_free(&fixture->scopes);
    bytes_free(&fixture->kernels);
    bytes_free(&fixture->names);
    bytes_free(&fixture->tags);
    free(fixture);
    return 0;
}

static const char *comma(const struct bytes *list)
{
    return list->size ? "," : "";
}

/* outer: the number of the scope around it, 0 none. Returns its number. */
static uint64_t scope_in(struct fixture *fixture, uint64_t outer, const char *name, int thread, int source, int tag,
                         int begin, int end)
{
    uint64_t id = ++fixture->scope_count;
    assert_in_range(id, 1, 15);
    snprintf(fixture->paths[id], sizeof fixture->paths[id], "%.60s%s%.60s", outer ? fixture->paths[outer] : "",
             outer ? "|" : "", name);
    bytes_append_format(&fixture->names, "%s\"%d\":\"%s\"", comma(&fixture->names), (int)id, fixture->paths[id]);
    for (int is_end = 0; is_end < 2; is_end++)
        bytes_append_format(&fixture->scopes, "%s[%d,%d,%d,%d,0,0,0,%d,%d,%d,%d,%d]", comma(&fixture->scopes),
                            is_end ? end : begin, (int)id, (int)id, is_end, begin, thread, (int)outer, tag, source);
    return id;
}

static uint64_t scope(struct fixture *fixture, const char *name, int thread, int begin, int end)
{
    return scope_in(fixture, 0, name, thread, user, 0, begin, end);
}

/* Launches of the thread, one every `step`; scope 0: outside of scopes. */
static void launches(struct fixture *fixture, int thread, uint64_t scope_id, int begin, int count, int step)
{
    for (int i = 0; i < count; i++)
        bytes_append_format(&fixture->kernels, "%s[%d,1,1,%d,100,%d,%d]", comma(&fixture->kernels),
                            begin + i * step + 100, (int)++fixture->kernel_count, thread, (int)scope_id);
}

static void file_write(const struct fixture *fixture, const char *channel, const struct bytes *text)
{
    FILE *file = fopen(file_of(fixture, channel), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text->data, 1, text->size, file), text->size);
    assert_int_equal(fclose(file), 0);
}

static void load(struct fixture *fixture)
{
    static const char job[] =
        "{\"version\":1,\"type\":\"job_start\",\"session_id\":\"s\",\"pid\":7,\"app\":\"a\",\"ts_ns\":"
        "1000000,\"devices\":[{\"id\":0,\"name\":\"A\"}]}\n";
    struct bytes text = {0};
    bytes_append_text(&text, job);
    bytes_append_format(&text,
                        "{\"type\":\"dictionary_update\",\"session_id\":\"s\",\"scope_name_dict\":{%.*s},"
                        "\"tag_dict\":{\"1\":\"CCCL\",\"2\":\"my app\"}}\n",
                        (int)fixture->names.size, (const char *)fixture->names.data);
    bytes_append_format(
        &text,
        "{\"version\":3,\"type\":\"scope_event_batch\",\"session_id\":\"s\",\"base_time_ns\":1000000,"
        "\"columns\":[\"dt_ns\",\"scope_instance_id\",\"name_id\",\"event_type\",\"depth\",\"repeat\","
        "\"warmup\",\"original_start_ns\",\"thread_id\",\"parent_id\",\"tag_id\",\"source\"],\"rows\":[%.*s]}\n",
        (int)fixture->scopes.size, (const char *)fixture->scopes.data);
    file_write(fixture, "scope", &text);
    bytes_clear(&text);
    bytes_append_text(&text, job);
    bytes_append_format(
        &text,
        "{\"version\":1,\"type\":\"kernel_event_batch\",\"session_id\":\"s\",\"base_time_ns\":1000000,"
        "\"columns\":[\"dt_ns\",\"kernel_id\",\"duration_ns\",\"corr_id\",\"api_lead_ns\",\"thread_id\","
        "\"scope_id\"],\"rows\":[%.*s]}\n",
        (int)fixture->kernels.size, (const char *)fixture->kernels.data);
    file_write(fixture, "device", &text);
    bytes_free(&text);
    struct problem problem = {""};
    if (session_load(&fixture->model, fixture->dir, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
    assert_int_equal(fixture->model->kernels.count, fixture->kernel_count);
}

/* How many kernels of the thread have the scope (NULL: none), by its whole path. */
static int count_in(const struct fixture *fixture, int thread, const char *path)
{
    const struct session_model *model = fixture->model;
    int count = 0;
    for (size_t i = 0; i < model->kernels.count; i++) {
        uint32_t index = model->kernels.scope[i];
        const char *found =
            index == ID_UNKNOWN ? NULL : session_text(model, DICTIONARY_SCOPE_NAME, model->scopes[index].path_id);
        count += model->kernels.thread_id[i] == (uint32_t)thread &&
                 (path ? found && !strcmp(found, path) : index == ID_UNKNOWN);
    }
    return count;
}

static void a_thread_that_waits_in_its_scope_gets_the_work_of_one_without_scopes(void **state)
{
    struct fixture *fixture = *state;
    uint64_t forward = scope(fixture, "forward", main_thread, 0, 100 * us);
    uint64_t backward = scope(fixture, "backward", main_thread, 100 * us, 300 * us);
    launches(fixture, main_thread, forward, 10 * us, 8, us);
    launches(fixture, main_thread, backward, 101 * us, 1, us);
    launches(fixture, other_thread, 0, 110 * us, 50, us);
    launches(fixture, other_thread, 0, 310 * us, 9, us); /* nobody is in a scope */
    launches(fixture, main_thread, 0, 330 * us, 5, us);
    load(fixture);
    assert_int_equal(count_in(fixture, other_thread, "backward"), 50);
    assert_int_equal(count_in(fixture, other_thread, NULL), 9);
    assert_int_equal(count_in(fixture, main_thread, NULL), 5); /* a thread with scopes says itself where it is */
    struct analysis analysis;
    assert_int_equal(analysis_make(&analysis, fixture->model), GPUFL_OK);
    assert_int_equal(analysis.scopes[0].gpu_inferred_ns, 50);
    analysis_free(&analysis);
}

static void ambiguous_work_stays_outside_of_scopes(void **state)
{
    struct fixture *fixture = *state;
    /* Two threads are inside of scopes. */
    scope(fixture, "one", main_thread, 0, 100 * us);
    scope(fixture, "two", third_thread, 0, 100 * us);
    launches(fixture, other_thread, 0, 10 * us, 20, us);
    /* Both threads launch all the time. */
    uint64_t busy = scope(fixture, "busy", main_thread, 200 * us, 400 * us);
    launches(fixture, main_thread, busy, 210 * us, 50, 2 * us);
    launches(fixture, other_thread, 0, 211 * us, 50, 2 * us);
    /* A few launches among those of a thread that works. */
    uint64_t few = scope(fixture, "few", main_thread, 500 * us, 600 * us);
    launches(fixture, main_thread, few, 510 * us, 20, us);
    launches(fixture, other_thread, 0, 540 * us, 3, us);
    launches(fixture, main_thread, few, 550 * us, 20, us);
    load(fixture);
    assert_int_equal(count_in(fixture, other_thread, NULL), 73);
    assert_null(fixture->model->inferred);
}

static void threads_that_take_turns_in_long_rows_wait_for_each_other(void **state)
{
    struct fixture *fixture = *state;
    uint64_t step = scope(fixture, "step", main_thread, 0, 1000 * us);
    for (int i = 0; i < 4; i++) {
        launches(fixture, main_thread, step, 10 * us + i * 200 * us, 30, us);
        launches(fixture, other_thread, 0, 100 * us + i * 200 * us, 40, us);
    }
    load(fixture);
    assert_int_equal(count_in(fixture, other_thread, "step"), 160);
}

static void a_scope_that_launches_nothing_gets_even_one_launch(void **state)
{
    struct fixture *fixture = *state;
    scope(fixture, "wait", main_thread, 0, 100 * us);
    launches(fixture, other_thread, 0, 50 * us, 1, us);
    load(fixture);
    assert_int_equal(count_in(fixture, other_thread, "wait"), 1);
}

static void operators_and_ranges_of_libraries_are_no_scopes(void **state)
{
    struct fixture *fixture = *state;
    uint64_t step = scope_in(fixture, 0, "step", main_thread, user, 0, 0, 900 * us);
    uint64_t linear = scope_in(fixture, step, "aten::linear", main_thread, nvtx, 0, 10 * us, 100 * us);
    uint64_t addmm = scope_in(fixture, linear, "aten::addmm", main_thread, nvtx, 0, 20 * us, 90 * us);
    uint64_t own = scope_in(fixture, addmm, "own", main_thread, user, 0, 30 * us, 80 * us);
    uint64_t sort = scope_in(fixture, step, "aten::sort", main_thread, nvtx, 0, 110 * us, 200 * us);
    uint64_t cub = scope_in(fixture, sort, "cub::DeviceSort", main_thread, nvtx, 1, 120 * us, 190 * us);
    uint64_t mine = scope_in(fixture, step, "part::two", main_thread, nvtx, 2, 210 * us, 300 * us);
    uint64_t node = scope_in(fixture, step, "autograd::engine::evaluate_function: MmBackward0", main_thread, nvtx, 0,
                             310 * us, 400 * us);
    uint64_t mm = scope_in(fixture, node, "aten::mm", main_thread, nvtx, 0, 320 * us, 390 * us);
    uint64_t nvtx_user = scope_in(fixture, 0, "epoch", main_thread, nvtx, 0, 910 * us, 990 * us);
    launches(fixture, main_thread, addmm, 21 * us, 2, us);
    launches(fixture, main_thread, own, 31 * us, 3, us);
    launches(fixture, main_thread, cub, 121 * us, 5, us);
    launches(fixture, main_thread, mine, 211 * us, 7, us);
    launches(fixture, main_thread, mm, 321 * us, 11, us);
    launches(fixture, main_thread, nvtx_user, 911 * us, 13, us);
    load(fixture);
    assert_int_equal(count_in(fixture, main_thread, "step"), 2 + 5 + 11);
    assert_int_equal(count_in(fixture, main_thread, "step|own"), 3);
    assert_int_equal(count_in(fixture, main_thread, "step|part::two"), 7); /* a domain of the program */
    assert_int_equal(count_in(fixture, main_thread, "epoch"), 13);
    struct analysis analysis;
    assert_int_equal(analysis_make(&analysis, fixture->model), GPUFL_OK);
    assert_int_equal(analysis.scope_count, 1 + 4); /* step, own, part::two, epoch */
    assert_int_equal(analysis.operator_count, 3);
    assert_int_equal(analysis.kernels_without_operator, 20);
    const struct {
        const char *name;
        uint64_t count;
        enum direction direction;
    } expected[] = {{"aten::mm", 11, DIRECTION_BACKWARD},
                    {"aten::addmm", 5, DIRECTION_FORWARD},
                    {"aten::sort", 5, DIRECTION_FORWARD}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        bool is_there = false;
        for (size_t j = 0; j < analysis.operator_count; j++) {
            const struct operator_total *total = &analysis.operators[j];
            is_there = is_there || (!strcmp(total->name, expected[i].name) && total->count == expected[i].count &&
                                    total->by_direction_ns[expected[i].direction] == total->total_ns);
        }
        if (!is_there)
            fail_msg("%s", expected[i].name);
    }
    analysis_free(&analysis);
}

static void domain_and_name_say_what_kind_of_range_it_is(void **state)
{
    (void)state;
    const struct {
        int source;
        const char *name, *domain;
        enum scope_kind kind;
    } cases[] = {
        {user, "aten::mm", NULL, SCOPE_OF_USER},
        {nvtx, "aten::mm", NULL, SCOPE_OF_OPERATOR},
        {nvtx, "AddmmBackward0", NULL, SCOPE_OF_OPERATOR},
        {nvtx, "Backward pass", NULL, SCOPE_OF_USER},
        {nvtx, "Optimizer.step#AdamW.step", NULL, SCOPE_OF_OPERATOR},
        {nvtx, "forward", NULL, SCOPE_OF_USER},
        {nvtx, "ncclAllReduce", "NCCL", SCOPE_OF_LIBRARY},
        {nvtx, "aten::mm", "trainer", SCOPE_OF_USER},
        {3, "triton_poi_fused_relu_0", NULL, SCOPE_OF_OPERATOR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (scope_kind_of((uint8_t)cases[i].source, cases[i].name, strlen(cases[i].name), cases[i].domain) !=
            cases[i].kind)
            fail_msg("%s", cases[i].name);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(a_thread_that_waits_in_its_scope_gets_the_work_of_one_without_scopes),
        WITH_FIXTURE(ambiguous_work_stays_outside_of_scopes),
        WITH_FIXTURE(threads_that_take_turns_in_long_rows_wait_for_each_other),
        WITH_FIXTURE(a_scope_that_launches_nothing_gets_even_one_launch),
        WITH_FIXTURE(operators_and_ranges_of_libraries_are_no_scopes),
        cmocka_unit_test(domain_and_name_say_what_kind_of_range_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
