/* SPDX-License-Identifier: Apache-2.0 */
#include "export/sqlite_library.h"

#include <stddef.h>
#include <string.h>

#ifdef GPUFL_BUNDLED
/* Only the addresses are needed here; struct sqlite_library has the types. */
extern void sqlite3_open_v2(void);
extern void sqlite3_close(void);
extern void sqlite3_exec(void);
extern void sqlite3_prepare_v2(void);
extern void sqlite3_bind_int64(void);
extern void sqlite3_bind_double(void);
extern void sqlite3_bind_text(void);
extern void sqlite3_bind_null(void);
extern void sqlite3_step(void);
extern void sqlite3_reset(void);
extern void sqlite3_finalize(void);
extern void sqlite3_errmsg(void);

gpufl_status sqlite_library_load(struct sqlite_library *library, struct problem *problem)
{
    static const struct {
        void (*address)(void);
        size_t offset;
    } functions[] = {
        {sqlite3_open_v2, offsetof(struct sqlite_library, open_v2)},
        {sqlite3_close, offsetof(struct sqlite_library, close)},
        {sqlite3_exec, offsetof(struct sqlite_library, exec)},
        {sqlite3_prepare_v2, offsetof(struct sqlite_library, prepare_v2)},
        {sqlite3_bind_int64, offsetof(struct sqlite_library, bind_int64)},
        {sqlite3_bind_double, offsetof(struct sqlite_library, bind_double)},
        {sqlite3_bind_text, offsetof(struct sqlite_library, bind_text)},
        {sqlite3_bind_null, offsetof(struct sqlite_library, bind_null)},
        {sqlite3_step, offsetof(struct sqlite_library, step)},
        {sqlite3_reset, offsetof(struct sqlite_library, reset)},
        {sqlite3_finalize, offsetof(struct sqlite_library, finalize)},
        {sqlite3_errmsg, offsetof(struct sqlite_library, errmsg)},
    };
    (void)problem;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        memcpy((char *)library + functions[i].offset, &functions[i].address, sizeof functions[i].address);
    return GPUFL_OK;
}

#else
#include <dlfcn.h>

#define SQLITE_LIBRARY "libsqlite3.so.0"

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
    {"sqlite3_open_v2", offsetof(struct sqlite_library, open_v2)},
    {"sqlite3_close", offsetof(struct sqlite_library, close)},
    {"sqlite3_exec", offsetof(struct sqlite_library, exec)},
    {"sqlite3_prepare_v2", offsetof(struct sqlite_library, prepare_v2)},
    {"sqlite3_bind_int64", offsetof(struct sqlite_library, bind_int64)},
    {"sqlite3_bind_double", offsetof(struct sqlite_library, bind_double)},
    {"sqlite3_bind_text", offsetof(struct sqlite_library, bind_text)},
    {"sqlite3_bind_null", offsetof(struct sqlite_library, bind_null)},
    {"sqlite3_step", offsetof(struct sqlite_library, step)},
    {"sqlite3_reset", offsetof(struct sqlite_library, reset)},
    {"sqlite3_finalize", offsetof(struct sqlite_library, finalize)},
    {"sqlite3_errmsg", offsetof(struct sqlite_library, errmsg)},
};

gpufl_status sqlite_library_load(struct sqlite_library *library, struct problem *problem)
{
    void *handle = dlopen(SQLITE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "SQLite's library is needed for this format (Debian: libsqlite3-0): %s", dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(handle, functions[i].name);
        if (!found) {
            dlclose(handle);
            return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s has no %s", SQLITE_LIBRARY, functions[i].name);
        }
        memcpy((char *)library + functions[i].offset, &found, sizeof found);
    }
    return GPUFL_OK;
}
#endif
