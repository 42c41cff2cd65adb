/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/background.h"

#include "base/clock.h"
#include "base/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 32, LOG_BYTES_MAX = 1 << 20, CHECK_EVERY_MS = 20 };

static _Noreturn void become_command(char **argv, int log_fd, const char *notify, pid_t parent)
{
    static const char *const own[] = {"GPUFL_SERVE_ADMIN_KEY",
                                      "GPUFL_API_KEY",
                                      "GPUFL_API_PATH",
                                      "GPUFL_BACKEND_URL",
                                      "GPUFL_REMOTE_CONFIG",
                                      "GPUFL_MONITOR_APP",
                                      "GPUFL_MONITOR_INTERVAL_MS",
                                      "GPUFL_MONITOR_LOG_DIR",
                                      "WATCHDOG_USEC",
                                      "WATCHDOG_PID",
                                      "NOTIFY_SOCKET"};
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_FAILURE); /* it ended before we could ask to hear of it */
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        unsetenv(own[i]);
    if (notify)
        setenv("NOTIFY_SOCKET", notify, 1);
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_fd >= 0)
        dup2(null_fd, STDIN_FILENO);
    dup2(log_fd, STDOUT_FILENO);
    dup2(log_fd, STDERR_FILENO);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execv("/proc/self/exe", argv);
    fprintf(stderr, "gpufl cannot start itself: %s\n", strerror(errno));
    _exit(127);
}

gpufl_status background_start(struct background *background, const char *name, const char *const *argv, const char *dir,
                              const char *notify, struct problem *problem)
{
    char *full[ARGUMENTS_MAX + 3] = {(char *)"gpufl", (char *)name};
    for (size_t i = 0; i < ARGUMENTS_MAX && argv[i]; i++)
        full[i + 2] = (char *)argv[i];
    *background = (struct background){.name = name};
    int size = snprintf(background->log, sizeof background->log, "%s/%s.log", dir, name);
    if (size < 0 || (size_t)size >= sizeof background->log)
        return problem_set(problem, GPUFL_E_LIMIT, "the path of the log of gpufl %s is too long", name);
    int log_fd = open(background->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0)
        return problem_set(problem, GPUFL_E_IO, "%.300s: %s", background->log, strerror(errno));
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become_command(full, log_fd, notify, parent);
    int error = errno;
    close(log_fd);
    if (pid < 0)
        return problem_set(problem, GPUFL_E_LIMIT, "cannot start gpufl %s: %s", name, strerror(error));
    background->pid = pid;
    return GPUFL_OK;
}

bool background_is_running(struct background *background)
{
    int status;
    if (!background->pid)
        return false;
    if (waitpid(background->pid, &status, WNOHANG) != background->pid)
        return true;
    background->pid = 0;
    background->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return false;
}

bool background_stop(struct background *background, int timeout_ms)
{
    int64_t until_ns = clock_mono_ns() + (int64_t)timeout_ms * 1000000;
    if (background_is_running(background))
        kill(background->pid, SIGTERM);
    while (background_is_running(background)) {
        if (clock_mono_ns() >= until_ns)
            kill(background->pid, SIGKILL);
        poll(NULL, 0, CHECK_EVERY_MS);
    }
    return background->exit_code == 0;
}

void background_last_words(const struct background *background, char *out, size_t size)
{
    struct bytes text = {0};
    snprintf(out, size, "it said nothing");
    if (file_load(AT_FDCWD, background->log, LOG_BYTES_MAX, &text) == GPUFL_OK && text.size) {
        size_t end = text.size;
        while (end && text.data[end - 1] == '\n')
            end--;
        size_t begin = end;
        while (begin && text.data[begin - 1] != '\n')
            begin--;
        if (end > begin)
            snprintf(out, size, "%.*s", (int)(end - begin), text.data + begin);
    }
    bytes_free(&text);
}
