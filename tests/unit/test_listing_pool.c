/* SPDX-License-Identifier: Apache-2.0 */
/* Several disassemblers run in parallel, share their output, and stop when they must. */
#include "session_fixture.h"
#include "tool_fixture.h"

#include "analysis/listing_pool.h"
#include "base/clock.h"
#include "cubin_fixture.h"

#include <poll.h>
#include <sys/eventfd.h>

enum { patience_s = 600 };
enum { KERNEL, SQUARES, INNER, REQUESTS };

static const char *const symbols[REQUESTS] = {
    [KERNEL] = "_Z9distancesPKfS0_Pfi",
    [SQUARES] = "_Z7squaresPKfPf",
    [INNER] = "$_Z9distancesPKfS0_Pfi$_Z8slow_sumPKfi", /* is printed with KERNEL */
};

static const char listing[] = "\t.section\t.text._Z7squaresPKfPf,\"ax\",@progbits\n"
                              "        /*0000*/      S2R R0, SR_TID.X ;\n"
                              "\t.section\t.text._Z9distancesPKfS0_Pfi,\"ax\",@progbits\n"
                              "        /*0000*/      LDC R1, c[0x0][0x28] ;\n"
                              "        /*0370*/      MOV R2, R4 ;\n";

struct bench {
    char *dir, tool[512];
    int alive_fd; /* of a pipe that a tool may write to: at its end when all processes that opened it are gone */
    struct fixture_cubin fixture;
    struct listing_request requests[REQUESTS];
    struct listing_pool_options options;
    size_t done, total; /* as reported */
};

static void on_progress(void *user, size_t done, size_t total)
{
    struct bench *bench = user;
    assert_true(done >= bench->done && done <= total);
    bench->done = done;
    bench->total = total;
}

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    assert_non_null(bench);
    char pipe_path[512];
    bench->dir = strdup(fixture_dir());
    fixture_path(bench->tool, bench->dir, "nvdisasm");
    fixture_path(pipe_path, bench->dir, "alive");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    bench->alive_fd = open(pipe_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(bench->alive_fd >= 0);
    fixture_write(bench->dir, "listing", listing, sizeof listing - 1);
    fixture_cubin_open(&bench->fixture, "inlined.sm_90");
    for (size_t i = 0; i < REQUESTS; i++)
        bench->requests[i] = (struct listing_request){
            .image = &bench->fixture.cubin,
            .function = image_function_find(&bench->fixture.cubin, symbols[i]),
            .tool = bench->tool,
            .symbol = symbols[i],
            .cubin_crc = 77,
        };
    bench->options = (struct listing_pool_options){.session_id = FIXTURE_ID,
                                                   .deadline_ns = clock_mono_ns() + patience_s * INT64_C(1000000000),
                                                   .threads = 2,
                                                   .on_progress = on_progress,
                                                   .user = bench};
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    unsetenv("GPUFL_NVDISASM");
    unsetenv("XDG_CACHE_HOME");
    fixture_cubin_close(&bench->fixture);
    close(bench->alive_fd);
    fixture_remove(bench->dir);
    free(bench->dir);
    free(bench);
    return 0;
}

/* Writes a look-alike that runs in the test's directory; without a cache unless the test sets one. */
static void tool_write(const struct bench *bench, const char *code)
{
    char script[900];
    snprintf(script, sizeof script, "cd '%s'\n%s", bench->dir, code);
    tool_install(bench->dir, script);
    assert_int_equal(setenv("XDG_CACHE_HOME", bench->tool, 1), 0);
}

static struct listing_pool *start(struct bench *bench, size_t count)
{
    struct listing_pool *pool = NULL;
    struct problem problem = {""};
    if (listing_pool_start(&pool, bench->requests, count, &bench->options, &problem))
        fail_msg("%s", problem.text);
    return pool;
}

static void assert_made(struct listing_pool *pool, size_t index, const char *sass)
{
    struct listing_outcome *outcome = listing_pool_take(pool, index);
    if (outcome->state != LISTING_MADE)
        fail_msg("%s: %s", symbols[index], outcome->reason);
    assert_non_null(strstr(bytes_text(&outcome->text), sass));
}

static void assert_left(struct listing_pool *pool, size_t index, const char *reason)
{
    struct listing_outcome *outcome = listing_pool_take(pool, index);
    assert_int_equal(outcome->state, LISTING_LEFT);
    assert_string_equal(outcome->reason, reason);
}

/* Waits until a tool wrote a byte to the pipe, or (is_end) until no process has it open. */
static void alive_wait(const struct bench *bench, bool is_end)
{
    struct pollfd ready = {.fd = bench->alive_fd, .events = POLLIN};
    char byte = 0;
    ssize_t size;
    do {
        assert_true(poll(&ready, 1, patience_s * 1000) > 0);
        size = read(bench->alive_fd, &byte, 1);
    } while (is_end && size != 0);
    assert_int_equal(size, is_end ? 0 : 1);
}

static void tools_run_in_parallel_up_to_the_limit(void **state)
{
    struct bench *bench = *state;
    /* Each waits for the other. */
    tool_write(bench, ": > started.$$\n"
                      "for i in $(seq 6000); do set -- started.*; [ $# -gt 1 ] && exec cat listing; sleep 0.01; done");
    struct listing_pool *pool = start(bench, 2);
    assert_made(pool, SQUARES, "S2R R0, SR_TID.X");
    assert_made(pool, KERNEL, "LDC R1, c[0x0][0x28]");
    assert_int_equal(bench->done, 2);
    assert_int_equal(bench->total, 2);
    listing_pool_end(pool);

    for (size_t i = 0; i < REQUESTS; i++)
        bench->requests[i].outcome = (struct listing_outcome){.state = LISTING_WANTED};
    bench->done = 0;
    bench->options.threads = 1;
    tool_write(bench, "mkdir busy && cat listing && rmdir busy");
    pool = start(bench, 2);
    assert_made(pool, KERNEL, "LDC R1, c[0x0][0x28]");
    assert_made(pool, SQUARES, "S2R R0, SR_TID.X");
    listing_pool_end(pool);
}

static void functions_printed_together_share_one_run(void **state)
{
    struct bench *bench = *state;
    tool_write(bench, "cat listing");
    struct listing_pool *pool = start(bench, REQUESTS);
    assert_made(pool, KERNEL, "LDC R1, c[0x0][0x28]");
    assert_made(pool, SQUARES, "S2R R0, SR_TID.X");
    assert_made(pool, INNER, "MOV R2, R4");
    listing_pool_end(pool);
    assert_int_equal(tool_runs(bench->dir), 2);
}

static void a_failing_tool_fails_once_for_all_functions_of_its_run(void **state)
{
    struct bench *bench = *state;
    tool_write(bench, "[ $3 = 15 ] && exec cat listing; echo broken >&2; exit 3");
    struct listing_pool *pool = start(bench, REQUESTS);
    assert_int_equal(listing_pool_take(pool, KERNEL)->state, LISTING_FAILED);
    assert_non_null(strstr(listing_pool_take(pool, KERNEL)->reason, "broken"));
    assert_int_equal(listing_pool_take(pool, INNER)->state, LISTING_FAILED);
    assert_made(pool, SQUARES, "S2R R0, SR_TID.X");
    listing_pool_end(pool);
    assert_int_equal(tool_runs(bench->dir), 2);
}

static void a_hanging_tool_is_killed_with_its_children_and_costs_no_other_text(void **state)
{
    struct bench *bench = *state;
    /* The other output is in the cache, so that a slow machine cannot make it time out. */
    tool_write(bench, "[ $3 = 15 ] && exec cat listing; exec > alive; sleep 1000 & echo; wait");
    assert_int_equal(setenv("XDG_CACHE_HOME", bench->dir, 1), 0);
    struct listing_request *squares = &bench->requests[SQUARES];
    struct listing_pool *pool;
    struct problem problem = {""};
    assert_int_equal(listing_pool_start(&pool, squares, 1, &bench->options, &problem), GPUFL_OK);
    assert_int_equal(listing_pool_take(pool, 0)->state, LISTING_MADE);
    listing_pool_end(pool);
    squares->outcome = (struct listing_outcome){.state = LISTING_WANTED};
    bench->done = 0;
    bench->options.deadline_ns = clock_mono_ns() + INT64_C(4000000000);
    pool = start(bench, REQUESTS);
    assert_left(pool, KERNEL, "the time was over");
    assert_left(pool, INNER, "the time was over");
    assert_made(pool, SQUARES, "S2R R0, SR_TID.X");
    listing_pool_end(pool);
    alive_wait(bench, true);
}

static void stopping_kills_running_tools_and_starts_no_others(void **state)
{
    struct bench *bench = *state;
    int stop_fd = eventfd(0, EFD_CLOEXEC);
    assert_true(stop_fd >= 0);
    bench->options.threads = 1;
    bench->options.stop_fd = &stop_fd;
    tool_write(bench, "[ $3 = 16 ] && exec cat listing; exec > alive; sleep 1000 & echo; wait");
    bench->requests[INNER] = bench->requests[SQUARES];
    struct fixture_cubin other;
    fixture_cubin_open(&other, "inlined.sm_80");
    bench->requests[INNER].image = &other.cubin;
    bench->requests[INNER].function = image_function_find(&other.cubin, symbols[SQUARES]);
    struct listing_pool *pool = start(bench, REQUESTS);
    alive_wait(bench, false);
    assert_int_equal(eventfd_write(stop_fd, 1), 0);
    assert_made(pool, KERNEL, "LDC R1, c[0x0][0x28]");
    assert_left(pool, SQUARES, "interrupted");
    assert_left(pool, INNER, "interrupted");
    listing_pool_end(pool);
    alive_wait(bench, true);
    assert_int_equal(tool_runs(bench->dir), 2);
    fixture_cubin_close(&other);
    close(stop_fd);
}

static void a_pool_that_is_closed_early_waits_for_no_tool(void **state)
{
    struct bench *bench = *state;
    tool_write(bench, "exec > alive; sleep 1000 & echo; wait");
    struct listing_pool *pool = start(bench, REQUESTS);
    alive_wait(bench, false);
    listing_pool_end(pool);
    alive_wait(bench, true);
}

static void no_file_of_a_tool_is_left_behind(void **state)
{
    struct bench *bench = *state;
    char given[512];
    fixture_path(given, bench->dir, "t");
    /* A longer name is not used for files of code. */
    if (strlen(given) > 32)
        skip();
    char *before = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    assert_int_equal(mkdir(given, 0700), 0);
    assert_int_equal(setenv("TMPDIR", given, 1), 0);
    tool_write(bench, "ls t >> seen; [ $3 = 15 ] && exec cat listing; exit 3");
    struct listing_pool *pool = start(bench, REQUESTS);
    for (size_t i = 0; i < REQUESTS; i++)
        listing_pool_take(pool, i);
    listing_pool_end(pool);
    size_t size = 0;
    free(fixture_read(bench->dir, "seen", &size));
    assert_true(size > 0);
    assert_int_equal(rmdir(given), 0);
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    free(before);
}

#define POOL_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        POOL_TEST(tools_run_in_parallel_up_to_the_limit),
        POOL_TEST(functions_printed_together_share_one_run),
        POOL_TEST(a_failing_tool_fails_once_for_all_functions_of_its_run),
        POOL_TEST(a_hanging_tool_is_killed_with_its_children_and_costs_no_other_text),
        POOL_TEST(stopping_kills_running_tools_and_starts_no_others),
        POOL_TEST(a_pool_that_is_closed_early_waits_for_no_tool),
        POOL_TEST(no_file_of_a_tool_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
