/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/temporary.h"

#include "cli/command.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>

bool temporary_directory_make(const char *command, char dir[TEMPORARY_PATH_MAX])
{
    const char *base = getenv("TMPDIR");
    base = base && *base ? base : "/tmp";
    int size = snprintf(dir, TEMPORARY_PATH_MAX, "%s/gpufl-%s-XXXXXX", base, command);
    if (size > 0 && size < TEMPORARY_PATH_MAX && mkdtemp(dir))
        return true;
    command_error(command, "cannot make a directory in %s: %s", base,
                  size < TEMPORARY_PATH_MAX ? strerror(errno) : "its name is too long");
    return false;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

void temporary_directory_remove(const char *command, const char *dir)
{
    enum { DESCRIPTORS_MAX = 16 };
    if (nftw(dir, remove_one, DESCRIPTORS_MAX, FTW_DEPTH | FTW_PHYS))
        command_error(command, "%s could not be removed: %s", dir, strerror(errno));
}
