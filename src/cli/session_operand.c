/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session_operand.h"

#include "cli/command.h"

#include <sys/stat.h>

const char *session_operand(const char *command, const char *word, struct session_choice *choice)
{
    struct problem problem = {""};
    if (session_select(word, choice, &problem) != GPUFL_OK) {
        command_error(command, "%s", problem.text);
        return NULL;
    }
    const struct session_place *place = &choice->place;
    if (choice->count > 1)
        command_error(command, "%zu sessions %s%s; taking the newest, %s", choice->count, word ? "in " : "here",
                      word ? word : "", *place->name ? place->name : place->path);
    return place->path;
}

const char *session_operand_directory(const char *command, const char *word, struct session_choice *choice)
{
    struct stat status;
    if (word && stat(word, &status) == 0 && S_ISDIR(status.st_mode))
        return word;
    return session_operand(command, word, choice);
}
