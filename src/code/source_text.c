/* SPDX-License-Identifier: Apache-2.0 */
#include "code/source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* A cubin may refer to any file; only names of source files are accepted, so that other files are never copied into
 * logs. */
bool source_text_is_name(const char *path)
{
    static const char *const endings[] = {".cu",  ".cuh", ".c",   ".h",   ".cc",  ".cpp", ".cxx",  ".hh",  ".hpp",
                                          ".hxx", ".inl", ".inc", ".ipp", ".tpp", ".ptx", ".py",   ".pyx", ".pyi",
                                          ".jl",  ".rs",  ".f",   ".f90", ".cuf", ".cl",  ".mlir", ".ll",  ".mojo"};
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    const char *ending = strrchr(name, '.');
    if (!ending)
        return strstr(path, "/include/") != NULL; /* headers of C++ libraries have no extension */
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (!strcasecmp(ending, endings[i]))
            return true;
    return false;
}

static gpufl_status open_problem(struct problem *problem, const char *path, int error)
{
    gpufl_status status = error == ENOENT || error == ENOTDIR ? GPUFL_E_NOT_FOUND
                          : error == EACCES || error == EPERM ? GPUFL_E_PERMISSION
                                                              : GPUFL_E_IO;
    return problem_set(problem, status, "%.300s: %s", path, strerror(error));
}

static gpufl_status file_open(const char *path, int *out, size_t *size, struct problem *problem)
{
    /* Non-blocking: the name may refer to a pipe, or to a device that opening would start. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return open_problem(problem, path, errno);
    struct stat status;
    gpufl_status result = GPUFL_OK;
    if (fstat(fd, &status))
        result = open_problem(problem, path, errno);
    else if (!S_ISREG(status.st_mode))
        result = problem_set(problem, GPUFL_E_INVALID, "%.300s: not a regular file", path);
    else if (status.st_size > SOURCE_TEXT_BYTES_MAX)
        result = problem_set(problem, GPUFL_E_LIMIT, "%.300s: larger than %d MiB", path, SOURCE_TEXT_BYTES_MAX >> 20);
    if (result) {
        close(fd);
        return result;
    }
    *out = fd;
    *size = (size_t)status.st_size;
    return GPUFL_OK;
}

static gpufl_status bytes_read(struct source_text *source, int fd, size_t size, const char *path,
                               struct problem *problem)
{
    source->bytes = calloc(1, size + 1);
    if (!source->bytes)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %.300s", path);
    while (source->size < size) {
        ssize_t count = read(fd, source->bytes + source->size, size - source->size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return open_problem(problem, path, errno);
        if (count == 0)
            break; /* it was truncated meanwhile */
        source->size += (size_t)count;
    }
    if (memchr(source->bytes, 0, source->size))
        return problem_set(problem, GPUFL_E_INVALID, "%.300s: not a text", path);
    return GPUFL_OK;
}

static gpufl_status lines_split(struct source_text *source, const char *path, struct problem *problem)
{
    size_t count = source->size && source->bytes[source->size - 1] != '\n';
    for (size_t i = 0; i < source->size; i++)
        count += source->bytes[i] == '\n';
    source->lines = malloc((count ? count : 1) * sizeof *source->lines);
    if (!source->lines)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the lines of %.300s", path);
    const char *at = source->bytes, *end = source->bytes + source->size;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        const char *next = line_end ? line_end + 1 : end;
        size_t size = (size_t)((line_end ? line_end : end) - at);
        if (size && at[size - 1] == '\r')
            size--;
        source->lines[source->line_count++] = (struct source_line){.text = at, .size = (uint32_t)size};
        at = next;
    }
    return GPUFL_OK;
}

gpufl_status source_text_read(struct source_text *source, const char *path, const char *directory,
                              struct problem *problem)
{
    *source = (struct source_text){0};
    char joined[PATH_MAX];
    if (path[0] != '/' && directory && *directory) {
        int size = snprintf(joined, sizeof joined, "%s/%s", directory, path);
        if (size < 0 || (size_t)size >= sizeof joined)
            return problem_set(problem, GPUFL_E_INVALID, "%.300s: the path is too long", path);
        path = joined;
    }
    if (!source_text_is_name(path))
        return problem_set(problem, GPUFL_E_INVALID, "%.300s: not the name of a source file", path);
    int fd = -1;
    size_t size = 0;
    gpufl_status status = file_open(path, &fd, &size, problem);
    if (status)
        return status;
    status = bytes_read(source, fd, size, path, problem);
    close(fd);
    if (!status)
        status = lines_split(source, path, problem);
    if (status)
        source_text_free(source);
    return status;
}

void source_text_free(struct source_text *source)
{
    free(source->bytes);
    free(source->lines);
    *source = (struct source_text){0};
}

const struct source_line *source_text_line(const struct source_text *source, uint32_t number)
{
    return number && number <= source->line_count ? &source->lines[number - 1] : NULL;
}
