/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

bool pager_start(struct pager *pager, const char *const *argv)
{
    int fds[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(fds, O_CLOEXEC))
        return false;
    fflush(stdout);
    pager->output_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    bool is_started = false;
    if (pager->output_fd >= 0 && !posix_spawn_file_actions_init(&actions)) {
        is_started = !posix_spawn_file_actions_adddup2(&actions, fds[0], STDIN_FILENO) &&
                     !posix_spawnp(&pager->pid, argv[0], &actions, NULL, (char *const *)argv, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (is_started) {
        signal(SIGPIPE, SIG_IGN);
        (void)dup2(fds[1], STDOUT_FILENO);
    } else if (pager->output_fd >= 0) {
        close(pager->output_fd);
    }
    close(fds[0]);
    close(fds[1]);
    return is_started;
}

void pager_finish(struct pager *pager)
{
    (void)fflush(stdout);
    clearerr(stdout);
    (void)dup2(pager->output_fd, STDOUT_FILENO); /* the pager's input ends */
    close(pager->output_fd);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is the pager's */
    while (waitpid(pager->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
}
