/* SPDX-License-Identifier: Apache-2.0 */
#include "code/disassembler.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char tool_name[] = "nvdisasm";

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool try_directory(char path[PATH_MAX], const char *directory, const char *folder)
{
    if (!directory || !*directory)
        return false;
    int size = snprintf(path, PATH_MAX, "%s%s/%s", directory, folder, tool_name);
    return size > 0 && size < PATH_MAX && is_program(path);
}

static bool try_pattern(char path[PATH_MAX], const char *prefix)
{
    if (!prefix || !*prefix)
        return false;
    static const char *const folders[] = {"site-packages", "dist-packages"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char pattern[PATH_MAX];
        int size = snprintf(pattern, sizeof pattern, "%s/lib/python3*/%s/triton/backends/nvidia/bin/%s", prefix,
                            folders[i], tool_name);
        glob_t found = {0};
        bool is_found = size > 0 && (size_t)size < sizeof pattern && glob(pattern, 0, NULL, &found) == 0 &&
                        is_program(found.gl_pathv[0]);
        if (is_found)
            snprintf(path, PATH_MAX, "%s", found.gl_pathv[0]);
        globfree(&found);
        if (is_found)
            return true;
    }
    return false;
}

/* Every directory of PATH: the tool itself, or a Python with Triton. */
static bool try_search_path(char path[PATH_MAX], bool is_for_python)
{
    const char *rest = getenv("PATH");
    while (rest && *rest) {
        size_t size = strcspn(rest, ":");
        char directory[PATH_MAX];
        if (size && size < sizeof directory - sizeof "/.." && rest[0] == '/') {
            memcpy(directory, rest, size);
            memcpy(directory + size, is_for_python ? "/.." : "", is_for_python ? sizeof "/.." : 1);
            if (is_for_python ? try_pattern(path, directory) : try_directory(path, directory, ""))
                return true;
        }
        rest += size;
        rest += *rest == ':';
    }
    return false;
}

gpufl_status disassembler_find(char path[PATH_MAX], struct problem *problem)
{
    const char *chosen = getenv("GPUFL_NVDISASM");
    if (chosen && *chosen) {
        if (strlen(chosen) >= PATH_MAX || !is_program(chosen))
            return problem_set(problem, GPUFL_E_NOT_FOUND, "GPUFL_NVDISASM: '%.256s' is not a program", chosen);
        snprintf(path, PATH_MAX, "%s", chosen);
        return GPUFL_OK;
    }
    if (try_search_path(path, false) || try_directory(path, getenv("CUDA_HOME"), "/bin") ||
        try_directory(path, getenv("CUDA_PATH"), "/bin") || try_directory(path, "/usr/local/cuda", "/bin") ||
        try_pattern(path, getenv("VIRTUAL_ENV")) || try_pattern(path, getenv("CONDA_PREFIX")) ||
        try_search_path(path, true))
        return GPUFL_OK;
    return problem_set(problem, GPUFL_E_NOT_FOUND,
                       "no nvdisasm in PATH, CUDA_HOME, /usr/local/cuda/bin or a Python's Triton; install the CUDA "
                       "toolkit's nvdisasm or set GPUFL_NVDISASM");
}

/* The running tool. */
struct tool_run {
    char directory[64], file[80]; /* of the cubin given to it; "": not made */
    pid_t pid;                    /* 0: not running */
    int output_fd, message_fd;
    char message[256]; /* the begin of what it wrote to stderr */
    size_t message_size;
    int64_t deadline_ns;
    int exit_code; /* -1: by a signal */
};

static gpufl_status cubin_give(struct tool_run *run, const struct cubin *cubin, struct problem *problem)
{
    const char *base = getenv("TMPDIR");
    if (!base || !*base || strlen(base) > 32)
        base = "/tmp";
    snprintf(run->directory, sizeof run->directory, "%s/gpufl-sass-XXXXXX", base);
    if (!mkdtemp(run->directory)) {
        gpufl_status status = problem_set(problem, GPUFL_E_IO, "cannot make %s: %s", run->directory, strerror(errno));
        run->directory[0] = '\0';
        return status;
    }
    snprintf(run->file, sizeof run->file, "%s/code.cubin", run->directory);
    int fd = open(run->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    size_t written = 0;
    while (fd >= 0 && written < cubin->size) {
        ssize_t count = write(fd, cubin->bytes + written, cubin->size - written);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        written += (size_t)count;
    }
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (written == cubin->size)
        return GPUFL_OK;
    return problem_set(problem, GPUFL_E_IO, "cannot write %s: %s", run->file, strerror(error));
}

static gpufl_status tool_start(struct tool_run *run, const struct disassembler_call *call, struct problem *problem)
{
    int output[2] = {-1, -1}, message[2] = {-1, -1};
    if (pipe2(output, O_CLOEXEC) || pipe2(message, O_CLOEXEC)) {
        int error = errno;
        if (output[0] >= 0) {
            close(output[0]);
            close(output[1]);
        }
        return problem_set(problem, GPUFL_E_IO, "cannot run %s: %s", call->tool, strerror(error));
    }
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output[1], 1);
    posix_spawn_file_actions_adddup2(&actions, message[1], 2);
    /* A group of its own, so that what a wrapper script starts ends with it. */
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    char index[16];
    snprintf(index, sizeof index, "%u", (unsigned)call->symbol_index);
    char *arguments[] = {(char *)(uintptr_t)tool_name, "-c", "-fun", index, run->file, NULL};
    int error = posix_spawn(&run->pid, call->tool, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(output[1]);
    close(message[1]);
    run->output_fd = output[0];
    run->message_fd = message[0];
    if (!error)
        return GPUFL_OK;
    run->pid = 0;
    return problem_set(problem, GPUFL_E_IO, "cannot run %s: %s", call->tool, strerror(error));
}

static int milliseconds_left(const struct tool_run *run)
{
    int64_t left_ns = run->deadline_ns - clock_mono_ns();
    return left_ns <= 0 ? 0 : (int)(left_ns / 1000000) + 1;
}

/* Reads what is there; closes the descriptor at its end. */
static void stream_read(int *fd, struct bytes *out, struct tool_run *run)
{
    char buffer[16384];
    ssize_t count = read(*fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR)
        return;
    if (count <= 0) {
        close(*fd);
        *fd = -1;
    } else if (out) {
        bytes_append(out, buffer, (size_t)count);
    } else {
        size_t room = sizeof run->message - 1 - run->message_size;
        size_t taken = (size_t)count < room ? (size_t)count : room;
        memcpy(run->message + run->message_size, buffer, taken);
        run->message_size += taken;
    }
}

static bool has_ended(struct tool_run *run)
{
    int status = 0;
    pid_t ended = waitpid(run->pid, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return false;
    /* Where children are not waited for (SIGCHLD ignored), its output has to speak for itself. */
    run->exit_code = ended < 0 ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    run->pid = 0;
    return true;
}

/* True when it ended by itself and nothing is left to read. */
static bool tool_follow(struct tool_run *run, struct bytes *out)
{
    while ((run->output_fd >= 0 || run->message_fd >= 0) && !out->failed) {
        struct pollfd ready[2] = {{.fd = run->output_fd, .events = POLLIN}, {.fd = run->message_fd, .events = POLLIN}};
        int count = poll(ready, 2, milliseconds_left(run));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        if (ready[0].revents)
            stream_read(&run->output_fd, out, run);
        if (ready[1].revents)
            stream_read(&run->message_fd, NULL, run);
    }
    while (!out->failed && !has_ended(run)) {
        if (!milliseconds_left(run))
            return false;
        poll(NULL, 0, 1);
    }
    return !out->failed;
}

static void tool_end(struct tool_run *run)
{
    if (run->pid > 0) {
        kill(-run->pid, SIGKILL);
        while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    if (run->output_fd >= 0)
        close(run->output_fd);
    if (run->message_fd >= 0)
        close(run->message_fd);
    if (run->file[0])
        unlink(run->file);
    if (run->directory[0])
        rmdir(run->directory);
}

/* The first line that the tool complained with, fit for a terminal. */
static const char *message_text(struct tool_run *run)
{
    run->message[run->message_size] = '\0';
    run->message[strcspn(run->message, "\n")] = '\0';
    for (char *c = run->message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return run->message;
}

gpufl_status disassembler_run(const struct disassembler_call *call, struct bytes *out, struct problem *problem)
{
    struct tool_run run = {
        .output_fd = -1,
        .message_fd = -1,
        .deadline_ns = clock_mono_ns() + (int64_t)call->time_limit_ms * 1000000,
    };
    gpufl_status status = cubin_give(&run, call->cubin, problem);
    if (!status)
        status = tool_start(&run, call, problem);
    if (!status && !tool_follow(&run, out)) {
        if (out->failed)
            status = problem_set(problem, GPUFL_E_LIMIT, "%s printed more than can be kept", call->tool);
        else
            status = problem_set(problem, GPUFL_E_LIMIT, "%s took longer than %u ms and was ended", call->tool,
                                 call->time_limit_ms);
    } else if (!status && run.exit_code) {
        status = problem_set(problem, GPUFL_E_IO, "%s failed (%s %d): %s", call->tool,
                             run.exit_code < 0 ? "signal, status" : "exit code", run.exit_code, message_text(&run));
    }
    tool_end(&run);
    return status;
}
