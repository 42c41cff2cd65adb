/* SPDX-License-Identifier: Apache-2.0 */
/* Makes memory allocation fail at one place of gpufl's code, for LD_PRELOAD. A place is a call of malloc or a similar
 * function, identified by the return addresses of gpufl's innermost frames; allocations of other libraries never fail.
 *
 * GPUFL_TEST_PLACES=FILE   one line for every place when it is first reached: its number, function and frames
 * GPUFL_TEST_FAIL=NUMBER   the place that fails
 * GPUFL_TEST_FAIL_FROM=N   starting with its Nth call (default 1), in each process
 * GPUFL_TEST_FAIL_TO=N     up to its Nth call (default: all)
 * GPUFL_TEST_FAILED=FILE   one line for every failure */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
/* In the C library's function of this name. */
#define REAL(name) (__extension__(__typeof__(&(name))) real_find(#name))
#define FAILS(name) place_fails(#name, __builtin_return_address(0), __builtin_frame_address(0))

enum { frame_max = 4, frame_bytes_max = 64 << 10, place_count = 1 << 14 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static _Atomic uint64_t places[place_count];
static _Atomic long fail_count;

static void *real_find(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* The gpufl object that contains the address, or NULL. */
static const char *gpufl_object(void *address, uintptr_t *offset)
{
    struct dl_find_object found;
    if (_dl_find_object(address, &found))
        return NULL;
    const char *path = found.dlfo_link_map->l_name;
    if (!*path)
        path = program_invocation_name;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (strncmp(name, "libgpufl", 8) != 0 && strcmp(name, "gpufl") != 0)
        return NULL;
    *offset = (uintptr_t)address - (uintptr_t)found.dlfo_map_start;
    return name;
}

static void line_append(const char *variable, const char *line)
{
    const char *path = getenv(variable);
    int error = errno, file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (file >= 0) {
        ssize_t written = write(file, line, strlen(line));
        (void)written;
        close(file);
    }
    errno = error;
}

/* Whether this is the first call from this place. */
static bool place_is_new(uint64_t place)
{
    for (uint64_t i = place, tries = 0; tries < place_count; i++, tries++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&places[i % place_count], &none, place))
            return true;
        if (none == place)
            return false;
    }
    return false;
}

static uint64_t hash_add(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash;
}

static bool is_asked_to_fail(uint64_t place)
{
    const char *wanted = getenv("GPUFL_TEST_FAIL");
    if (!wanted || strtoull(wanted, NULL, 16) != place)
        return false;
    const char *first = getenv("GPUFL_TEST_FAIL_FROM"), *last = getenv("GPUFL_TEST_FAIL_TO");
    long count = atomic_fetch_add(&fail_count, 1) + 1;
    return count >= (first ? strtol(first, NULL, 10) : 1) && (!last || count <= strtol(last, NULL, 10));
}

/* gpufl is compiled with frame pointers, but zlib, which is linked into it, is not. */
static void **frame_above(void **frame)
{
    void **above = (void **)frame[0];
    bool is_near = (char *)above > (char *)frame && (char *)above < (char *)frame + frame_bytes_max;
    return is_near && (uintptr_t)above % sizeof *above == 0 ? above : NULL;
}

/* A frame is examined only if gpufl's code called the frame below it. */
static bool place_fails(const char *function, void *caller, void **frame)
{
    char line[512];
    uint64_t place = hash_add(0xcbf29ce484222325, function);
    size_t used = 0;
    for (int i = 0; i < frame_max; i++) {
        uintptr_t offset = 0;
        const char *object = gpufl_object(caller, &offset);
        if (!object && !i)
            return false;
        if (!object)
            break;
        int size = snprintf(line + used, sizeof line - used, " %s+0x%zx", object, (size_t)offset);
        place = hash_add(place, line + used);
        used += (size_t)size;
        frame = frame_above(frame);
        if (!frame)
            break;
        caller = frame[1];
    }
    char text[600];
    bool is_new = place_is_new(place), fails = is_asked_to_fail(place);
    snprintf(text, sizeof text, "%016zx %s%s\n", (size_t)place, function, line);
    if (is_new)
        line_append("GPUFL_TEST_PLACES", text);
    if (fails)
        line_append("GPUFL_TEST_FAILED", text);
    if (fails)
        errno = ENOMEM;
    return fails;
}

EXPORT void *malloc(size_t size)
{
    return FAILS(malloc) ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    return FAILS(calloc) ? NULL : __libc_calloc(count, size);
}

EXPORT void *realloc(void *old, size_t size)
{
    return FAILS(realloc) ? NULL : __libc_realloc(old, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return FAILS(aligned_alloc) ? NULL : __libc_memalign(alignment, size);
}

EXPORT char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = FAILS(strdup) ? NULL : __libc_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

EXPORT char *strndup(const char *text, size_t max)
{
    size_t size = strnlen(text, max);
    char *copy = FAILS(strndup) ? NULL : __libc_calloc(size + 1, 1);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* After a failed vasprintf, *text is undefined. */
EXPORT int vasprintf(char **text, const char *format, va_list arguments)
{
    *text = (char *)8;
    return FAILS(vasprintf) ? -1 : REAL(vasprintf)(text, format, arguments);
}

EXPORT int asprintf(char **text, const char *format, ...)
{
    *text = (char *)8;
    if (FAILS(asprintf))
        return -1;
    va_list arguments;
    va_start(arguments, format);
    int size = REAL(vasprintf)(text, format, arguments);
    va_end(arguments);
    return size;
}

EXPORT FILE *open_memstream(char **text, size_t *size)
{
    return FAILS(open_memstream) ? NULL : REAL(open_memstream)(text, size);
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
    return FAILS(fopen) ? NULL : REAL(fopen)(path, mode);
}

EXPORT FILE *fdopen(int file, const char *mode)
{
    return FAILS(fdopen) ? NULL : REAL(fdopen)(file, mode);
}

EXPORT DIR *opendir(const char *path)
{
    return FAILS(opendir) ? NULL : REAL(opendir)(path);
}

EXPORT DIR *fdopendir(int file)
{
    return FAILS(fdopendir) ? NULL : REAL(fdopendir)(file);
}

EXPORT char *realpath(const char *path, char *resolved)
{
    return FAILS(realpath) ? NULL : REAL(realpath)(path, resolved);
}

EXPORT int scandir(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
                   int (*compare)(const struct dirent **, const struct dirent **))
{
    return FAILS(scandir) ? -1 : REAL(scandir)(path, entries, filter, compare);
}

EXPORT void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    return FAILS(mmap) ? MAP_FAILED : REAL(mmap)(address, size, protection, flags, file, offset);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    return FAILS(pthread_create) ? EAGAIN : REAL(pthread_create)(thread, attributes, start, argument);
}
