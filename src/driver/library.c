/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/library.h"

#include "base/clock.h"
#include "base/own_thread.h"
#include "driver/watched_calls.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { path_bytes = sizeof(((struct library *)0)->path) };

static bool text_copy(char *out, size_t size, const char *text, size_t length)
{
    if (length >= size)
        return false;
    memcpy(out, text, length);
    out[length] = '\0';
    return true;
}

struct mapped_search {
    const char *prefix; /* of the file name; NULL: look for site-packages */
    char *path;
    size_t size;
};

/* Runs under the loader's lock: only copies, never opens. */
static int mapped_visit(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    struct mapped_search *search = user;
    const char *path = info->dlpi_name;
    if (!path || !*path)
        return 0;
    if (search->prefix) {
        const char *slash = strrchr(path, '/');
        const char *file = slash ? slash + 1 : path;
        return !strncmp(file, search->prefix, strlen(search->prefix)) &&
               text_copy(search->path, search->size, path, strlen(path));
    }
    static const char marker[] = "/site-packages/";
    const char *at = strstr(path, marker);
    return at && text_copy(search->path, search->size, path, (size_t)(at - path) + strlen(marker) - 1);
}

bool library_find_mapped(const char *prefix, char *path, size_t size)
{
    struct mapped_search search = {prefix, path, size};
    return dl_iterate_phdr(mapped_visit, &search) != 0;
}

bool library_find_site_packages(char *path, size_t size)
{
    struct mapped_search search = {NULL, path, size};
    return dl_iterate_phdr(mapped_visit, &search) != 0;
}

/* What was tried: the message names the first file that exists and could not be loaded. */
struct attempt {
    char error[256];
};

static bool try_path(struct library *library, const char *path, struct attempt *attempt)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *error = dlerror();
        if (error && !attempt->error[0])
            snprintf(attempt->error, sizeof attempt->error, "%s", error);
        return false;
    }
    library->handle = handle;
    library->was_mapped = false;
    /* A plain soname was found on the loader's path: get the full path. */
    struct link_map *map = NULL;
    const char *found = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0] ? map->l_name : path;
    snprintf(library->path, sizeof library->path, "%s", found);
    return true;
}

static bool try_file(struct library *library, const char *directory, const char *name, struct attempt *attempt)
{
    char path[path_bytes];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    struct stat info;
    return length > 0 && (size_t)length < sizeof path && stat(path, &info) == 0 && try_path(library, path, attempt);
}

static bool try_directory(struct library *library, const char *directory, const char *name, struct attempt *attempt)
{
    if (!strchr(directory, '*'))
        return try_file(library, directory, name, attempt);
    glob_t matches;
    if (glob(directory, 0, NULL, &matches) != 0)
        return false;
    bool is_open = false;
    /* Last first: the newest of several toolkits. */
    for (size_t i = matches.gl_pathc; i > 0 && !is_open; i--)
        is_open = try_file(library, matches.gl_pathv[i - 1], name, attempt);
    globfree(&matches);
    return is_open;
}

static gpufl_status open_mapped(struct library *library, const char *path, struct problem *problem)
{
    library->handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD | RTLD_LOCAL);
    if (!library->handle)
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "%s is loaded in this process but cannot be used from here; a second copy would crash",
                           path);
    snprintf(library->path, sizeof library->path, "%s", path);
    library->was_mapped = true;
    return GPUFL_OK;
}

/* The variable may name the file or its directory. */
static gpufl_status open_explicit(struct library *library, const struct library_search *search, const char *path,
                                  struct problem *problem)
{
    struct attempt attempt = {""};
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        for (const char *const *name = search->names; name && *name; name++) {
            if (try_file(library, path, *name, &attempt))
                return GPUFL_OK;
        }
    } else if (try_path(library, path, &attempt))
        return GPUFL_OK;
    return problem_set(problem, GPUFL_E_NOT_FOUND, "%s=%s: cannot load it (%s); correct or unset the variable",
                       search->path_variable, path, attempt.error[0] ? attempt.error : "no such library there");
}

gpufl_status library_open(struct library *library, const struct library_search *search, struct problem *problem)
{
    struct library found = {0};
    char mapped[path_bytes];
    if (library_find_mapped(search->prefix, mapped, sizeof mapped)) {
        gpufl_status status = open_mapped(&found, mapped, problem);
        if (status == GPUFL_OK)
            *library = found;
        return status;
    }
    const char *explicit_path = search->path_variable ? getenv(search->path_variable) : NULL;
    if (explicit_path && *explicit_path) {
        gpufl_status status = open_explicit(&found, search, explicit_path, problem);
        if (status == GPUFL_OK)
            *library = found;
        return status;
    }
    struct attempt attempt = {""};
    for (const char *const *name = search->names; name && *name; name++) {
        bool is_open = false;
        for (const char *const *directory = search->directories; directory && *directory && !is_open; directory++)
            is_open = try_directory(&found, *directory, *name, &attempt);
        if (is_open || try_path(&found, *name, &attempt)) {
            *library = found;
            return GPUFL_OK;
        }
    }
    if (!search->names || !search->names[0])
        return problem_set(problem, GPUFL_E_NOT_FOUND, "%s is not loaded in this process", search->prefix);
    return problem_set(problem, GPUFL_E_NOT_FOUND, "%s was not found (%s); install it%s%s", search->prefix,
                       attempt.error, search->path_variable ? " or set " : "",
                       search->path_variable ? search->path_variable : "");
}

enum { probe_wait_ms = 500, probe_step_us = 50 };
enum probe_state { PROBE_BEGUN, PROBE_DONE, PROBE_LEFT };

static void *probe_run(void *argument)
{
    _Atomic int *state = argument;
    int begun = PROBE_BEGUN;
    (void)dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD); /* takes the lock, and loads nothing */
    if (!atomic_compare_exchange_strong(state, &begun, PROBE_DONE))
        free(state);
    return NULL;
}

bool library_loads_on_other_threads(void)
{
    pthread_t thread;
    int begun = PROBE_BEGUN;
    _Atomic int *state = calloc(1, sizeof *state);
    if (!state || !own_thread_start(&thread, "gpufl-probe", OWN_THREAD_STACK_SMALL, probe_run, (void *)state)) {
        free(state);
        return false;
    }
    pthread_detach(thread);
    int64_t until_ns = clock_mono_ns() + probe_wait_ms * INT64_C(1000000);
    while (atomic_load(state) == PROBE_BEGUN && clock_mono_ns() < until_ns)
        usleep(probe_step_us);
    if (atomic_compare_exchange_strong(state, &begun, PROBE_LEFT))
        return false;
    free(state);
    return true;
}

void *library_symbol(const struct library *library, const char *name)
{
    return library->handle ? watched_call(name, dlsym(library->handle, name)) : NULL;
}

struct zero_data {
    ElfW(Addr) inside; /* an address of the library */
    uintptr_t start, end;
};

/* The largest zero-initialized segment of the object that contains the address. */
static int zero_data_visit(struct dl_phdr_info *info, size_t size, void *user)
{
    struct zero_data *data = user;
    (void)size;
    bool is_it = false;
    uintptr_t start = 0, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        is_it |= data->inside >= at && data->inside < at + part->p_memsz;
        if ((part->p_flags & PF_W) && part->p_memsz - part->p_filesz > end - start) {
            start = at + part->p_filesz;
            end = at + part->p_memsz;
        }
    }
    if (!is_it)
        return 0;
    data->start = start;
    data->end = end;
    return 1;
}

/* The library may have been built with a sanitizer, whose red zones between the variables are read as well. */
__attribute__((no_sanitize_address, no_sanitize_thread)) static bool is_zero(uintptr_t at, size_t bytes)
{
    const uint64_t *words = (const uint64_t *)at;
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        if (words[i])
            return false;
    return true;
}

size_t library_trim(const struct library *library)
{
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct link_map *map = NULL;
    size_t given_bytes = 0;
    if (dlinfo(library->handle, RTLD_DI_LINKMAP, &map) || !map)
        return 0;
    struct zero_data data = {.inside = (ElfW(Addr))map->l_ld};
    if (!dl_iterate_phdr(zero_data_visit, &data))
        return 0;
    uintptr_t at = (data.start + page_bytes - 1) & ~(page_bytes - 1);
    for (; at + page_bytes <= data.end; at += page_bytes)
        if (is_zero(at, page_bytes) && !madvise((void *)at, page_bytes, MADV_DONTNEED))
            given_bytes += page_bytes;
    return given_bytes;
}
