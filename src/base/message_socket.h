/* SPDX-License-Identifier: Apache-2.0 */
/* The socket between `gpufl trace` and the programs it started: one datagram per message, "WORD TEXT". To the launcher:
 * warnings and errors, and from a process with its pid: a session began ("session PID"), or was closed on request
 * ("closed PID"). To a process: "close PID", because a signal that will end it is about to be delivered. All processes
 * share one end, so each receives only messages with its own pid. */
#ifndef GPUFL_BASE_MESSAGE_SOCKET_H
#define GPUFL_BASE_MESSAGE_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

/* The socket's descriptor if GPUFL_MESSAGE_FD names such a socket; else -1. */
int message_socket_find(void);
/* Never blocks or raises a signal; a full or closed socket loses the message. */
void message_socket_send(int fd, const char *word, pid_t pid);
/* Receives the next message if it is this one. */
bool message_socket_take(int fd, const char *word, pid_t pid);

#endif
