/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own_thread.h"

#include <signal.h>

/* All signals except those caused by the thread itself: if a fault's signal were blocked, the program would end without
 * running its handlers. Of these signals, one that the program itself blocks stays blocked, because one of its threads
 * may wait for it. */
static void blocked_signals(sigset_t *signals, const sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigfillset(signals);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!sigismember(before, own[i]))
            sigdelset(signals, own[i]);
}

bool own_thread_start(pthread_t *thread, const char *name, size_t stack_bytes, void *(*run)(void *), void *argument)
{
    pthread_attr_t attributes;
    sigset_t blocked, before;
    if (pthread_attr_init(&attributes))
        return false;
    pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    blocked_signals(&blocked, &before);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    bool is_started = !pthread_create(thread, &attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (is_started)
        pthread_setname_np(*thread, name);
    return is_started;
}
