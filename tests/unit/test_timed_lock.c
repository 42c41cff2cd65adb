/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded wait for a mutex while the wall clock is set: this program replaces clock_gettime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/timed_lock.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { hour_s = 3600 };

static int64_t wall_step_s;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_waiting;

int clock_gettime(clockid_t id, struct timespec *time)
{
    long result = syscall(SYS_clock_gettime, id, time);
    if (id == CLOCK_REALTIME)
        time->tv_sec += wall_step_s;
    return (int)result;
}

static void *wait_for_it(void *user)
{
    bool *is_locked = user;
    atomic_store(&is_waiting, true);
    *is_locked = mutex_lock_in_time(&mutex, INT64_C(60) * 1000000000);
    if (*is_locked)
        pthread_mutex_unlock(&mutex);
    return NULL;
}

static void a_step_of_the_wall_clock_does_not_end_the_wait(void **state)
{
    (void)state;
    for (wall_step_s = -hour_s; wall_step_s <= hour_s; wall_step_s += hour_s) {
        pthread_t thread;
        bool is_locked = false;
        atomic_store(&is_waiting, false);
        pthread_mutex_lock(&mutex);
        assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &is_locked), 0);
        while (!atomic_load(&is_waiting))
            usleep(100);
        usleep(5000); /* by now the lock was usually tried in vain */
        pthread_mutex_unlock(&mutex);
        pthread_join(thread, NULL);
        assert_true(is_locked);
    }
}

static void *try_it(void *user)
{
    bool *is_locked = user;
    errno = EDOM;
    *is_locked = mutex_lock_in_time(&mutex, 3000000);
    assert_int_equal(errno, EDOM);
    return NULL;
}

static void a_step_of_the_wall_clock_does_not_extend_the_wait(void **state)
{
    (void)state;
    wall_step_s = hour_s;
    pthread_t thread;
    bool is_locked = true;
    pthread_mutex_lock(&mutex);
    assert_int_equal(pthread_create(&thread, NULL, try_it, &is_locked), 0);
    pthread_join(thread, NULL); /* otherwise this test takes an hour */
    assert_false(is_locked);
    pthread_mutex_unlock(&mutex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_of_the_wall_clock_does_not_end_the_wait),
        cmocka_unit_test(a_step_of_the_wall_clock_does_not_extend_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
