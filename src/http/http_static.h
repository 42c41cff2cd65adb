/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are embedded in the program. Constant data; thread-safe. */
#ifndef GPUFL_HTTP_HTTP_STATIC_H
#define GPUFL_HTTP_HTTP_STATIC_H

#include "http/http_exchange.h"

struct http_static_file {
    const char *path; /* "index.html", "assets/app.3f9c2b1a.js": no leading slash */
    const char *type; /* Content-Type */
    const void *data;
    size_t size;
    const void *gzip; /* NULL: not compressed */
    size_t gzip_size;
    const char *etag;  /* without quotes */
    bool is_immutable; /* its name changes with its content: clients may cache it for good */
};

/* NULL if there is no such file; files: sorted by path. */
const struct http_static_file *http_static_find(const struct http_static_file *files, size_t count, const char *path);
void http_respond_static(struct http_exchange *exchange, const struct http_static_file *file);

#endif
