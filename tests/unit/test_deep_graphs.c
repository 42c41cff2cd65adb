/* SPDX-License-Identifier: Apache-2.0 */
/* Counting windows with CUDA graphs, on a look-alike CUPTI that invalidates captures and never returns from a graph
 * that is launched while instructions are counted. Each test runs in a separate process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "windows_fixture.h"

static void capture_to_the_end(void)
{
    void *graph, *stream;
    begin(true);
    launch_until(true);
    CHECK(!rt.cudaStreamCreate(&stream) && !rt.cudaStreamBeginCapture(stream, 0));
    CHECK(!finish() && !rt.cudaStreamEndCapture(stream, &graph));
    CHECK(deep_windows_trouble(windows, &problem, &(bool){0}) && strstr(problem.text, "CUDA graphs"));
}

static void use_a_graph(bool is_alternating)
{
    void *graph = NULL, *executable = NULL, *stream;
    begin(is_alternating);
    launch_until(true);
    CHECK(!rt.cudaStreamCreate(&stream) && !rt.cudaStreamBeginCapture(stream, 0) && !launch(SHORT_KERNEL, stream));
    CHECK(!atomic_load(&recorder.lost[LOSS_SASS_DROPPED]) && !sass_counters_is_open(counters));
    CHECK(!rt.cudaStreamEndCapture(stream, &graph) && !rt.cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 50; i++) /* many of its windows */
        CHECK(!rt.cudaGraphLaunch(executable, stream) && !rt.cudaStreamSynchronize(stream) && !usleep(SHORT_MS * 200));
    CHECK(!sass_counters_is_open(counters) && finish());
    CHECK(deep_windows_trouble(windows, &problem, &(bool){0}) && strstr(problem.text, "CUDA graphs"));
    CHECK(is_alternating || (seen_window_count == 1 && !strcmp(seen_windows[0].close_reason, "graph_used")));
    CHECK(is_alternating || executed > 0);
    end();
}

static void capture_while_counting(void)
{
    use_a_graph(false);
}

static void capture_in_turns(void)
{
    use_a_graph(true);
}

static void counting_ends_for_good_before_a_graph_is_captured(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", capture_while_counting);
    in_child("libcupti.so.13", "", capture_in_turns);
}

static void a_graph_that_is_captured_at_the_end_stays_whole(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", capture_to_the_end);
}

int main(void)
{
    environment_clear();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_that_is_captured_at_the_end_stays_whole),
        cmocka_unit_test(counting_ends_for_good_before_a_graph_is_captured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
