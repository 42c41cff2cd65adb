/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that exit without exit handlers, as children of Python's multiprocessing do: ends the session first.
 * Also called in signal handlers and by children of vfork, which share their parent's memory and are distinguished
 * from it by their process id. */
#include "preload/users.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) _Noreturn void _exit(int status)
{
    use_exit();
    for (;;)
        syscall(SYS_exit_group, status);
}

__attribute__((visibility("default"))) _Noreturn void _Exit(int status)
{
    _exit(status);
}
