/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/view.h"

#include "base/server_library.h"
#include "cli/browser.h"
#include "cli/command.h"
#include "cli/session_operand.h"
#include "cli/temporary.h"
#include "cli/terminal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const char module_mark[] = "an address in this program";

struct view {
    const struct view_request *request;
    struct progress *progress;
};

static void print_tunnel(const char *url)
{
    const char *ssh = getenv("SSH_CONNECTION");
    unsigned port;
    if (ssh && *ssh && sscanf(url, "http://127.0.0.1:%u/", &port) == 1)
        fprintf(stderr, "  from the machine you came from: ssh -L %u:127.0.0.1:%u HOST, then open the same URL\n", port,
                port);
}

static void on_ready(void *user, const char *url)
{
    struct view *view = user;
    progress_finish(view->progress);
    view->progress = NULL;
    printf("%s\n", url);
    fflush(stdout);
    bool is_open = !view->request->has_no_browser && browser_open(url);
    if (!is_open)
        print_tunnel(url);
    fprintf(stderr, "  %s; press Ctrl-C to stop\n", is_open ? "opened in your browser" : "open this URL in a browser");
}

int view_session(const struct view_request *request)
{
    struct problem problem = {""};
    server_main_fn run = server_library_find(module_mark, &problem);
    if (!run) {
        command_error(request->command, "%s", problem.text);
        return EXIT_ENVIRONMENT;
    }
    /* From here on nothing ends this program before the directory is removed. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    char dir[TEMPORARY_PATH_MAX], listen[32];
    if (!temporary_directory_make("view", dir))
        return EXIT_ENVIRONMENT;
    snprintf(listen, sizeof listen, "127.0.0.1:%ld", request->port);
    struct view view = {.request = request,
                        .progress = progress_start("reading the session", directory_bytes(request->session))};
    const struct server_command command = {.action = SERVER_VIEW,
                                           .listen = listen,
                                           .data = dir,
                                           .operand = request->session,
                                           .on_ready = on_ready,
                                           .user = &view};
    int code = run(&command);
    progress_finish(view.progress);
    temporary_directory_remove("view", dir);
    return code;
}

int command_view(int argc, char **argv)
{
    struct arguments arguments;
    struct session_choice choice;
    int code = command_parse("view", argc, argv, &arguments);
    if (code >= 0)
        return code;
    const char *session = session_operand("view", arguments.operands[0], &choice);
    if (!session)
        return EXIT_ENVIRONMENT;
    const struct view_request request = {.command = "view",
                                         .session = session,
                                         .port = arguments_number(&arguments, "port", 0),
                                         .has_no_browser = arguments_has(&arguments, "no-browser")};
    return view_session(&request);
}
