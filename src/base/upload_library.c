/* SPDX-License-Identifier: Apache-2.0 */
#include "base/upload_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define UPLOAD_LIBRARY "libgpufl-upload.so.1"

static void *open_near(const void *address)
{
    static const char *const places[] = {"", "../lib/"};
    char module[PATH_MAX];
    Dl_info self;
    if (!dladdr(address, &self) || !self.dli_fname)
        return NULL;
    /* A program's own name is what it was called by, which may be relative to another directory. */
    ssize_t size = strchr(self.dli_fname, '/') ? -1 : readlink("/proc/self/exe", module, sizeof module - 1);
    if (size >= 0)
        module[size] = '\0';
    else
        snprintf(module, sizeof module, "%s", self.dli_fname);
    char *slash = strrchr(module, '/');
    if (!slash)
        return NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[PATH_MAX + 64];
        snprintf(path, sizeof path, "%.*s/%s" UPLOAD_LIBRARY, (int)(slash - module), module, places[i]);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

upload_run_fn upload_library_find(const void *address, struct problem *problem)
{
    void *library = open_near(address);
    if (!library)
        library = dlopen(UPLOAD_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const char *error = library ? "" : dlerror();
    void *found = library ? dlsym(library, "gpufl_upload_run") : NULL;
    upload_run_fn run = NULL;
    memcpy(&run, &found, sizeof run);
    if (!run)
        problem_set(problem, GPUFL_E_UNSUPPORTED, "uploads need %s beside gpufl, with libcurl: %.300s", UPLOAD_LIBRARY,
                    error ? error : "it cannot be loaded");
    return run;
}
