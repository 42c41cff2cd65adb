/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/rocprofiler_lookup.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { probe_timeout_ms = 10000 };

static const char library_name[] = "librocprofiler-sdk.so"; /* the name that librocprofiler-register opens */
static const char entry_point[] = "rocprofiler_set_api_table";
static const char own_variable[] = "GPUFL_ROCPROFILER_PATH";

gpufl_status rocprofiler_library_open(struct library *library, struct problem *problem)
{
    static const char *const names[] = {"librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0", library_name, NULL};
    char given[512] = "";
    const char *root = getenv("ROCM_PATH");
    if (root && root[0] == '/')
        snprintf(given, sizeof given, "%.500s/lib", root);
    const char *const directories[] = {given[0] ? given : "/opt/rocm/lib", "/opt/rocm/lib", "/opt/rocm-*/lib", NULL};
    const struct library_search search = {library_name, own_variable, directories, names};
    return library_open(library, &search, problem);
}

/* NULL: not set or empty, which librocprofiler-register treats alike. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static gpufl_status lacks_entry_point(const char *path, struct problem *problem)
{
    return problem_set(problem, GPUFL_E_NOT_FOUND,
                       "%s has no %s: HIP would abort the program; install rocprofiler-sdk 0.5 (ROCm 6.3) or newer",
                       path, entry_point);
}

/* ---- before the program starts ---- */

/* The user's variable is tried as a path, then by its last component. */
static gpufl_status find_named(const char *named, struct problem *problem)
{
    const char *slash = strrchr(named, '/');
    void *handle = dlopen(named, RTLD_LAZY | RTLD_LOCAL);
    if (!handle && slash)
        handle = dlopen(slash + 1, RTLD_LAZY | RTLD_LOCAL);
    if (!handle)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "%s=%s: cannot load it (%s); correct or unset the variable",
                           ROCPROFILER_REGISTER_LIBRARY, named, dlerror());
    return dlsym(handle, entry_point) ? GPUFL_OK : lacks_entry_point(named, problem);
}

static gpufl_status find(struct rocprofiler_lookup *lookup, struct problem *problem)
{
    const char *named = variable(ROCPROFILER_REGISTER_LIBRARY);
    if (named)
        return find_named(named, problem);
    void *by_name = variable(own_variable) ? NULL : dlopen(library_name, RTLD_LAZY | RTLD_LOCAL);
    if (by_name && dlsym(by_name, entry_point))
        return GPUFL_OK;
    struct library library = {0};
    gpufl_status status = rocprofiler_library_open(&library, problem);
    if (status != GPUFL_OK)
        return GPUFL_E_NOT_FOUND;
    if (!library_symbol(&library, entry_point))
        return lacks_entry_point(library.path, problem);
    char absolute[PATH_MAX];
    if (!realpath(library.path, absolute))
        return problem_set(problem, GPUFL_E_NOT_FOUND, "%s: cannot resolve its path: %s", library.path,
                           strerror(errno));
    size_t size = strlen(absolute) + 1;
    if (size > sizeof lookup->library)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "%s: its path is longer than %zu bytes", absolute,
                           sizeof lookup->library - 1);
    memcpy(lookup->library, absolute, size);
    return GPUFL_OK;
}

struct probe_answer {
    gpufl_status status;
    struct rocprofiler_lookup lookup;
    struct problem problem;
};

_Static_assert(sizeof(struct probe_answer) <= PIPE_BUF, "the answer is written and read whole");

static void probe_child(int out)
{
    struct probe_answer answer = {0};
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing >= 0) { /* the library's output while it is loaded is not for the user */
        (void)dup2(nothing, STDOUT_FILENO);
        (void)dup2(nothing, STDERR_FILENO);
    }
    answer.status = find(&answer.lookup, &answer.problem);
    (void)!write(out, &answer, sizeof answer);
    _exit(0);
}

static bool read_answer(int in, struct probe_answer *answer)
{
    const int64_t deadline_ns = clock_mono_ns() + (int64_t)probe_timeout_ms * 1000000;
    struct pollfd readable = {.fd = in, .events = POLLIN};
    for (;;) {
        int64_t left_ms = (deadline_ns - clock_mono_ns()) / 1000000;
        if (left_ms < 0)
            return false;
        int count = poll(&readable, 1, (int)left_ms);
        if (count > 0)
            return read(in, answer, sizeof *answer) == (ssize_t)sizeof *answer;
        if (count == 0 || errno != EINTR)
            return false;
    }
}

gpufl_status rocprofiler_lookup_probe(struct rocprofiler_lookup *lookup, struct problem *problem)
{
    static const char cannot[] = "cannot start a process to look for librocprofiler-sdk.so";
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC))
        return problem_set(problem, GPUFL_E_NOT_FOUND, "%s", cannot);
    pid_t child = fork();
    if (child == 0)
        probe_child(pipe_ends[1]);
    close(pipe_ends[1]);
    struct probe_answer answer = {0};
    bool is_read = child > 0 && read_answer(pipe_ends[0], &answer);
    close(pipe_ends[0]);
    if (child < 0)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "%s", cannot);
    if (!is_read)
        (void)kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    if (!is_read)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "librocprofiler-sdk.so crashed or hung while it was loaded");
    *problem = answer.problem;
    if (answer.status == GPUFL_OK)
        *lookup = answer.lookup;
    return answer.status;
}

/* ---- in the program ---- */

/* Whether the name refers to the library loaded as `handle`; loads nothing. */
static bool is_loaded_as(const char *name, const void *handle)
{
    void *found = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (found)
        dlclose(found);
    return found && found == handle;
}

gpufl_status rocprofiler_lookup_ensure(const struct library *library, struct problem *problem)
{
    if (!library_symbol(library, entry_point))
        return lacks_entry_point(library->path, problem);
    const char *named = variable(ROCPROFILER_REGISTER_LIBRARY);
    if (is_loaded_as(named ? named : library_name, library->handle))
        return GPUFL_OK;
    if (named)
        return problem_set(problem, GPUFL_E_BUSY,
                           "%s names %s, and gpufl uses %s; unset it, or set %s to the same library",
                           ROCPROFILER_REGISTER_LIBRARY, named, library->path, own_variable);
    char absolute[PATH_MAX];
    if (!realpath(library->path, absolute) || setenv(ROCPROFILER_REGISTER_LIBRARY, absolute, 1))
        return problem_set(problem, GPUFL_E_NO_MEMORY, "cannot set %s to %s", ROCPROFILER_REGISTER_LIBRARY,
                           library->path);
    return GPUFL_OK;
}
