/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sibling_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct sibling_function *own_functions;
static size_t own_function_count;

void sibling_functions_set(const struct sibling_function *functions, size_t count)
{
    own_functions = functions;
    own_function_count = count;
}

static void *own_function(const char *name)
{
    void *found = NULL;
    for (size_t i = 0; i < own_function_count; i++)
        if (strcmp(own_functions[i].name, name) == 0)
            memcpy(&found, &own_functions[i].address, sizeof found);
    return found;
}

static void *open_near(const char *name, const void *address)
{
    static const char *const places[] = {"", (GPUFL_LIBRARY_DIR "/"), "../lib/", "gpufl/", "../lib/gpufl/"};
    char module[PATH_MAX];
    Dl_info self;
    if (!dladdr(address, &self) || !self.dli_fname)
        return NULL;
    /* A program's recorded path is the one it was called by, which may be relative to another directory. */
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
        snprintf(path, sizeof path, "%.*s/%s%.40s", (int)(slash - module), module, places[i], name);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

void *sibling_library_symbol(const char *name, const char *symbol, const void *address, char *reason,
                             size_t reason_size)
{
    void *found = own_function(symbol);
    if (found)
        return found;
    void *library = open_near(name, address);
    if (!library)
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    found = library ? dlsym(library, symbol) : NULL;
    const char *error = found ? NULL : dlerror();
    if (!found)
        snprintf(reason, reason_size, "%s", error ? error : "cannot be loaded");
    return found;
}
