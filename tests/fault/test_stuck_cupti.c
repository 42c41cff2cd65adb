/* SPDX-License-Identifier: Apache-2.0 */
/* A session whose sampling thread is stuck in CUPTI still ends, and the program continues to launch kernels: gpufl's
 * callbacks can no longer be disabled, so what they use must remain valid. */
#include "../unit/session_fixture.h"

#include "../fakes/fake_client.h"

#include <gpufl/gpufl.h>

#include <malloc.h>
#include <stdatomic.h>

enum { LAUNCHES_AFTER = 1000, GARBAGE = 0xa5 };

static char dir[256], messages[4096];
static atomic_bool is_over;
static atomic_int launch_count;
static gpufl_engine engine;

static void *launch_on(void *nothing)
{
    while (!atomic_load(&is_over)) {
        CHECK(launch(SHORT_KERNEL, NULL) == FAKE_SUCCESS);
        atomic_fetch_add(&launch_count, 1);
        usleep(100);
    }
    return nothing;
}

static void on_log(void *user, gpufl_log_level level, const char *text)
{
    size_t used = strlen(messages);
    (void)user, (void)level;
    snprintf(messages + used, sizeof messages - used, "%s\n", text);
}

/* The look-alike writes down which calls hang. */
static void wait_for_the_hang(void)
{
    for (bool is_there = false; !is_there; usleep(1000)) {
        size_t size;
        char *calls = fixture_read(dir, "calls", &size);
        is_there = strchr(calls, '!') != NULL;
        free(calls);
    }
}

static void end_a_session_that_hangs(void)
{
    pthread_t thread;
    gpufl_options options = GPUFL_OPTIONS_INIT;
    options.profiling_engine = engine;
    options.log_path = dir;
    options.log_fn = on_log;
    mallopt(M_PERTURB, GARBAGE); /* freed memory is overwritten, so that use after free is noticed */
    CHECK(gpufl_init(&options) == GPUFL_OK);
    CHECK(!pthread_create(&thread, NULL, launch_on, NULL));
    wait_for_the_hang();
    gpufl_shutdown();
    CHECK(strstr(messages, "CUPTI did not return from") != NULL);
    int before = atomic_load(&launch_count);
    while (atomic_load(&launch_count) < before + LAUNCHES_AFTER)
        usleep(1000);
    atomic_store(&is_over, true);
    CHECK(!pthread_join(thread, NULL));
}

static void launches_after_a_break_that_did_not_begin_are_safe(void **state)
{
    (void)state;
    setenv("GPUFL_PC_SAMPLING_SHARE", "50", 1);
    setenv("GPUFL_PC_SAMPLING_CYCLE_MS", "20", 1);
    engine = GPUFL_ENGINE_PC_SAMPLING;
    in_child("libcupti.so.13", "fail=cuptiPCSamplingDisable@2:-1", end_a_session_that_hangs);
}

static void launches_after_a_read_that_did_not_end_are_safe(void **state)
{
    (void)state;
    setenv("GPUFL_DEEP_COUNTING_MS", "10", 1);
    setenv("GPUFL_DEEP_SAMPLING_MS", "60000", 1);
    engine = GPUFL_ENGINE_DEEP;
    in_child("libcupti.so.13", "fail=cuptiPCSamplingGetData@3:-1", end_a_session_that_hangs);
}

static int make_dir(void **state)
{
    (void)state;
    char calls[512];
    snprintf(dir, sizeof dir, "%s", fixture_dir());
    fixture_path(calls, dir, "calls");
    setenv("FAKE_CALLS", calls, 1);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    fixture_remove(dir);
    return 0;
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    static const char *const paths[] = {"GPUFL_CUDA_PATH", "GPUFL_CUPTI_PATH", "GPUFL_NVML_PATH"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        setenv(paths[i], FAKES_DIR, 1);
    setenv("GPUFL_SYSFS_ROOT", "/nonexistent", 1);
    environment_clear();
    unsetenv("GPUFL_DISABLED");
    const struct CMUnitTest tests[] = {
        IN_DIR(launches_after_a_break_that_did_not_begin_are_safe),
        IN_DIR(launches_after_a_read_that_did_not_end_are_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
