/* SPDX-License-Identifier: Apache-2.0 */
/* Finds libgpufl-upload.so, the only part of gpufl that acts as a network client. It is loaded only for uploads, so
 * that neither a user's program nor the command line depends on HTTP and TLS libraries otherwise. */
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
/* GPUFL_OK: the server answered 2xx; otherwise see message. */
typedef gpufl_status (*upload_post_fn)(const struct upload_post *post, char *message, size_t message_size);

/* GPUFL_E_INVALID: not a valid upload address; api_path may be NULL. */
typedef gpufl_status (*upload_check_fn)(const char *url, const char *api_path, struct problem *problem);

/* Returns a function of the library by name; the caller casts it. Searches next to the module that contains `address`,
 * in ../lib relative to it, then in the loader's path. The library stays loaded. NULL: see problem. */
void *upload_library_symbol(const void *address, const char *name, struct problem *problem);
upload_run_fn upload_library_find(const void *address, struct problem *problem);
upload_post_fn upload_library_find_post(const void *address, struct problem *problem);
upload_check_fn upload_library_find_check(const void *address, struct problem *problem);

#endif
