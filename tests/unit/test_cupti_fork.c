/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI in a child that was forked while its parent traced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fakes/fake_client.h"
#include "driver/cupti.h"
#include "driver/cupti_table.h"
#include "driver/fork.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>

enum { CHILD_S = 600 };

static struct cupti *library;
static sem_t is_inside, may_leave;

static uint8_t *request(size_t *size)
{
    *size = 0;
    return NULL;
}

static void complete(uint8_t *buffer, size_t size, size_t valid)
{
    (void)buffer, (void)size, (void)valid;
}

static gpufl_status start(struct problem *problem)
{
    const struct cupti_trace_options options = {.buffer_request = request, .buffer_complete = complete};
    struct cupti_trace_result result;
    return cupti_trace_start(library, &options, &result, problem);
}

/* The status of starting a trace in a child; is_whole as in driver_after_fork_in_child. */
static gpufl_status start_in_child(bool is_whole, const char *expected_text)
{
    driver_before_fork();
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_S); /* a hang must not look like success */
        driver_after_fork_in_child(is_whole);
        struct problem problem = {""};
        gpufl_status status = start(&problem);
        if (status == GPUFL_OK)
            cupti_trace_stop(library);
        _exit(strstr(problem.text, expected_text) ? -status : 100);
    }
    driver_after_fork_in_parent();
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static int setup(void **state)
{
    (void)state;
    struct problem problem;
    return cupti_load(&library, &problem) == GPUFL_OK && start(&problem) == GPUFL_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    cupti_trace_stop(library);
    return 0;
}

static void a_child_of_a_tracing_process_can_trace(void **state)
{
    (void)state;
    assert_int_equal(start_in_child(true, ""), GPUFL_OK);
}

static void a_child_of_a_process_that_was_starting_or_stopping_does_not_start(void **state)
{
    (void)state;
    assert_int_equal(start_in_child(false, "a thread was inside CUPTI"), GPUFL_E_UNSUPPORTED);
}

static int flush_slowly(uint32_t flag)
{
    (void)flag;
    sem_post(&is_inside);
    sem_wait(&may_leave);
    return 0;
}

static void *flush_once(void *argument)
{
    (void)argument;
    cupti_flush(library, false);
    return NULL;
}

static void a_fork_while_a_thread_is_inside_cupti_refuses_in_the_child_and_hangs_nobody(void **state)
{
    (void)state;
    int (*flush_all)(uint32_t) = library->call.flush_all;
    library->call.flush_all = flush_slowly;
    sem_init(&is_inside, 0, 0);
    sem_init(&may_leave, 0, 0);
    pthread_t flusher;
    assert_int_equal(pthread_create(&flusher, NULL, flush_once, NULL), 0);
    sem_wait(&is_inside);
    gpufl_status status = start_in_child(true, "a thread was inside CUPTI");
    sem_post(&may_leave);
    pthread_join(flusher, NULL);
    library->call.flush_all = flush_all;
    assert_int_equal(status, GPUFL_E_UNSUPPORTED);
    assert_int_equal(start_in_child(true, ""), GPUFL_OK); /* the thread has left */
}

static void a_cupti_without_finalize_is_not_started_in_a_child(void **state)
{
    (void)state;
    int (*finalize)(void) = library->call.finalize;
    library->call.finalize = NULL;
    gpufl_status status = start_in_child(true, "start the session in the children only");
    library->call.finalize = finalize;
    assert_int_equal(status, GPUFL_E_UNSUPPORTED);
}

int main(void)
{
    setenv("GPUFL_CUPTI_PATH", FAKES_DIR, 1);
    setenv("GPUFL_CUDA_PATH", FAKES_DIR, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_child_of_a_tracing_process_can_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(a_child_of_a_process_that_was_starting_or_stopping_does_not_start, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_fork_while_a_thread_is_inside_cupti_refuses_in_the_child_and_hangs_nobody,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_cupti_without_finalize_is_not_started_in_a_child, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
