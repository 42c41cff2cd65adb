/* SPDX-License-Identifier: Apache-2.0 */
/* The store's interface: checks arguments, once for all engines. */
#include "store/store_engine.h"

enum { TAGS_MAX = 32, TAG_SIZE_MAX = 64, CONFIG_BYTES_MAX = 1 << 20, SEARCH_MAX = 10000 };

static bool is_text_ok(const char *text, size_t most)
{
    return text && *text && strnlen(text, most + 1) <= most;
}

#define CHECK_SESSION_ID(session_id, problem)                                                                     \
    do {                                                                                                          \
        if (!is_text_ok(session_id, STORE_SESSION_ID_MAX))                                                        \
            return problem_set(problem, GPUFL_E_INVALID, "a session id has 1 to %d bytes", STORE_SESSION_ID_MAX); \
    } while (0)

#define CHECK_WRITABLE(store, problem)                                                                \
    do {                                                                                              \
        if ((store)->is_read_only)                                                                    \
            return problem_set(problem, GPUFL_E_PERMISSION, "the store was opened for reading only"); \
    } while (0)

gpufl_status store_open(struct store **out, const char *location, const struct store_options *options,
                        struct problem *problem)
{
    const struct store_options defaults = {0};
    options = options ? options : &defaults;
    if (!location || !*location)
        return problem_set(problem, GPUFL_E_INVALID, "a store needs a directory");
    const char *scheme = strstr(location, "://");
    if (scheme && !strncmp(location, "clickhouse://", 13))
        return clickhouse_store_open(out, location, options, problem);
    if (scheme)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "no store engine for %.*s://", (int)(scheme - location),
                           location);
    return sqlite_store_open(out, location, options, problem);
}

bool store_location_has_secret(const char *location)
{
    const char *host = strstr(location, "://");
    const char *user_end = host ? strpbrk(host + 3, "@/?") : NULL;
    return user_end && *user_end == '@' && memchr(host + 3, ':', (size_t)(user_end - host - 3));
}

void store_close(struct store *store)
{
    if (store)
        store->engine->close(store);
}

gpufl_status store_write_begin(struct store *store, const struct store_identity *identity, struct store_write **out,
                               enum store_delivery *delivery, struct problem *problem)
{
    CHECK_WRITABLE(store, problem);
    CHECK_SESSION_ID(identity->session_id, problem);
    if (identity->window_id && strlen(identity->window_id) > STORE_WINDOW_ID_MAX)
        return problem_set(problem, GPUFL_E_INVALID, "a window id has at most %d bytes", STORE_WINDOW_ID_MAX);
    return store->engine->write_begin(store, identity, out, delivery, problem);
}

gpufl_status store_write_line(struct store_write *write, const struct log_line *line, const char *text, size_t size,
                              bool *is_repeated, struct problem *problem)
{
    return write->store->engine->write_line(write, line, text, size, is_repeated, problem);
}

void store_write_name(struct store_write *write, const char *window_id, uint32_t crc)
{
    if (strlen(window_id) <= STORE_WINDOW_ID_MAX)
        write->store->engine->write_name(write, window_id, crc);
}

gpufl_status store_write_commit(struct store_write *write, struct store_written *written, struct problem *problem)
{
    return write->store->engine->write_commit(write, written, problem);
}

void store_write_abort(struct store_write *write)
{
    if (write)
        write->store->engine->write_abort(write);
}

gpufl_status store_read(struct store *store, const struct store_range *range, log_line_fn on_line, void *user,
                        struct problem *problem)
{
    CHECK_SESSION_ID(range->session_id, problem);
    return store->engine->read(store, range, on_line, user, problem);
}

/* ---- catalog ---- */

gpufl_status store_sessions(struct store *store, const struct store_session_filter *filter, store_session_fn on_session,
                            void *user, char next[STORE_CURSOR_MAX], struct problem *problem)
{
    struct store_session_filter checked = *filter;
    if ((unsigned)filter->sort >= STORE_SORT_COUNT)
        return problem_set(problem, GPUFL_E_INVALID, "unknown sort order of sessions");
    if (checked.limit > STORE_PAGE_MAX)
        checked.limit = STORE_PAGE_MAX;
    return store->engine->sessions(store, &checked, on_session, user, next, problem);
}

gpufl_status store_session(struct store *store, const char *session_id, store_session_fn on_session, void *user,
                           struct problem *problem)
{
    CHECK_SESSION_ID(session_id, problem);
    return store->engine->session(store, session_id, on_session, user, problem);
}

gpufl_status store_session_delete(struct store *store, const char *session_id, struct problem *problem)
{
    CHECK_SESSION_ID(session_id, problem);
    return store->engine->session_delete(store, session_id, problem);
}

gpufl_status store_session_tag(struct store *store, const char *session_id, const char *const *tags, size_t tag_count,
                               struct problem *problem)
{
    CHECK_SESSION_ID(session_id, problem);
    for (size_t i = 0; i < tag_count; i++)
        if (tag_count > TAGS_MAX || !is_text_ok(tags[i], TAG_SIZE_MAX))
            return problem_set(problem, GPUFL_E_INVALID, "a session has at most %d tags of 1 to %d bytes", TAGS_MAX,
                               TAG_SIZE_MAX);
    return store->engine->session_tag(store, session_id, tags, tag_count, problem);
}

gpufl_status store_session_keep(struct store *store, const char *session_id, int64_t retention_ns,
                                struct problem *problem)
{
    CHECK_SESSION_ID(session_id, problem);
    if (retention_ns < 0 && retention_ns != CELL_UNKNOWN)
        return problem_set(problem, GPUFL_E_INVALID, "a retention must not be negative");
    return store->engine->session_keep(store, session_id, retention_ns, problem);
}

gpufl_status store_session_end(struct store *store, const char *session_id, struct problem *problem)
{
    CHECK_SESSION_ID(session_id, problem);
    return store->engine->session_end(store, session_id, problem);
}

gpufl_status store_gpus(struct store *store, const char *host, store_gpu_fn on_gpu, void *user, struct problem *problem)
{
    return store->engine->gpus(store, host, on_gpu, user, problem);
}

gpufl_status store_key_put(struct store *store, struct store_key *key, struct problem *problem)
{
    return store->engine->key_put(store, key, problem);
}

gpufl_status store_key_find(struct store *store, const uint8_t hash[STORE_KEY_HASH_SIZE], struct store_key *key,
                            struct problem *problem)
{
    return store->engine->key_find(store, hash, key, problem);
}

gpufl_status store_key_use(struct store *store, const uint8_t hash[STORE_KEY_HASH_SIZE], int64_t used_ns,
                           struct problem *problem)
{
    return store->engine->key_use(store, hash, used_ns, problem);
}

gpufl_status store_keys(struct store *store, store_key_fn on_key, void *user, struct problem *problem)
{
    return store->engine->keys(store, on_key, user, problem);
}

gpufl_status store_config_put(struct store *store, const char *name, const char *text, size_t size,
                              int64_t expected_revision, int64_t *revision, struct problem *problem)
{
    if (!is_text_ok(name, STORE_NAME_MAX))
        return problem_set(problem, GPUFL_E_INVALID, "a configuration's name has 1 to %d bytes", STORE_NAME_MAX);
    if (!text || size > CONFIG_BYTES_MAX)
        return problem_set(problem, GPUFL_E_LIMIT, "a configuration has at most 1 MiB");
    return store->engine->config_put(store, name, text, size, expected_revision, revision, problem);
}

gpufl_status store_configs(struct store *store, const char *name, store_config_fn on_config, void *user,
                           struct problem *problem)
{
    return store->engine->configs(store, name, on_config, user, problem);
}

gpufl_status store_config_delete(struct store *store, const char *name, int64_t expected_revision,
                                 struct problem *problem)
{
    return store->engine->config_delete(store, name, expected_revision, problem);
}

gpufl_status store_audit_add(struct store *store, const struct store_audit *entry, struct problem *problem)
{
    return store->engine->audit_add(store, entry, problem);
}

gpufl_status store_audits(struct store *store, int64_t before_id, unsigned limit, store_audit_fn on_entry, void *user,
                          struct problem *problem)
{
    limit = limit ? limit : STORE_PAGE_MAX;
    return store->engine->audits(store, before_id, limit < STORE_PAGE_MAX ? limit : STORE_PAGE_MAX, on_entry, user,
                                 problem);
}

/* ---- rollups ---- */

gpufl_status store_kernels(struct store *store, const char *session_id, store_kernel_fn on_kernel, void *user,
                           struct problem *problem)
{
    CHECK_SESSION_ID(session_id, problem);
    return store->engine->kernels(store, session_id, on_kernel, user, problem);
}

gpufl_status store_kernel_search(struct store *store, const char *text, unsigned limit, store_kernel_fn on_kernel,
                                 void *user, struct problem *problem)
{
    limit = limit && limit < SEARCH_MAX ? limit : SEARCH_MAX;
    return store->engine->kernel_search(store, text, limit, on_kernel, user, problem);
}

gpufl_status store_scopes(struct store *store, const char *session_id, store_scope_fn on_scope, void *user,
                          struct problem *problem)
{
    CHECK_SESSION_ID(session_id, problem);
    return store->engine->scopes(store, session_id, on_scope, user, problem);
}

static bool is_range_ok(int64_t from_ns, int64_t to_ns)
{
    return from_ns >= 0 && to_ns > from_ns && to_ns <= INT64_C(1) << 62;
}

gpufl_status store_metrics(struct store *store, const char *host, const char *gpu_uuid, int64_t from_ns, int64_t to_ns,
                           store_metric_fn on_metric, void *user, struct problem *problem)
{
    if (!is_range_ok(from_ns, to_ns))
        return problem_set(problem, GPUFL_E_INVALID, "invalid time range");
    return store->engine->metrics(store, host, gpu_uuid, from_ns, to_ns, on_metric, user, problem);
}

gpufl_status store_timeline(struct store *store, const char *session_id, int64_t from_ns, int64_t to_ns,
                            int64_t width_ns, struct timeline *timeline, struct problem *problem)
{
    CHECK_SESSION_ID(session_id, problem);
    if (!is_range_ok(from_ns, to_ns) || width_ns <= 0)
        return problem_set(problem, GPUFL_E_INVALID, "invalid time range");
    unsigned shift = 63 - (unsigned)__builtin_clzll((uint64_t)width_ns);
    shift = shift < 62 ? shift : 62;
    if ((to_ns - from_ns) >> shift > TIMELINE_BUCKETS_MAX)
        return problem_set(problem, GPUFL_E_LIMIT, "a timeline has at most %d buckets", TIMELINE_BUCKETS_MAX);
    return store->engine->timeline(store, session_id, from_ns, to_ns, shift, timeline, problem);
}

/* ---- maintenance ---- */

gpufl_status store_retain(struct store *store, const struct store_retention *policy, struct store_retained *result,
                          struct problem *problem)
{
    CHECK_WRITABLE(store, problem);
    return store->engine->retain(store, policy, result, problem);
}

gpufl_status store_maintain(struct store *store, struct problem *problem)
{
    CHECK_WRITABLE(store, problem);
    return store->engine->maintain(store, problem);
}

gpufl_status store_backup(struct store *store, const char *path, struct problem *problem)
{
    return store->engine->backup(store, path, problem);
}

gpufl_status store_check(struct store *store, store_issue_fn on_issue, void *user, struct problem *problem)
{
    return store->engine->check(store, on_issue, user, problem);
}

gpufl_status store_stats(struct store *store, struct store_stats *stats, struct problem *problem)
{
    return store->engine->stats(store, stats, problem);
}

gpufl_status store_commit_state(struct store *store, struct problem *problem)
{
    return store->engine->commit_state(store, problem);
}
