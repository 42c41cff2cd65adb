/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_static.h"

#include "http/http_parse.h"

#include <stdlib.h>

static int file_compare(const void *path, const void *file)
{
    return strcmp(path, ((const struct http_static_file *)file)->path);
}

const struct http_static_file *http_static_find(const struct http_static_file *files, size_t count, const char *path)
{
    return count ? bsearch(path, files, count, sizeof *files, file_compare) : NULL;
}

void http_respond_static(struct http_exchange *exchange, const struct http_static_file *file)
{
    http_respond_header(exchange, "Cache-Control",
                        file->is_immutable ? "public, max-age=31536000, immutable" : "no-cache");
    if (file->gzip)
        http_respond_header(exchange, "Vary", "Accept-Encoding");
    if (http_respond_if_known(exchange, file->etag))
        return;
    if (file->gzip && http_encoding_is_accepted(http_exchange_header(exchange, "Accept-Encoding"), "gzip"))
        http_respond_constant(exchange, 200, file->type, "gzip", file->gzip, file->gzip_size);
    else
        http_respond_constant(exchange, 200, file->type, NULL, file->data, file->size);
}
