/* SPDX-License-Identifier: Apache-2.0 */
/* gpufl without linking: `#include <gpufl/client.h>` is `#define GPUFL_CLIENT` and `#include <gpufl/gpufl.h>`, which
 * takes the bodies of its functions from here.
 *
 * GPUFL_CLIENT: libgpufl is looked up in the running process, where `gpufl trace` or another library has loaded it.
 * Where it is not there, gpufl_init loads $GPUFL_LIBRARY, or else libgpufl.so.1 from the loader's path; other calls load
 * nothing. A library that is loaded later is found, too: failed look-ups are repeated after 1, 2, 4, ... calls, at most
 * 65,536. glibc before 2.34 needs -ldl.
 * GPUFL_DISABLE: no look-up, no state, no code. */
#if !defined(GPUFL_GPUFL_H)
#if !defined(GPUFL_CLIENT) && !defined(GPUFL_DISABLE)
#define GPUFL_CLIENT
#endif
#include <gpufl/gpufl.h>
#elif !defined(GPUFL_CLIENT) && !defined(GPUFL_DISABLE)
#error "include gpufl/client.h before gpufl/gpufl.h, or define GPUFL_CLIENT"
#elif !defined(GPUFL_CLIENT_H)
#define GPUFL_CLIENT_H

#if !defined(GPUFL_DISABLE)
#include <dlfcn.h>
#include <stdlib.h>

struct gpufl_client_state_ {
    void *library;        /* NULL: not found yet */
    const int *recording; /* libgpufl's gpufl_recording */
    unsigned misses;
};
/* One for each program or library that includes this header. */
__attribute__((weak, visibility("hidden"))) struct gpufl_client_state_ gpufl_client_state_;

static inline int gpufl_client_adopt_(void *library)
{
    const int *recording = library ? (const int *)dlsym(library, "gpufl_recording") : NULL;
    if (!recording)
        return 0;
    __atomic_store_n(&gpufl_client_state_.library, library, __ATOMIC_RELEASE);
    __atomic_store_n(&gpufl_client_state_.recording, recording, __ATOMIC_RELEASE);
    return 1;
}

/* What is loaded already. Two threads may do this at once: both find the same. */
static inline int gpufl_client_find_(void)
{
    unsigned misses = __atomic_fetch_add(&gpufl_client_state_.misses, 1, __ATOMIC_RELAXED);
    if ((misses & (misses - 1)) && (misses & 0xffff))
        return 0;
    void *program = dlopen(NULL, RTLD_LAZY);
    return gpufl_client_adopt_(program) || gpufl_client_adopt_(dlopen("libgpufl.so.1", RTLD_LAZY | RTLD_NOLOAD));
}

static inline void gpufl_client_load_(void)
{
    const char *path = getenv("GPUFL_LIBRARY");
    if (__atomic_load_n(&gpufl_client_state_.library, __ATOMIC_ACQUIRE))
        return;
    __atomic_store_n(&gpufl_client_state_.misses, 0, __ATOMIC_RELAXED);
    if (!gpufl_client_find_())
        (void)gpufl_client_adopt_(dlopen(path && *path ? path : "libgpufl.so.1", RTLD_LAZY | RTLD_GLOBAL));
}

static inline void *gpufl_client_symbol_(const char *name)
{
    void *library = __atomic_load_n(&gpufl_client_state_.library, __ATOMIC_ACQUIRE);
    if (!library && gpufl_client_find_())
        library = __atomic_load_n(&gpufl_client_state_.library, __ATOMIC_ACQUIRE);
    return library ? dlsym(library, name) : NULL;
}

static inline int gpufl_is_recording(void)
{
    const int *recording = __atomic_load_n(&gpufl_client_state_.recording, __ATOMIC_ACQUIRE);
    if (!recording) {
        if (!gpufl_client_find_())
            return 0;
        recording = __atomic_load_n(&gpufl_client_state_.recording, __ATOMIC_ACQUIRE);
    }
    return __atomic_load_n(recording, __ATOMIC_ACQUIRE);
}

/* An older libgpufl may lack a function: its call does nothing. */
#define GPUFL_CLIENT_FUNCTION_(result, name, parameters, before, call, otherwise) \
    static inline result name parameters                                          \
    {                                                                             \
        static void *found;                                                       \
        union {                                                                   \
            void *object;                                                         \
            result(*function) parameters;                                         \
        } symbol;                                                                 \
        before;                                                                   \
        symbol.object = __atomic_load_n(&found, __ATOMIC_ACQUIRE);                \
        if (!symbol.object) {                                                     \
            symbol.object = gpufl_client_symbol_(#name);                          \
            if (!symbol.object)                                                   \
                otherwise;                                                        \
            __atomic_store_n(&found, symbol.object, __ATOMIC_RELEASE);            \
        }                                                                         \
        call;                                                                     \
    }
#else
static inline int gpufl_is_recording(void)
{
    return 0;
}
static inline void gpufl_client_load_(void) {}
#define GPUFL_CLIENT_FUNCTION_(result, name, parameters, before, call, otherwise) \
    static inline result name parameters                                          \
    {                                                                             \
        otherwise;                                                                \
    }
#endif
#define GPUFL_CLIENT_CALL_(result, name, parameters, arguments, otherwise) \
    GPUFL_CLIENT_FUNCTION_(result, name, parameters, (void)0, return symbol.function arguments, return otherwise)
#define GPUFL_CLIENT_VOID_(name, parameters, arguments) \
    GPUFL_CLIENT_FUNCTION_(void, name, parameters, (void)0, symbol.function arguments, return )

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter" /* with GPUFL_DISABLE */

GPUFL_CLIENT_FUNCTION_(gpufl_status, gpufl_init, (const gpufl_options *options), gpufl_client_load_(),
                       return symbol.function(options), return GPUFL_E_DISABLED)
GPUFL_CLIENT_VOID_(gpufl_shutdown, (void), ())
GPUFL_CLIENT_CALL_(gpufl_status, gpufl_yield, (const char *profiler), (profiler), GPUFL_OK)
GPUFL_CLIENT_VOID_(gpufl_resume, (void), ())
GPUFL_CLIENT_CALL_(gpufl_engine, gpufl_active_engine, (void), (), GPUFL_ENGINE_DEFAULT)
GPUFL_CLIENT_CALL_(const char *, gpufl_session_dir, (void), (), "")
GPUFL_CLIENT_CALL_(const char *, gpufl_last_error, (void), (),
                   "libgpufl is not loaded: install it, or set GPUFL_LIBRARY to its path")
GPUFL_CLIENT_CALL_(const char *, gpufl_status_string, (gpufl_status status), (status), "libgpufl is not loaded")
GPUFL_CLIENT_CALL_(const char *, gpufl_version, (void), (), "")
GPUFL_CLIENT_VOID_(gpufl_scope_push, (const char *name, const gpufl_scope_meta *meta), (name, meta))
GPUFL_CLIENT_VOID_(gpufl_scope_push_sized,
                   (const char *name, size_t name_size, const char *tag, size_t tag_size, uint32_t repeat,
                    uint32_t warmup),
                   (name, name_size, tag, tag_size, repeat, warmup))
GPUFL_CLIENT_VOID_(gpufl_scope_pop, (void), ())
GPUFL_CLIENT_VOID_(gpufl_scope_pop_counted, (uint32_t iterations), (iterations))
GPUFL_CLIENT_CALL_(gpufl_scope_token, gpufl_scope_current, (void), (), 0)
GPUFL_CLIENT_VOID_(gpufl_scope_adopt, (gpufl_scope_token token), (token))
GPUFL_CLIENT_VOID_(gpufl_scope_release, (void), ())
GPUFL_CLIENT_VOID_(gpufl_tasks_follow, (int (*current)(void)), (current))
GPUFL_CLIENT_VOID_(gpufl_task_bind, (int task, gpufl_scope_token token), (task, token))
GPUFL_CLIENT_VOID_(gpufl_system_start, (const char *name), (name))
GPUFL_CLIENT_VOID_(gpufl_system_stop, (const char *name), (name))
GPUFL_CLIENT_CALL_(uint64_t, gpufl_range_start, (const char *name), (name), 0)
GPUFL_CLIENT_VOID_(gpufl_range_end, (uint64_t range), (range))
GPUFL_CLIENT_VOID_(gpufl_mark, (const char *name), (name))
GPUFL_CLIENT_VOID_(gpufl_counter, (const char *name, double value), (name, value))
GPUFL_CLIENT_VOID_(gpufl_thread_name, (const char *name), (name))
GPUFL_CLIENT_CALL_(gpufl_status, gpufl_generate_report, (const char *path), (path), GPUFL_E_DISABLED)
GPUFL_CLIENT_CALL_(gpufl_status, gpufl_upload_logs, (const gpufl_upload_options *options, gpufl_upload_result *result),
                   (options, result), GPUFL_E_DISABLED)

#pragma GCC diagnostic pop

#endif
