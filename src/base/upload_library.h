/* SPDX-License-Identifier: Apache-2.0 */
/* Finds libgpufl-upload.so, the one part of gpufl that talks to a network. It is
 * loaded only when an upload is asked for: neither a user's program nor the
 * command line carries HTTP and TLS otherwise, or fails to start without them. */
#ifndef GPUFL_BASE_UPLOAD_LIBRARY_H
#define GPUFL_BASE_UPLOAD_LIBRARY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef gpufl_status (*upload_run_fn)(const gpufl_upload_options *options, gpufl_upload_result *result);

/* A small body for any server. */
struct upload_post {
    const char *url;  /* http:// or https://, host and port only */
    const char *path; /* starts with '/' */
    const char *content_type;
    const void *body;
    size_t size;
    int64_t timeout_ms; /* at least 1 */
};
/* GPUFL_OK: the server answered 2xx; else message says what happened. */
typedef gpufl_status (*upload_post_fn)(const struct upload_post *post, char *message, size_t message_size);

/* GPUFL_E_INVALID: nothing can be sent there; api_path may be NULL. */
typedef gpufl_status (*upload_check_fn)(const char *url, const char *api_path, struct problem *problem);

/* A function of the library by its name; the caller gives it its type. Looks beside the module that holds `address`, in
 * ../lib from there, then where the loader looks. The library stays loaded. NULL: the problem says why. */
void *upload_library_symbol(const void *address, const char *name, struct problem *problem);
upload_run_fn upload_library_find(const void *address, struct problem *problem);
upload_post_fn upload_library_find_post(const void *address, struct problem *problem);
upload_check_fn upload_library_find_check(const void *address, struct problem *problem);

#endif
