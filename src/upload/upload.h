/* SPDX-License-Identifier: Apache-2.0 */
/* Sends finished sessions to a server. This is the interface of libgpufl-upload.so, which libgpufl loads on demand and
 * `gpufl upload` calls. Runs on the calling thread and starts no thread. */
#ifndef GPUFL_UPLOAD_UPLOAD_H
#define GPUFL_UPLOAD_UPLOAD_H

#include "base/status.h"

#define UPLOAD_TIMEOUT_DEFAULT_MS 300000
#define UPLOAD_API_PATH_DEFAULT "/api/v1"

/* options: resolved by the caller, with log_path and backend_url set; config_file is not read. Both structs have the
 * caller's size and otherwise follow gpufl.h. Statuses besides those of gpufl_upload_logs: GPUFL_E_INVALID for a bad
 * address, key or path; GPUFL_E_NOT_FOUND when there is no session. */
GPUFL_API gpufl_status gpufl_upload_run(const gpufl_upload_options *options, gpufl_upload_result *result);
/* Checks that this is a valid upload address, without connecting. api_path: NULL or "": the default. GPUFL_E_INVALID: a
 * bad address or path. */
GPUFL_API gpufl_status gpufl_upload_check(const char *url, const char *api_path, struct problem *problem);

#endif
