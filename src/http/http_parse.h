/* SPDX-License-Identifier: Apache-2.0 */
/* Strict parsers for the parts of a request: whatever is not clearly valid is rejected with the reason, never repaired.
 * Pure functions on bytes; thread-safe. */
#ifndef GPUFL_HTTP_HTTP_PARSE_H
#define GPUFL_HTTP_HTTP_PARSE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct http_span {
    const char *at;
    size_t size;
};

/* Addresses. */
enum { HTTP_ADDRESS_TEXT_SIZE = 64 };
struct http_address {
    struct sockaddr_storage storage;
    socklen_t size;
};
/* "127.0.0.1:8080", "[::1]:0", "localhost:8080"; ":8080" and "*:8080" mean all addresses of the machine. */
NODISCARD gpufl_status http_address_parse(struct http_address *address, const char *text, struct problem *problem);
/* An IPv4-mapped address is checked as IPv4. */
bool http_address_is_loopback(const struct sockaddr *address);
/* Without the port; "?" for anything but an IP address. */
void http_address_write(const struct sockaddr *address, char out[HTTP_ADDRESS_TEXT_SIZE]);

/* The target of a request line: a path and a query. */
enum { HTTP_TARGET_BYTES_MAX = 8192, HTTP_SEGMENTS_MAX = 32, HTTP_QUERY_MAX = 64 };
struct http_pair {
    const char *name, *value; /* decoded, NUL-terminated, valid UTF-8 */
};
struct http_target {
    char *text;                                   /* owned: everything below points into it */
    struct http_span path;                        /* as sent, for the log */
    unsigned segment_count;                       /* "/a/b" has two, "/" has none */
    struct http_span segments[HTTP_SEGMENTS_MAX]; /* decoded, each followed by one more byte of the same string */
    unsigned query_count;
    struct http_pair query[HTTP_QUERY_MAX];
};
/* GPUFL_E_INVALID: not a path, bad percent-encoding, a "." or ".." or empty segment, an encoded slash, a control
 * character or invalid UTF-8; GPUFL_E_LIMIT: longer or with more parts than the limits above. */
NODISCARD gpufl_status http_target_parse(struct http_target *target, const char *text, struct problem *problem);
void http_target_free(struct http_target *target);

/* Patterns: "/api/v1/sessions/{id}/kernels"; a final "{rest...}" matches the remaining segments, possibly none. */
enum { HTTP_PATTERN_VALUES_MAX = 8 };
struct http_match {
    unsigned count;
    struct http_span names[HTTP_PATTERN_VALUES_MAX];  /* in the pattern */
    struct http_span values[HTTP_PATTERN_VALUES_MAX]; /* in the target's text; those of {rest...} joined by '/' */
};
NODISCARD gpufl_status http_pattern_check(const char *pattern, struct problem *problem);
/* pattern: one that http_pattern_check accepted. */
bool http_pattern_matches(const char *pattern, const struct http_target *target, struct http_match *match);

/* Headers. */
bool http_header_name_is_valid(const char *name);
bool http_header_value_is_valid(const char *value);
/* Decimal digits only; false: anything else or too large. */
bool http_size_parse(const char *text, uint64_t *size);
/* The token of "Bearer TOKEN"; otherwise an empty span. */
struct http_span http_bearer_token(const char *authorization);

enum { HTTP_HOST_SIZE = 256 };
/* Host or host and port: returns the name alone, in lower case and without brackets. */
bool http_host_parse(const char *text, char name[HTTP_HOST_SIZE]);
/* True for localhost or an IP address: no name service can point such a name at this machine for another site's
 * page. */
bool http_host_is_safe(const char *name);
/* "http://" or "https://" and a host, with or without a port, and nothing else. */
bool http_origin_is_valid(const char *origin);
/* True when a page of `origin` belongs to the host that the request was sent to. */
bool http_origin_is_own(const char *origin, const char *host);

enum http_encoding { HTTP_IDENTITY, HTTP_GZIP, HTTP_ZSTD };
/* The best supported encoding that an Accept-Encoding header (may be NULL) allows. */
enum http_encoding http_encoding_choose(const char *accept);
const char *http_encoding_name(enum http_encoding encoding);
bool http_encoding_is_accepted(const char *accept, const char *name);

/* True when an If-None-Match header (may be NULL) contains the tag (with its quotes); weak comparison. */
bool http_etag_matches(const char *header, const char *etag);

#endif
