/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/child.h"

#include "base/clock.h"
#include "base/message_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The message socket's number in the program: high, so that programs which count on low numbers are not disturbed. */
enum { MESSAGE_FD_MIN = 200 };

static const int watched_signals[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

struct child_pipes {
    int message_parent, message_child; /* SOCK_DGRAM pair */
    int exec_read, exec_write;         /* errno of a failed exec */
    int signal_fd;
};

bool child_set(struct child_options *options, const char *name, const char *value, bool keeps_own)
{
    if (options->variable_count == CHILD_VARIABLES_MAX)
        return false;
    struct child_variable *variable = &options->variables[options->variable_count];
    size_t size = strlen(value) + 1;
    if (size > sizeof variable->value)
        return false;
    variable->name = name;
    variable->keeps_own = keeps_own;
    memcpy(variable->value, value, size);
    options->variable_count++;
    return true;
}

static void close_pipes(struct child_pipes *pipes)
{
    int *const all[] = {&pipes->message_parent, &pipes->message_child, &pipes->exec_read, &pipes->exec_write,
                        &pipes->signal_fd};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (*all[i] >= 0)
            close(*all[i]);
        *all[i] = -1;
    }
}

static gpufl_status open_pipes(struct child_pipes *pipes, const sigset_t *watched, bool has_messages,
                               struct problem *problem)
{
    *pipes = (struct child_pipes){-1, -1, -1, -1, -1};
    int pair[2];
    if (has_messages) {
        if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) != 0)
            goto failed;
        pipes->message_parent = pair[0];
        pipes->message_child = fcntl(pair[1], F_DUPFD, MESSAGE_FD_MIN);
        if (pipes->message_child < 0)
            pipes->message_child = dup(pair[1]);
        close(pair[1]);
        if (pipes->message_child < 0)
            goto failed;
    }
    if (pipe2(pair, O_CLOEXEC) != 0)
        goto failed;
    pipes->exec_read = pair[0];
    pipes->exec_write = pair[1];
    pipes->signal_fd = signalfd(-1, watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (pipes->signal_fd >= 0)
        return GPUFL_OK;
failed:;
    gpufl_status status = problem_set(problem, GPUFL_E_LIMIT, "cannot start a program: %s", strerror(errno));
    close_pipes(pipes);
    return status;
}

static _Noreturn void become_program(const struct child_options *options, const struct child_pipes *pipes,
                                     const sigset_t *mask)
{
    for (unsigned i = 0; i < options->variable_count; i++)
        setenv(options->variables[i].name, options->variables[i].value, !options->variables[i].keeps_own);
    if (pipes->message_child >= 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", pipes->message_child);
        setenv("GPUFL_MESSAGE_FD", number, 1);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(options->argv[0], options->argv);
    int error = errno;
    if (write(pipes->exec_write, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

/* True: it was about the session, and is not for the user. */
static bool note_session(const char *word, const char *text, struct child_result *result)
{
    bool is_begin = !strcmp(word, "session");
    if (!is_begin && strcmp(word, "closed") != 0)
        return false;
    if (strtol(text, NULL, 10) == result->pid)
        result->has_session = is_begin;
    return true;
}

static void read_messages(const struct child_options *options, int fd, struct child_result *result)
{
    char packet[1024];
    ssize_t size;
    while ((size = recv(fd, packet, sizeof packet - 1, MSG_DONTWAIT)) > 0) {
        packet[size] = '\0';
        char *text = strchr(packet, ' ');
        if (!text)
            continue;
        *text++ = '\0';
        if (note_session(packet, text, result))
            continue;
        /* It comes from inside somebody's program: nothing in it may steer the terminal. */
        for (char *c = text; *c; c++) {
            if (((unsigned char)*c < 0x20 && *c != '\n') || *c == 0x7f)
                *c = '?';
        }
        if (options->on_message)
            options->on_message(options->user, packet, text);
    }
}

/* Neither caught nor ignored: it will end the program at once, and none of the program's code runs any more. */
static bool ends_program(pid_t pid, int number)
{
    char path[32], line[256];
    unsigned long long handled = 0, mask;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    bool is_read = false;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "SigIgn: %llx", &mask) == 1 || sscanf(line, "SigCgt: %llx", &mask) == 1) {
            handled |= mask;
            is_read = true;
        }
    if (file)
        fclose(file);
    return is_read && !(handled >> (number - 1) & 1);
}

/* Waits for the answer, but not for long: a program that hangs must still get its signal. */
static void close_session(const struct child_options *options, const struct child_pipes *pipes,
                          struct child_result *result)
{
    int64_t until_ns = clock_mono_ns() + CHILD_CLOSE_MS * INT64_C(1000000);
    message_socket_send(pipes->message_parent, "close", result->pid);
    while (result->has_session) {
        int64_t left_ms = (until_ns - clock_mono_ns()) / 1000000;
        struct pollfd ready = {.fd = pipes->message_parent, .events = POLLIN};
        if (left_ms <= 0 || (poll(&ready, 1, (int)left_ms) <= 0 && errno != EINTR))
            return;
        read_messages(options, pipes->message_parent, result);
    }
}

static void pass_on(const struct child_options *options, const struct child_pipes *pipes, struct child_result *result,
                    const struct signalfd_siginfo *info)
{
    pid_t pid = result->pid;
    int number = (int)info->ssi_signo;
    /* The terminal sends these to the whole foreground group: the program has it already. */
    bool is_from_terminal = (number == SIGINT || number == SIGQUIT) && info->ssi_code == SI_KERNEL;
    if (number == SIGCHLD || is_from_terminal || (pid_t)info->ssi_pid == pid)
        return;
    if (result->has_session && ends_program(pid, number))
        close_session(options, pipes, result);
    kill(pid, number);
}

static void wait_for_end(const struct child_options *options, const struct child_pipes *pipes,
                         struct child_result *result)
{
    int status = 0;
    bool is_running = true;
    while (is_running) {
        struct pollfd ready[2] = {{.fd = pipes->signal_fd, .events = POLLIN},
                                  {.fd = pipes->message_parent, .events = POLLIN}};
        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            break;
        if (pipes->message_parent >= 0)
            read_messages(options, pipes->message_parent, result);
        struct signalfd_siginfo info;
        while (read(pipes->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
            pass_on(options, pipes, result, &info);
        is_running = waitpid(result->pid, &status, WNOHANG) == 0;
        if (pipes->message_parent >= 0)
            read_messages(options, pipes->message_parent, result);
    }
    if (is_running)
        waitpid(result->pid, &status, 0);
    /* Refused where nobody has the other side any more; whoever has it only writes. */
    result->has_left =
        pipes->message_parent >= 0 && send(pipes->message_parent, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) == 0;
    result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static gpufl_status run_blocked(const struct child_options *options, const sigset_t *watched, const sigset_t *mask,
                                struct child_result *result, struct problem *problem)
{
    struct child_pipes pipes;
    gpufl_status status = open_pipes(&pipes, watched, options->on_message != NULL, problem);
    if (status != GPUFL_OK)
        return status;
    fflush(NULL);
    int64_t began_ns = clock_mono_ns();
    result->pid = fork();
    if (result->pid == 0)
        become_program(options, &pipes, mask);
    if (result->pid < 0) {
        status = problem_set(problem, GPUFL_E_LIMIT, "cannot start a program: %s", strerror(errno));
        close_pipes(&pipes);
        return status;
    }
    close(pipes.exec_write);
    pipes.exec_write = -1;
    if (pipes.message_child >= 0)
        close(pipes.message_child);
    pipes.message_child = -1;
    int error = 0;
    if (read(pipes.exec_read, &error, sizeof error) == (ssize_t)sizeof error) {
        waitpid(result->pid, NULL, 0);
        bool is_missing = error == ENOENT || error == ENOTDIR;
        status = problem_set(problem, is_missing ? GPUFL_E_NOT_FOUND : GPUFL_E_PERMISSION, "cannot run '%s': %s",
                             options->argv[0], strerror(error));
    } else {
        wait_for_end(options, &pipes, result);
        result->wall_ns = clock_mono_ns() - began_ns;
    }
    close_pipes(&pipes);
    return status;
}

gpufl_status child_run(const struct child_options *options, struct child_result *result, struct problem *problem)
{
    sigset_t watched, mask;
    sigemptyset(&watched);
    for (size_t i = 0; i < sizeof watched_signals / sizeof watched_signals[0]; i++)
        sigaddset(&watched, watched_signals[i]);
    /* Ignored children would be gone before their status could be read. */
    signal(SIGCHLD, SIG_DFL);
    /* Blocked, not caught: nothing interrupts us, and ignored signals stay ignored in the program. */
    sigprocmask(SIG_BLOCK, &watched, &mask);
    gpufl_status status = run_blocked(options, &watched, &mask, result, problem);
    /* Whatever arrived since belongs to the program that has ended; it must not kill us before the last line. */
    struct timespec now = {0, 0};
    while (sigtimedwait(&watched, NULL, &now) > 0)
        continue;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    return status;
}
