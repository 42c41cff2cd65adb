/* SPDX-License-Identifier: Apache-2.0 */
/* Records many sessions in one process, as a service does that profiles one request in a thousand:
 *   many_sessions DIRECTORY ENGINE COUNT
 * prints "session N: descriptors D threads T resident R KiB" after each. */
#include "../fakes/cudart_fake.h"

#include <gpufl/gpufl.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { LAUNCHES = 200 };

static const struct fake_kernel kernels[] = {{"work(float*)", 32, 0, 0, 5000}};
static const struct fake_image image = {FAKE_IMAGE_MAGIC, sizeof kernels / sizeof *kernels, kernels};

static int entries(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}

static long resident_kib(void)
{
    long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &size, &resident) != 2)
        resident = -1;
    if (file)
        fclose(file);
    return resident * 4;
}

int main(int argc, char **argv)
{
    const struct fake_dim3 grid = {64, 1, 1}, block = {128, 1, 1};
    if (argc != 4)
        return 2;
    const long engine = strtol(argv[2], NULL, 10), count = strtol(argv[3], NULL, 10);
    void **handle = __cudaRegisterFatBinary((void *)&image);
    __cudaRegisterFunction(handle, (const char *)&kernels[0], NULL, kernels[0].name, -1, NULL, NULL, NULL, NULL, NULL);
    for (int i = 1; i <= count; i++) {
        gpufl_options options = GPUFL_OPTIONS_INIT;
        options.log_path = argv[1];
        options.profiling_engine = (gpufl_engine)engine;
        if (gpufl_init(&options) != GPUFL_OK)
            return 1;
        for (int j = 0; j < LAUNCHES; j++)
            GFL_SCOPE("work")
            {
                cudaLaunchKernel(&kernels[0], grid, block, NULL, 0, NULL);
            }
        cudaDeviceSynchronize();
        gpufl_shutdown();
        printf("session %d: descriptors %d threads %d resident %ld KiB\n", i, entries("/proc/self/fd"),
               entries("/proc/self/task"), resident_kib());
    }
    return 0;
}
