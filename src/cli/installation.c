/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/installation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool installation_find(char out[PATH_MAX], const char *const *candidates)
{
    char program[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
    if (size <= 0)
        return false;
    program[size] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash)
        return false;
    *slash = '\0';
    for (; *candidates; candidates++) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, "%s/%s", program, *candidates);
        if (length > 0 && (size_t)length < sizeof path && realpath(path, out))
            return true;
    }
    return false;
}

bool installation_find_recorder(char out[PATH_MAX])
{
    static const char *const installed[] = {"../lib/libgpufl_inject.so", GPUFL_LIBRARY_DIR "/libgpufl_inject.so",
                                            "../lib/gpufl/libgpufl_inject.so", NULL};
    static const char *const beside[] = {"libgpufl_inject.so", NULL};
    if (installation_find(out, installed))
        return true;
    const char *given = getenv("GPUFL_INJECT_LIB");
    if (given && *given && realpath(given, out))
        return true;
    return installation_find(out, beside);
}
