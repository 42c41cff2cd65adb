/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted CUDA program, linked to the look-alike driver and runtime as any
 * program is to the real ones. Prints at the end one line of exact counts. */
#include "app_work.h"

#include "cuda_fake.h"
#include "cudart_fake.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Waits for the child; its failure is ours. */
static void child_wait(pid_t child)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fputs("fake_app: the child failed\n", stderr);
        exit(1);
    }
}

static void child_exec(int argc, char **argv)
{
    char *arguments[128];
    int count = 0;
    for (int i = 0; i < argc && count < 127; i++)
        if (strcmp(argv[i], "--exec") != 0)
            arguments[count++] = argv[i];
    arguments[count] = NULL;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    child_wait(child);
}

/* A child of a CUDA program cannot use CUDA, but it leaves through exit() with all its handlers. */
static void child_exit_normally(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        exit(cudaDeviceSynchronize() == FAKE_NOT_INITIALIZED ? 0 : 1);
    child_wait(child);
}

enum { own_bytes = 65544 }; /* a size that no other profiler uses */

static void own_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *size = own_bytes;
    *buffer = aligned_alloc(8, own_bytes);
    *max_records = 0;
}

/* Buffers of the profiler before us come here too; they are not ours to free. */
static void own_complete(void *context, uint32_t stream_id, uint8_t *buffer, size_t size, size_t valid)
{
    (void)context, (void)stream_id, (void)valid;
    if (size == own_bytes)
        free(buffer);
}

static void take_over(void)
{
    void *library = dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, "cuptiActivityRegisterCallbacks") : NULL;
    int (*register_callbacks)(void (*)(uint8_t **, size_t *, size_t *),
                              void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
    memcpy(&register_callbacks, &symbol, sizeof symbol);
    if (!symbol || register_callbacks(own_request, own_complete) != 0)
        fputs("fake_app: nothing to take over\n", stderr);
}

int main(int argc, char **argv)
{
    struct app_options options;
    struct app_counts counts;
    int error;
    if (!app_options_parse(&options, argc, argv))
        return 2;
    if (options.library != NULL && dlopen(options.library, RTLD_LAZY) == NULL) {
        fprintf(stderr, "fake_app: %s\n", dlerror());
        return 2;
    }
    if (options.has_exec)
        child_exec(argc, argv);
    pid_t worker_child = options.has_fork_first ? fork() : -1;
    bool is_child = options.has_fork_first && worker_child == 0;
    if (!app_work_run(&options, &counts, &error)) {
        fprintf(stderr, "fake_app: CUDA cannot be used: %s\n", cudaGetErrorString(error));
        return 3;
    }
    if (options.has_take_over) {
        struct app_counts more;
        take_over();
        app_work_run(&options, &more, &error);
    }
    printf("%skernels=%llu copies=%llu memsets=%llu syncs=%llu graph_launches=%llu errors=%llu\n",
           is_child ? "child " : "", (unsigned long long)counts.kernels, (unsigned long long)counts.copies,
           (unsigned long long)counts.memsets, (unsigned long long)counts.syncs,
           (unsigned long long)counts.graph_launches, (unsigned long long)counts.errors);
    fflush(stdout);
    if (is_child)
        return 0;
    if (options.has_fork_first)
        child_wait(worker_child);
    if (options.has_fork)
        child_exit_normally();
    if (options.crash_signal != 0)
        raise(options.crash_signal);
    return options.exit_code;
}
