/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for the session's mutex, and how long. */
#include "session_fixture.h"

#include "gpufl/gpufl.h"
#include "sdk/session.h"
#include "sdk/session_mutex.h"

#include <pthread.h>

static pthread_barrier_t is_held, is_enough;

static void *hold(void *unused)
{
    (void)unused;
    session_mutex_lock();
    pthread_barrier_wait(&is_held);
    pthread_barrier_wait(&is_enough);
    session_mutex_unlock();
    return NULL;
}

static void hip_starts_although_another_thread_keeps_the_session(void **state)
{
    (void)state;
    pthread_t holder;
    pthread_barrier_init(&is_held, NULL, 2);
    pthread_barrier_init(&is_enough, NULL, 2);
    assert_int_equal(pthread_create(&holder, NULL, hold, NULL), 0);
    pthread_barrier_wait(&is_held);
    session_join_hip(); /* returns */
    assert_false(session_mutex_is_own());
    assert_false(session_mutex_lock_in_time());
    pthread_barrier_wait(&is_enough);
    pthread_join(holder, NULL);
    assert_string_equal(gpufl_session_dir(), "");
    (void)gpufl_active_engine(); /* whoever has the mutex next does what HIP asked for */
    assert_string_not_equal(gpufl_session_dir(), "");
}

static void hip_that_the_session_starts_itself_is_not_waited_for(void **state)
{
    (void)state;
    assert_true(session_mutex_lock_in_time());
    session_join_hip();
    assert_true(session_mutex_is_own());
    session_mutex_unlock();
}

static char *log_dir;

static void log_dir_remove(void)
{
    fixture_remove(log_dir);
}

int main(void)
{
    log_dir = fixture_dir();
    setenv("GPUFL_LOG_DIR", log_dir, 1);
    atexit(log_dir_remove); /* before the session's own, which then comes first */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hip_that_the_session_starts_itself_is_not_waited_for),
        cmocka_unit_test(hip_starts_although_another_thread_keeps_the_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
