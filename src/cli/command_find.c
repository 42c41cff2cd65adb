/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/message.h"
#include "base/environment.h"
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

/* What other tools call these commands: perf record, nsys profile, docker run, cargo's and git's words. */
static const char *command_for_habit(const char *word)
{
    static const struct {
        const char *habit, *command;
    } habits[] = {{"record", "trace"}, {"profile", "trace"}, {"run", "trace"},         {"open", "view"}, {"list", "ls"},
                  {"compare", "diff"}, {"stats", "report"},  {"--version", "version"}, {"-V", "version"}};
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (strcmp(word, habits[i].habit) == 0)
            return habits[i].command;
    return word;
}

const struct command *command_find_or_explain(const char *who, const char *word)
{
    const struct command *command = command_find(command_for_habit(word));
    if (command)
        return command;
    const char *near = nearest_word(word, command_names());
    if (near)
        message_print(stderr, "%s: no command '%s'; did you mean '%s'?", who, word, near);
    else
        message_print(stderr, "%s: no command '%s'; for the list, run 'gpufl help'", who, word);
    return NULL;
}
