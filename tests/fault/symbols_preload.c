/* SPDX-License-Identifier: Apache-2.0 */
/* Slow symbol lookup, for LD_PRELOAD: dladdr on a gpufl thread returns only after symbols_release() was called, as in a
 * process whose symbol tables are so large that a lookup takes as long as the program runs. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

enum { wait_max_s = 60 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static bool is_released;

EXPORT void symbols_release(void);
EXPORT void symbols_release(void)
{
    pthread_mutex_lock(&mutex);
    is_released = true;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&mutex);
}

EXPORT int dladdr(const void *address, Dl_info *info)
{
    static const char ours[] = "gpufl-";
    char name[16] = "";
    void *extra;
    prctl(PR_GET_NAME, name);
    if (!strncmp(name, ours, sizeof ours - 1)) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += wait_max_s;
        pthread_mutex_lock(&mutex);
        while (!is_released && !pthread_cond_timedwait(&released, &mutex, &until)) {
        }
        pthread_mutex_unlock(&mutex);
    }
    return dladdr1(address, info, &extra, RTLD_DL_LINKMAP);
}
