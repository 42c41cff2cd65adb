/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session_operand.h"

#include "cli/command.h"

#include <string.h>

const char *session_operand(const char *command, const char *dir, struct newest_session *newest)
{
    struct problem problem = {""};
    if (session_find_newest(dir, newest, &problem) != GPUFL_OK) {
        command_error(command, "%s", problem.text);
        return NULL;
    }
    if (newest->count > 1)
        command_error(command, "%zu sessions in %s; taking the newest, %s", newest->count, dir,
                      strrchr(newest->path, '/') + 1);
    return newest->count ? newest->path : dir;
}
