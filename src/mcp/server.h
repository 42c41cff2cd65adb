/* SPDX-License-Identifier: Apache-2.0 */
/* What the server holds between requests. */
#ifndef GPUFL_MCP_SERVER_H
#define GPUFL_MCP_SERVER_H

#include "mcp/open_sessions.h"
#include "mcp/session_root.h"

struct mcp_server {
    struct session_root root;
    struct open_sessions sessions;
    const char *version; /* of the protocol, as agreed with the client */
};

#endif
