/* SPDX-License-Identifier: Apache-2.0 */
/* A Python program interrupted by Ctrl-C kills itself with SIGINT after its interpreter is finalized
 * (Modules/main.c, exit_sigint), so atexit() handlers never run. The interpreter's own exit functions do. */
#ifndef GPUFL_SDK_PYTHON_EXIT_H
#define GPUFL_SDK_PYTHON_EXIT_H

/* Calls `end` when the interpreter is finalized, in a process that is a Python interpreter. Not where Python is only
 * embedded: that program may continue without it. */
void python_exit_attend(void (*end)(void));

#endif
