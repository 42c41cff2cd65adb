/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the example programs that nvcc would build: accepts the options of examples/gemm, launches kernels with the
 * same names in the same scopes on the look-alike runtime, and prints the same lines. Under another name than gemm, it
 * launches one kernel and a few copies. */
#include "cudart_fake.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct fake_kernel kernels[] = {{"_Z10gemm_naivePKfS0_Pfi", 32, 0, 0, 800000},
                                             {"_Z14gemm_coalescedPKfS0_Pfi", 32, 0, 0, 400000},
                                             {"_Z16gemm_shared_tilePKfS0_Pfi", 32, 8192, 0, 360000},
                                             {"_Z18gemm_register_tilePKfS0_Pfi", 94, 8192, 0, 320000},
                                             {"_Z18gemm_conflict_freePKfS0_Pfi", 90, 8320, 0, 280000},
                                             {"_Z18gemm_double_bufferPKfS0_Pfi", 127, 16640, 0, 240000},
                                             {"_Z16gemm_tensor_corePK6__halfS1_Pfi", 96, 37888, 0, 160000}};
static const char *const steps[] = {"naive",         "coalesced",     "shared_tile", "register_tile",
                                    "conflict_free", "double_buffer", "tensor_core"};
static const struct fake_image image = {FAKE_IMAGE_MAGIC, sizeof kernels / sizeof *kernels, kernels};
static void (*scope_push)(const char *name, const void *meta);
static void (*scope_pop)(void);

static int step_index(const char *word)
{
    for (int i = 0; i < (int)(sizeof steps / sizeof *steps); i++)
        if (!strcmp(word, steps[i]))
            return i;
    return -1;
}

/* The recorder is loaded by the first call. */
static void scopes_find(void)
{
    int count;
    (void)cudaGetDeviceCount(&count);
    void *library = dlopen("libgpufl.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return;
    *(void **)&scope_push = dlsym(library, "gpufl_scope_push");
    *(void **)&scope_pop = dlsym(library, "gpufl_scope_pop");
}

static int step_run(int step, long warmup, long repeat)
{
    const struct fake_dim3 grid = {64, 1, 1}, block = {256, 1, 1};
    int error = 0;
    for (long i = 0; i < warmup; i++)
        error |= cudaLaunchKernel(&kernels[step], grid, block, NULL, 0, NULL) | cudaDeviceSynchronize();
    if (scope_push)
        scope_push(steps[step], NULL);
    for (long i = 0; i < repeat; i++)
        error |= cudaLaunchKernel(&kernels[step], grid, block, NULL, 0, NULL) | cudaDeviceSynchronize();
    if (scope_pop)
        scope_pop();
    return error;
}

static int other_work(void)
{
    enum { BYTES = 4096 };
    static char host[BYTES];
    void *device = NULL;
    int error = cudaMalloc(&device, BYTES) | cudaMemcpy(device, host, BYTES, FAKE_COPY_TO_DEVICE);
    error |= step_run(0, 0, 5) | cudaMemcpy(host, device, BYTES, FAKE_COPY_TO_HOST) | cudaFree(device);
    return error ? 3 : 0;
}

int main(int argc, char **argv)
{
    long repeat = 10, warmup = 2, rounds = 1, chosen[32], count = 0, error = 0;
    void **handle = __cudaRegisterFatBinary((void *)(uintptr_t)&image);
    for (uint32_t i = 0; i < image.kernel_count; i++)
        __cudaRegisterFunction(handle, (const char *)&kernels[i], NULL, kernels[i].name, -1, NULL, NULL, NULL, NULL,
                               NULL);
    __cudaUnregisterFatBinary(handle);
    scopes_find();
    const char *slash = strrchr(argv[0], '/');
    if (strcmp(slash ? slash + 1 : argv[0], "gemm") != 0)
        return other_work();
    for (int i = 1; i < argc; i++) {
        long *value = !strcmp(argv[i], "--repeat")   ? &repeat
                      : !strcmp(argv[i], "--warmup") ? &warmup
                      : !strcmp(argv[i], "--rounds") ? &rounds
                                                     : NULL;
        if (value && i + 1 < argc)
            *value = strtol(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--size"))
            i++;
        else if (step_index(argv[i]) >= 0 && count < 32)
            chosen[count++] = step_index(argv[i]);
        else if (strcmp(argv[i], "--no-check") != 0)
            return 2; /* as gemm without cuBLAS */
    }
    for (long round = 0; round < rounds; round++)
        for (long i = 0; i < count; i++)
            error |= step_run((int)chosen[i], warmup, repeat);
    for (long i = 0; i < count; i++)
        printf("%-14s %10.3f ms %9.2f TFLOP/s  largest difference 1e-05 ok\n", steps[chosen[i]],
               (double)kernels[chosen[i]].duration_ns / 1e6, 1e6 / (double)kernels[chosen[i]].duration_ns);
    return error ? 3 : 0;
}
