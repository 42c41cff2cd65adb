/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/python_exit.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static bool is_python(void)
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size <= 0)
        return false;
    path[size] = '\0';
    const char *slash = strrchr(path, '/');
    return slash && strncmp(slash + 1, "python", strlen("python")) == 0;
}

void python_exit_attend(void (*end)(void))
{
    int (*is_initialized)(void), (*at_exit)(void (*)(void));
    void *initialized_symbol = dlsym(RTLD_DEFAULT, "Py_IsInitialized"), *symbol = dlsym(RTLD_DEFAULT, "Py_AtExit");
    memcpy(&is_initialized, &initialized_symbol, sizeof initialized_symbol);
    memcpy(&at_exit, &symbol, sizeof symbol);
    /* Its table has 32 entries; if it is full, only the atexit() handler remains. */
    if (symbol && initialized_symbol && is_python() && is_initialized())
        (void)at_exit(end);
}
