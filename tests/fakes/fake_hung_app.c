/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA program that records itself and ends while a call of a GPU library
 * hangs, or the disk does. Its work is done by a second thread, which may be the
 * one that hangs: then the program ends beside it. Prints how long gpufl_shutdown
 * took, and "again STATUS" for one more session.
 *
 * fake_hung_app [late] [exit | signal] [again] [launches N]
 *   late: CUDA is in use before gpufl_init; exit: no gpufl_shutdown; signal: exit() in a handler, on the thread that
 *   launches; again: one more session after the first */
#include "cuda_fake.h"
#include "cudart_fake.h"

#include <gpufl/gpufl.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LAUNCHES = 200,
    POLL_US = 2000,
    WORK_US = 1000,
    HANG_US = 500000 /* so long that it is more than slow */,
    COPY_BYTES = 4096
};

static const struct fake_kernel kernels[] = {{"_Z1aPf", 32, 1024, 0, 20000}, {"_Z1bPf", 32, 1024, 0, 20000}};
static const struct fake_image image = {FAKE_IMAGE_MAGIC, 2, kernels};
static int launches = LAUNCHES;
static atomic_bool has_worked;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void setup(void)
{
    void **handle = __cudaRegisterFatBinary((void *)(uintptr_t)&image);
    for (int i = 0; i < 2; i++)
        __cudaRegisterFunction(handle, (const char *)&kernels[i], NULL, kernels[i].name, -1, NULL, NULL, NULL, NULL,
                               NULL);
    __cudaUnregisterFatBinary(handle);
}

static void launch(int number)
{
    const struct fake_dim3 grid = {8, 1, 1}, block = {128, 1, 1};
    (void)cudaLaunchKernel(&kernels[number % 2], grid, block, NULL, 0, NULL);
}

/* As a framework's profiler does: gpufl must look for ids, and put back what it finds. */
static void push_external_id(void)
{
    enum { custom_kind = 5, id = 77 };
    void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = cupti ? dlsym(cupti, "cuptiActivityPushExternalCorrelationId") : NULL;
    if (symbol)
        (void)(__extension__(int (*)(uint32_t, uint64_t)) symbol)(custom_kind, id);
}

static void *work(void *unused)
{
    char host[COPY_BYTES] = "";
    void *device = NULL;
    (void)cudaMalloc(&device, sizeof host);
    push_external_id();
    for (int i = 0; i < launches; i++) {
        gpufl_scope_push(i % 2 ? "odd" : "even", NULL);
        launch(i);
        if (i % 16 == 0) {
            (void)cudaMemcpy(device, host, sizeof host, 1);
            (void)cudaStreamSynchronize(NULL);
        }
        gpufl_scope_pop();
        usleep(WORK_US);
    }
    (void)cudaDeviceSynchronize();
    (void)cudaFree(device);
    atomic_store(&has_worked, true);
    return unused;
}

/* The look-alikes write it when a call begins that never returns. */
static bool does_a_call_hang(void)
{
    const char *path = getenv("FAKE_CALLS");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[128];
    bool is_hung = false;
    while (file && !is_hung && fgets(line, sizeof line, file))
        is_hung = line[0] == '!';
    if (file)
        fclose(file);
    return is_hung;
}

static void on_alarm(int number)
{
    (void)number;
    exit(0);
}

_Noreturn static void exit_from_a_handler(void)
{
    enum { alarm_us = 100000, spread_us = 7919 };
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    signal(SIGALRM, on_alarm);
    ualarm((useconds_t)(alarm_us + now.tv_nsec % spread_us), 0);
    for (;;)
        launch(0);
}

static bool has_word(int count, char **words, const char *word)
{
    bool is_found = false;
    for (int i = 1; i < count; i++)
        is_found |= !strcmp(words[i], word);
    return is_found;
}

int main(int count, char **words)
{
    pthread_t thread;
    for (int i = 1; i + 1 < count; i++)
        if (!strcmp(words[i], "launches"))
            launches = (int)strtol(words[i + 1], NULL, 10);
    setup();
    if (has_word(count, words, "late"))
        launch(0);
    double began_s = now_s();
    int status = gpufl_init(NULL);
    printf("init %d in %.3f s\n", status, now_s() - began_s);
    fflush(stdout);
    if (has_word(count, words, "signal"))
        exit_from_a_handler();
    if (pthread_create(&thread, NULL, work, NULL))
        return 1;
    while (!atomic_load(&has_worked) && !does_a_call_hang())
        usleep(POLL_US);
    if (!atomic_load(&has_worked))
        usleep(HANG_US);
    if (has_word(count, words, "exit"))
        return 0;
    began_s = now_s();
    gpufl_shutdown();
    printf("shutdown in %.3f s\n", now_s() - began_s);
    fflush(stdout);
    if (has_word(count, words, "again")) {
        status = gpufl_init(NULL);
        printf("again %d\n", status);
        gpufl_shutdown();
    }
    return 0;
}
