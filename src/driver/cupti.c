/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and loads CUPTI and reads its version. */
#include "base/watch.h"
#include "driver/cuda.h"
#include "driver/cupti_table.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cupti the_cupti;
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

/* A toolkit's library directories, relative to its root. */
static const char *const toolkit_folders[] = {"lib64", "lib", "extras/CUPTI/lib64", "targets/x86_64-linux/lib",
                                              "targets/sbsa-linux/lib"};
static const char *const wheel_folders[] = {"nvidia/cu13/lib", "nvidia/cuda_cupti/lib"};
enum {
    toolkit_folder_count = sizeof toolkit_folders / sizeof toolkit_folders[0],
    wheel_folder_count = sizeof wheel_folders / sizeof wheel_folders[0],
    toolkit_count = 4,
    directory_max = toolkit_count * toolkit_folder_count + wheel_folder_count
};

struct directory_list {
    char text[directory_max][512];
    const char *pointers[directory_max + 1];
    size_t count;
};

static void add_directories(struct directory_list *list, const char *root, const char *const *folders, size_t count)
{
    /* A relative root would depend on the program's working directory. */
    for (size_t i = 0; root && root[0] == '/' && i < count && list->count < directory_max; i++) {
        char *text = list->text[list->count];
        int length = snprintf(text, sizeof list->text[0], "%s/%s", root, folders[i]);
        if (length > 0 && (size_t)length < sizeof list->text[0])
            list->pointers[list->count++] = text;
    }
    list->pointers[list->count] = NULL;
}

/* The CUDA major version that the process uses, as far as known; 0 unknown. */
static int process_cuda_major(void)
{
    struct cuda *cuda;
    if (cuda_load(&cuda, false, NULL) == GPUFL_OK) {
        int major = cuda_driver_version(cuda) / 1000;
        if (major)
            return major;
    }
    static const char runtime[] = "libcudart.so.";
    char path[512];
    if (!library_find_mapped(runtime, path, sizeof path))
        return 0;
    const char *slash = strrchr(path, '/');
    const char *digits = (slash ? slash + 1 : path) + strlen(runtime);
    char *end;
    long major = strtol(digits, &end, 10);
    return end != digits && major > 0 && major < 1000 ? (int)major : 0;
}

static gpufl_status open_library(struct library *library, struct problem *problem)
{
    static const char *const newest_first[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so", NULL};
    static const char *const older_first[] = {"libcupti.so.12", "libcupti.so.13", "libcupti.so", NULL};
    struct directory_list *list = calloc(1, sizeof *list);
    if (!list)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    char site_packages[512];
    if (library_find_site_packages(site_packages, sizeof site_packages))
        add_directories(list, site_packages, wheel_folders, wheel_folder_count);
    add_directories(list, getenv("CUDA_HOME"), toolkit_folders, toolkit_folder_count);
    add_directories(list, getenv("CUDA_PATH"), toolkit_folders, toolkit_folder_count);
    add_directories(list, "/usr/local/cuda", toolkit_folders, toolkit_folder_count);
    add_directories(list, "/usr/local/cuda-*", toolkit_folders, toolkit_folder_count);
    const struct library_search search = {"libcupti.so", "GPUFL_CUPTI_PATH", list->pointers,
                                          process_cuda_major() == 12 ? older_first : newest_first};
    gpufl_status status = library_open(library, &search, problem);
    free(list);
    return status;
}

static gpufl_status bind_functions(struct cupti *cupti, struct problem *problem)
{
#define CUPTI_BIND(member, symbol, parameters) \
    cupti->call.member = __extension__(int(*) parameters) library_symbol(&cupti->library, #symbol);
    CUPTI_ABI_FUNCTIONS(CUPTI_BIND)
#undef CUPTI_BIND
    const struct cupti_table *call = &cupti->call;
    if (!call->get_version || !call->subscribe || !call->unsubscribe || !call->register_callbacks || !call->enable ||
        !call->disable || !call->flush_all || !call->get_next_record)
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "%s lacks functions that tracing needs; CUPTI of CUDA 12.0 or newer is required",
                           cupti->library.path);
    uint32_t version = 0;
    int result = call->get_version(&version);
    if (result != CUPTI_ABI_SUCCESS)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s: cuptiGetVersion failed: %s (%d)", cupti->library.path,
                           cupti_result_text(cupti, result), result);
    if (version < CUPTI_ABI_VERSION_12_0)
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "%s is CUPTI API version %u; CUDA 12.0 (version %d) or newer is required",
                           cupti->library.path, version, CUPTI_ABI_VERSION_12_0);
    cupti_set_version(cupti, version);
    return GPUFL_OK;
}

gpufl_status cupti_load(struct cupti **out, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    const char *hung = watch_hung("cu");
    if (hung)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s did not return; CUPTI is not used again in this process",
                           hung);
    pthread_mutex_lock(&load_lock);
    if (!the_cupti.version) {
        if (!the_cupti.library.handle)
            status = open_library(&the_cupti.library, problem);
        if (status == GPUFL_OK)
            status = bind_functions(&the_cupti, problem);
    }
    pthread_mutex_unlock(&load_lock);
    if (status == GPUFL_OK)
        *out = &the_cupti;
    return status;
}

void cupti_abandon(void)
{
    pthread_mutex_init(&load_lock, NULL); /* a thread of the parent may have held it */
}

uint32_t cupti_version(const struct cupti *cupti)
{
    return cupti->version;
}

const char *cupti_path(const struct cupti *cupti)
{
    return cupti->library.path;
}

int64_t cupti_now_ns(const struct cupti *cupti)
{
    uint64_t now_ns = 0;
    if (!cupti->call.get_timestamp || cupti->call.get_timestamp(&now_ns) != CUPTI_ABI_SUCCESS || now_ns > INT64_MAX)
        return 0;
    return (int64_t)now_ns;
}

const char *cupti_result_text(const struct cupti *cupti, int result)
{
    const char *text = NULL;
    if (!cupti->call.get_result_string || cupti->call.get_result_string((uint32_t)result, &text) != CUPTI_ABI_SUCCESS ||
        !text)
        return "unknown result";
    return text;
}

int cupti_note(struct cupti *cupti, const char *function, int result)
{
    int none = 0;
    if (result != CUPTI_ABI_SUCCESS && atomic_compare_exchange_strong(&cupti->failure_state, &none, 1)) {
        snprintf(cupti->failure, sizeof cupti->failure, "%s: %s (%d)", function, cupti_result_text(cupti, result),
                 result);
        atomic_store(&cupti->failure_state, 2);
    }
    return result;
}

void cupti_forget_failure(struct cupti *cupti)
{
    atomic_store(&cupti->failure_state, 0);
}

const char *cupti_first_failure(const struct cupti *cupti)
{
    return atomic_load(&cupti->failure_state) == 2 ? cupti->failure : "";
}
