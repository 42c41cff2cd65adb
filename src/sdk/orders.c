/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/orders.h"

#include "base/message_socket.h"
#include "base/own_thread.h"

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static struct {
    _Atomic int fd; /* -1: there is nobody to give orders; set last, because the collector's thread is already
                     * running */
    void (*close)(void);
} orders = {.fd = -1};

void orders_attend(void (*close)(void))
{
    int fd = message_socket_find();
    if (!orders.close) /* the same for every session of the process */
        orders.close = close;
    atomic_store(&orders.fd, fd);
    message_socket_send(fd, "session", getpid());
}

static void *carry_out(void *unused)
{
    (void)unused;
    orders.close();
    message_socket_send(atomic_load(&orders.fd), "closed", getpid());
    return NULL;
}

void orders_poll(void)
{
    pthread_t thread;
    int fd = atomic_load(&orders.fd);
    if (fd < 0 || !message_socket_take(fd, "close", getpid()))
        return;
    if (own_thread_start(&thread, "gpufl-order", OWN_THREAD_STACK_SMALL, carry_out, NULL))
        pthread_detach(thread);
}
