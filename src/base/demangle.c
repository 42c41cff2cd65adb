/* SPDX-License-Identifier: Apache-2.0 */
#include "base/demangle.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

typedef char *(*demangle_fn)(const char *symbol, char *buffer, size_t *size, int *status);

#ifdef GPUFL_BUNDLED
/* Part of libsupc++.a, which is in C and needs no other part of the C++ library. */
extern char *__cxa_demangle(const char *symbol, char *buffer, size_t *size, int *status);
#endif

static demangle_fn runtime_demangle;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_demangler(void)
{
#ifdef GPUFL_BUNDLED
    runtime_demangle = __cxa_demangle;
#else
    void *symbol = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    if (!symbol) {
        void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
        symbol = library ? dlsym(library, "__cxa_demangle") : NULL;
    }
    memcpy(&runtime_demangle, &symbol, sizeof symbol);
#endif
}

void demangle(const char *symbol, struct bytes *out)
{
    enum { symbol_bytes_max = 64 * 1024 }; /* a hostile name must not overflow the demangler's stack */
    bytes_clear(out);
    if (symbol[0] == '_' && symbol[1] == 'Z' && strnlen(symbol, symbol_bytes_max) < symbol_bytes_max) {
        pthread_once(&once, find_demangler);
        int status = -1;
        char *text = runtime_demangle ? runtime_demangle(symbol, NULL, NULL, &status) : NULL;
        if (text && status == 0)
            bytes_append_text(out, text);
        free(text);
    }
    if (!out->size)
        bytes_append_text(out, symbol);
}
