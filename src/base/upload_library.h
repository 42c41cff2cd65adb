/* SPDX-License-Identifier: Apache-2.0 */
/* Finds libgpufl-upload.so, the one part of gpufl that talks to a network. It is
 * loaded only when an upload is asked for: neither a user's program nor the
 * command line carries HTTP and TLS otherwise, or fails to start without them. */
#ifndef GPUFL_BASE_UPLOAD_LIBRARY_H
#define GPUFL_BASE_UPLOAD_LIBRARY_H

#include "base/status.h"

typedef gpufl_status (*upload_run_fn)(const gpufl_upload_options *options, gpufl_upload_result *result);

/* Looks beside the module that holds `address`, in ../lib from there, then where the loader looks. The library stays
 * loaded. NULL: the problem says why. */
upload_run_fn upload_library_find(const void *address, struct problem *problem);

#endif
