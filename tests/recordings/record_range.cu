// SPDX-License-Identifier: Apache-2.0
// Records a decoded counter-data image of two kernels on a machine with a GPU, so that the real profiler host can
// evaluate it where there is none; not part of the build:
//
//   nvcc -O2 -std=c++17 -I../../src -I../../include record_range.cu -o record_range
//        $BUILD/lib/libgpufl_driver.a $BUILD/lib/libgpufl_base.a -lcuda -ldl -lpthread
//   ./record_range h200_range.rangerec && zstd -19 --ultra --rm h200_range.rangerec
//
// Output, little-endian; a text is 4 bytes length including the final NUL, then the bytes:
//   8 bytes "RANGEREC", 4 bytes format version 1, chip (text), 4 bytes passes, 4 bytes number of metrics, metrics
//   (texts), 4 bytes number of ranges, 4 bytes size of the image, the image as CUPTI decoded it, then for each range
//   its name (text) and the value of each metric (8-byte floating point) as CUPTI evaluated it on that machine.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda.h>
#include <cuda_runtime.h>

extern "C" {
#include "driver/profiler_host.h"
#include "driver/profiler_target.h"
#include "driver/range_profiler.h"
}

static const char *const metrics[] = {"sm__throughput.avg.pct_of_peak_sustained_elapsed",
                                      "sm__warps_active.avg.pct_of_peak_sustained_active",
                                      "smsp__inst_executed.sum",
                                      "dram__bytes_read.sum",
                                      "l1tex__t_sector_hit_rate.pct",
                                      "lts__t_sector_hit_rate.pct"};
constexpr size_t metric_count = sizeof metrics / sizeof metrics[0], ranges_max = 2;

__global__ void add(float *to, const float *from, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        to[i] += from[i];
}

__global__ void fold(float *to, const float *from, int count)
{
    __shared__ float part[256];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        sum += from[i];
    part[threadIdx.x] = sum;
    for (int width = 128; width; width /= 2) {
        __syncthreads();
        if (threadIdx.x < width)
            part[threadIdx.x] += part[threadIdx.x + width];
    }
    if (!threadIdx.x)
        atomicAdd(to, part[0]);
}

static problem trouble;

static void must(gpufl_status status)
{
    if (status == GPUFL_OK)
        return;
    fprintf(stderr, "%s\n", trouble.text);
    exit(1);
}

static void put_u32(FILE *out, size_t value)
{
    uint32_t word = (uint32_t)value;
    fwrite(&word, sizeof word, 1, out);
}

static void put_text(FILE *out, const char *text)
{
    put_u32(out, strlen(text) + 1);
    fwrite(text, 1, strlen(text) + 1, out);
}

int main(int argc, char **argv)
{
    FILE *out = argc == 2 ? fopen(argv[1], "wb") : nullptr;
    if (!out) {
        fprintf(stderr, "usage: record_range FILE\n");
        return 2;
    }
    constexpr int count = 1 << 24;
    float *a, *b;
    CUcontext context;
    if (cudaMalloc(&a, count * sizeof *a) || cudaMalloc(&b, count * sizeof *b) || cuCtxGetCurrent(&context))
        return 1;
    struct cupti *library;
    profiler_host *host;
    range_profiler *profiler;
    metric_plan plan;
    char chip[PROFILER_CHIP_NAME_BYTES];
    uint8_t *availability;
    size_t availability_bytes, image_bytes, dropped, range_count;
    must(cupti_load(&library, &trouble));
    must(profiler_target_acquire(library, &trouble));
    must(profiler_target_check(library, 0, PROFILER_API_RANGE, &trouble));
    must(profiler_target_chip(library, 0, chip, &trouble));
    must(profiler_target_availability(library, context, &availability, &availability_bytes, &trouble));
    must(profiler_host_open(&host, library, chip, PROFILER_RANGE, availability, availability_bytes, &trouble));
    must(profiler_host_plan(host, metrics, metric_count, &plan, &trouble));
    must(range_profiler_open(&profiler, library, context, &trouble));
    must(range_profiler_image_bytes(profiler, metrics, metric_count, ranges_max, &image_bytes, &trouble));
    std::vector<uint64_t> memory((image_bytes + 7) / 8);
    uint8_t *image = reinterpret_cast<uint8_t *>(memory.data());
    must(range_profiler_image_reset(profiler, image, image_bytes, &trouble));
    range_config config = {RANGE_KERNELS, &plan, image, image_bytes, ranges_max, {0, 1}};
    range_pass pass;
    must(range_profiler_configure(profiler, &config, &trouble));
    must(range_profiler_start(profiler, &trouble));
    add<<<count / 256, 256>>>(a, b, count);
    fold<<<256, 256>>>(a, b, count);
    must(range_profiler_stop(profiler, &pass, &trouble));
    must(range_profiler_decode(profiler, &dropped, &trouble));
    must(range_image_count(library, image, image_bytes, &range_count, &trouble));
    fwrite("RANGEREC", 1, 8, out);
    put_u32(out, 1);
    put_text(out, chip);
    put_u32(out, plan.passes);
    put_u32(out, metric_count);
    for (const char *metric : metrics)
        put_text(out, metric);
    put_u32(out, range_count);
    put_u32(out, image_bytes);
    fwrite(image, 1, image_bytes, out);
    printf("%s: %zu ranges (%zu dropped), %zu passes, %zu bytes\n", chip, range_count, dropped, plan.passes,
           image_bytes);
    for (size_t range = 0; range < range_count; range++) {
        char name[128];
        double values[metric_count];
        must(range_image_name(library, image, image_bytes, range, name, sizeof name, &trouble));
        must(profiler_host_evaluate(host, image, image_bytes, range, metrics, metric_count, values, &trouble));
        put_text(out, name);
        fwrite(values, sizeof values[0], metric_count, out);
        for (size_t i = 0; i < metric_count; i++)
            printf("  %s %s = %.6g\n", name, metrics[i], values[i]);
    }
    range_profiler_close(profiler);
    profiler_host_close(host);
    profiler_target_release(library);
    return fclose(out) ? 1 : 0;
}
