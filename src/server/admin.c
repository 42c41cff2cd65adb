/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admin.h"

#include "base/clock.h"
#include "format/json.h"
#include "server/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define HOUR_NS (INT64_C(3600) * 1000000000)

static const char *const action_names[] = {
    [SERVER_RUN] = "run",
    [SERVER_KEYS_CREATE] = "keys.create",
    [SERVER_KEYS_LIST] = "keys.list",
    [SERVER_KEYS_ROTATE] = "keys.rotate",
    [SERVER_KEYS_REVOKE] = "keys.revoke",
    [SERVER_BACKUP] = "backup",
    [SERVER_CHECK] = "check",
    [SERVER_AUDIT] = "audit",
};
enum { ACTION_COUNT = sizeof action_names / sizeof *action_names };

bool admin_action_writes(enum server_action action)
{
    return action != SERVER_KEYS_LIST && action != SERVER_CHECK && action != SERVER_BACKUP && action != SERVER_AUDIT;
}

void admin_request_write(const struct server_command *command, struct bytes *request)
{
    const struct {
        const char *name, *text;
    } texts[] = {{"action", action_names[command->action]},
                 {"operand", command->operand},
                 {"name", command->key_name},
                 {"scope", command->key_scope}};
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"expires_days", command->expires_days},
                   {"grace_hours", command->grace_hours},
                   {"rate_per_s", command->rate_per_s},
                   {"quota_bytes_per_day", command->quota_bytes},
                   {"limit", command->limit}};
    bytes_append_char(request, '{');
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_key(request, texts[i].name);
        json_text(request, texts[i].text);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        json_key(request, numbers[i].name);
        json_int(request, numbers[i].value);
    }
    bytes_append_char(request, '}');
}

/* One request being handled. */
struct admin_call {
    struct store *store;
    const struct json_value *request;
    struct bytes *out;
    struct problem problem;
    bool has_changed_keys;
    uint64_t issue_count;
};

static void time_write(struct bytes *out, const char *name, int64_t value)
{
    json_key(out, name);
    if (value == CELL_UNKNOWN)
        json_text(out, NULL);
    else
        json_int(out, value);
}

/* text: of a new key; otherwise NULL. */
static void key_write(struct bytes *out, const struct store_key *key, const char *text)
{
    bytes_append_char(out, '{');
    json_key(out, "id");
    json_int(out, key->key_id);
    json_key(out, "prefix");
    json_text(out, key->prefix);
    json_key(out, "name");
    json_text(out, key->name);
    json_key(out, "scope");
    json_text(out, key_scope_name(key->scope));
    time_write(out, "created_ns", key->created_ns);
    time_write(out, "expires_ns", key->expires_ns);
    time_write(out, "revoked_ns", key->revoked_ns);
    time_write(out, "last_used_ns", key->last_used_ns);
    time_write(out, "rate_per_s", key->rate_per_s);
    time_write(out, "quota_bytes_per_day", key->quota_bytes_per_day);
    if (text) {
        json_key(out, "key");
        json_text(out, text);
    }
    bytes_append_char(out, '}');
}

/* The audit log comes first: nothing is done that cannot be logged. */
static gpufl_status audit(struct admin_call *call, const char *action, const struct store_key *key)
{
    char subject[STORE_NAME_MAX + 64];
    snprintf(subject, sizeof subject, "%s %s", key->prefix, key->name);
    const struct store_audit entry = {.ts_ns = clock_wall_ns(),
                                      .actor = "local",
                                      .action = action,
                                      .subject = subject,
                                      .detail = key_scope_name(key->scope)};
    return store_audit_add(call->store, &entry, &call->problem);
}

static gpufl_status key_save(struct admin_call *call, struct store_key *key, const char *action, const char *text)
{
    gpufl_status status = audit(call, action, key);
    if (!status)
        status = store_key_put(call->store, key, &call->problem);
    if (status)
        return status;
    call->has_changed_keys = true;
    key_write(call->out, key, text);
    return GPUFL_OK;
}

static void limits_read(const struct json_value *request, struct store_key *key)
{
    int64_t days = json_get_int(request, "expires_days", -1);
    int64_t rate = json_get_int(request, "rate_per_s", -1), quota = json_get_int(request, "quota_bytes_per_day", -1);
    if (days >= 0)
        key->expires_ns = clock_wall_ns() + days * 24 * HOUR_NS;
    if (rate >= 0)
        key->rate_per_s = rate;
    if (quota >= 0)
        key->quota_bytes_per_day = quota;
}

static gpufl_status keys_create(struct admin_call *call)
{
    struct store_key key;
    char text[KEY_TEXT_SIZE];
    const char *name = json_get_text(call->request, "name", "");
    int64_t scope = key_scope_parse(json_get_text(call->request, "scope", ""));
    if (!scope)
        return problem_set(&call->problem, GPUFL_E_INVALID, "a key needs a scope: --scope ingest, read or admin");
    if (strlen(name) > STORE_NAME_MAX)
        return problem_set(&call->problem, GPUFL_E_INVALID, "a key's name has at most %d bytes", STORE_NAME_MAX);
    gpufl_status status = key_make(text, &key, &call->problem);
    if (!status) {
        snprintf(key.name, sizeof key.name, "%s", name);
        key.scope = scope;
        limits_read(call->request, &key);
        status = key_save(call, &key, "key.create", text);
    }
    explicit_bzero(text, sizeof text);
    return status;
}

struct key_search {
    const char *wanted;
    unsigned matches;
    struct store_key found;
};

static bool key_match(void *user, const struct store_key *key)
{
    struct key_search *search = user;
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, key->key_id);
    bool is_number = !strcmp(number, search->wanted);
    /* Names of revoked keys may be reused. */
    if (is_number || !strcmp(key->prefix, search->wanted) ||
        (!strcmp(key->name, search->wanted) && key->revoked_ns == CELL_UNKNOWN)) {
        search->matches = is_number ? 1 : search->matches + 1;
        search->found = *key;
    }
    return !is_number;
}

static gpufl_status key_find(struct admin_call *call, struct store_key *key)
{
    struct key_search search = {.wanted = json_get_text(call->request, "operand", "")};
    if (!*search.wanted)
        return problem_set(&call->problem, GPUFL_E_INVALID, "a key's id, prefix or name is missing");
    gpufl_status status = store_keys(call->store, key_match, &search, &call->problem);
    if (!status && !search.matches)
        status = problem_set(&call->problem, GPUFL_E_NOT_FOUND, "no key '%.80s'; `gpufl serve keys list` shows all",
                             search.wanted);
    else if (!status && search.matches > 1)
        status = problem_set(&call->problem, GPUFL_E_INVALID, "%u keys have the name '%.80s'; use the key's id",
                             search.matches, search.wanted);
    *key = search.found;
    return status;
}

static gpufl_status keys_rotate(struct admin_call *call)
{
    struct store_key old = {0}, key;
    char text[KEY_TEXT_SIZE];
    gpufl_status status = key_find(call, &old);
    if (!status && old.revoked_ns != CELL_UNKNOWN)
        status = problem_set(&call->problem, GPUFL_E_INVALID, "the key is revoked; create a new one");
    if (!status)
        status = key_make(text, &key, &call->problem);
    if (status)
        return status;
    snprintf(key.name, sizeof key.name, "%s", old.name);
    key.scope = old.scope;
    key.rate_per_s = old.rate_per_s;
    key.quota_bytes_per_day = old.quota_bytes_per_day;
    limits_read(call->request, &key);
    status = key_save(call, &key, "key.rotate", text);
    explicit_bzero(text, sizeof text);
    if (status)
        return status;
    int64_t hours = json_get_int(call->request, "grace_hours", -1), now_ns = clock_wall_ns();
    if (hours > 0 && (old.expires_ns == CELL_UNKNOWN || old.expires_ns > now_ns + hours * HOUR_NS))
        old.expires_ns = now_ns + hours * HOUR_NS;
    else if (hours <= 0)
        old.revoked_ns = now_ns;
    return store_key_put(call->store, &old, &call->problem);
}

static gpufl_status keys_revoke(struct admin_call *call)
{
    struct store_key key = {0};
    gpufl_status status = key_find(call, &key);
    if (status)
        return status;
    if (key.revoked_ns == CELL_UNKNOWN)
        key.revoked_ns = clock_wall_ns();
    return key_save(call, &key, "key.revoke", NULL);
}

static bool list_one(void *user, const struct store_key *key)
{
    struct bytes *out = user;
    if (out->data[out->size - 1] != '[')
        bytes_append_char(out, ',');
    key_write(out, key, NULL);
    return !out->failed;
}

static gpufl_status keys_list(struct admin_call *call)
{
    bytes_append_char(call->out, '[');
    gpufl_status status = store_keys(call->store, list_one, call->out, &call->problem);
    bytes_append_char(call->out, ']');
    return status;
}

static gpufl_status backup(struct admin_call *call)
{
    const char *path = json_get_text(call->request, "operand", "");
    if (*path != '/')
        return problem_set(&call->problem, GPUFL_E_INVALID, "the name of the backup file is missing");
    gpufl_status status = store_backup(call->store, path, &call->problem);
    if (status)
        return status;
    const struct store_audit entry = {
        .ts_ns = clock_wall_ns(), .actor = "local", .action = "store.backup", .subject = path, .detail = ""};
    status = store_audit_add(call->store, &entry, &call->problem);
    json_text(call->out, path);
    /* Without a server the store is opened read-only: its owner may copy it, and no other process is involved. */
    return status == GPUFL_E_PERMISSION ? GPUFL_OK : status;
}

static bool audit_write(void *user, const struct store_audit *entry)
{
    struct bytes *out = user;
    if (out->data[out->size - 1] != '[')
        bytes_append_char(out, ',');
    bytes_append_char(out, '{');
    json_key(out, "ts_ns");
    json_int(out, entry->ts_ns);
    const struct {
        const char *name, *text;
    } texts[] = {
        {"actor", entry->actor}, {"action", entry->action}, {"subject", entry->subject}, {"detail", entry->detail}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_key(out, texts[i].name);
        json_text(out, texts[i].text);
    }
    bytes_append_char(out, '}');
    return !out->failed;
}

static gpufl_status audit_list(struct admin_call *call)
{
    enum { ENTRIES_DEFAULT = 100 };
    int64_t limit = json_get_int(call->request, "limit", -1);
    bytes_append_char(call->out, '[');
    gpufl_status status = store_audits(call->store, 0, limit > 0 ? (unsigned)limit : ENTRIES_DEFAULT, audit_write,
                                       call->out, &call->problem);
    bytes_append_char(call->out, ']');
    return status;
}

static void issue_write(void *user, const char *text)
{
    enum { ISSUES_MAX = 1000 };
    struct admin_call *call = user;
    if (call->issue_count++ >= ISSUES_MAX)
        return;
    if (call->issue_count > 1)
        bytes_append_char(call->out, ',');
    json_text(call->out, text);
}

static gpufl_status check(struct admin_call *call)
{
    struct store_stats stats = {.engine = ""};
    bytes_append_text(call->out, "{\"issues\":[");
    gpufl_status status = store_check(call->store, issue_write, call, &call->problem);
    bytes_append_char(call->out, ']');
    if (!status)
        status = store_stats(call->store, &stats, &call->problem);
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {{"issue_count", call->issue_count},
                   {"sessions", stats.sessions},
                   {"rows", stats.rows},
                   {"segments", stats.segments},
                   {"bytes", stats.bytes + stats.log_bytes},
                   {"schema_version", (uint64_t)stats.schema_version}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        json_key(call->out, numbers[i].name);
        json_uint(call->out, numbers[i].value);
    }
    json_key(call->out, "engine");
    json_text(call->out, stats.engine);
    bytes_append_char(call->out, '}');
    return status;
}

bool admin_execute(struct store *store, const char *request, size_t size, struct bytes *answer)
{
    static gpufl_status (*const runs[ACTION_COUNT])(struct admin_call *) = {
        [SERVER_KEYS_CREATE] = keys_create, [SERVER_KEYS_LIST] = keys_list, [SERVER_KEYS_ROTATE] = keys_rotate,
        [SERVER_KEYS_REVOKE] = keys_revoke, [SERVER_BACKUP] = backup,       [SERVER_CHECK] = check,
        [SERVER_AUDIT] = audit_list,
    };
    struct json_document document = {0};
    struct admin_call call = {.store = store, .out = answer};
    gpufl_status status = json_parse(&document, request, size, NULL);
    const char *action = status ? "" : json_get_text(document.root, "action", "");
    size_t begin = answer->size, found = ACTION_COUNT;
    for (size_t i = 0; i < ACTION_COUNT; i++)
        if (!strcmp(action, action_names[i]) && runs[i])
            found = i;
    call.request = document.root;
    bytes_append_text(answer, "{\"answer\":");
    if (found == ACTION_COUNT)
        status = problem_set(&call.problem, GPUFL_E_INVALID, "unknown action '%.60s'", action);
    else
        status = runs[found](&call);
    bytes_append_char(answer, '}');
    if (status || answer->failed) {
        bytes_clear(answer);
        answer->size = begin;
        bytes_append_format(answer, "{\"error\":{\"status\":%d,\"message\":", (int)status);
        json_text(answer, call.problem.text);
        bytes_append_text(answer, "}}");
    }
    json_free(&document);
    return call.has_changed_keys;
}
