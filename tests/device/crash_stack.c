/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a program that is expected to end well: where it crashes instead, the thread's name and stack go to its
 * errors; also those of a thread that blocks signals, and of one whose stack is full. */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { frames_max = 64, stack_bytes = 256 << 10 };

static const int numbers[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};

static void on_crash(int number)
{
    void *frames[frames_max];
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    dprintf(STDERR_FILENO, "%s\n", name);
    backtrace_symbols_fd(frames, backtrace(frames, frames_max), STDERR_FILENO);
    signal(number, SIG_DFL);
    raise(number);
}

/* For the whole life of the thread: a full stack has no room for the handler. */
static void take_stack(void)
{
    const stack_t stack = {.ss_sp = malloc(stack_bytes), .ss_size = stack_bytes};
    sigaltstack(&stack, NULL);
}

struct start {
    void *(*run)(void *);
    void *argument;
};

static void *run(void *argument)
{
    struct start start = *(struct start *)argument;
    free(argument);
    take_stack();
    return start.run(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    struct start *start = malloc(sizeof *start);
    *start = (struct start){routine, argument};
    return create(thread, attributes, run, start);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    int (*mask)(int, const sigset_t *, sigset_t *) = dlsym(RTLD_NEXT, "pthread_sigmask");
    sigset_t less;
    if (!set)
        return mask(how, set, before);
    less = *set;
    for (unsigned i = 0; how != SIG_UNBLOCK && i < sizeof numbers / sizeof *numbers; i++)
        sigdelset(&less, numbers[i]);
    return mask(how, &less, before);
}

__attribute__((constructor)) static void watch(void)
{
    void *frame;
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    (void)backtrace(&frame, 1); /* loads what it needs now, not in the handler */
    take_stack();
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}
