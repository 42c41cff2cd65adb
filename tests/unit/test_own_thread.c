/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own_thread.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { handled = 42 };

static void on_fault(int number)
{
    (void)number;
    _exit(handled);
}

static void *write_where_nothing_is(void *page)
{
    *(volatile int *)page = 1;
    return NULL;
}

static void a_fault_in_the_thread_reaches_the_programs_handler(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct sigaction action = {.sa_handler = on_fault};
        sigaction(SIGSEGV, &action, NULL);
        void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pthread_t thread;
        if (own_thread_start(&thread, "fault", OWN_THREAD_STACK_SMALL, write_where_nothing_is, page))
            pthread_join(thread, NULL);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), handled);
}

static void *blocked_in_thread(void *signals)
{
    pthread_sigmask(SIG_BLOCK, NULL, signals);
    return NULL;
}

static void signals_that_the_program_blocks_itself_stay_blocked(void **state)
{
    (void)state;
    sigset_t all, before, inside;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_started = own_thread_start(&thread, "mask", OWN_THREAD_STACK_SMALL, blocked_in_thread, &inside);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_true(is_started);
    pthread_join(thread, NULL);
    assert_int_equal(sigismember(&inside, SIGTRAP), 1); /* delivered to the thread that waits for it */
    assert_int_equal(sigismember(&inside, SIGSEGV), 1);
}

static void other_signals_are_delivered_to_the_programs_threads_only(void **state)
{
    (void)state;
    sigset_t before, after, inside;
    pthread_t thread;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_true(own_thread_start(&thread, "mask", OWN_THREAD_STACK_LARGE, blocked_in_thread, &inside));
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int number = 1; number < SIGRTMIN; number++)
        assert_int_equal(sigismember(&before, number), sigismember(&after, number));
    static const int others[] = {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGPROF, SIGALRM, SIGHUP};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(sigismember(&inside, others[i]), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_in_the_thread_reaches_the_programs_handler),
        cmocka_unit_test(signals_that_the_program_blocks_itself_stay_blocked),
        cmocka_unit_test(other_signals_are_delivered_to_the_programs_threads_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
