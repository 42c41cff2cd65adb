/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/browser.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 16, WORD_BYTES_MAX = 2048 };

static _Noreturn void become_browser(char **argv, int report_fd)
{
    sigset_t none;
    int null_fd = open("/dev/null", O_RDWR);
    for (int fd = STDIN_FILENO; null_fd >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null_fd, fd);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    execvp(argv[0], argv);
    int error = errno;
    ssize_t written = write(report_fd, &error, sizeof error);
    _exit(written == sizeof error ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* False: it cannot be executed. The browser is nobody's child: it may outlive this program. */
static bool start(char **argv)
{
    int fds[2], error = 0;
    if (pipe2(fds, O_CLOEXEC))
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        pid_t browser = fork();
        if (browser == 0)
            become_browser(argv, fds[1]);
        _exit(browser < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    close(fds[1]);
    int status = 0;
    bool is_forked = pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
    bool is_failed = read(fds[0], &error, sizeof error) > 0; /* the pipe closes when the browser is executed */
    close(fds[0]);
    return is_forked && !is_failed;
}

/* A command of $BROWSER: words, with %s for the URL or the URL at the end. */
static bool start_command(const char *command, size_t size, const char *url)
{
    char words[WORD_BYTES_MAX], *argv[WORDS_MAX + 2], *rest = words, *word;
    int count = 0;
    bool has_url = false;
    if (!size || size >= sizeof words)
        return false;
    memcpy(words, command, size);
    words[size] = '\0';
    while (count < WORDS_MAX && (word = strsep(&rest, " ")) != NULL) {
        if (!*word)
            continue;
        bool is_url = !strcmp(word, "%s");
        argv[count++] = is_url ? (char *)url : word;
        has_url = has_url || is_url;
    }
    if (!has_url)
        argv[count++] = (char *)url;
    argv[count] = NULL;
    return count > 1 && start(argv);
}

static bool has_value(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

bool browser_open(const char *url)
{
    const char *list = getenv("BROWSER");
    for (const char *at = list; at && *at;) {
        size_t size = strcspn(at, ":");
        if (start_command(at, size, url))
            return true;
        at += size + (at[size] == ':');
    }
    char *const argv[] = {(char *)"xdg-open", (char *)url, NULL};
    return (has_value("DISPLAY") || has_value("WAYLAND_DISPLAY")) && start((char **)argv);
}
