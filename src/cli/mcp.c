/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/mcp.h"

#include "cli/command.h"

#include <signal.h>
#include <unistd.h>

int command_mcp(int argc, char **argv)
{
    struct arguments arguments;
    struct problem problem = {""};
    struct mcp_server *server;
    int code = command_parse("mcp", argc, argv, &arguments);
    if (code >= 0)
        return code;
    if (mcp_open(&server, arguments.operand_count ? arguments.operands[0] : ".", &problem) != GPUFL_OK) {
        command_error("mcp", "%s", problem.text);
        return EXIT_ENVIRONMENT;
    }
    /* A client that closes its end is an end like any other. */
    signal(SIGPIPE, SIG_IGN);
    if (isatty(STDIN_FILENO))
        command_error("mcp",
                      "serving the sessions in %s; a coding assistant starts this command and talks to it on "
                      "standard input and output. Ctrl-D ends it",
                      mcp_root(server));
    gpufl_status status = mcp_serve(server, STDIN_FILENO, STDOUT_FILENO, &problem);
    if (status != GPUFL_OK)
        command_error("mcp", "%s", problem.text);
    mcp_close(server);
    return status == GPUFL_OK ? EXIT_GOOD : EXIT_ENVIRONMENT;
}
