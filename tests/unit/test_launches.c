/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel names and launch configurations, also when there are more of them than are kept at a time. */
#include "recorder_fixture.h"

#include "capture/launches.h"
#include "format/json.h"

struct fixture {
    char dir[256];
    struct log_writer *writer;
    struct recorder recorder;
    struct launches *launches;
};

static int open_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    recorder_fixture_open(fixture->dir, &fixture->writer, &fixture->recorder);
    fixture_line_all(fixture->writer, RECORD_JOB_START, fixture_job_start);
    assert_int_equal(launches_make(&fixture->launches, &fixture->recorder), GPUFL_OK);
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    launches_free(fixture->launches);
    recorder_fixture_close(fixture->dir, fixture->writer, &fixture->recorder);
    free(fixture);
    return 0;
}

static uint32_t identify(struct fixture *fixture, const char *name, uint32_t grid_x, uint32_t *kernel_id)
{
    const struct kernel_activity kernel = {.name = name, .grid = {grid_x, 1, 1}, .block = {128, 1, 1}, .regs = 32};
    uint32_t launch_id;
    launches_identify(fixture->launches, ACTIVITY_FROM_CUPTI, &kernel, kernel_id, &launch_id);
    return launch_id;
}

struct written_configs {
    uint64_t count;
    uint32_t wanted_grid, wanted_id, last_id;
};

static bool take_line(void *user, const struct log_line *line)
{
    struct written_configs *configs = user;
    const struct batch_view *view = line->type == RECORD_LAUNCH_CONFIG_BATCH ? line->batch : NULL;
    for (uint32_t row = 0; view && row < view->row_count; row++) {
        uint32_t launch_id = (uint32_t)view->columns[LAUNCH_CONFIG_LAUNCH_ID].cells[row];
        assert_int_equal(launch_id, configs->last_id + 1); /* readers rely on dense ids */
        configs->last_id = launch_id;
        configs->count++;
        if (view->columns[LAUNCH_CONFIG_GRID_X].cells[row] == configs->wanted_grid)
            configs->wanted_id = launch_id;
    }
    return true;
}

static struct written_configs configs_read(struct fixture *fixture, uint32_t wanted_grid)
{
    struct written_configs configs = {.wanted_grid = wanted_grid};
    struct log_summary summary;
    struct problem problem = {""};
    recorder_flush(&fixture->recorder, 0);
    if (log_read(log_writer_dir(fixture->writer), take_line, NULL, &configs, &summary, &problem) != GPUFL_OK)
        fail_msg("log_read: %s", problem.text);
    return configs;
}

static void more_configurations_than_are_kept_are_all_written(void **state)
{
    struct fixture *fixture = *state;
    enum { count = 200000 };
    uint32_t kernel_id;
    for (uint32_t i = 1; i <= count; i++)
        assert_int_equal(identify(fixture, "shapes_vary", i, &kernel_id), i);
    uint32_t again = identify(fixture, "shapes_vary", 7, &kernel_id);
    assert_int_equal(again, count + 1); /* it was evicted */
    assert_int_equal(kernel_id, 1);
    struct written_configs configs = configs_read(fixture, 7);
    assert_int_equal(configs.count, count + 1);
    assert_int_equal(configs.wanted_id, again);
    assert_true(launches_bytes(fixture->launches) < 32 << 20);
    assert_int_equal(recorder_lost_total(&fixture->recorder), 0);
}

static void a_configuration_in_use_keeps_its_id(void **state)
{
    struct fixture *fixture = *state;
    uint32_t kernel_id, steady_id = identify(fixture, "steady", 132, &kernel_id);
    for (uint32_t i = 1; i <= 200000; i++) {
        assert_int_not_equal(identify(fixture, "shapes_vary", i, &kernel_id), 0);
        assert_int_equal(identify(fixture, "steady", 132, &kernel_id), steady_id);
    }
}

static void more_kernel_names_than_are_kept_are_all_written(void **state)
{
    struct fixture *fixture = *state;
    enum { count = 40000, size = 400 };
    static char names[2][size + 1]; /* CUPTI's pointers are reused after a module is unloaded */
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t kernel_id;
        int digits = snprintf(names[i % 2], size + 1, "jit_%u_", i);
        memset(names[i % 2] + digits, 'x', (size_t)(size - digits));
        (void)identify(fixture, names[i % 2], 1, &kernel_id);
        assert_int_equal(kernel_id, i);
        assert_string_equal(launches_symbol(fixture->launches, kernel_id), names[i % 2]);
    }
    assert_true(launches_bytes(fixture->launches) < 48 << 20);
    assert_int_equal(recorder_lost_total(&fixture->recorder), 0);
}

#define test_of(body) cmocka_unit_test_setup_teardown(body, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_of(more_configurations_than_are_kept_are_all_written),
        test_of(a_configuration_in_use_keeps_its_id),
        test_of(more_kernel_names_than_are_kept_are_all_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
