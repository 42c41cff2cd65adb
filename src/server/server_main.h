/* SPDX-License-Identifier: Apache-2.0 */
/* The whole of libgpufl-server.so, as base/server_library.h finds it. On the calling thread, until it is done. */
#ifndef GPUFL_SERVER_SERVER_MAIN_H
#define GPUFL_SERVER_SERVER_MAIN_H

#include "base/server_library.h"

GPUFL_API int gpufl_server_main(const struct server_command *command);

#endif
