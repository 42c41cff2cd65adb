/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/orders.h"

#include "base/message_socket.h"
#include "base/own_thread.h"

#include <stddef.h>
#include <unistd.h>

static struct {
    int fd; /* -1: nobody orders anything */
    void (*close)(void);
} orders = {.fd = -1};

void orders_attend(void (*close)(void))
{
    orders.fd = message_socket_find();
    orders.close = close;
    message_socket_send(orders.fd, "session", getpid());
}

static void *carry_out(void *unused)
{
    (void)unused;
    orders.close();
    message_socket_send(orders.fd, "closed", getpid());
    return NULL;
}

void orders_poll(void)
{
    pthread_t thread;
    if (orders.fd < 0 || !message_socket_take(orders.fd, "close", getpid()))
        return;
    if (own_thread_start(&thread, "gpufl-order", OWN_THREAD_STACK_SMALL, carry_out, NULL))
        pthread_detach(thread);
}
