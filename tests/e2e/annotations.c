/* SPDX-License-Identifier: Apache-2.0 */
/* A program that annotates itself with more than scopes. It reaches libgpufl in either way, linked or as a client
 * (-DGPUFL_CLIENT), and starts a session (argument "init") or is recorded by `gpufl trace`. */
#include <gpufl/gpufl.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void *end_range(void *range)
{
    gpufl_range_end(*(uint64_t *)range);
    return NULL;
}

static int in_function(void)
{
    GFL_FUNCTION();
    GFL_BLOCK("block");
    return gpufl_is_recording();
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW); /* the recorder starts here under gpufl trace */
    int (*cuda_start)(unsigned) = cuda ? (int (*)(unsigned))(size_t)dlsym(cuda, "cuInit") : NULL;
    gpufl_scope_begin("before");
    gpufl_scope_end();
    if (cuda_start)
        cuda_start(0);
#ifndef GPUFL_CLIENT /* which has no library yet to keep the name */
    gpufl_thread_name("main thread");
#endif
    if (argc > 1 && !strcmp(argv[1], "init")) {
        gpufl_options options = GPUFL_OPTIONS_INIT;
        options.app_name = "annotations";
        options.log_path = argv[2];
        options.profiling_engine = GPUFL_ENGINE_TRACE;
        gpufl_status status = gpufl_init(&options);
        if (status != GPUFL_OK) {
            printf("%s\n", gpufl_last_error());
            return 0;
        }
    }
#ifdef GPUFL_CLIENT
    gpufl_thread_name("main thread");
#endif
    GFL_SCOPE("outer")
    {
        gpufl_scope_push_sized("sized name", 5, "tag of it", 3, 0, 0);
        in_function();
        gpufl_scope_pop();
    }
    uint64_t range = gpufl_range_start("request");
    gpufl_mark("moment");
    gpufl_counter("queue length", 2.5);
    gpufl_counter("queue length", 0);
    pthread_create(&thread, NULL, end_range, &range);
    pthread_join(thread, NULL);
    gpufl_range_end(range);
    gpufl_range_end(0);
    printf("recording %d, range %d, version '%s'\n", gpufl_is_recording(), range != 0, gpufl_version());
    gpufl_shutdown();
    return 0;
}
