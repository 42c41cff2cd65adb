/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/scope_kind.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static bool has_prefix(const char *name, size_t size, const char *prefix)
{
    size_t prefix_size = strlen(prefix);
    return size >= prefix_size && !memcmp(name, prefix, prefix_size);
}

static bool has_part(const char *name, size_t size, const char *part)
{
    return memmem(name, size, part, strlen(part)) != NULL;
}

static bool is_of_library(const char *domain)
{
    static const char *const domains[] = {
        "CCCL",     "NCCL",      "cuBLAS",  "cuBLASLt", "cuDNN",  "cuFFT",   "cuSOLVER",
        "cuSPARSE", "cuTENSOR",  "NVSHMEM", "NVJPEG",   "NVTX",   "libcudf", "libcuml",
        "RAFT",     "TSL",       "XLA",     "TensorRT", "DALI",   "UCX",     "UCC",
        "MPI",      "libkvikio", "cupy",    "cupyx",    "Thrust", "CUB",     "Transformer Engine",
    };
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        if (!strcasecmp(domain, domains[i]))
            return true;
    return false;
}

/* "AddmmBackward0" of the node that PyTorch evaluates. */
static bool is_backward_node(const char *name, size_t size)
{
    static const char word[] = "Backward";
    while (size && name[size - 1] >= '0' && name[size - 1] <= '9')
        size--;
    return size >= sizeof word - 1 && !memcmp(name + size - (sizeof word - 1), word, sizeof word - 1);
}

static bool is_of_operator(const char *name, size_t size)
{
    static const char *const prefixes[] = {"triton_",
                                           "nccl:",
                                           "Optimizer.",
                                           "Torch-Compiled Region",
                                           "## Call Compiled",
                                           "CompiledFunction",
                                           "enumerate(DataLoader)"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (has_prefix(name, size, prefixes[i]))
            return true;
    return has_part(name, size, "::") || is_backward_node(name, size);
}

enum scope_kind scope_kind_of(uint8_t source, const char *name, size_t name_size, const char *domain)
{
    enum { source_nvtx_push = 1, source_nvtx_start = 2, source_roctx_push = 3 };
    if (source != source_nvtx_push && source != source_nvtx_start && source != source_roctx_push)
        return SCOPE_OF_USER;
    if (domain && *domain)
        return is_of_library(domain) ? SCOPE_OF_LIBRARY : SCOPE_OF_USER;
    return is_of_operator(name, name_size) ? SCOPE_OF_OPERATOR : SCOPE_OF_USER;
}

enum direction operator_direction(const char *name, size_t name_size)
{
    if (has_prefix(name, name_size, "autograd::engine::") || is_backward_node(name, name_size))
        return DIRECTION_BACKWARD;
    return has_prefix(name, name_size, "Optimizer.") ? DIRECTION_OPTIMIZER : DIRECTION_UNKNOWN;
}

const char *direction_name(enum direction direction)
{
    static const char *const names[DIRECTION_COUNT] = {NULL, "forward", "backward", "optimizer"};
    return names[direction];
}
