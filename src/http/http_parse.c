/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_parse.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

static bool port_parse(const char *text, uint16_t *port)
{
    uint64_t value;
    if (strlen(text) > 5 || !http_size_parse(text, &value) || value > UINT16_MAX)
        return false;
    *port = (uint16_t)value;
    return true;
}

static bool host_resolve(struct http_address *address, const char *host, uint16_t port)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address->storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address->storage;
    memset(address, 0, sizeof *address);
    if (!strcmp(host, "localhost"))
        host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        address->size = sizeof *v4;
        return true;
    }
    bool is_any = !*host || !strcmp(host, "*");
    if (!is_any && inet_pton(AF_INET6, host, &v6->sin6_addr) != 1)
        return false;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address->size = sizeof *v6;
    return true;
}

gpufl_status http_address_parse(struct http_address *address, const char *text, struct problem *problem)
{
    char host[HTTP_ADDRESS_TEXT_SIZE];
    const char *colon = strrchr(text, ':'), *start = text, *end = colon;
    uint16_t port = 0;
    bool is_good = colon && port_parse(colon + 1, &port);
    if (is_good && *text == '[') {
        start = text + 1;
        end = colon - 1;
        is_good = end > start && *end == ']' && memchr(start, ':', (size_t)(end - start));
    } else if (is_good) {
        is_good = !memchr(start, ':', (size_t)(end - start));
    }
    size_t size = is_good ? (size_t)(end - start) : 0;
    is_good = is_good && size < sizeof host;
    if (is_good) {
        memcpy(host, start, size);
        host[size] = '\0';
        is_good = host_resolve(address, host, port);
    }
    if (!is_good)
        return problem_set(problem, GPUFL_E_INVALID,
                           "invalid address '%.100s': use HOST:PORT, for example 127.0.0.1:8080, [::1]:8080 or :8080",
                           text);
    return GPUFL_OK;
}

/* Converts an IPv4-mapped address to IPv4. */
static bool v4_of(const struct sockaddr *address, struct in_addr *v4)
{
    if (address->sa_family == AF_INET) {
        *v4 = ((const struct sockaddr_in *)address)->sin_addr;
        return true;
    }
    if (address->sa_family != AF_INET6)
        return false;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
    if (!IN6_IS_ADDR_V4MAPPED(v6))
        return false;
    memcpy(v4, v6->s6_addr + 12, sizeof *v4);
    return true;
}

bool http_address_is_loopback(const struct sockaddr *address)
{
    struct in_addr v4;
    if (v4_of(address, &v4))
        return ntohl(v4.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

void http_address_write(const struct sockaddr *address, char out[HTTP_ADDRESS_TEXT_SIZE])
{
    struct in_addr v4;
    const char *text = NULL;
    if (v4_of(address, &v4))
        text = inet_ntop(AF_INET, &v4, out, HTTP_ADDRESS_TEXT_SIZE);
    else if (address->sa_family == AF_INET6)
        text = inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, out, HTTP_ADDRESS_TEXT_SIZE);
    if (!text)
        memcpy(out, "?", 2);
}

bool http_header_name_is_valid(const char *name)
{
    if (!*name)
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("!#$%&'*+-.^_`|~", *name))
            return false;
    return true;
}

bool http_header_value_is_valid(const char *value)
{
    for (; *value; value++)
        if (((unsigned char)*value < ' ' && *value != '\t') || *value == 0x7F)
            return false;
    return true;
}

bool http_size_parse(const char *text, uint64_t *size)
{
    uint64_t value = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        unsigned digit = (unsigned)(*text - '0');
        if (*text < '0' || *text > '9' || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *size = value;
    return true;
}

struct http_span http_bearer_token(const char *authorization)
{
    static const char scheme[] = "Bearer ";
    const struct http_span none = {"", 0};
    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return none;
    const char *token = authorization + sizeof scheme - 1;
    token += strspn(token, " ");
    size_t size = strspn(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/=");
    if (token[size + strspn(token + size, " ")])
        return none;
    return (struct http_span){token, size};
}

bool http_host_parse(const char *text, char name[HTTP_HOST_SIZE])
{
    bool has_brackets = *text == '[';
    const char *start = text + has_brackets;
    size_t size = strcspn(start, has_brackets ? "]" : ":");
    const char *rest = start + size;
    if (has_brackets && *rest++ != ']')
        return false;
    uint16_t port;
    if (!size || size >= HTTP_HOST_SIZE || (*rest && (*rest != ':' || !port_parse(rest + 1, &port))))
        return false;
    for (size_t i = 0; i < size; i++) {
        char c = start[i];
        bool is_good = isalnum((unsigned char)c) || c == '.' || (has_brackets ? c == ':' : c == '-' || c == '_');
        if (!is_good)
            return false;
        name[i] = (char)tolower((unsigned char)c);
    }
    name[size] = '\0';
    return true;
}

bool http_host_is_safe(const char *name)
{
    struct in6_addr ignored;
    return !strcmp(name, "localhost") || inet_pton(AF_INET, name, &ignored) == 1 ||
           inet_pton(AF_INET6, name, &ignored) == 1;
}

bool http_origin_is_valid(const char *origin)
{
    char name[HTTP_HOST_SIZE];
    size_t scheme = !strncmp(origin, "http://", 7) ? 7 : !strncmp(origin, "https://", 8) ? 8 : 0;
    return scheme && http_host_parse(origin + scheme, name);
}

bool http_origin_is_own(const char *origin, const char *host)
{
    const char *at = strstr(origin, "://");
    bool is_web = !strncmp(origin, "http://", 7) || !strncmp(origin, "https://", 8);
    return is_web && at && !strcasecmp(at + 3, host);
}

/* The quality, 0 to 1000, of a name in an Accept-Encoding header; -1 when it is not mentioned. */
static int encoding_quality(const char *accept, const char *name)
{
    const size_t name_size = strlen(name);
    while (*accept) {
        accept += strspn(accept, " \t,");
        size_t size = strcspn(accept, ",");
        size_t word = strcspn(accept, ",; \t");
        if (word == name_size && !strncasecmp(accept, name, word)) {
            const char *q = accept + word;
            q += strspn(q, " \t");
            q += *q == ';';
            q += strspn(q, " \t");
            if ((*q | 0x20) != 'q' || q[1] != '=')
                return 1000;
            q += 2;
            int quality = *q == '1' ? 1000 : 0;
            if (*q == '0' && q[1] == '.')
                for (int i = 2, scale = 100; scale && q[i] >= '0' && q[i] <= '9'; i++, scale /= 10)
                    quality += (q[i] - '0') * scale;
            return quality;
        }
        accept += size;
    }
    return -1;
}

bool http_encoding_is_accepted(const char *accept, const char *name)
{
    if (!accept)
        return false;
    int quality = encoding_quality(accept, name);
    return (quality < 0 ? encoding_quality(accept, "*") : quality) > 0;
}

enum http_encoding http_encoding_choose(const char *accept)
{
    if (!accept)
        return HTTP_IDENTITY;
    int zstd = encoding_quality(accept, "zstd"), gzip = encoding_quality(accept, "gzip");
    if (gzip < 0 && zstd < 0)
        return encoding_quality(accept, "*") > 0 ? HTTP_GZIP : HTTP_IDENTITY;
    if (zstd > 0 && zstd >= gzip)
        return HTTP_ZSTD;
    return gzip > 0 ? HTTP_GZIP : HTTP_IDENTITY;
}

const char *http_encoding_name(enum http_encoding encoding)
{
    return encoding == HTTP_ZSTD ? "zstd" : encoding == HTTP_GZIP ? "gzip" : "identity";
}

bool http_etag_matches(const char *header, const char *etag)
{
    if (!header)
        return false;
    etag += !strncmp(etag, "W/", 2) ? 2 : 0;
    const size_t etag_size = strlen(etag);
    while (*header) {
        header += strspn(header, " \t,");
        if (*header == '*')
            return true;
        header += !strncmp(header, "W/", 2) ? 2 : 0;
        if (*header != '"')
            return false;
        const char *end = strchr(header + 1, '"');
        if (!end)
            return false;
        if ((size_t)(end + 1 - header) == etag_size && !memcmp(header, etag, etag_size))
            return true;
        header = end + 1;
    }
    return false;
}
