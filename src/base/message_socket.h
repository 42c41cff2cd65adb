/* SPDX-License-Identifier: Apache-2.0 */
/* The socket between `gpufl trace` and the program that it started: a datagram per message. */
#ifndef GPUFL_BASE_MESSAGE_SOCKET_H
#define GPUFL_BASE_MESSAGE_SOCKET_H

/* The socket's descriptor, where GPUFL_MESSAGE_FD names one that really is such a socket; else -1. */
int message_socket_find(void);

#endif
