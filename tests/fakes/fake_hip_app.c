/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted HIP program; see README.md. The last line of its output is exact. */
#include "cuda_fake.h"
#include "hip_fake.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS_MAX = 16, BYTES = 4096, ASKING = 3 };

static struct {
    int threads, launches, gpus;
    int copies, ranges, cuda, fork_child, sessions, is_late, is_asking;
    const char *library, *init; /* libgpufl.so, and when gpufl_init is called: before or after HIP starts */
    const char *code;           /* a code object's file */
} options = {.threads = 1, .launches = 10, .gpus = 1, .sessions = 1};

static struct { /* loaded, as frameworks do, so that CUDA can be there first */
#define HIP_MEMBER(type, name, parameters) type(*name) parameters;
    FAKE_HIP_FUNCTIONS(HIP_MEMBER)
} hip;
static struct fake_hip_kernel saxpy = {"_Z5saxpyPf.kd", 0}, scale = {"_Z5scalePf.kd", 0};
static atomic_int kernels, copies, syncs;
static int (*gpufl_init)(const void *);
static void (*gpufl_shutdown)(void);
static int (*gpufl_active_engine)(void);
static atomic_bool has_hip;

static void hip_load(void)
{
    void *library = dlopen("libamdhip64.so.6", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
#define HIP_BIND(type, name, parameters) hip.name = __extension__(type(*) parameters) dlsym(library, #name);
    FAKE_HIP_FUNCTIONS(HIP_BIND)
}

static void *work(void *argument)
{
    int number = (int)(intptr_t)argument;
    const unsigned grid[3] = {120, 2, 1}, block[3] = {256, 1, 1};
    char host[BYTES] = "", name[32];
    void *device = NULL;
    (void)hip.hipSetDevice(number % options.gpus);
    (void)hip.hipMalloc(&device, BYTES);
    snprintf(name, sizeof name, "thread_%d", number);
    uint64_t range = options.ranges ? hip.roctxRangeStartA("whole") : 0;
    for (int i = 0; i < options.launches; i++) {
        int current = 0;
        (void)hip.hipGetDevice(&current);
        if (options.ranges)
            (void)hip.roctxRangePushA(name);
        (void)hip.hipLaunchKernel(i % 3 ? &saxpy : &scale, grid, block, 512, NULL);
        atomic_fetch_add(&kernels, 1);
        if (options.ranges)
            (void)hip.roctxRangePop();
        if (options.copies) {
            (void)hip.hipMemcpyAsync(device, host, BYTES, FAKE_HIP_TO_DEVICE, NULL);
            (void)hip.hipMemcpy(host, device, BYTES, FAKE_HIP_TO_HOST);
            atomic_fetch_add(&copies, 2);
        }
    }
    if (options.ranges) {
        hip.roctxMarkA("done");
        hip.roctxRangeStop(range);
    }
    (void)hip.hipDeviceSynchronize();
    atomic_fetch_add(&syncs, 1);
    (void)hip.hipFree(device);
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS_MAX];
    for (int i = 0; i < options.threads; i++)
        pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    for (int i = 0; i < options.threads; i++)
        pthread_join(threads[i], NULL);
}

/* NVIDIA's part of a program that uses both. */
static void run_cuda(void)
{
    static const struct fake_kernel cuda_kernels[] = {{.name = "_Z4gemmPf", .regs = 32, .duration_ns = 10000}};
    static const struct fake_image image = {FAKE_IMAGE_MAGIC, 1, cuda_kernels};
    struct fake_context *context = NULL;
    const struct fake_image *module = NULL;
    const struct fake_kernel *function = NULL;
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
#define CUDA(name) (__extension__(__typeof__(&name)) dlsym(cuda, #name))
    if (!cuda || CUDA(cuInit)(0) || CUDA(cuCtxCreate_v2)(&context, 0, 0) || CUDA(cuModuleLoadData)(&module, &image) ||
        CUDA(cuModuleGetFunction)(&function, module, cuda_kernels[0].name))
        exit(3);
    for (int i = 0; i < options.launches; i++) {
        if (CUDA(cuLaunchKernel)(function, 64, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL) == 0)
            atomic_fetch_add(&kernels, 1);
    }
    (void)CUDA(cuCtxSynchronize)();
#undef CUDA
}

static void load_kernels(void)
{
    static char code[1 << 20];
    size_t size = 0;
    FILE *file = options.code ? fopen(options.code, "rb") : NULL;
    if (file) {
        size = fread(code, 1, sizeof code, file);
        fclose(file);
    }
    (void)hip.hipFakeLoad(&saxpy, code, size);
    (void)hip.hipFakeLoad(&scale, NULL, 0);
}

static void gpufl_load(void)
{
    void *library = options.library ? dlopen(options.library, RTLD_NOW) : NULL;
    if (options.library && !library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    if (library) {
        gpufl_init = __extension__(int (*)(const void *)) dlsym(library, "gpufl_init");
        gpufl_shutdown = __extension__(void (*)(void)) dlsym(library, "gpufl_shutdown");
        gpufl_active_engine = __extension__(int (*)(void)) dlsym(library, "gpufl_active_engine");
    }
}

static void init_when(const char *when)
{
    if (gpufl_init && options.init && strcmp(options.init, when) == 0)
        printf("gpufl_init=%d\n", gpufl_init(NULL));
}

static void *ask(void *unused)
{
    (void)unused;
    while (!atomic_load(&has_hip))
        (void)gpufl_active_engine();
    return NULL;
}

/* --ask: while HIP starts, other threads are in and out of gpufl. */
static void start_hip(void)
{
    pthread_t asking[ASKING];
    for (int i = 0; options.is_asking && i < ASKING; i++)
        pthread_create(&asking[i], NULL, ask, NULL);
    if (options.is_asking)
        usleep(10000); /* until they are at it */
    if (options.is_late)
        hip_load();
    init_when("before");
    (void)hip.hipInit(0);
    atomic_store(&has_hip, true);
    for (int i = 0; options.is_asking && i < ASKING; i++)
        pthread_join(asking[i], NULL);
}

static int parse(int argc, char **argv)
{
    const struct {
        const char *name;
        int *number, *flag;
        const char **text;
    } table[] = {{"--launches", &options.launches, NULL, NULL}, {"--threads", &options.threads, NULL, NULL},
                 {"--gpus", &options.gpus, NULL, NULL},         {"--sessions", &options.sessions, NULL, NULL},
                 {"--copies", NULL, &options.copies, NULL},     {"--ranges", NULL, &options.ranges, NULL},
                 {"--cuda", NULL, &options.cuda, NULL},         {"--fork", NULL, &options.fork_child, NULL},
                 {"--gpufl", NULL, NULL, &options.library},     {"--init", NULL, NULL, &options.init},
                 {"--code", NULL, NULL, &options.code},         {"--late", NULL, &options.is_late, NULL},
                 {"--ask", NULL, &options.is_asking, NULL}};
    for (int i = 1; i < argc; i++) {
        size_t at = 0;
        while (at < sizeof table / sizeof *table && strcmp(argv[i], table[at].name) != 0)
            at++;
        if (at == sizeof table / sizeof *table || (!table[at].flag && i + 1 == argc))
            return 2;
        if (table[at].flag)
            *table[at].flag = 1;
        else if (table[at].text)
            *table[at].text = argv[++i];
        else
            *table[at].number = (int)strtol(argv[++i], NULL, 10);
    }
    return options.threads < 1 || options.threads > THREADS_MAX || options.gpus < 1 ? 2 : 0;
}

int main(int argc, char **argv)
{
    if (parse(argc, argv)) {
        fprintf(stderr, "usage: see tests/fakes/README.md\n");
        return 2;
    }
    gpufl_load();
    if (!options.is_late)
        hip_load();
    if (options.cuda)
        run_cuda();
    start_hip();
    init_when("after");
    load_kernels();
    for (int i = 0; i < options.sessions; i++) {
        if (i)
            init_when("before");
        run_threads();
        if (gpufl_shutdown && options.init)
            gpufl_shutdown();
    }
    if (options.fork_child) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            init_when("before");
            exit(0);
        }
        int status = 0;
        (void)waitpid(child, &status, 0);
    }
    printf("kernels=%d copies=%d syncs=%d\n", kernels, copies, syncs);
    return 0;
}
