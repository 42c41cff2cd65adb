/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/symbols.h"

#include "base/demangle.h"
#include "base/intern.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The part of libdwfl that is used; opaque types stay opaque. */
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
    void *(*module_getelf)(void *module, uint64_t *bias);
    void *(*next_section)(void *elf, void *section); /* these two are libelf's */
    void *(*section_header)(void *section, Elf64_Shdr *header);
};

/* The result for an address. */
struct place {
    uint32_t text_id; /* 0: nothing yet */
    bool has_owner, is_profiler;
};

enum { address_bytes_max = 512 * 1024, text_bytes_max = 8 << 20 };

struct symbols {
    struct dwfl_functions dw;
    struct dwfl_callbacks callbacks;
    char *debuginfo_path;
    void *dwfl; /* NULL: no libdw */
    struct bytes name;
    struct intern addresses, texts;
    struct place *places; /* [id in addresses - 1] */
    uint32_t place_capacity;
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
        {"dwfl_module_getelf", &dw->module_getelf},
        {"elf_nextscn", &dw->next_section},
        {"gelf_getshdr", &dw->section_header},
        {"dwfl_linux_proc_find_elf", &symbols->callbacks.find_elf},
        /* Local files only: the standard callback queries the servers in DEBUGINFOD_URLS. */
        {"dwfl_build_id_find_debuginfo", &symbols->callbacks.find_debuginfo},
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
    symbols->addresses.text_bytes_max = address_bytes_max;
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

static void forget_places(struct symbols *symbols)
{
    intern_free(&symbols->addresses);
    intern_free(&symbols->texts);
    free(symbols->places);
    symbols->places = NULL;
    symbols->place_capacity = 0;
}

void symbols_free(struct symbols *symbols)
{
    if (!symbols)
        return;
    if (symbols->dwfl)
        symbols->dw.end(symbols->dwfl);
    bytes_free(&symbols->name);
    forget_places(symbols);
    free(symbols);
}

size_t symbols_bytes(const struct symbols *symbols)
{
    return sizeof *symbols + intern_bytes(&symbols->addresses) + intern_bytes(&symbols->texts) +
           symbols->place_capacity * sizeof *symbols->places;
}

/* NULL: no memory to remember it. */
static struct place *place_of(struct symbols *symbols, uint64_t address)
{
    uint32_t id = intern_id(&symbols->addresses, &address, sizeof address, NULL);
    if (!id || symbols->texts.text_bytes >= text_bytes_max) { /* full: starts over, and addresses still in use are
                                                               * added again */
        forget_places(symbols);
        id = intern_id(&symbols->addresses, &address, sizeof address, NULL);
    }
    if (!id)
        return NULL;
    if (id > symbols->place_capacity) {
        uint32_t capacity = symbols->place_capacity ? symbols->place_capacity * 2 : 256;
        struct place *places = realloc(symbols->places, capacity * sizeof *places);
        if (!places)
            return NULL;
        memset(places + symbols->place_capacity, 0, (capacity - symbols->place_capacity) * sizeof *places);
        symbols->places = places;
        symbols->place_capacity = capacity;
    }
    return &symbols->places[id - 1];
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The module that contains the address; libraries loaded since the last call are added. */
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

/* Whether the module has more names than the dynamic linker knows. */
static bool has_symbol_table(const struct symbols *symbols, void *module)
{
    uint64_t bias;
    Elf64_Shdr header;
    void *elf = symbols->dw.module_getelf(module, &bias);
    for (void *section = NULL; elf && (section = symbols->dw.next_section(elf, section));)
        if (symbols->dw.section_header(section, &header) && header.sh_type == SHT_SYMTAB)
            return true;
    return false;
}

static void describe(struct symbols *symbols, uint64_t address, struct bytes *out)
{
    Dl_info info = {0};
    bool is_mapped = dladdr((void *)(uintptr_t)address, &info) && info.dli_fname;
    void *module = symbols->dwfl ? module_of(symbols, address) : NULL;
    int line_number = 0;
    void *line = module ? symbols->dw.module_getsrc(module, address) : NULL;
    const char *file = line ? symbols->dw.lineinfo(line, NULL, &line_number, NULL, NULL, NULL) : NULL;
    const char *function = is_mapped ? info.dli_sname : NULL;
    /* libdw takes 50 times as long as the dynamic linker: used only where that finds no name, and only if there can
     * be one. */
    if (!function && module && (file || has_symbol_table(symbols, module)))
        function = symbols->dw.module_addrname(module, address);
    demangle(function ? function : "??", &symbols->name);
    bytes_append(out, symbols->name.data, symbols->name.size);
    bytes_append_char(out, '@');
    if (file)
        bytes_append_format(out, "%s:%d", file, line_number);
    else if (is_mapped)
        bytes_append_format(out, "%s+0x%llx", base_name(info.dli_fname),
                            (unsigned long long)(address - (uintptr_t)info.dli_fbase));
    else
        bytes_append_format(out, "0x%llx", (unsigned long long)address);
}

void symbols_describe(struct symbols *symbols, uint64_t address, struct bytes *out)
{
    struct place *place = place_of(symbols, address);
    if (place && place->text_id) {
        const struct intern_entry *entry = &symbols->texts.entries[place->text_id - 1];
        bytes_append(out, entry->text, entry->size);
        return;
    }
    size_t start = out->size;
    describe(symbols, address, out);
    if (place && !out->failed)
        place->text_id = intern_id(&symbols->texts, out->data + start, out->size - start, NULL);
}

static bool is_of_profiler(uint64_t address)
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

bool symbols_is_profiler(struct symbols *symbols, uint64_t address)
{
    struct place *place = place_of(symbols, address);
    if (place && place->has_owner)
        return place->is_profiler;
    bool is_profiler = is_of_profiler(address);
    if (place) {
        place->has_owner = true;
        place->is_profiler = is_profiler;
    }
    return is_profiler;
}
