/* SPDX-License-Identifier: Apache-2.0 */
/* Finds rocprofiler-sdk, registers with it, and manages the single trace. */
#include "base/clock.h"
#include "base/stages.h"
#include "base/watch.h"
#include "driver/rocprofiler_lookup.h"
#include "driver/rocprofiler_table.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct rocprofiler the_rocprofiler = {.memory_kind = -1};
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool is_registering;

/* For the registration in progress; set before rocprofiler can call us. */
static void (*registration_begin)(void);
static const struct rocprofiler_trace_options *forced_options;
static struct problem *forced_problem;
static gpufl_status forced_status;

/* ---- loading ---- */

static gpufl_status bind_functions(struct rocprofiler *rocprofiler, struct problem *problem)
{
#define ROCPROFILER_BIND(member, symbol, parameters) \
    rocprofiler->call.member = __extension__(int(*) parameters) library_symbol(&rocprofiler->library, #symbol);
    ROCPROFILER_ABI_FUNCTIONS(ROCPROFILER_BIND)
#undef ROCPROFILER_BIND
    rocprofiler->call.status_name =
        __extension__(const char *(*)(int)) library_symbol(&rocprofiler->library, "rocprofiler_get_status_name");
    const struct rocprofiler_table *call = &rocprofiler->call;
    if (!call->get_version || !call->get_timestamp || !call->force_configure || !call->create_context ||
        !call->start_context || !call->stop_context || !call->create_buffer || !call->flush_buffer ||
        !call->buffer_service || !call->callback_service || !call->query_agents || !call->iterate_operations ||
        !call->operation_name || !call->kind_name)
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "%s lacks functions that tracing needs; rocprofiler-sdk 0.5 (ROCm 6.3) or newer is required",
                           rocprofiler->library.path);
    uint32_t major = 0, minor = 0, patch = 0;
    if (rocprofiler_status(rocprofiler, "rocprofiler_get_version", call->get_version(&major, &minor, &patch), problem))
        return GPUFL_E_UNSUPPORTED;
    uint32_t version = major * 10000 + minor * 100 + patch;
    if (version < ROCPROFILER_ABI_VERSION_0_5 || version >= ROCPROFILER_ABI_VERSION_2_0)
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "%s is rocprofiler-sdk %u.%u.%u; 0.5 (ROCm 6.3) to 1.x are supported",
                           rocprofiler->library.path, major, minor, patch);
    rocprofiler->version = version;
    return GPUFL_OK;
}

gpufl_status rocprofiler_load(struct rocprofiler **out, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    pthread_mutex_lock(&load_lock);
    struct rocprofiler *rocprofiler = &the_rocprofiler;
    if (!rocprofiler->version) {
        if (!rocprofiler->library.handle)
            status = rocprofiler_library_open(&rocprofiler->library, problem);
        if (status == GPUFL_OK)
            status = bind_functions(rocprofiler, problem);
    }
    pthread_mutex_unlock(&load_lock);
    if (status == GPUFL_OK)
        *out = rocprofiler;
    return status;
}

uint32_t rocprofiler_version(const struct rocprofiler *rocprofiler)
{
    return rocprofiler->version;
}

const char *rocprofiler_path(const struct rocprofiler *rocprofiler)
{
    return rocprofiler->library.path;
}

bool rocprofiler_is_in_use(void)
{
    char path[512];
    return library_find_mapped("libamdhip64.so", path, sizeof path) ||
           library_find_mapped("librocprofiler-sdk.so", path, sizeof path);
}

bool rocprofiler_is_registering(void)
{
    return is_registering;
}

int rocprofiler_status(const struct rocprofiler *rocprofiler, const char *function, int result, struct problem *problem)
{
    if (result == ROCPROFILER_ABI_SUCCESS)
        return result;
    const char *name = rocprofiler->call.status_name ? rocprofiler->call.status_name(result) : NULL;
    problem_set(problem, GPUFL_E_UNSUPPORTED, "%s failed: %s (%d); library %s", function,
                name ? name : "unknown status", result, rocprofiler->library.path);
    return result;
}

/* ---- clock ---- */

int64_t rocprofiler_now_ns(const struct rocprofiler *rocprofiler)
{
    uint64_t now = 0;
    bool is_read = rocprofiler->call.get_timestamp(&now) == ROCPROFILER_ABI_SUCCESS && now <= INT64_MAX;
    return is_read ? (int64_t)now : 0;
}

/* rocprofiler stamps with CLOCK_BOOTTIME; the log has its own clock. The quickest reading is the most exact; an
 * interrupted reading does not replace a better one that it is consistent with. */
static void clock_update(struct rocprofiler *rocprofiler)
{
    enum { tries = 20, good_ns = 1000 };
    int64_t best_ns = INT64_MAX, offset_ns = 0;
    for (int i = 0; i < tries && best_ns > good_ns; i++) {
        int64_t before_ns = clock_log_ns();
        int64_t now_ns = rocprofiler_now_ns(rocprofiler);
        int64_t after_ns = clock_log_ns();
        if (now_ns && after_ns >= before_ns && after_ns - before_ns < best_ns) {
            best_ns = after_ns - before_ns;
            offset_ns = before_ns + best_ns / 2 - now_ns;
        }
    }
    int64_t old_ns = atomic_load(&rocprofiler->clock_offset_ns);
    bool is_contradiction = llabs(offset_ns - old_ns) > best_ns;
    if (best_ns != INT64_MAX && (best_ns <= good_ns || !old_ns || is_contradiction))
        atomic_store(&rocprofiler->clock_offset_ns, offset_ns);
}

int64_t rocprofiler_wall_ns(const struct rocprofiler *rocprofiler, uint64_t time)
{
    return time && time <= INT64_MAX / 2 ? (int64_t)time + atomic_load(&rocprofiler->clock_offset_ns) : 0;
}

/* ---- registering ---- */

static int on_initialize(rocprofiler_abi_finalize finalize, void *tool_data)
{
    (void)finalize, (void)tool_data;
    struct rocprofiler *rocprofiler = &the_rocprofiler;
    atomic_store(&rocprofiler->state, ROCPROFILER_CONFIGURING);
    is_registering = true;
    if (forced_options)
        forced_status = rocprofiler_configure_services(rocprofiler, forced_options, forced_problem);
    else if (registration_begin)
        registration_begin();
    is_registering = false;
    enum rocprofiler_state configuring = ROCPROFILER_CONFIGURING;
    atomic_compare_exchange_strong(&rocprofiler->state, &configuring, ROCPROFILER_LOCKED);
    return 0; /* the program must run whether or not it can be traced */
}

/* rocprofiler finalizes at the program's exit: it has waited for all work, and delivers the content of its buffers. */
static void on_finalize(void *tool_data)
{
    (void)tool_data;
    struct rocprofiler *rocprofiler = &the_rocprofiler;
    if (rocprofiler->granted && !watch_hung("rocprofiler") && !rocprofiler_await(rocprofiler))
        atomic_fetch_add(&rocprofiler->dropped, 1); /* at least */
    atomic_store(&rocprofiler->state, ROCPROFILER_FINALIZED);
}

void *rocprofiler_register(uint32_t version, void *client_id, void (*begin)(void))
{
    static struct rocprofiler_abi_configure_result result = {sizeof result, on_initialize, on_finalize, NULL};
    enum rocprofiler_state unregistered = ROCPROFILER_UNREGISTERED;
    if (!client_id || version < ROCPROFILER_ABI_VERSION_0_5 || version >= ROCPROFILER_ABI_VERSION_2_0 ||
        !atomic_compare_exchange_strong(&the_rocprofiler.state, &unregistered, ROCPROFILER_REGISTERED))
        return NULL;
    if (version >= ROCPROFILER_ABI_VERSION_1_0)
        ((struct rocprofiler_abi_client_id_1 *)client_id)->name = "gpufl";
    else
        ((struct rocprofiler_abi_client_id_0 *)client_id)->name = "gpufl";
    registration_begin = begin;
    return &result;
}

static struct rocprofiler_abi_configure_result *on_configure(uint32_t version, const char *runtime_version,
                                                             uint32_t priority, void *client_id)
{
    (void)runtime_version, (void)priority;
    return rocprofiler_register(version, client_id, NULL);
}

/* HIP opens the compute driver when it starts; from then on rocprofiler cannot intercept its function tables. */
static bool has_hip_started(void)
{
    DIR *directory = opendir("/proc/self/fd");
    bool has_started = false;
    for (struct dirent *entry; directory && !has_started && (entry = readdir(directory));) {
        static const char device[] = "/dev/kfd";
        char target[256];
        ssize_t size = readlinkat(dirfd(directory), entry->d_name, target, sizeof target);
        has_started =
            size >= (ssize_t)strlen(device) && !memcmp(target + (size_t)size - strlen(device), device, strlen(device));
    }
    if (directory)
        closedir(directory);
    return has_started;
}

static const char too_late[] = "HIP was initialized before gpufl, and rocprofiler takes tools only before; run the "
                               "program with `gpufl trace -- PROGRAM`, or call gpufl_init before the first HIP call";

static gpufl_status force_registration(struct rocprofiler *rocprofiler, const struct rocprofiler_trace_options *options,
                                       struct problem *problem)
{
    int answer = 0;
    if (rocprofiler->call.is_initialized && rocprofiler->call.is_initialized(&answer) == ROCPROFILER_ABI_SUCCESS &&
        answer != 0)
        return problem_set(problem, GPUFL_E_BUSY, "another tool in this process already uses rocprofiler; %s",
                           too_late);
    if (has_hip_started())
        return problem_set(problem, GPUFL_E_BUSY, "%s", too_late);
    gpufl_status status = rocprofiler_lookup_ensure(&rocprofiler->library, problem);
    if (status != GPUFL_OK)
        return status;
    forced_options = options;
    forced_problem = problem;
    forced_status = GPUFL_E_BUSY;
    int result = rocprofiler->call.force_configure(on_configure);
    forced_options = NULL;
    forced_problem = NULL;
    if (rocprofiler_status(rocprofiler, "rocprofiler_force_configure", result, problem))
        return problem_set(problem, GPUFL_E_BUSY, "rocprofiler accepts no more tools in this process: %s", too_late);
    if (forced_status == GPUFL_E_BUSY && !problem->text[0])
        problem_set(problem, GPUFL_E_BUSY, "rocprofiler did not call gpufl back: another tool was first; remove it");
    return forced_status;
}

/* ---- the trace ---- */

static gpufl_status start_contexts(struct rocprofiler *rocprofiler, unsigned features, struct problem *problem)
{
    rocprofiler->granted = rocprofiler->configured & (features | ROCPROFILER_KERNELS | ROCPROFILER_COPIES |
                                                      ROCPROFILER_CALLS | ROCPROFILER_RANGES | ROCPROFILER_CODE);
    clock_update(rocprofiler);
    rocprofiler_awaited_begin(rocprofiler);
    gate_open(&rocprofiler->gate);
    const struct rocprofiler_table *call = &rocprofiler->call;
    if (rocprofiler_status(rocprofiler, "rocprofiler_start_context", call->start_context(rocprofiler->context),
                           problem)) {
        gate_close(&rocprofiler->gate);
        rocprofiler->granted = 0;
        return GPUFL_E_UNSUPPORTED;
    }
    if (!(rocprofiler->granted & ROCPROFILER_COUNTERS))
        return GPUFL_OK;
    struct problem *counters_problem = &rocprofiler->result.counters_problem;
    if (rocprofiler_status(rocprofiler, "rocprofiler_start_context", call->start_context(rocprofiler->counter_context),
                           counters_problem))
        rocprofiler->granted &= ~(unsigned)ROCPROFILER_COUNTERS;
    return GPUFL_OK;
}

gpufl_status rocprofiler_trace_start(struct rocprofiler *rocprofiler, const struct rocprofiler_trace_options *options,
                                     struct rocprofiler_trace_result *result, struct problem *problem)
{
    const char *hung = watch_hung("rocprofiler");
    if (hung)
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "%s did not return in an earlier session of this process; rocprofiler is not used again",
                           hung);
    gpufl_status status = GPUFL_OK;
    switch (atomic_load(&rocprofiler->state)) {
    case ROCPROFILER_UNREGISTERED:
        status = force_registration(rocprofiler, options, problem);
        break;
    case ROCPROFILER_CONFIGURING:
        status = is_registering ? rocprofiler_configure_services(rocprofiler, options, problem)
                                : problem_set(problem, GPUFL_E_BUSY, "rocprofiler is being set up by another thread");
        break;
    case ROCPROFILER_READY:
        if ((options->features & ROCPROFILER_COUNTERS) && !(rocprofiler->configured & ROCPROFILER_COUNTERS))
            problem_set(&rocprofiler->result.counters_problem, GPUFL_E_UNSUPPORTED,
                        "counters must be requested by the first session of a process");
        rocprofiler->sink = options->sink;
        break;
    case ROCPROFILER_FINALIZED:
        return problem_set(problem, GPUFL_E_BUSY,
                           "rocprofiler has ended in this process, or in the one it was forked "
                           "from; start HIP programs with exec");
    default:
        return problem_set(problem, GPUFL_E_BUSY, "%s", too_late);
    }
    if (status == GPUFL_OK)
        status = start_contexts(rocprofiler, options->features, problem);
    if (status == GPUFL_OK) {
        rocprofiler->result.granted = rocprofiler->granted;
        *result = rocprofiler->result;
    }
    return status;
}

void rocprofiler_flush(struct rocprofiler *rocprofiler)
{
    if (atomic_load(&rocprofiler->state) != ROCPROFILER_READY)
        return;
    clock_update(rocprofiler);
    for (int lane = 0; lane < ROCPROFILER_LANES; lane++) {
        if (rocprofiler->buffers[lane].handle)
            (void)rocprofiler->call.flush_buffer(rocprofiler->buffers[lane]); /* busy: it is being flushed already */
    }
}

bool rocprofiler_trace_stop(struct rocprofiler *rocprofiler)
{
    const int64_t gate_wait_ns = 1000000000; /* for callbacks in progress */
    if (!rocprofiler->granted)
        return true;
    if (atomic_load(&rocprofiler->state) == ROCPROFILER_READY) {
        if (rocprofiler->granted & ROCPROFILER_COUNTERS)
            (void)rocprofiler->call.stop_context(rocprofiler->counter_context);
        (void)rocprofiler->call.stop_context(rocprofiler->context);
        if (!rocprofiler_await(rocprofiler))
            atomic_fetch_add(&rocprofiler->dropped, 1); /* at least: what the buffer held is lost */
    }
    bool is_empty = gate_close_until(&rocprofiler->gate, stages_until_ns(gate_wait_ns));
    if (is_empty)
        rocprofiler_counting_end();
    rocprofiler->granted = 0;
    return is_empty;
}

uint64_t rocprofiler_take_dropped(struct rocprofiler *rocprofiler)
{
    return atomic_exchange(&rocprofiler->dropped, 0);
}

uint64_t rocprofiler_take_unknown(struct rocprofiler *rocprofiler)
{
    return atomic_exchange(&rocprofiler->unknown, 0);
}

uint32_t rocprofiler_agent_count(const struct rocprofiler *rocprofiler)
{
    return rocprofiler->agent_count;
}

const struct rocprofiler_agent *rocprofiler_agent_at(const struct rocprofiler *rocprofiler, uint32_t index)
{
    return &rocprofiler->agents[index];
}

void rocprofiler_forget(void)
{
    struct rocprofiler *rocprofiler = &the_rocprofiler;
    pthread_mutex_init(&load_lock, NULL); /* a thread of the parent may have held it */
    gate_abandon(&rocprofiler->gate);
    rocprofiler->granted = 0;
    if (atomic_load(&rocprofiler->state) != ROCPROFILER_UNREGISTERED)
        atomic_store(&rocprofiler->state, ROCPROFILER_FINALIZED);
}
