/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a program that is expected to end well: where it crashes instead, the stack goes to its errors. */
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

enum { frames_max = 64 };

static void on_crash(int number)
{
    void *frames[frames_max];
    backtrace_symbols_fd(frames, backtrace(frames, frames_max), STDERR_FILENO);
    signal(number, SIG_DFL);
    raise(number);
}

__attribute__((constructor)) static void watch(void)
{
    void *frame;
    (void)backtrace(&frame, 1); /* loads what it needs now, not in the handler */
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        signal(numbers[i], on_crash);
}
