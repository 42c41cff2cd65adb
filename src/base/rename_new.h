/* SPDX-License-Identifier: Apache-2.0 */
/* A rename that never replaces a file. */
#ifndef GPUFL_BASE_RENAME_NEW_H
#define GPUFL_BASE_RENAME_NEW_H

#include <sys/syscall.h>
#include <unistd.h>

/* 0, or -1 with errno; EINVAL or ENOSYS: the file system or kernel cannot do that. musl lacks renameat2 itself. */
static inline int rename_new(int from_dir, const char *from, int to_dir, const char *to)
{
    enum { no_replace = 1 }; /* RENAME_NOREPLACE */
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, no_replace);
}

#endif
