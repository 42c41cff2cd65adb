/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <string.h>

enum { COMMANDS_MAX = 63 };

const struct command *command_find(const char *name)
{
    for (const struct command *command = command_table; command->name; command++) {
        if (strcmp(command->name, name) == 0)
            return command;
    }
    return NULL;
}

const char *const *command_names(void)
{
    static const char *names[COMMANDS_MAX + 1];
    size_t count = 0;
    for (const struct command *command = command_table; command->name && count < COMMANDS_MAX; command++)
        names[count++] = command->name;
    names[count] = NULL;
    return names;
}
