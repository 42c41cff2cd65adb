/* SPDX-License-Identifier: Apache-2.0 */
#include "code/disassembler.h"

#include "base/clock.h"
#include "code/amdgpu.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The running tool. */
struct tool_run {
    char directory[64], file[80]; /* of the code passed to it; "": not created */
    pid_t pid;                    /* 0: not running */
    int output_fd, message_fd;
    int stop_fd;       /* borrowed; -1: none */
    bool is_stopped;   /* stop_fd became readable */
    char message[256]; /* the beginning of its standard error */
    size_t message_size;
    int64_t deadline_ns;
    int exit_code; /* -1: ended by a signal */
};

static gpufl_status code_give(struct tool_run *run, const struct code_image *image, struct problem *problem)
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
    snprintf(run->file, sizeof run->file, "%s/code", run->directory);
    int fd = open(run->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    size_t written = 0;
    while (fd >= 0 && written < image->size) {
        ssize_t count = write(fd, image->bytes + written, image->size - written);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        written += (size_t)count;
    }
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (written == image->size)
        return GPUFL_OK;
    return problem_set(problem, GPUFL_E_IO, "cannot write %s: %s", run->file, strerror(error));
}

struct tool_arguments {
    char texts[3][64];
    char *list[7];
};

static void arguments_make(struct tool_arguments *arguments, struct tool_run *run, const struct disassembler_call *call)
{
    char *name = (char *)(uintptr_t)disassembler_name(call->image->vendor);
    char(*texts)[sizeof arguments->texts[0]] = arguments->texts;
    if (call->image->vendor == IMAGE_NVIDIA) {
        snprintf(texts[0], sizeof texts[0], "%u", (unsigned)call->function->symbol_index);
        memcpy(arguments->list, (char *[]){name, "-c", "-fun", texts[0], run->file, NULL}, 6 * sizeof(char *));
        return;
    }
    char target[40];
    uint64_t address = call->function->offset;
    if (call->image->is_linked)
        address += call->image->sections[call->function->section].address;
    amdgpu_target_name(call->image->arch, target, sizeof target);
    snprintf(texts[0], sizeof texts[0], "--mcpu=%s", target);
    snprintf(texts[1], sizeof texts[1], "--start-address=0x%" PRIx64, address);
    snprintf(texts[2], sizeof texts[2], "--stop-address=0x%" PRIx64, address + call->function->size);
    memcpy(arguments->list, (char *[]){name, "--disassemble", texts[0], texts[1], texts[2], run->file, NULL},
           sizeof arguments->list);
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
    /* A separate process group, so that children of a wrapper script are stopped too. */
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    struct tool_arguments arguments;
    arguments_make(&arguments, run, call);
    int error = posix_spawn(&run->pid, call->tool, &actions, &attributes, arguments.list, environ);
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

/* Reads available data; closes the descriptor at the end. */
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
    /* If the program ignores SIGCHLD, there is no exit status and only the output can be checked. */
    run->exit_code = ended < 0 ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    run->pid = 0;
    return true;
}

/* True when the tool has ended by itself and all its output is read. */
static bool tool_follow(struct tool_run *run, struct bytes *out)
{
    while ((run->output_fd >= 0 || run->message_fd >= 0) && !out->failed) {
        struct pollfd ready[] = {{.fd = run->output_fd, .events = POLLIN},
                                 {.fd = run->message_fd, .events = POLLIN},
                                 {.fd = run->stop_fd, .events = POLLIN}};
        int count = poll(ready, 3, milliseconds_left(run));
        if (count < 0 && errno == EINTR)
            continue;
        run->is_stopped = count > 0 && ready[2].revents;
        if (count <= 0 || run->is_stopped)
            return false;
        if (ready[0].revents)
            stream_read(&run->output_fd, out, run);
        if (ready[1].revents)
            stream_read(&run->message_fd, NULL, run);
    }
    while (!out->failed && !has_ended(run)) {
        struct pollfd stop = {.fd = run->stop_fd, .events = POLLIN};
        run->is_stopped = poll(&stop, 1, 1) > 0;
        if (run->is_stopped || !milliseconds_left(run))
            return false;
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

/* The first line of the tool's error output, safe for a terminal. */
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
        .stop_fd = call->stop_fd ? *call->stop_fd : -1,
        .deadline_ns = clock_mono_ns() + (int64_t)call->time_limit_ms * 1000000,
    };
    gpufl_status status = code_give(&run, call->image, problem);
    if (!status)
        status = tool_start(&run, call, problem);
    if (!status && !tool_follow(&run, out)) {
        if (out->failed)
            status = problem_set(problem, GPUFL_E_LIMIT, "the output of %s is too large", call->tool);
        else if (run.is_stopped)
            status = problem_set(problem, GPUFL_E_LIMIT, "%s was stopped", call->tool);
        else
            status = problem_set(problem, GPUFL_E_LIMIT, "%s took longer than %u ms and was stopped", call->tool,
                                 call->time_limit_ms);
    } else if (!status && run.exit_code) {
        status = problem_set(problem, GPUFL_E_IO, "%s failed (%s %d): %s", call->tool,
                             run.exit_code < 0 ? "signal, status" : "exit code", run.exit_code, message_text(&run));
    }
    /* The tool then continues with another target, or crashes. */
    if (run.message_size && call->image->vendor == IMAGE_AMD &&
        strstr(message_text(&run), "is not a recognized processor"))
        status = problem_set(problem, GPUFL_E_UNSUPPORTED,
                             "%s does not support %s: set GPUFL_LLVM_OBJDUMP to a newer one, such as ROCm's",
                             call->tool, call->image->arch);
    tool_end(&run);
    return status;
}
