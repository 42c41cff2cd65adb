/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/symbols.h"

#include "base/demangle.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The part of libdwfl that we call; opaque types stay opaque. */
struct dwfl_callbacks {
    void *find_elf, *find_debuginfo, *section_address;
    char **debuginfo_path;
};
struct dwfl_functions {
    void *(*begin)(const struct dwfl_callbacks *callbacks);
    void (*end)(void *dwfl);
    void (*report_begin_add)(void *dwfl);
    int (*report_end)(void *dwfl, void *removed, void *arg);
    int (*linux_proc_report)(void *dwfl, pid_t pid);
    void *(*addrmodule)(void *dwfl, uint64_t address);
    const char *(*module_addrname)(void *module, uint64_t address);
    void *(*module_getsrc)(void *module, uint64_t address);
    const char *(*lineinfo)(void *line, uint64_t *address, int *line_number, int *column, uint64_t *mtime,
                            uint64_t *length);
};

struct symbols {
    struct dwfl_functions dw;
    struct dwfl_callbacks callbacks;
    char *debuginfo_path;
    void *dwfl; /* NULL: no libdw */
    struct bytes name;
};

static bool find_functions(struct symbols *symbols)
{
    void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    struct dwfl_functions *dw = &symbols->dw;
    const struct {
        const char *name;
        void *slot;
    } wanted[] = {
        {"dwfl_begin", &dw->begin},
        {"dwfl_end", &dw->end},
        {"dwfl_report_begin_add", &dw->report_begin_add},
        {"dwfl_report_end", &dw->report_end},
        {"dwfl_linux_proc_report", &dw->linux_proc_report},
        {"dwfl_addrmodule", &dw->addrmodule},
        {"dwfl_module_addrname", &dw->module_addrname},
        {"dwfl_module_getsrc", &dw->module_getsrc},
        {"dwfl_lineinfo", &dw->lineinfo},
        {"dwfl_linux_proc_find_elf", &symbols->callbacks.find_elf},
        {"dwfl_standard_find_debuginfo", &symbols->callbacks.find_debuginfo},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *symbol = dlsym(library, wanted[i].name);
        if (!symbol)
            return false;
        memcpy(wanted[i].slot, &symbol, sizeof symbol);
    }
    symbols->callbacks.debuginfo_path = &symbols->debuginfo_path;
    return true;
}

gpufl_status symbols_make(struct symbols **out)
{
    struct symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols)
        return GPUFL_E_NO_MEMORY;
    if (find_functions(symbols)) {
        symbols->dwfl = symbols->dw.begin(&symbols->callbacks);
        if (symbols->dwfl) {
            symbols->dw.linux_proc_report(symbols->dwfl, getpid());
            symbols->dw.report_end(symbols->dwfl, NULL, NULL);
        }
    }
    *out = symbols;
    return GPUFL_OK;
}

void symbols_free(struct symbols *symbols)
{
    if (!symbols)
        return;
    if (symbols->dwfl)
        symbols->dw.end(symbols->dwfl);
    bytes_free(&symbols->name);
    free(symbols);
}

bool symbols_have_lines(const struct symbols *symbols)
{
    return symbols->dwfl != NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The module that holds the address; libraries loaded since the last look are added. */
static void *module_of(struct symbols *symbols, uint64_t address)
{
    void *module = symbols->dw.addrmodule(symbols->dwfl, address);
    if (!module) {
        symbols->dw.report_begin_add(symbols->dwfl);
        symbols->dw.linux_proc_report(symbols->dwfl, getpid());
        symbols->dw.report_end(symbols->dwfl, NULL, NULL);
        module = symbols->dw.addrmodule(symbols->dwfl, address);
    }
    return module;
}

void symbols_describe(struct symbols *symbols, uint64_t address, struct bytes *out)
{
    Dl_info info = {0};
    bool is_mapped = dladdr((void *)(uintptr_t)address, &info) && info.dli_fname;
    void *module = symbols->dwfl ? module_of(symbols, address) : NULL;
    const char *function = module ? symbols->dw.module_addrname(module, address) : NULL;
    if (!function)
        function = is_mapped ? info.dli_sname : NULL;
    demangle(function ? function : "??", &symbols->name);
    bytes_append(out, symbols->name.data, symbols->name.size);
    bytes_append_char(out, '@');
    int line_number = 0;
    void *line = module ? symbols->dw.module_getsrc(module, address) : NULL;
    const char *file = line ? symbols->dw.lineinfo(line, NULL, &line_number, NULL, NULL, NULL) : NULL;
    if (file)
        bytes_append_format(out, "%s:%d", file, line_number);
    else if (is_mapped)
        bytes_append_format(out, "%s+0x%llx", base_name(info.dli_fname),
                            (unsigned long long)(address - (uintptr_t)info.dli_fbase));
    else
        bytes_append_format(out, "0x%llx", (unsigned long long)address);
}

bool symbols_is_profiler(uint64_t address)
{
    static const char *const names[] = {"libgpufl", "libcupti", "libcuda.so", "libunwind"};
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)address, &info) || !info.dli_fname)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(base_name(info.dli_fname), names[i], strlen(names[i])))
            return true;
    return false;
}
