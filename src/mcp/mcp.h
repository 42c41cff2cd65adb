/* SPDX-License-Identifier: Apache-2.0 */
/* A read-only Model Context Protocol server for the sessions of one directory: JSON-RPC 2.0, one message per line. All
 * input is untrusted. Nothing is written to disk, no program is started and no network is used. Single-threaded. */
#ifndef GPUFL_MCP_MCP_H
#define GPUFL_MCP_MCP_H

#include "base/bytes.h"
#include "base/status.h"

struct mcp_server;

/* root: the directory whose sessions may be read. GPUFL_E_NOT_FOUND: there is no such directory. */
NODISCARD gpufl_status mcp_open(struct mcp_server **out, const char *root, struct problem *problem);
void mcp_close(struct mcp_server *server);
const char *mcp_root(const struct mcp_server *server); /* absolute */

/* Answers one line. Appends one line with its LF, or nothing if the message needs no answer. */
void mcp_answer(struct mcp_server *server, const char *line, size_t size, struct bytes *out);
/* The answer to a line that was longer than LINE_INPUT_MAX. */
void mcp_refuse_long_line(struct bytes *out);
/* Whether `notice` cancels the request in `line`. */
bool mcp_is_cancelled(const struct bytes *line, const struct bytes *notice);

/* Serves until the input ends or the output is closed. serve.c */
NODISCARD gpufl_status mcp_serve(struct mcp_server *server, int in_fd, int out_fd, struct problem *problem);

#endif
