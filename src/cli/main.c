/* SPDX-License-Identifier: Apache-2.0 */
#include "base/environment.h"
#include "cli/command.h"

#include <string.h>

/* The command, or NULL after saying that there is none and which one is near. */
static const struct command *find_or_explain(const char *word)
{
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        word = "version";
    const struct command *command = command_find(word);
    if (command)
        return command;
    const char *near = nearest_word(word, command_names());
    if (near)
        fprintf(stderr, "gpufl: no command '%s'; did you mean '%s'?\n", word, near);
    else
        fprintf(stderr, "gpufl: no command '%s'; `gpufl` lists them\n", word);
    return NULL;
}

static int run(int argc, char **argv)
{
    bool is_help_word = argc >= 2 && strcmp(argv[1], "help") == 0;
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || (is_help_word && argc == 2)) {
        help_print(stdout);
        return EXIT_GOOD;
    }
    const struct command *command = find_or_explain(argv[is_help_word ? 2 : 1]);
    if (!command)
        return EXIT_USAGE;
    if (is_help_word) {
        help_print_command(stdout, command);
        return EXIT_GOOD;
    }
    return command->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    int code = run(argc, argv);
    /* A full disk or a closed pipe behind stdout must not look like success. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_GOOD)
        code = EXIT_ENVIRONMENT;
    return code;
}
