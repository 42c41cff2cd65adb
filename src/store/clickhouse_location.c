/* SPDX-License-Identifier: Apache-2.0 */
#include "store/clickhouse_location.h"

#include "base/bytes.h"
#include "base/directory.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define SCHEME "clickhouse://"
enum { PORT_PLAIN = 8123, PORT_TLS = 8443, ADDRESS_MAX = 16384 };

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes %xx; false when the result does not fit or holds a control character. */
static bool part_take(char *out, size_t room, const char *from, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        int c = (unsigned char)from[i];
        if (c == '%') {
            int high = i + 2 < size ? hex_digit(from[i + 1]) : -1, low = i + 2 < size ? hex_digit(from[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = high * 16 + low;
            i += 2;
        }
        if (c < ' ' || c == 127 || used + 1 >= room)
            return false;
        out[used++] = (char)c;
    }
    out[used] = '\0';
    return true;
}

static bool is_name(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && *text != '_')
            return false;
    return true;
}

static bool host_take(char out[CH_HOST_MAX], const char *host, size_t size, bool has_tls)
{
    char text[CH_HOST_MAX - 8];
    if (!size || !part_take(text, sizeof text, host, size))
        return false;
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(".-_:[]", *c))
            return false;
    const char *after = strrchr(text, ']'), *colon = strrchr(after ? after : text, ':');
    if (!colon) {
        snprintf(out, CH_HOST_MAX, "%s:%d", text, has_tls ? PORT_TLS : PORT_PLAIN);
        return true;
    }
    char *end;
    unsigned long port = strtoul(colon + 1, &end, 10);
    snprintf(out, CH_HOST_MAX, "%s", text);
    return colon != text && isdigit((unsigned char)colon[1]) && !*end && port && port <= 65535;
}

static gpufl_status hosts_take(struct ch_location *location, const char *at, size_t size, struct problem *problem)
{
    for (const char *end = at + size;;) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
        if (location->host_count == CH_HOSTS_MAX)
            return problem_set(problem, GPUFL_E_INVALID, "the store's URL has more than %d ClickHouse hosts",
                               CH_HOSTS_MAX);
        if (!host_take(location->hosts[location->host_count++], at, (size_t)(stop - at), location->has_tls))
            return problem_set(problem, GPUFL_E_INVALID, "host %u of the store's URL is not HOST:PORT",
                               location->host_count);
        if (!comma)
            return GPUFL_OK;
        at = comma + 1;
    }
}

static gpufl_status user_take(struct ch_location *location, const char *at, size_t size, struct problem *problem)
{
    const char *colon = memchr(at, ':', size);
    size_t user_size = colon ? (size_t)(colon - at) : size;
    if (!part_take(location->user, sizeof location->user, at, user_size) ||
        (colon && !part_take(location->password, sizeof location->password, colon + 1, size - user_size - 1)))
        return problem_set(problem, GPUFL_E_INVALID, "the user or password in the store's URL is invalid");
    return GPUFL_OK;
}

static gpufl_status password_read(struct ch_location *location, const char *path, struct problem *problem)
{
    struct bytes text = {0};
    gpufl_status status = file_load(AT_FDCWD, path, CH_SECRET_MAX, &text);
    if (status) {
        problem_set(problem, status, "password_file %.300s: %s", path,
                    status == GPUFL_E_LIMIT ? "too long for a password" : strerror(errno));
    } else {
        const char *password = bytes_text(&text);
        snprintf(location->password, sizeof location->password, "%.*s", (int)strcspn(password, "\r\n"), password);
    }
    if (text.data)
        explicit_bzero(text.data, text.capacity);
    bytes_free(&text);
    return status;
}

static gpufl_status option_take(struct ch_location *location, const char *at, size_t size, char *password_file,
                                struct problem *problem)
{
    const char *equals = memchr(at, '=', size);
    size_t name_size = equals ? (size_t)(equals - at) : size;
    const char *value = equals ? equals + 1 : "";
    size_t value_size = equals ? size - name_size - 1 : 0;
    char flag[8] = "";
    bool is_good;
    if (name_size == 7 && !memcmp(at, "cluster", 7))
        is_good =
            part_take(location->cluster, sizeof location->cluster, value, value_size) && is_name(location->cluster);
    else if (name_size == 7 && !memcmp(at, "ca_file", 7))
        is_good = part_take(location->ca_file, sizeof location->ca_file, value, value_size);
    else if (name_size == 13 && !memcmp(at, "password_file", 13))
        is_good = part_take(password_file, CH_PATH_MAX, value, value_size);
    else if (name_size == 3 && !memcmp(at, "tls", 3))
        is_good = part_take(flag, sizeof flag, value, value_size) && (!strcmp(flag, "0") || !strcmp(flag, "1"));
    else
        return problem_set(
            problem, GPUFL_E_INVALID,
            "unknown option '%.*s' in the store's URL; options are cluster, tls, ca_file and password_file",
            (int)(name_size < 40 ? name_size : 40), at);
    location->has_tls |= flag[0] == '1';
    return is_good
               ? GPUFL_OK
               : problem_set(problem, GPUFL_E_INVALID, "the store's URL: invalid value of '%.*s'", (int)name_size, at);
}

gpufl_status ch_location_parse(struct ch_location *location, const char *url, struct problem *problem)
{
    char password_file[CH_PATH_MAX] = "";
    gpufl_status status = GPUFL_OK;
    *location = (struct ch_location){.user = "default", .database = "gpufl"};
    if (strncmp(url, SCHEME, sizeof SCHEME - 1) != 0 || strlen(url) > ADDRESS_MAX)
        return problem_set(problem, GPUFL_E_INVALID, "not a clickhouse:// address");
    const char *at = url + sizeof SCHEME - 1, *options = strchr(at, '?');
    const char *end = options ? options : at + strlen(at), *slash = memchr(at, '/', (size_t)(end - at));
    /* Options first: tls decides the default port. */
    for (const char *next = options; next && !status;) {
        const char *option = next + 1;
        next = strchr(option, '&');
        status = option_take(location, option, next ? (size_t)(next - option) : strlen(option), password_file, problem);
    }
    const char *hosts_end = slash ? slash : end, *sign = NULL;
    for (const char *c = at; c < hosts_end; c++)
        sign = *c == '@' ? c : sign;
    if (!status && sign)
        status = user_take(location, at, (size_t)(sign - at), problem);
    if (!status)
        status = hosts_take(location, sign ? sign + 1 : at, (size_t)(hosts_end - (sign ? sign + 1 : at)), problem);
    if (!status && slash && slash + 1 < end &&
        (!part_take(location->database, sizeof location->database, slash + 1, (size_t)(end - slash - 1)) ||
         !is_name(location->database)))
        status = problem_set(problem, GPUFL_E_INVALID,
                             "the name of the store's database must consist of letters, digits and _");
    const char *password = getenv("GPUFL_CLICKHOUSE_PASSWORD");
    if (!status && !location->password[0] && password_file[0])
        status = password_read(location, password_file, problem);
    else if (!status && !location->password[0] && password)
        snprintf(location->password, sizeof location->password, "%s", password);
    if (status)
        explicit_bzero(location->password, sizeof location->password);
    return status;
}
