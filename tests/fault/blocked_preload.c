/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that blocks, for LD_PRELOAD: after BLOCKED_AFTER_LINES calls of writev, which gpufl uses to write lines, no
 * call returns any more. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

__attribute__((visibility("default"))) ssize_t writev(int fd, const struct iovec *parts, int count)
{
    static atomic_long lines;
    const char *most = getenv("BLOCKED_AFTER_LINES");
    while (most && atomic_fetch_add(&lines, 1) >= strtol(most, NULL, 10))
        pause();
    return syscall(SYS_writev, fd, parts, count);
}
