/* SPDX-License-Identifier: Apache-2.0 */
/* Finds nvdisasm and llvm-objdump. */
#include "code/disassembler.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name, *variable;
} tools[] = {
    [IMAGE_NVIDIA] = {"nvdisasm", "GPUFL_NVDISASM"},
    [IMAGE_AMD] = {"llvm-objdump", "GPUFL_LLVM_OBJDUMP"},
};

const char *disassembler_name(enum image_vendor vendor)
{
    return tools[vendor].name;
}

bool disassembler_is_named(enum image_vendor vendor)
{
    const char *chosen = getenv(tools[vendor].variable);
    return chosen && *chosen;
}

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool try_directory(char path[PATH_MAX], const char *directory, const char *folder, const char *name)
{
    if (!directory || !*directory)
        return false;
    int size = snprintf(path, PATH_MAX, "%s%s/%s", directory, folder, name);
    return size > 0 && size < PATH_MAX && is_program(path);
}

/* The nvdisasm in Triton's Python package. */
static bool try_pattern(char path[PATH_MAX], const char *prefix)
{
    if (!prefix || !*prefix)
        return false;
    static const char *const folders[] = {"site-packages", "dist-packages"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char pattern[PATH_MAX];
        int size = snprintf(pattern, sizeof pattern, "%s/lib/python3*/%s/triton/backends/nvidia/bin/nvdisasm", prefix,
                            folders[i]);
        glob_t found = {0};
        bool is_found = size > 0 && (size_t)size < sizeof pattern && glob(pattern, 0, NULL, &found) == 0 &&
                        is_program(found.gl_pathv[0]);
        if (is_found)
            snprintf(path, PATH_MAX, "%s", found.gl_pathv[0]);
        globfree(&found);
        if (is_found)
            return true;
    }
    return false;
}

/* Checks every directory of PATH for the tool, or (name NULL) for a Python with Triton. */
static bool try_search_path(char path[PATH_MAX], const char *name)
{
    const char *rest = getenv("PATH");
    while (rest && *rest) {
        size_t size = strcspn(rest, ":");
        char directory[PATH_MAX];
        if (size && size < sizeof directory - sizeof "/.." && rest[0] == '/') {
            memcpy(directory, rest, size);
            memcpy(directory + size, name ? "" : "/..", name ? 1 : sizeof "/..");
            if (name ? try_directory(path, directory, "", name) : try_pattern(path, directory))
                return true;
        }
        rest += size;
        rest += *rest == ':';
    }
    return false;
}

static gpufl_status nvdisasm_find(char path[PATH_MAX], struct problem *problem)
{
    const char *name = tools[IMAGE_NVIDIA].name;
    if (try_search_path(path, name) || try_directory(path, getenv("CUDA_HOME"), "/bin", name) ||
        try_directory(path, getenv("CUDA_PATH"), "/bin", name) ||
        try_directory(path, "/usr/local/cuda", "/bin", name) || try_pattern(path, getenv("VIRTUAL_ENV")) ||
        try_pattern(path, getenv("CONDA_PREFIX")) || try_search_path(path, NULL))
        return GPUFL_OK;
    return problem_set(problem, GPUFL_E_NOT_FOUND,
                       "no nvdisasm in PATH, CUDA_HOME, /usr/local/cuda/bin or a Python's Triton; install the CUDA "
                       "toolkit's nvdisasm or set GPUFL_NVDISASM");
}

/* ROCm's llvm-objdump supports AMD's newest targets; of the others the newest is best. */
static gpufl_status llvm_objdump_find(char path[PATH_MAX], struct problem *problem)
{
    enum { VERSION_FIRST = 11, VERSION_LAST = 40 };
    const char *name = tools[IMAGE_AMD].name;
    if (try_directory(path, getenv("ROCM_PATH"), "/llvm/bin", name) ||
        try_directory(path, "/opt/rocm", "/llvm/bin", name))
        return GPUFL_OK;
    for (int version = VERSION_LAST; version >= VERSION_FIRST; version--) {
        char versioned[32];
        snprintf(versioned, sizeof versioned, "%s-%d", name, version);
        if (try_search_path(path, versioned))
            return GPUFL_OK;
    }
    if (try_search_path(path, name))
        return GPUFL_OK;
    return problem_set(
        problem, GPUFL_E_NOT_FOUND,
        "no llvm-objdump in ROCM_PATH, /opt/rocm/llvm/bin or PATH; install ROCm's or your system's LLVM, "
        "or set GPUFL_LLVM_OBJDUMP");
}

gpufl_status disassembler_find(enum image_vendor vendor, char path[PATH_MAX], struct problem *problem)
{
    if (!disassembler_is_named(vendor))
        return vendor == IMAGE_AMD ? llvm_objdump_find(path, problem) : nvdisasm_find(path, problem);
    const char *chosen = getenv(tools[vendor].variable);
    if (!chosen || strlen(chosen) >= PATH_MAX || !is_program(chosen))
        return problem_set(problem, GPUFL_E_NOT_FOUND, "%s: '%.256s' is not a program", tools[vendor].variable,
                           chosen ? chosen : "");
    snprintf(path, PATH_MAX, "%s", chosen);
    return GPUFL_OK;
}
