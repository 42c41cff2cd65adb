/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_work.h"

#include "cudart_fake.h"

#include <stdlib.h>

static const void *kernel_registered(void)
{
    static struct fake_kernel kernel = {"_Z4stepPf", 32, 0, 0, 2000};
    static struct fake_image image = {FAKE_IMAGE_MAGIC, 1, &kernel};
    static bool is_registered;
    if (!is_registered) {
        void **handle = __cudaRegisterFatBinary(&image);
        __cudaRegisterFunction(handle, (const char *)&kernel, NULL, kernel.name, -1, NULL, NULL, NULL, NULL, NULL);
        is_registered = true;
    }
    return &kernel;
}

void launch_kernels(void)
{
    const struct fake_dim3 grid = {64, 1, 1}, block = {128, 1, 1};
    if (cudaLaunchKernel(kernel_registered(), grid, block, NULL, 0, NULL) || cudaDeviceSynchronize())
        abort();
}

void train(int step)
{
    (void)step;
    launch_kernels();
}

void matmul(void)
{
    launch_kernels();
}
