/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of libgpufl-server.so, as base/server_library.h loads it. Runs on the calling thread until the command
 * ends. */
#ifndef GPUFL_SERVER_SERVER_MAIN_H
#define GPUFL_SERVER_SERVER_MAIN_H

#include "base/server_library.h"

GPUFL_API int gpufl_server_main(const struct server_command *command);

#endif
