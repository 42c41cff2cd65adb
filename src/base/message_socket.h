/* SPDX-License-Identifier: Apache-2.0 */
/* The socket between `gpufl trace` and the programs that it started: a datagram per message, "WORD TEXT". To the launcher:
 * warnings and errors, and of a process by its id when a session began ("session PID") and was closed by order
 * ("closed PID"). To a process: "close PID", because a signal that will end it is about to be delivered. All processes
 * share one end, so each takes only what names it. */
#ifndef GPUFL_BASE_MESSAGE_SOCKET_H
#define GPUFL_BASE_MESSAGE_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

/* The socket's descriptor, where GPUFL_MESSAGE_FD names one that really is such a socket; else -1. */
int message_socket_find(void);
/* Neither blocks nor raises a signal; a full or closed socket loses the message. */
void message_socket_send(int fd, const char *word, pid_t pid);
/* Takes the next message if it is this one. */
bool message_socket_take(int fd, const char *word, pid_t pid);

#endif
