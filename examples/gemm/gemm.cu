// SPDX-License-Identifier: Apache-2.0
// C = A * B in seven steps from naive to tensor cores, each in a separate file and scope.
//
//   build  cmake -S examples -B build/examples -DGPUFL_BUILD_DIR=build && cmake --build build/examples
//   run    gpufl trace -- build/examples/gemm
//          gpufl trace --engine Deep -- build/examples/gemm --size 2048 --no-check naive coalesced
//          gpufl trace --engine RangeProfiler --range-metrics roofline -- build/examples/gemm --repeat 1
//          gpufl report gemm
//
// usage: gemm [--size N] [--repeat N] [--warmup N] [--rounds N] [--no-check] [STEP...]
//   --size    rows and columns, a multiple of 128 (4096)   --rounds   all steps so often, each time in a new scope (1)
//   --repeat  measured launches in each scope (10)         --warmup   launches in front of the scope (2)
// Results are compared with cuBLAS where it was built in, else with the naive step.
#include "1_naive.cuh"
#include "2_coalesced.cuh"
#include "3_shared_tile.cuh"
#include "4_register_tile.cuh"
#include "5_conflict_free.cuh"
#include "6_double_buffer.cuh"
#include "7_tensor_core.cuh"

#include <gpufl/gpufl.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <cuda_runtime.h>
#ifdef GEMM_CUBLAS
#include <cublas_v2.h>
#endif

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    std::fprintf(stderr, "gemm: %s: %s\n", what, cudaGetErrorString(error));
    std::exit(3);
}

struct matrices {
    int size;
    float *a, *b, *c, *expected;
    __half *a_half, *b_half; // the same values: they were chosen to fit
};

// Values between -1 and 1 that half precision holds exactly, so that all steps multiply the same numbers.
__global__ void fill(float *whole, __half *narrow, size_t count, unsigned seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        unsigned bits = (unsigned)i * 2654435761u + seed;
        bits = (bits ^ bits >> 15) * 2246822519u;
        bits = (bits ^ bits >> 13) * 3266489917u;
        narrow[i] = __float2half((float)(bits >> 16) / 32768.0f - 1.0f);
        whole[i] = __half2float(narrow[i]);
    }
}

// Bits of a float that is not negative sort as the float does.
__global__ void largest_difference(const float *a, const float *b, size_t count, unsigned *largest)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        atomicMax(largest, __float_as_uint(fabsf(a[i] - b[i])));
}

using launch_fn = void (*)(const matrices &);

static dim3 tiles(const matrices &m, int side)
{
    return dim3(m.size / side, m.size / side);
}

struct step {
    const char *name;
    launch_fn launch;
};

#ifdef GEMM_CUBLAS
static cublasHandle_t cublas()
{
    static cublasHandle_t handle;
    if (!handle && cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) {
        std::fprintf(stderr, "gemm: cuBLAS does not start\n");
        std::exit(3);
    }
    return handle;
}

// cuBLAS counts by columns: B * A of its view is A * B of ours.
static void cublas_multiply(const matrices &m, const void *a, const void *b, cudaDataType type)
{
    const float one = 1, zero = 0;
    const cublasStatus_t status = cublasGemmEx(cublas(), CUBLAS_OP_N, CUBLAS_OP_N, m.size, m.size, m.size, &one, b,
                                               type, m.size, a, type, m.size, &zero, m.c, CUDA_R_32F, m.size,
                                               CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS) {
        std::fprintf(stderr, "gemm: cuBLAS refuses\n");
        std::exit(3);
    }
}
#endif

static const step steps[] = {
    {"naive", [](const matrices &m) { gemm_naive<<<tiles(m, 32), dim3(32, 32)>>>(m.a, m.b, m.c, m.size); }},
    {"coalesced", [](const matrices &m) { gemm_coalesced<<<tiles(m, 32), dim3(32, 32)>>>(m.a, m.b, m.c, m.size); }},
    {"shared_tile", [](const matrices &m) { gemm_shared_tile<<<tiles(m, 32), dim3(32, 32)>>>(m.a, m.b, m.c, m.size); }},
    {"register_tile", [](const matrices &m) { gemm_register_tile<<<tiles(m, 128), 256>>>(m.a, m.b, m.c, m.size); }},
    {"conflict_free", [](const matrices &m) { gemm_conflict_free<<<tiles(m, 128), 256>>>(m.a, m.b, m.c, m.size); }},
    {"double_buffer", [](const matrices &m) { gemm_double_buffer<<<tiles(m, 128), 256>>>(m.a, m.b, m.c, m.size); }},
    {"tensor_core",
     [](const matrices &m) { gemm_tensor_core<<<tiles(m, 128), 256>>>(m.a_half, m.b_half, m.c, m.size); }},
#ifdef GEMM_CUBLAS
    {"cublas_single", [](const matrices &m) { cublas_multiply(m, m.a, m.b, CUDA_R_32F); }},
    {"cublas_half", [](const matrices &m) { cublas_multiply(m, m.a_half, m.b_half, CUDA_R_16F); }},
#endif
};

struct settings {
    int size = 4096, repeat = 10, warmup = 2, rounds = 1;
    bool is_checked = true;
    std::vector<const step *> chosen;
};

static int number(const char *text, int smallest, int largest)
{
    char *end;
    long value = std::strtol(text, &end, 10);
    if (*end || value < smallest || value > largest) {
        std::fprintf(stderr, "gemm: %s is not a number from %d to %d\n", text, smallest, largest);
        std::exit(2);
    }
    return (int)value;
}

static settings parse(int argc, char **argv)
{
    settings result;
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        int *value = word == "--size"     ? &result.size
                     : word == "--repeat" ? &result.repeat
                     : word == "--warmup" ? &result.warmup
                     : word == "--rounds" ? &result.rounds
                                          : nullptr;
        const step *named =
            std::find_if(std::begin(steps), std::end(steps), [&](const step &one) { return word == one.name; });
        if (value && i + 1 < argc) {
            *value = number(argv[++i], value == &result.warmup ? 0 : 1, 65536);
        } else if (word == "--no-check") {
            result.is_checked = false;
        } else if (named != std::end(steps)) {
            result.chosen.push_back(named);
        } else {
            std::fprintf(stderr, "gemm: %s is neither an option nor a step; see the top of gemm.cu\n", argv[i]);
            std::exit(2);
        }
    }
    if (result.size % 128 || result.size > 32768) {
        std::fprintf(stderr, "gemm: --size must be a multiple of 128 and at most 32768\n");
        std::exit(2);
    }
    if (result.chosen.empty())
        for (const step &one : steps)
            result.chosen.push_back(&one);
    return result;
}

static matrices prepare(int size)
{
    matrices m = {};
    const size_t count = (size_t)size * size;
    m.size = size;
    for (float **matrix : {&m.a, &m.b, &m.c, &m.expected})
        check(cudaMalloc(matrix, count * sizeof **matrix), "device memory");
    for (__half **matrix : {&m.a_half, &m.b_half})
        check(cudaMalloc(matrix, count * sizeof **matrix), "device memory");
    fill<<<1024, 256>>>(m.a, m.a_half, count, 1);
    fill<<<1024, 256>>>(m.b, m.b_half, count, 2);
    check(cudaDeviceSynchronize(), "values");
    return m;
}

// The reference, in m.expected.
static void expect(const matrices &m)
{
#ifdef GEMM_CUBLAS
    cublas_multiply(m, m.a, m.b, CUDA_R_32F);
#else
    steps[0].launch(m);
#endif
    check(cudaMemcpy(m.expected, m.c, (size_t)m.size * m.size * sizeof *m.c, cudaMemcpyDeviceToDevice), "reference");
}

static float largest_error(const matrices &m)
{
    static unsigned *found;
    unsigned bits = 0;
    if (!found)
        check(cudaMalloc(&found, sizeof *found), "device memory");
    check(cudaMemset(found, 0, sizeof *found), "comparison");
    largest_difference<<<1024, 256>>>(m.c, m.expected, (size_t)m.size * m.size, found);
    check(cudaMemcpy(&bits, found, sizeof bits, cudaMemcpyDeviceToHost), "comparison");
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// Milliseconds of each measured launch.
static std::vector<float> measure(const step &one, const matrices &m, const settings &chosen)
{
    static cudaEvent_t begin, end;
    if (!begin) {
        check(cudaEventCreate(&begin), "event");
        check(cudaEventCreate(&end), "event");
    }
    std::vector<float> times;
    const auto meta =
        gpufl::ScopeMeta{}.setRepeat((std::uint32_t)chosen.repeat).setWarmup((std::uint32_t)chosen.warmup);
    GFL_BENCH(one.name, meta) {
        float ms = 0;
        cudaEventRecord(begin);
        one.launch(m);
        cudaEventRecord(end);
        check(cudaEventSynchronize(end), one.name);
        check(cudaEventElapsedTime(&ms, begin, end), one.name);
        times.push_back(ms);
    };
    check(cudaGetLastError(), one.name);
    times.erase(times.begin(), times.begin() + chosen.warmup);
    return times;
}

int main(int argc, char **argv)
{
    const settings chosen = parse(argc, argv);
    gpufl::InitOptions opts; // under `gpufl trace` this joins the session that is already running
    opts.app_name = "gemm";
    opts.profiling_engine = gpufl::ProfilingEngine::Trace;
    gpufl::init(opts);

    const matrices m = prepare(chosen.size);
    if (chosen.is_checked)
        expect(m);
    std::vector<std::vector<float>> times(chosen.chosen.size());
    std::vector<float> errors(chosen.chosen.size());
    for (int round = 0; round < chosen.rounds; round++)
        for (size_t i = 0; i < chosen.chosen.size(); i++) {
            const std::vector<float> more = measure(*chosen.chosen[i], m, chosen);
            times[i].insert(times[i].end(), more.begin(), more.end());
            if (chosen.is_checked && !round)
                errors[i] = largest_error(m);
        }

    bool is_right = true;
    const double operations = 2.0 * chosen.size * chosen.size * (double)chosen.size;
    const float tolerance = 1e-5f * (float)chosen.size;
    std::printf("%d x %d, median of %zu launches\n", chosen.size, chosen.size, times[0].size());
    for (size_t i = 0; i < times.size(); i++) {
        std::nth_element(times[i].begin(), times[i].begin() + (long)times[i].size() / 2, times[i].end());
        const double ms = times[i][times[i].size() / 2];
        std::printf("%-14s %10.3f ms %9.2f TFLOP/s", chosen.chosen[i]->name, ms, operations / ms / 1e9);
        if (chosen.is_checked)
            std::printf("  largest difference %.2g %s", errors[i], errors[i] <= tolerance ? "ok" : "WRONG");
        std::printf("\n");
        is_right = is_right && (!chosen.is_checked || errors[i] <= tolerance);
    }
    gpufl::shutdown();
    return is_right ? 0 : 1;
}
