/* SPDX-License-Identifier: Apache-2.0 */
#include "base/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

gpufl_status key_file_read(const char *path, char *key, size_t size, struct problem *problem)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd < 0 ? -1 : read(fd, key, size - 1);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return problem_set(problem, GPUFL_E_IO, "cannot read the key file '%.300s': %s", path, strerror(error));
    key[got] = '\0';
    key[strcspn(key, "\r\n")] = '\0';
    if (!*key)
        return problem_set(problem, GPUFL_E_INVALID, "the key file '%.300s' has no key: its first line is empty", path);
    return GPUFL_OK;
}
