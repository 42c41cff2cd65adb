/* SPDX-License-Identifier: Apache-2.0 */
#include "base/server_library.h"

#include "base/sibling_library.h"

#include <string.h>

#define SERVER_LIBRARY "libgpufl-server.so.1"

server_main_fn server_library_find(const void *address, struct problem *problem)
{
    char reason[300];
    void *found = sibling_library_symbol(SERVER_LIBRARY, "gpufl_server_main", address, reason, sizeof reason);
    server_main_fn run = NULL;
    memcpy(&run, &found, sizeof run);
    if (!run && *GPUFL_SERVER_LACKS)
        problem_set(problem, GPUFL_E_UNSUPPORTED, "the server is unavailable in this build: %s", GPUFL_SERVER_LACKS);
    else if (!run)
        problem_set(problem, GPUFL_E_UNSUPPORTED,
                    "the server requires %s next to gpufl, with libmicrohttpd and libsqlite3: %s", SERVER_LIBRARY,
                    reason);
    return run;
}
