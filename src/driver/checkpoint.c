/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/checkpoint.h"

#include "driver/checkpoint_abi.h"
#include "driver/cupti_table.h"
#include "driver/profiler_target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct checkpoint {
    const struct cupti *cupti; /* borrowed; for error texts */
    struct library library;
#define CHECKPOINT_MEMBER(member, symbol, parameters) int(*member) parameters;
    CHECKPOINT_ABI_FUNCTIONS(CHECKPOINT_MEMBER)
#undef CHECKPOINT_MEMBER
    struct checkpoint_abi handle;
    bool is_saved;
};

/* Only from CUPTI's own directory: the library of another release is incompatible. */
static gpufl_status open_library(struct checkpoint *checkpoint, struct problem *problem)
{
    const char *path = cupti_path(checkpoint->cupti);
    const char *slash = strrchr(path, '/');
    char file[sizeof checkpoint->library.path + sizeof "./libcheckpoint.so"];
    snprintf(file, sizeof file, "%.*s/libcheckpoint.so", slash ? (int)(slash - path) : 1, slash ? path : ".");
    const char *const names[] = {file, NULL};
    const struct library_search search = {"libcheckpoint.so", NULL, NULL, names};
    struct problem cause = {""};
    if (library_open(&checkpoint->library, &search, &cause) != GPUFL_OK)
        return problem_set(problem, GPUFL_E_NOT_FOUND,
                           "saving device memory requires CUPTI's libcheckpoint.so; cannot load %.200s: %.200s", file,
                           cause.text);
#define CHECKPOINT_BIND(member, symbol, parameters)                                                      \
    checkpoint->member = __extension__(int(*) parameters) library_symbol(&checkpoint->library, #symbol); \
    if (!checkpoint->member)                                                                             \
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s has no " #symbol, checkpoint->library.path);
    CHECKPOINT_ABI_FUNCTIONS(CHECKPOINT_BIND)
#undef CHECKPOINT_BIND
    return GPUFL_OK;
}

gpufl_status checkpoint_open(struct checkpoint **out, const struct cupti *cupti,
                             const struct checkpoint_options *options, struct problem *problem)
{
    struct checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    if (!checkpoint)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    checkpoint->cupti = cupti;
    checkpoint->handle = (struct checkpoint_abi){
        .struct_bytes = sizeof checkpoint->handle,
        .context = options->context,
        .reserve_device_mib = options->reserve_device_mib,
        .reserve_host_mib = options->reserve_host_mib,
        .allow_overwrite = 1,
        .optimizations = options->has_fixed_point ? CHECKPOINT_ABI_OPTIMIZE_TRANSFER : CHECKPOINT_ABI_OPTIMIZE_NONE,
    };
    gpufl_status status = open_library(checkpoint, problem);
    if (status != GPUFL_OK) {
        free(checkpoint);
        return status;
    }
    *out = checkpoint;
    return GPUFL_OK;
}

static gpufl_status checked(const struct checkpoint *checkpoint, const char *function, int result,
                            struct problem *problem)
{
    return result == CUPTI_ABI_SUCCESS ? GPUFL_OK : profiler_problem(checkpoint->cupti, function, result, problem);
}

gpufl_status checkpoint_save(struct checkpoint *checkpoint, struct problem *problem)
{
    gpufl_status status = checked(checkpoint, "cuptiCheckpointSave", checkpoint->save(&checkpoint->handle), problem);
    checkpoint->is_saved |= status == GPUFL_OK;
    return status;
}

gpufl_status checkpoint_restore(struct checkpoint *checkpoint, struct problem *problem)
{
    if (!checkpoint->is_saved)
        return problem_set(problem, GPUFL_E_INVALID, "there is no saved device memory to restore");
    return checked(checkpoint, "cuptiCheckpointRestore", checkpoint->restore(&checkpoint->handle), problem);
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    /* The result does not matter: the library owns the memory either way. */
    if (checkpoint->is_saved)
        (void)checkpoint->free(&checkpoint->handle);
    free(checkpoint);
}
