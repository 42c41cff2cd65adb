/* SPDX-License-Identifier: Apache-2.0 */
/* Named configurations that agents and `gpufl trace` fetch. base/remote_config.h defines what they may set. */
#include "base/remote_config.h"
#include "server/query_call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool take_listed(void *user, const struct store_config *config)
{
    struct bytes *out = user;
    element(out, '{');
    member_text(out, "name", config->name);
    member_int(out, "revision", config->revision);
    member_int(out, "changed_ns", config->changed_ns);
    member_uint(out, "bytes", config->size);
    bytes_append_char(out, '}');
    return true;
}

void query_configs(struct query_call *call)
{
    struct problem problem = {""};
    bytes_append_char(&call->out, '{');
    list_open(&call->out, "configs");
    gpufl_status status = store_configs(call->query->store, NULL, take_listed, &call->out, &problem);
    bytes_append_text(&call->out, "]}");
    if (status != GPUFL_OK)
        query_fail_status(call, status, "configuration", &problem);
}

struct found_config {
    struct bytes text;
    int64_t revision;
};

static bool take_config(void *user, const struct store_config *config)
{
    struct found_config *found = user;
    bytes_append(&found->text, config->text, config->size);
    found->revision = config->revision;
    return false;
}

/* The name in the path; NULL: already answered. */
static const char *name_of(struct query_call *call)
{
    const char *name = http_exchange_path_value(call->exchange, "name");
    if (remote_config_name_is_valid(name) && strlen(name) <= REMOTE_CONFIG_NAME_MAX)
        return name;
    query_fail(call, 400, "name_invalid", "a name has 1 to %d letters, digits, dots, dashes and underscores",
               REMOTE_CONFIG_NAME_MAX);
    return NULL;
}

void query_config_get(struct query_call *call)
{
    const char *name = name_of(call);
    struct found_config found = {.revision = 0};
    struct problem problem = {""};
    char etag[32];
    if (!name)
        return;
    gpufl_status status = store_configs(call->query->store, name, take_config, &found, &problem);
    snprintf(etag, sizeof etag, "r%" PRId64, found.revision);
    if (status != GPUFL_OK)
        query_fail_status(call, status, "configuration", &problem);
    else if (!http_respond_if_known(call->exchange, etag))
        http_respond_bytes(call->exchange, 200, "application/json", &found.text);
    bytes_free(&found.text);
}

/* Checks a configuration: an object of options that may be set remotely, with strings, numbers and booleans. */
static bool config_check(struct query_call *call, const struct json_value *root)
{
    if (root->kind != JSON_OBJECT)
        return query_fail(call, 400, "config_invalid", "a configuration must be a JSON object");
    for (const struct json_value *member = root->child; member; member = member->next) {
        if (!remote_config_may_set(member->key))
            return query_fail(call, 422, "option_forbidden",
                              "line %" PRIu32
                              ": a remote configuration cannot set %.64s: paths, addresses and keys are "
                              "set on the machine itself",
                              member->line, member->key);
        if (member->kind == JSON_ARRAY || member->kind == JSON_OBJECT || member->kind == JSON_NULL)
            return query_fail(call, 422, "option_invalid",
                              "line %" PRIu32 ": %.64s must be a string, a number, true or false", member->line,
                              member->key);
        for (const struct json_value *other = root->child; other != member; other = other->next)
            if (!strcmp(other->key, member->key))
                return query_fail(call, 422, "option_invalid", "line %" PRIu32 ": %.64s is set twice", member->line,
                                  member->key);
    }
    return true;
}

/* The expected revision, from If-Match and If-None-Match. */
static bool expected_revision(struct query_call *call, int64_t *revision)
{
    const char *match = http_exchange_header(call->exchange, "If-Match");
    const char *none = http_exchange_header(call->exchange, "If-None-Match");
    *revision = -1;
    if (none && !strcmp(none, "*")) {
        *revision = 0;
    } else if (match && strcmp(match, "*") != 0) {
        char end;
        long long value;
        if (sscanf(match, "\"r%lld%c", &value, &end) != 2 || end != '"' || value < 1)
            return query_fail(call, 412, "revision_conflict", "If-Match is not a revision of this configuration");
        *revision = value;
    }
    return true;
}

static bool conflict_answer(struct query_call *call, gpufl_status status, const struct problem *problem)
{
    if (status == GPUFL_E_BUSY)
        return query_fail(call, 412, "revision_conflict", "the configuration was changed by someone else meanwhile");
    return query_fail_status(call, status, "configuration", problem);
}

void query_config_put(struct query_call *call)
{
    const char *name = name_of(call);
    const struct bytes *body = http_exchange_body(call->exchange);
    struct json_document document;
    struct json_error error;
    struct problem problem = {""};
    int64_t expected, revision = 0;
    if (!name || !expected_revision(call, &expected))
        return;
    if (body->size > REMOTE_CONFIG_BYTES_MAX) {
        query_fail(call, 413, "config_too_large", "a configuration has at most %d bytes", REMOTE_CONFIG_BYTES_MAX);
        return;
    }
    if (json_parse(&document, body->size ? body->data : "", body->size, &error) != GPUFL_OK) {
        query_fail(call, 400, "config_invalid", "line %u, column %u: %s", error.line, error.column, error.text);
        return;
    }
    bool is_valid = config_check(call, document.root);
    json_free(&document);
    if (!is_valid)
        return;
    gpufl_status status =
        store_config_put(call->query->store, name, body->data, body->size, expected, &revision, &problem);
    if (status != GPUFL_OK) {
        conflict_answer(call, status, &problem);
        return;
    }
    query_audit(call, "config.put", name, "");
    char etag[32];
    snprintf(etag, sizeof etag, "\"r%" PRId64 "\"", revision);
    http_respond_header(call->exchange, "ETag", etag);
    bytes_append_char(&call->out, '{');
    member_text(&call->out, "name", name);
    member_int(&call->out, "revision", revision);
    bytes_append_char(&call->out, '}');
}

void query_config_remove(struct query_call *call)
{
    const char *name = name_of(call);
    struct problem problem = {""};
    int64_t expected;
    if (!name || !expected_revision(call, &expected))
        return;
    gpufl_status status = store_config_delete(call->query->store, name, expected, &problem);
    if (status != GPUFL_OK) {
        conflict_answer(call, status, &problem);
        return;
    }
    query_audit(call, "config.delete", name, "");
    http_respond_empty(call->exchange, 204);
}
