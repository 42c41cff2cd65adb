/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike librocprofiler-register.so.0, which HIP is linked to: it looks for
 * rocprofiler-sdk when a tool is named, hands it HIP's table, and aborts the
 * program when the library is not there. Source: rocprofiler_register.cpp of
 * ROCm 6.1 to 7 (rocp_reg_scan_for_tools, rocp_load_rocprofiler_lib). */
#include "rocprofiler_fake.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef int (*set_api_table)(const char *name, uint64_t version, uint64_t instance, void **tables, uint64_t count);

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static bool is_forced(bool otherwise)
{
    const char *value = variable("ROCPROFILER_REGISTER_FORCE_LOAD");
    static const char *const no[] = {"0", "false", "off", "no", "n", "f"};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (!strcasecmp(value, no[i]))
            return false;
    return *value ? true : otherwise;
}

/* The name, then the file of that name beside this library, then the file's name alone. */
static void *load(const char *name)
{
    char beside[4096];
    Dl_info own;
    const char *slash = strrchr(name, '/'), *file = slash ? slash + 1 : name;
    void *handle = dlopen(name, RTLD_NOLOAD | RTLD_LAZY);
    if (!handle)
        handle = dlopen(name, RTLD_GLOBAL | RTLD_LAZY);
    if (!handle && name[0] != '/' && dladdr(__extension__(void *) load, &own)) {
        const char *end = strrchr(own.dli_fname, '/');
        snprintf(beside, sizeof beside, "%.*s/%s", (int)(end ? end - own.dli_fname : 0), own.dli_fname, file);
        handle = dlopen(beside, RTLD_GLOBAL | RTLD_LAZY);
    }
    return handle ? handle : dlopen(file, RTLD_GLOBAL | RTLD_LAZY);
}

FAKE_API int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void), uint32_t version,
                                                    void **tables, uint64_t count, uint64_t *id)
{
    enum { SUCCESS = 0, NO_TOOLS = 1 };
    (void)import;
    *id = 0;
    const char *library = variable("ROCPROFILER_REGISTER_LIBRARY");
    if (!dlsym(RTLD_DEFAULT, "rocprofiler_configure") && !is_forced(*library || *variable("ROCP_TOOL_LIBRARIES")))
        return NO_TOOLS;
    library = *library ? library : "librocprofiler-sdk.so";
    void *function = dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
    if (!function)
        function = dlsym(load(library), "rocprofiler_set_api_table");
    if (!function) {
        fprintf(stderr, "rocprofiler_set_api_table not found. Tried to dlopen %s\n", library);
        abort();
    }
    return (__extension__(set_api_table) function)(name, version, 0, tables, count) ? NO_TOOLS : SUCCESS;
}
