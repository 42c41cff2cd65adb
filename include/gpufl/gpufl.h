/* SPDX-License-Identifier: Apache-2.0
 *
 * gpufl: GPU profiler and monitor, in-process C API.
 *
 * One session per process. Every call is thread-safe and never exits, aborts,
 * prints or throws; on trouble a call returns a status and the program goes on.
 * Strings passed in are borrowed for the duration of the call only.
 *
 * Programs link with -lgpufl. Two macros change that, for this header and for gpufl.hpp:
 *   GPUFL_CLIENT   no link: libgpufl is looked up in the running process, and every call does nothing without it
 *   GPUFL_DISABLE  every call compiles to nothing
 */
#ifndef GPUFL_GPUFL_H
#define GPUFL_GPUFL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(GPUFL_DISABLE) || defined(GPUFL_CLIENT)
#define GPUFL_API static inline /* gpufl/client.h has the bodies */
#elif defined(__GNUC__)
#define GPUFL_API __attribute__((visibility("default")))
#else
#define GPUFL_API
#endif

#define GPUFL_VERSION_MAJOR 1
#define GPUFL_VERSION_MINOR 0
#define GPUFL_VERSION_PATCH 0
#define GPUFL_VERSION_STRING "1.0.0"
/* For #if: 10203 is 1.2.3. */
#define GPUFL_VERSION (GPUFL_VERSION_MAJOR * 10000 + GPUFL_VERSION_MINOR * 100 + GPUFL_VERSION_PATCH)

/* Codes are permanent: never renumbered, never reused. */
#define GPUFL_STATUS_MAP(X)                                                  \
    X(GPUFL_OK, 0, "success")                                                \
    X(GPUFL_E_INVALID, -1, "invalid argument")                               \
    X(GPUFL_E_VERSION, -2, "option set by a newer header than this library") \
    X(GPUFL_E_BUSY, -3, "another profiler owns the GPU tracing interface")   \
    X(GPUFL_E_NO_DRIVER, -4, "no usable GPU driver")                         \
    X(GPUFL_E_NO_MEMORY, -5, "out of memory")                                \
    X(GPUFL_E_IO, -6, "the log could not be read or written")                \
    X(GPUFL_E_DISABLED, -7, "gpufl is disabled")                             \
    X(GPUFL_E_NOT_RUNNING, -8, "no session is running")                      \
    X(GPUFL_E_UNSUPPORTED, -9, "not supported here")                         \
    X(GPUFL_E_DAMAGED, -10, "damaged or truncated data")                     \
    X(GPUFL_E_PERMISSION, -11, "not permitted")                              \
    X(GPUFL_E_LIMIT, -12, "a documented limit was reached")                  \
    X(GPUFL_E_NOT_FOUND, -13, "not found")

typedef enum gpufl_status {
#define GPUFL_STATUS_ENUM(name, code, text) name = code,
    GPUFL_STATUS_MAP(GPUFL_STATUS_ENUM)
#undef GPUFL_STATUS_ENUM
} gpufl_status;

/* Each level adds to the one before it; see docs/engines.md for the cost. */
typedef enum gpufl_engine {
    GPUFL_ENGINE_DEFAULT = 0, /* Monitor, or what environment or config file say */
    GPUFL_ENGINE_MONITOR = 1,
    GPUFL_ENGINE_TRACE = 2,
    GPUFL_ENGINE_PC_SAMPLING = 3,
    GPUFL_ENGINE_SASS_METRICS = 4,
    GPUFL_ENGINE_RANGE_PROFILER = 5,
    GPUFL_ENGINE_DEEP = 6
} gpufl_engine;

typedef enum gpufl_backend {
    GPUFL_BACKEND_AUTO = 0,
    GPUFL_BACKEND_NVIDIA = 1,
    GPUFL_BACKEND_AMD = 2,
    GPUFL_BACKEND_NONE = 3
} gpufl_backend;

/* A switch that can tell "left alone" from "set to the default". */
typedef enum gpufl_switch { GPUFL_UNSET = 0, GPUFL_ON = 1, GPUFL_OFF = 2 } gpufl_switch;

typedef enum gpufl_log_level {
    GPUFL_LOG_ERROR = 0,
    GPUFL_LOG_WARNING = 1,
    GPUFL_LOG_INFO = 2,
    GPUFL_LOG_DEBUG = 3
} gpufl_log_level;

/* May be called from any gpufl thread; must not call back into gpufl. */
typedef void (*gpufl_log_fn)(void *user, gpufl_log_level level, const char *message);

/* Zero (GPUFL_OPTIONS_INIT) means "the documented default" for every field, and
 * lets environment and config file decide. New fields go at the end only. */
typedef struct gpufl_options {
    uint32_t struct_size; /* set by GPUFL_OPTIONS_INIT */
    gpufl_engine profiling_engine;
    gpufl_backend backend;
    const char *app_name;    /* "gpufl" */
    const char *log_path;    /* app_name: base directory of the session directories */
    const char *backend_url; /* server to upload to, host only */
    const char *api_key;
    const char *api_path;                     /* "/api/v1" */
    const char *config_file;                  /* JSON */
    gpufl_switch enabled;                     /* on */
    gpufl_switch remote_upload;               /* off; deprecated, has no effect but a warning */
    gpufl_switch enable_stack_trace;          /* off */
    gpufl_switch enable_source_collection;    /* on */
    gpufl_switch enable_external_correlation; /* on */
    gpufl_switch enable_synchronization;      /* on */
    gpufl_switch enable_memory_tracking;      /* off */
    gpufl_switch enable_cuda_graphs_tracking; /* off */
    gpufl_switch continuous_system_sampling;  /* off */
    gpufl_switch flush_logs_always;           /* off */
    gpufl_switch enable_debug_output;         /* off */
    int32_t system_sample_rate_ms; /* 0: none, or every 100 ms where sampling is continuous; negative: none */
    int32_t kernel_sample_rate_ms; /* deprecated, has no effect */
    gpufl_log_fn log_fn;           /* NULL: one line on stderr where the session differs from the request */
    void *log_user;
    /* End of 1.0. Later fields are read only if struct_size covers them. */
    int64_t max_log_bytes;  /* 0: no limit; above it the session's oldest records are dropped; negative: no limit */
    int64_t min_free_bytes; /* 0: the larger of 1 GiB and 5 %; below it recording is paused; negative: never paused */
} gpufl_options;

#define GPUFL_OPTIONS_INIT                                                                                          \
    {                                                                                                               \
        sizeof(gpufl_options), GPUFL_ENGINE_DEFAULT, GPUFL_BACKEND_AUTO, NULL, NULL, NULL, NULL, NULL, NULL,        \
            GPUFL_UNSET, GPUFL_UNSET, GPUFL_UNSET, GPUFL_UNSET, GPUFL_UNSET, GPUFL_UNSET, GPUFL_UNSET, GPUFL_UNSET, \
            GPUFL_UNSET, GPUFL_UNSET, GPUFL_UNSET, 0, 0, NULL, NULL, 0, 0                                           \
    }

/* Starts the session. NULL means all defaults. Called again while a session
 * runs it changes nothing and returns GPUFL_OK; each init wants one shutdown.
 * GPUFL_E_DISABLED: switched off by options or GPUFL_DISABLED, nothing was
 * loaded and every other call is inert. Any other error leaves nothing running.
 * An engine that cannot start degrades to the next lower one: see
 * gpufl_active_engine and the capture_capabilities record. */
GPUFL_API gpufl_status gpufl_init(const gpufl_options *options);

/* Ends the session: stops capture, writes everything out, joins gpufl's
 * threads. Without a session it does nothing. */
GPUFL_API void gpufl_shutdown(void);

/* Lets another profiler of this process use CUPTI, which takes one at a time:
 * returns when gpufl has released it, at most three seconds later. The session
 * continues without GPU activity until gpufl_resume; the gap and the
 * profiler's name are in the log. Calls nest and may come from any thread, also
 * without a session. GPUFL_E_BUSY: CUPTI is not free, or the session is exclusive. */
GPUFL_API gpufl_status gpufl_yield(const char *profiler);
GPUFL_API void gpufl_resume(void);

/* The engine that really runs; GPUFL_ENGINE_DEFAULT when no session does. */
GPUFL_API gpufl_engine gpufl_active_engine(void);

/* Directory of the running, else of the last session; "" when there was none.
 * Valid until the next gpufl_init. */
GPUFL_API const char *gpufl_session_dir(void);

/* Why the calling thread's last gpufl call failed, with what to do next; "" if it did not. */
GPUFL_API const char *gpufl_last_error(void);
GPUFL_API const char *gpufl_status_string(gpufl_status status);
GPUFL_API const char *gpufl_version(void);

/* Scopes: named regions of the calling thread's work. They nest, to
 * 8,192 levels in one thread (deeper ones are counted as lost); kernels
 * launched inside belong to the innermost one. Before init, after
 * shutdown and while disabled both calls cost one load and do nothing. */
typedef struct gpufl_scope_meta {
    uint32_t struct_size; /* sizeof(gpufl_scope_meta) */
    uint32_t repeat;      /* measured iterations inside the scope; 0 = not a benchmark */
    uint32_t warmup;      /* iterations run before the scope opened */
    const char *tag;      /* free text shown beside the name, may be NULL */
    /* End of 1.0. Later fields are read only if struct_size covers them. */
} gpufl_scope_meta;

GPUFL_API void gpufl_scope_push(const char *name, const gpufl_scope_meta *meta);
/* Name and tag need no NUL at their end; tag may be NULL. */
GPUFL_API void gpufl_scope_push_sized(const char *name, size_t name_size, const char *tag, size_t tag_size,
                                      uint32_t repeat, uint32_t warmup);
GPUFL_API void gpufl_scope_pop(void);
GPUFL_API void gpufl_scope_pop_counted(uint32_t iterations);

/* Work that other threads do for a scope, for example in a thread pool. A token identifies one entry into a scope: it
 * stays valid when the scope has ended, until the session ends, and may be adopted by any number of threads. Each
 * adopt needs one release on the same thread. In between, the thread's work and scopes belong to the token's scope.
 * A token of 0, or of an earlier session, changes nothing. Costs as much as a scope. */
typedef uint64_t gpufl_scope_token;
GPUFL_API gpufl_scope_token gpufl_scope_current(void); /* of the calling thread's innermost scope; 0: there is none */
GPUFL_API void gpufl_scope_adopt(gpufl_scope_token token);
GPUFL_API void gpufl_scope_release(void);

/* For frameworks that run numbered tasks on their own threads, as PyTorch's autograd does with backward passes. current
 * returns the number of the calling thread's task, negative for none; it is called before launches of threads without
 * scopes, and must be quick. NULL: no more. Work for a task belongs to the scope that the task is bound to. */
GPUFL_API void gpufl_tasks_follow(int (*current)(void));
GPUFL_API void gpufl_task_bind(int task, gpufl_scope_token token);

#if defined(GPUFL_DISABLE) || defined(GPUFL_CLIENT)
static inline int gpufl_is_recording(void);
#else
/* Nonzero while a session records. Read by gpufl_is_recording; must not be written. */
GPUFL_API extern int gpufl_recording;

/* These functions are inline in C and C++, and also exported, for languages that cannot inline them. */
static inline int gpufl_is_recording(void)
{
#if defined(__GNUC__)
    return __atomic_load_n(&gpufl_recording, __ATOMIC_ACQUIRE);
#else
    return gpufl_recording;
#endif
}
#endif
static inline void gpufl_scope_begin(const char *name)
{
    if (gpufl_is_recording())
        gpufl_scope_push(name, NULL);
}
static inline void gpufl_scope_begin_meta(const char *name, const gpufl_scope_meta *meta)
{
    if (gpufl_is_recording())
        gpufl_scope_push(name, meta);
}
static inline void gpufl_scope_end(void)
{
    if (gpufl_is_recording())
        gpufl_scope_pop();
}
/* The same for a benchmark that may end early, after a break or an exception:
 * averages are taken over the measured iterations that began, instead of over
 * `repeat`. */
static inline void gpufl_scope_end_counted(uint32_t iterations)
{
    if (gpufl_is_recording())
        gpufl_scope_pop_counted(iterations);
}

/* Samples GPU and host metrics between the two calls, whatever the sampling
 * policy; they nest and are marked in the log under the name. */
GPUFL_API void gpufl_system_start(const char *name);
GPUFL_API void gpufl_system_stop(const char *name);

/* A span that does not nest and may end on another thread, such as a request. Ending it twice, or 0, does nothing. */
GPUFL_API uint64_t gpufl_range_start(const char *name); /* 0: nothing records */
GPUFL_API void gpufl_range_end(uint64_t range);
/* A moment, and the value that a quantity of the program has from now on, such as a queue's length. */
GPUFL_API void gpufl_mark(const char *name);
GPUFL_API void gpufl_counter(const char *name, double value);
/* Of the calling thread; may be called before the session begins. */
GPUFL_API void gpufl_thread_name(const char *name);

/* Writes the text report of the last finished (or the running) session to
 * path; NULL or "" means standard output, the one place gpufl ever prints,
 * because here printing is what was asked for. */
GPUFL_API gpufl_status gpufl_generate_report(const char *path);

/* What to upload and where to. NULL and zero mean the documented default and let
 * environment and config file decide, as for gpufl_init. New fields go at the
 * end only. */
typedef struct gpufl_upload_options {
    uint32_t struct_size;    /* set by GPUFL_UPLOAD_OPTIONS_INIT */
    int32_t timeout_ms;      /* of the whole call; 300000 */
    const char *log_path;    /* a session directory, or a directory of them: all finished ones; NULL: the last session
                                of this process */
    const char *backend_url; /* http:// or https://, host only */
    const char *api_key;
    const char *api_path;    /* "/api/v1" */
    const char *config_file; /* JSON */
    /* End of 1.0. Later fields are read only if struct_size covers them. */
} gpufl_upload_options;

#define GPUFL_UPLOAD_OPTIONS_INIT                                     \
    {                                                                 \
        sizeof(gpufl_upload_options), 0, NULL, NULL, NULL, NULL, NULL \
    }

typedef struct gpufl_upload_result {
    uint32_t struct_size;        /* set by the caller: sizeof(gpufl_upload_result) */
    int32_t success;             /* 1: everything is with the server; also while gpufl is disabled */
    int32_t http_status;         /* the server's last answer; 0: it never gave one */
    uint32_t reserved;           /* 0 */
    uint64_t sessions;           /* sessions that are now whole on the server */
    uint64_t files_uploaded;     /* by this call */
    uint64_t files_already_sent; /* by an earlier one, and therefore not again */
    uint64_t files_skipped;      /* refused, unreadable or not reached: the reason for success = 0 */
    uint64_t events_uploaded;    /* rows of batches, and single records */
    uint64_t bytes_sent;         /* compressed */
    char message[512];           /* one line for people; never contains the key */
    /* End of 1.0. Later fields are written only if struct_size covers them. */
} gpufl_upload_result;

/* Sends finished sessions to a server, and waits for it. Loads libgpufl-upload.so
 * from libgpufl's directory, the only part of gpufl that talks to a network.
 * Files are left as they are; what the server acknowledged is remembered beside
 * them, so that calling again sends only the rest. result may be NULL.
 * GPUFL_OK: success. GPUFL_E_BUSY: the session still runs; shut it down first.
 * GPUFL_E_PERMISSION: the server refused the key. GPUFL_E_IO: something was not
 * sent. GPUFL_E_DAMAGED: something cannot be read and was therefore not sent.
 * GPUFL_E_UNSUPPORTED: gpufl was built without uploads. */
GPUFL_API gpufl_status gpufl_upload_logs(const gpufl_upload_options *options, gpufl_upload_result *result);

#if defined(GPUFL_DISABLE) || defined(GPUFL_CLIENT)
#include <gpufl/client.h>
#endif

#if !defined(__cplusplus) && defined(__GNUC__)
/* GFL_SCOPE("name") { ... }: the scope ends when the block is left, also by break, continue, return or goto.
 * GFL_BLOCK("name"); the scope ends with the block that the statement is in.
 * GFL_FUNCTION(); the same, with the function's name. */
static inline void gpufl_scope_cleanup_(int *armed)
{
    (void)armed;
    gpufl_scope_end();
}
#define GPUFL_CAT2_(a, b) a##b
#define GPUFL_CAT_(a, b) GPUFL_CAT2_(a, b)
#define GPUFL_SCOPED_INT_(variable, name) \
    int __attribute__((cleanup(gpufl_scope_cleanup_), unused)) variable = (gpufl_scope_begin(name), 1)
#define GPUFL_SCOPED_LOOP_(variable, name) for (GPUFL_SCOPED_INT_(variable, name); variable; variable = 0)
#define GFL_SCOPE(name) GPUFL_SCOPED_LOOP_(GPUFL_CAT_(gfl_scope_, __COUNTER__), name)
#define GFL_BLOCK(name) GPUFL_SCOPED_INT_(GPUFL_CAT_(gfl_block_, __COUNTER__), name)
#define GFL_FUNCTION() GFL_BLOCK(__func__)
#endif

#ifdef __cplusplus
}
#endif
#endif
