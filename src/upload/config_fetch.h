/* SPDX-License-Identifier: Apache-2.0 */
/* Downloads a named configuration from the server into a local file. Runs on the calling thread and returns within the
 * timeout. Exported by libgpufl-upload.so. */
#ifndef GPUFL_UPLOAD_CONFIG_FETCH_H
#define GPUFL_UPLOAD_CONFIG_FETCH_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct config_fetch {
    size_t struct_size; /* sizeof(struct config_fetch): detects a version mismatch of program and library */
    const char *server_url, *api_path, *api_key, *ca_file;
    const char *name;
    const char *dir; /* NULL or "": remote_config_home */
    int64_t timeout_ms;
};

/* GPUFL_OK: <dir>/<name>.json matches the server; *is_new (may be NULL): it has changed. After an error the file is
 * unchanged. GPUFL_E_INVALID: a bad name, address or content, such as an option that a server must not set;
 * GPUFL_E_NOT_FOUND: the server has no configuration of this name; GPUFL_E_PERMISSION, GPUFL_E_IO. */
GPUFL_API gpufl_status gpufl_config_fetch(const struct config_fetch *fetch, bool *is_new, struct problem *problem);

#endif
