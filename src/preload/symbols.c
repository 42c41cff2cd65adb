/* SPDX-License-Identifier: Apache-2.0 */
/* Which function a name resolves to. Programs linked with CUPTI find the wrappers directly, since a preloaded
 * library comes first. Programs that use dlsym get them from the dlsym below, which passes all other requests to the
 * C library without an additional stack frame: for RTLD_NEXT the caller matters. */
#include "preload/wrapped.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    void *wrapper;
} wrappers[WRAPPED_COUNT] = {
#define WRAPPER(symbol, parameters) {#symbol, __extension__(void *) symbol},
#define WRAPPER_PAIR(begin, end) {#begin, __extension__(void *) begin}, {#end, __extension__(void *) end},
    WRAPPED_USES(WRAPPER) WRAPPED_PAIRS(WRAPPER_PAIR)
#undef WRAPPER
#undef WRAPPER_PAIR
};

static void *_Atomic reals[WRAPPED_COUNT];

typedef void *dlsym_fn(void *handle, const char *name);

static void *no_dlsym(void *handle, const char *name)
{
    (void)handle, (void)name;
    return NULL;
}

/* Both are named in the assembly below. */
__attribute__((visibility("hidden"))) dlsym_fn *preload_real_dlsym;
__attribute__((visibility("hidden"))) void *preload_choose(void *handle, const char *name, void *caller);

static dlsym_fn *real_dlsym(void)
{
    dlsym_fn *found = __atomic_load_n(&preload_real_dlsym, __ATOMIC_ACQUIRE);
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    for (size_t i = 0; !found && i < sizeof versions / sizeof versions[0]; i++) {
        void *symbol = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        memcpy(&found, &symbol, sizeof symbol);
    }
    if (!found)
        found = no_dlsym;
    __atomic_store_n(&preload_real_dlsym, found, __ATOMIC_RELEASE);
    return found;
}

static const char *file_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}

static bool is_cupti(const char *path)
{
    return strncmp(file_name(path), "libcupti.so", strlen("libcupti.so")) == 0;
}

struct cupti_search {
    char path[4096];
};

/* Runs under the loader's lock: only copies. */
static int visit(struct dl_phdr_info *info, size_t size, void *user)
{
    struct cupti_search *search = user;
    (void)size;
    if (!info->dlpi_name || !is_cupti(info->dlpi_name) || strlen(info->dlpi_name) >= sizeof search->path)
        return 0;
    memcpy(search->path, info->dlpi_name, strlen(info->dlpi_name) + 1);
    return 1;
}

void *real_function(enum wrapped function)
{
    void *real = atomic_load_explicit(&reals[function], memory_order_acquire);
    struct cupti_search search;
    if (real || !dl_iterate_phdr(visit, &search))
        return real;
    void *library = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        real = real_dlsym()(library, wrappers[function].name);
    atomic_store_explicit(&reals[function], real, memory_order_release);
    return real;
}

static bool is_own(void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) && strncmp(file_name(info.dli_fname), "libgpufl", strlen("libgpufl")) == 0;
}

/* The wrapper to return to dlsym's caller; NULL: use the C library's result. */
void *preload_choose(void *handle, const char *name, void *caller)
{
    dlsym_fn *real = real_dlsym();
    if (!name || strncmp(name, "cupti", strlen("cupti")) != 0)
        return NULL;
    for (int i = 0; i < WRAPPED_COUNT; i++) {
        if (strcmp(name, wrappers[i].name) != 0)
            continue;
        if (is_own(caller) || handle == RTLD_NEXT)
            return NULL;
        void *found = real(handle, name);
        Dl_info info;
        if (!found || found == wrappers[i].wrapper || !dladdr(found, &info) || !is_cupti(info.dli_fname))
            return found; /* not found, or from another library */
        void *none = NULL;
        atomic_compare_exchange_strong(&reals[i], &none, found);
        return wrappers[i].wrapper;
    }
    return NULL;
}

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        ".cfi_startproc\n"
        "    endbr64\n"
        "    push %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    push %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    sub $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    mov 24(%rsp), %rdx\n"
        "    call preload_choose\n"
        "    add $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    pop %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    pop %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    test %rax, %rax\n"
        "    jnz 1f\n"
        "    jmp *preload_real_dlsym(%rip)\n"
        "1:  ret\n"
        ".cfi_endproc\n"
        ".size dlsym, . - dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        "dlsym:\n"
        "    hint #34\n" /* bti c */
        "    stp x29, x30, [sp, #-32]!\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, #16]\n"
        "    mov x2, x30\n"
        "    bl preload_choose\n"
        "    mov x9, x0\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    cbnz x9, 1f\n"
        "    adrp x16, preload_real_dlsym\n"
        "    ldr x16, [x16, #:lo12:preload_real_dlsym]\n"
        "    br x16\n"
        "1:  mov x0, x9\n"
        "    ret\n"
        ".size dlsym, . - dlsym\n");
#endif
