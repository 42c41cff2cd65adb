/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

enum { BACKLOG = 1024, PEM_BYTES_MAX = 1 << 20 };

gpufl_status http_listener_open(int *fd, struct http_address *address, const char *text, struct problem *problem)
{
    gpufl_status status = http_address_parse(address, text, problem);
    if (status)
        return status;
    const int on = 1, off = 0;
    const int family = address->storage.ss_family;
    int sock = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_any = family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&((struct sockaddr_in6 *)&address->storage)->sin6_addr);
    bool is_open =
        sock >= 0 && !setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) &&
        (family != AF_INET6 || !setsockopt(sock, IPPROTO_IPV6, IPV6_V6ONLY, is_any ? &off : &on, sizeof on)) &&
        !bind(sock, (struct sockaddr *)&address->storage, address->size) && !listen(sock, BACKLOG) &&
        !getsockname(sock, (struct sockaddr *)&address->storage, &address->size);
    if (is_open) {
        *fd = sock;
        return GPUFL_OK;
    }
    const int error = errno;
    if (sock >= 0)
        close(sock);
    if (error == EADDRINUSE)
        return problem_set(problem, GPUFL_E_IO, "%s is in use by another program; choose another port", text);
    if (error == EACCES)
        return problem_set(problem, GPUFL_E_IO, "listening on %s is not permitted; ports below 1024 require root",
                           text);
    if (error == EADDRNOTAVAIL)
        return problem_set(problem, GPUFL_E_IO, "%s is not an address of this machine", text);
    return problem_set(problem, GPUFL_E_IO, "cannot listen on %s: %s", text, strerror(error));
}

gpufl_status http_pem_read(struct bytes *out, const char *path, const char *what, struct problem *problem)
{
    char block[4096];
    ssize_t got = -1;
    out->limit = PEM_BYTES_MAX;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (got = read(fd, block, sizeof block)) > 0 && !out->failed)
        bytes_append(out, block, (size_t)got);
    const int error = errno;
    if (fd >= 0)
        close(fd);
    explicit_bzero(block, sizeof block);
    if (got < 0)
        return problem_set(problem, GPUFL_E_IO, "cannot read the %s %.200s: %s", what, path, strerror(error));
    if (!strstr(bytes_text(out), "-----BEGIN "))
        return problem_set(problem, GPUFL_E_INVALID, "%.200s is not a PEM file with a %s", path, what);
    return GPUFL_OK;
}
