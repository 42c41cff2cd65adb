/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#ifdef GPUFL_STATIC
#include "agent/agent.h"
#include "base/sibling_library.h"
#include "server/server_main.h"
#include "upload/config_fetch.h"
#include "upload/post.h"
#include "upload/upload.h"
#endif

/* The command that the program is called by: gpufl-monitor is `gpufl monitor`. NULL: none. */
static const struct command *by_own_name(const char *path)
{
    static const char prefix[] = "gpufl-";
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strncmp(name, prefix, sizeof prefix - 1) ? NULL : command_find(name + sizeof prefix - 1);
}

static int run(int argc, char **argv)
{
    const struct command *own = argc ? by_own_name(argv[0]) : NULL;
    if (own)
        return own->run(argc, argv);
    bool is_help_word = argc >= 2 && strcmp(argv[1], "help") == 0;
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || (is_help_word && argc == 2)) {
        help_print(stdout);
        return EXIT_GOOD;
    }
    const struct command *command = command_find_or_explain("gpufl", argv[is_help_word ? 2 : 1]);
    if (!command)
        return EXIT_USAGE;
    if (is_help_word) {
        help_print_command(stdout, command);
        return EXIT_GOOD;
    }
    return command->run(argc - 1, argv + 1);
}

#ifdef GPUFL_STATIC
/* The static program has in it what other builds load. */
static void functions_register(void)
{
    static const struct sibling_function functions[] = {
        {"gpufl_server_main", (void (*)(void))gpufl_server_main},
        {"gpufl_upload_run", (void (*)(void))gpufl_upload_run},
        {"gpufl_upload_check", (void (*)(void))gpufl_upload_check},
        {"gpufl_upload_post", (void (*)(void))gpufl_upload_post},
        {"gpufl_config_fetch", (void (*)(void))gpufl_config_fetch},
        {"gpufl_agent_run", (void (*)(void))gpufl_agent_run},
    };
    sibling_functions_set(functions, sizeof functions / sizeof *functions);
}
#endif

int main(int argc, char **argv)
{
#ifdef GPUFL_STATIC
    functions_register();
#endif
    /* Texts that fit are written at the end, where the reason of a failure is known. */
    static char buffer[1 << 18];
    if (!isatty(STDOUT_FILENO))
        setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    int code = run(argc, argv);
    /* A full disk behind stdout must not look like an answer; commands leave it to this place to say so. */
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (!errno && putchar('\n') != EOF) /* an earlier write failed: the next one has the same reason */
        (void)fflush(stdout);
    fprintf(stderr, "gpufl: cannot write to standard output%s%s\n", errno ? ": " : "", errno ? strerror(errno) : "");
    return code <= EXIT_ANSWER_NO ? EXIT_ENVIRONMENT : code;
}
