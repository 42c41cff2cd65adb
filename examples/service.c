/* SPDX-License-Identifier: Apache-2.0 */
/* A service in C that is recorded as long as it runs: each request is a scope with its steps below it, and a signal
 * ends it in order, so that the session is complete.
 *
 *   build  cmake -S examples -B build/examples -DGPUFL_BUILD_DIR=build && cmake --build build/examples
 *   run    build/examples/service 7070 &
 *          printf 'hello\n' | nc -q 1 127.0.0.1 7070      the answer: the same text, by way of the GPU
 *          kill %1; gpufl report service
 *
 * A signal handler may do next to nothing: gpufl_shutdown() takes locks and writes files, so it must not be called
 * there. Here signals are blocked and read from a descriptor instead, beside the sockets, in one loop.
 *
 * usage: service [PORT]      0, the default: any free port, which is printed */
#include <gpufl/gpufl.h>

#include <arpa/inet.h>
#include <cuda_runtime_api.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { REQUEST_BYTES_MAX = 4096 };

struct service {
    int signal_fd, listen_fd;
    cudaStream_t stream;
    void *device;
};

static bool is_good(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        fprintf(stderr, "service: %s: %s\n", what, cudaGetErrorString(error));
    return error == cudaSuccess;
}

/* The text goes to the GPU and comes back. */
static bool request_handle(struct service *service, const char *request, char *answer, size_t size)
{
    bool is_done = true;
    GFL_SCOPE("upload")
    {
        is_done &=
            is_good(cudaMemcpyAsync(service->device, request, size, cudaMemcpyHostToDevice, service->stream), "upload");
    }
    GFL_SCOPE("download")
    {
        is_done &= is_good(cudaMemcpyAsync(answer, service->device, size, cudaMemcpyDeviceToHost, service->stream),
                           "download");
        is_done &= is_good(cudaStreamSynchronize(service->stream), "request");
    }
    return is_done;
}

/* One request: what a client sends at once, up to the limit. */
static void client_serve(struct service *service)
{
    char request[REQUEST_BYTES_MAX], answer[REQUEST_BYTES_MAX];
    int client = accept(service->listen_fd, NULL, NULL);
    if (client < 0)
        return;
    /* Whoever connects and says nothing must not keep the others, or a signal, waiting. */
    const struct timeval patience = {.tv_sec = 2};
    (void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    GFL_SCOPE("request")
    {
        ssize_t size = 0;
        GFL_SCOPE("receive")
        {
            size = recv(client, request, sizeof request, 0);
        }
        if (size > 0 && request_handle(service, request, answer, (size_t)size)) {
            GFL_SCOPE("answer")
            {
                (void)send(client, answer, (size_t)size, MSG_NOSIGNAL);
            }
        }
    }
    close(client);
}

static bool service_open(struct service *service, uint16_t port)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    /* Before gpufl_init: threads inherit the mask, so that no other thread takes the signal. */
    if (sigprocmask(SIG_BLOCK, &signals, NULL))
        return false;
    service->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    service->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    if (service->signal_fd < 0 || service->listen_fd < 0 ||
        bind(service->listen_fd, (const struct sockaddr *)&address, sizeof address) || listen(service->listen_fd, 16) ||
        getsockname(service->listen_fd, (struct sockaddr *)&address, &size)) {
        perror("service");
        return false;
    }
    printf("listening on 127.0.0.1:%u\n", ntohs(address.sin_port));
    fflush(stdout);
    return true;
}

/* Until a signal comes. */
static void service_run(struct service *service)
{
    struct pollfd ready[] = {{.fd = service->signal_fd, .events = POLLIN},
                             {.fd = service->listen_fd, .events = POLLIN}};
    while (poll(ready, 2, -1) >= 0 && !ready[0].revents)
        if (ready[1].revents)
            client_serve(service);
}

int main(int argc, char **argv)
{
    struct service service = {.signal_fd = -1, .listen_fd = -1};
    gpufl_options options = GPUFL_OPTIONS_INIT;
    options.app_name = "service";
    options.profiling_engine = GPUFL_ENGINE_TRACE;
    char *end = NULL;
    unsigned long port = argc > 1 ? strtoul(argv[1], &end, 10) : 0;
    if ((end && *end) || port > UINT16_MAX) {
        fprintf(stderr, "usage: service [PORT]\n");
        return 2;
    }
    if (!service_open(&service, (uint16_t)port))
        return 3;
    if (gpufl_init(&options) != GPUFL_OK)
        fprintf(stderr, "service: %s\n", gpufl_last_error()); /* the service continues without recording */
    int code = 3;
    if (is_good(cudaMalloc(&service.device, REQUEST_BYTES_MAX), "device memory") &&
        is_good(cudaStreamCreate(&service.stream), "stream")) {
        service_run(&service);
        code = 0;
    }
    gpufl_shutdown();
    close(service.listen_fd);
    close(service.signal_fd);
    return code;
}
