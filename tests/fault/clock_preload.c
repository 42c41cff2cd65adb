/* SPDX-License-Identifier: Apache-2.0 */
/* A wall clock that jumps, for LD_PRELOAD: the real time plus the nanoseconds in the file GPUFL_TEST_CLOCK_FILE (8
 * bytes, native order), which a test may change at any time. Clocks that do not follow the wall clock are not
 * changed. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { NS_PER_S = 1000000000 };

static _Atomic int64_t *jump_ns;

__attribute__((constructor)) static void jump_open(void)
{
    const char *path = getenv("GPUFL_TEST_CLOCK_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *jump_ns, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (page != MAP_FAILED)
        jump_ns = page;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *now)
{
    long result = syscall(SYS_clock_gettime, clock, now);
    if (result || !jump_ns || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return (int)result;
    int64_t ns = now->tv_sec * (int64_t)NS_PER_S + now->tv_nsec + atomic_load(jump_ns);
    now->tv_sec = ns / NS_PER_S;
    now->tv_nsec = ns % NS_PER_S;
    return 0;
}

EXPORT int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){.tv_sec = precise.tv_sec, .tv_usec = precise.tv_nsec / 1000};
    return result;
}

EXPORT time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
