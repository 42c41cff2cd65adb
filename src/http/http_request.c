/* SPDX-License-Identifier: Apache-2.0 */
#include "base/environment.h"
#include "http/http_core.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>

const char *http_exchange_id(const struct http_exchange *exchange)
{
    return exchange->id;
}

const char *http_exchange_peer(const struct http_exchange *exchange)
{
    return exchange->connection->peer;
}

bool http_exchange_is_loopback(const struct http_exchange *exchange)
{
    return exchange->is_local;
}

void *http_exchange_principal(const struct http_exchange *exchange)
{
    return exchange->access.principal;
}

const char *http_exchange_path_value(const struct http_exchange *exchange, const char *name)
{
    const size_t size = strlen(name);
    for (unsigned i = 0; i < exchange->match.count; i++)
        if (exchange->match.names[i].size == size && !memcmp(exchange->match.names[i].at, name, size))
            return exchange->values[i];
    return "";
}

const char *http_exchange_header(const struct http_exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection->mhd, MHD_HEADER_KIND, name);
}

struct bytes *http_exchange_body(struct http_exchange *exchange)
{
    return &exchange->body;
}

uint64_t http_exchange_body_size(const struct http_exchange *exchange)
{
    return exchange->body_bytes;
}

const char *http_exchange_query(const struct http_exchange *exchange, const char *name)
{
    for (unsigned i = 0; i < exchange->target.query_count; i++)
        if (!strcmp(exchange->target.query[i].name, name))
            return exchange->target.query[i].value;
    return NULL;
}

size_t http_exchange_query_count(const struct http_exchange *exchange)
{
    return exchange->target.query_count;
}

const char *http_exchange_query_at(const struct http_exchange *exchange, size_t index, const char **value)
{
    if (index >= exchange->target.query_count)
        return NULL;
    *value = exchange->target.query[index].value;
    return exchange->target.query[index].name;
}

gpufl_status http_exchange_query_int(const struct http_exchange *exchange, const char *name, int64_t min, int64_t max,
                                     int64_t *value, struct problem *problem)
{
    const char *text = http_exchange_query(exchange, name);
    if (!text)
        return GPUFL_OK;
    const char *digits = text + (*text == '-');
    bool is_number = *digits && !digits[strspn(digits, "0123456789")];
    errno = 0;
    long long number = is_number ? strtoll(text, NULL, 10) : 0;
    if (!is_number || errno || number < min || number > max)
        return problem_set(problem, GPUFL_E_INVALID, "%s is not a number from %lld to %lld", name, (long long)min,
                           (long long)max);
    *value = number;
    return GPUFL_OK;
}

gpufl_status http_exchange_query_check(const struct http_exchange *exchange, const char *const *names,
                                       struct problem *problem)
{
    const struct http_target *target = &exchange->target;
    for (unsigned i = 0; i < target->query_count; i++) {
        const char *name = target->query[i].name;
        bool is_known = false;
        for (const char *const *known = names; *known; known++)
            is_known |= !strcmp(*known, name);
        if (!is_known) {
            const char *nearest = nearest_word(name, names);
            return problem_set(problem, GPUFL_E_INVALID, "unknown parameter '%.64s'%s%s%s", name,
                               nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
        }
        if (http_exchange_query(exchange, name) != target->query[i].value)
            return problem_set(problem, GPUFL_E_INVALID, "the parameter '%s' is given twice", name);
    }
    return GPUFL_OK;
}

void http_exchange_set_state(struct http_exchange *exchange, void *state)
{
    exchange->state = state;
}

void *http_exchange_state(const struct http_exchange *exchange)
{
    return exchange->state;
}

void http_exchange_continue(struct http_exchange *exchange)
{
    http_connection_wake(exchange->connection);
}
