/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog of every engine: sessions with filters and pages, keys, configurations, the audit log, retention. */
#include "catalog_fixture.h"

static size_t count_of(struct store *store, struct store_session_filter filter)
{
    struct seen seen = {.count = 0};
    char next[STORE_CURSOR_MAX];
    MUST(store_sessions(store, &filter, see, &seen, next, &problem));
    assert_string_equal(next, "");
    return seen.count;
}

static void sessions_are_filtered(void **state)
{
    struct store *store = fixture_store(*state);
    session_add(store, "a", "train", "node1", 1000, true);
    session_add(store, "b", "train", "node2", 2000, false);
    session_add(store, "c", "Infer'; DROP TABLE session;--", "node2", 3000, true);
    static const char *const tags[] = {"nightly", "fp8"};
    MUST(store_session_tag(store, "c", tags, 2, &problem));
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1}), 3);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1, .app = "train"}), 2);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1, .host = "node2"}), 2);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1, .gpu_uuid = "GPU-node1"}), 1);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1, .engine = "nvidia.trace"}), 3);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1, .engine = "nvidia.deep"}), 0);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1, .tag = "fp8"}), 1);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1, .tag = "fp"}), 0);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1, .text = "NIGHT"}), 1);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1, .text = "infer'"}), 1);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1, .text = "%"}), 0);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = STORE_SESSION_LIVE}), 1);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1, .from_ns = 1050, .to_ns = 2001}), 2);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1, .from_ns = 4000, .to_ns = 9000}), 0);
    store_close(store);
}

static void one_session_has_tags_gpus_losses_and_state(void **state)
{
    struct store *store = fixture_store(*state);
    struct seen seen = {.count = 0};
    session_add(store, "a", "train", "node1", 1003, false);
    static const char *const tags[] = {"x", "b", "x"};
    MUST(store_session_tag(store, "a", tags, 3, &problem));
    MUST(store_session(store, "a", see, &seen, &problem));
    assert_string_equal(seen.tags, "b,x,");
    assert_string_equal(seen.gpu, "GPU-node1");
    assert_int_equal(seen.last.state, STORE_SESSION_LIVE);
    assert_int_equal(seen.last.retention_ns, CELL_UNKNOWN);
    assert_int_equal(seen.last.expected_rows, CELL_UNKNOWN);
    assert_int_equal(seen.last.start_ns, 1003);
    int64_t revision = seen.last.revision;
    MUST(store_session_end(store, "a", &problem));
    MUST(store_session_keep(store, "a", 5000, &problem));
    MUST(store_session(store, "a", see, &seen, &problem));
    assert_int_equal(seen.last.state, STORE_SESSION_COMPLETE);
    assert_int_equal(seen.last.retention_ns, 5000);
    assert_true(seen.last.revision > revision);
    session_add(store, "b", "train", "node1", 1003, true);
    MUST(store_session(store, "b", see, &seen, &problem));
    assert_int_equal(seen.last.lost, 1003 % 7);
    assert_int_equal(seen.last.expected_rows, 42); /* batches only: the store does not count other records */
    struct problem problem = {""};
    assert_int_equal(store_session(store, "nobody", see, &seen, &problem), GPUFL_E_NOT_FOUND);
    assert_int_equal(store_session_tag(store, "nobody", tags, 1, &problem), GPUFL_E_NOT_FOUND);
    assert_int_equal(store_session_delete(store, "nobody", &problem), GPUFL_E_NOT_FOUND);
    store_close(store);
}

static void pages_hold_every_session_once_in_order(void **state)
{
    struct store *store = fixture_store(*state);
    char id[16], next[STORE_CURSOR_MAX];
    for (int i = 0; i < 23; i++) {
        snprintf(id, sizeof id, "s%02d", i);
        session_add(store, id, "train", "node", 1000 + i % 5, true); /* many with the same start time */
    }
    for (int is_ascending = 0; is_ascending < 2; is_ascending++) {
        for (int sort = 0; sort < STORE_SORT_COUNT; sort++) {
            struct seen seen = {.count = 0};
            struct store_session_filter filter = {
                .state = -1, .limit = 4, .sort = (enum store_sort)sort, .is_ascending = is_ascending != 0};
            char cursor[STORE_CURSOR_MAX] = "";
            int pages = 0;
            do {
                filter.cursor = cursor;
                MUST(store_sessions(store, &filter, see, &seen, next, &problem));
                memcpy(cursor, next, sizeof cursor);
            } while (*next && ++pages < 20);
            assert_int_equal(seen.count, 23);
            for (size_t i = 0; i < seen.count; i++)
                for (size_t j = 0; j < i; j++)
                    assert_string_not_equal(seen.ids[i], seen.ids[j]);
            if (sort == STORE_SORT_START)
                assert_string_equal(seen.ids[0], is_ascending ? "s00" : "s19");
        }
    }
    struct problem problem = {""};
    struct seen seen = {.count = 0};
    const char *const bad[] = {"x", "0.1", "0.1.2x", "3.1.2", "99999999999999999999.1.1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct store_session_filter filter = {.state = -1, .cursor = bad[i]};
        assert_int_equal(store_sessions(store, &filter, see, &seen, next, &problem), GPUFL_E_INVALID);
    }
    store_close(store);
}

static void a_deleted_session_leaves_nothing_behind(void **state)
{
    struct store *store = fixture_store(*state);
    struct store_stats stats;
    char dir[512];
    snprintf(dir, sizeof dir, "%s/tests/golden/trace", SOURCE_DIR);
    struct delivery delivery = deliver_session(store, dir, 3, true);
    session_add(store, "other", "app", "node", 1000, true);
    MUST(store_session_delete(store, delivery.session_id, &problem));
    MUST(store_stats(store, &stats, &problem));
    assert_int_equal(stats.sessions, 1);
    assert_int_equal(stats.segments, 2);
    struct problem problem = {""};
    struct seen seen = {.count = 0};
    assert_int_equal(store_session(store, delivery.session_id, see, &seen, &problem), GPUFL_E_NOT_FOUND);
    /* A deleted session may be sent again. */
    struct delivery again = deliver_session(store, dir, 3, true);
    assert_int_equal(again.lines, delivery.lines);
    store_close(store);
}

/* ---- retention ---- */

static void old_sessions_go_unless_they_are_kept(void **state)
{
    struct store *store = fixture_store(*state);
    struct store_retained retained;
    struct seen seen = {.count = 0};
    session_add(store, "a", "app", "node", 1000, true);
    session_add(store, "b", "app", "node", 1000, true);
    session_add(store, "c", "app", "node", 1000, false);
    MUST(store_session_keep(store, "b", STORE_KEEP_FOREVER, &problem));
    MUST(store_session(store, "a", see, &seen, &problem));
    struct store_retention policy = {.age_ns = 1000, .now_ns = seen.last.received_ns + 999};
    MUST(store_retain(store, &policy, &retained, &problem));
    assert_int_equal(retained.sessions_deleted, 0);
    policy.now_ns += INT64_C(1000000000000);
    MUST(store_retain(store, &policy, &retained, &problem));
    assert_int_equal(retained.sessions_deleted, 2);
    assert_true(retained.bytes_deleted > 0);
    assert_int_equal(count_of(store, (struct store_session_filter){.state = -1}), 1);
    /* A session's own retention may also be shorter than the server's. */
    MUST(store_session_keep(store, "b", 10, &problem));
    policy = (struct store_retention){.now_ns = policy.now_ns};
    MUST(store_retain(store, &policy, &retained, &problem));
    assert_int_equal(retained.sessions_deleted, 1);
    store_close(store);
}

static void the_oldest_complete_sessions_make_room(void **state)
{
    struct store *store = fixture_store(*state);
    struct store_retained retained;
    struct seen seen = {.count = 0};
    session_add(store, "live", "app", "node", 1000, false);
    session_add(store, "old", "app", "node", 1000, true);
    session_add(store, "kept", "app", "node", 1000, true);
    session_add(store, "new", "app", "node", 1000, true);
    MUST(store_session_keep(store, "kept", STORE_KEEP_FOREVER, &problem));
    int64_t bytes = 0;
    const char *const ids[] = {"live", "kept", "new"};
    for (int i = 0; i < 3; i++) {
        MUST(store_session(store, ids[i], see, &seen, &problem));
        bytes += seen.last.bytes;
    }
    const struct store_retention policy = {.bytes_max = (uint64_t)bytes, .now_ns = seen.last.received_ns};
    MUST(store_retain(store, &policy, &retained, &problem));
    assert_int_equal(retained.sessions_deleted, 1);
    struct problem problem = {""};
    assert_int_equal(store_session(store, "old", see, &seen, &problem), GPUFL_E_NOT_FOUND);
    store_close(store);
}

/* ---- keys, configurations, audit ---- */

static bool take_key(void *user, const struct store_key *key)
{
    *(struct store_key *)user = *key;
    return true;
}

static void assert_same_key(const struct store_key *key, const struct store_key *other)
{
    assert_int_equal(key->key_id, other->key_id);
    assert_memory_equal(key->hash, other->hash, sizeof key->hash);
    assert_string_equal(key->prefix, other->prefix);
    assert_string_equal(key->name, other->name);
    assert_int_equal(key->scope, other->scope);
    assert_int_equal(key->created_ns, other->created_ns);
    assert_int_equal(key->expires_ns, other->expires_ns);
    assert_int_equal(key->revoked_ns, other->revoked_ns);
    assert_int_equal(key->last_used_ns, other->last_used_ns);
    assert_int_equal(key->rate_per_s, other->rate_per_s);
    assert_int_equal(key->quota_bytes_per_day, other->quota_bytes_per_day);
}

static void keys_are_found_by_hash_and_changed(void **state)
{
    struct store *store = fixture_store(*state);
    struct store_key key = {.hash = {1, 2, 3},
                            .prefix = "gpfl_abc",
                            .name = "ci",
                            .scope = 2,
                            .created_ns = 5,
                            .expires_ns = CELL_UNKNOWN,
                            .revoked_ns = CELL_UNKNOWN,
                            .last_used_ns = CELL_UNKNOWN,
                            .rate_per_s = 10,
                            .quota_bytes_per_day = CELL_UNKNOWN};
    struct store_key found, other = key;
    struct problem problem = {""};
    assert_int_equal(store_key_find(store, key.hash, &found, &problem), GPUFL_E_NOT_FOUND);
    MUST(store_key_put(store, &key, &problem));
    assert_true(key.key_id > 0);
    MUST(store_key_find(store, key.hash, &found, &problem));
    assert_same_key(&found, &key);
    assert_int_equal(store_key_put(store, &other, &problem), GPUFL_E_INVALID);
    key.revoked_ns = 99;
    MUST(store_key_put(store, &key, &problem));
    MUST(store_keys(store, take_key, &found, &problem));
    assert_int_equal(found.revoked_ns, 99);
    assert_int_equal(found.key_id, key.key_id);
    store_close(store);
}

static void a_revoked_key_stays_revoked_whoever_writes_at_the_same_time(void **state)
{
    struct store *store = fixture_store(*state);
    struct store_key key = {.hash = {4, 5, 6},
                            .prefix = "gpfl_def",
                            .name = "night",
                            .scope = 1,
                            .created_ns = 5,
                            .expires_ns = CELL_UNKNOWN,
                            .revoked_ns = CELL_UNKNOWN,
                            .last_used_ns = CELL_UNKNOWN,
                            .rate_per_s = CELL_UNKNOWN,
                            .quota_bytes_per_day = 7};
    struct store_key old, found;
    struct problem problem = {""};
    assert_int_equal(store_key_use(store, key.hash, 70, &problem), GPUFL_E_NOT_FOUND);
    MUST(store_key_put(store, &key, &problem));
    MUST(store_key_use(store, key.hash, 70, &problem));
    MUST(store_key_find(store, key.hash, &old, &problem));
    key.last_used_ns = 70;
    assert_same_key(&old, &key);
    key.revoked_ns = 99;
    MUST(store_key_put(store, &key, &problem));
    MUST(store_key_use(store, key.hash, 80, &problem));
    MUST(store_key_use(store, key.hash, 75, &problem));
    key.last_used_ns = 80;
    MUST(store_key_find(store, key.hash, &found, &problem));
    assert_same_key(&found, &key);
    old.expires_ns = 500;
    MUST(store_key_put(store, &old, &problem));
    MUST(store_keys(store, take_key, &found, &problem));
    assert_int_equal(found.key_id, key.key_id);
    assert_int_equal(found.revoked_ns, 99);
    assert_int_equal(found.last_used_ns, 80);
    store_close(store);
}

static bool take_config(void *user, const struct store_config *config)
{
    snprintf(user, 64, "%.*s@%lld", (int)config->size, config->text, (long long)config->revision);
    return true;
}

static void configurations_are_only_changed_from_the_latest_revision(void **state)
{
    struct store *store = fixture_store(*state);
    struct problem problem = {""};
    char text[64];
    int64_t revision;
    assert_int_equal(store_config_put(store, "night", "{}", 2, 1, &revision, &problem), GPUFL_E_BUSY);
    MUST(store_config_put(store, "night", "{}", 2, 0, &revision, &problem));
    assert_int_equal(revision, 1);
    assert_int_equal(store_config_put(store, "night", "{}", 2, 0, &revision, &problem), GPUFL_E_BUSY);
    MUST(store_config_put(store, "night", "{\"a\":1}", 7, 1, &revision, &problem));
    MUST(store_configs(store, "night", take_config, text, &problem));
    assert_string_equal(text, "{\"a\":1}@2");
    assert_int_equal(store_config_delete(store, "night", 1, &problem), GPUFL_E_BUSY);
    MUST(store_config_delete(store, "night", -1, &problem));
    assert_int_equal(store_configs(store, "night", take_config, text, &problem), GPUFL_E_NOT_FOUND);
    assert_int_equal(store_config_delete(store, "night", -1, &problem), GPUFL_E_NOT_FOUND);
    MUST(store_configs(store, NULL, take_config, text, &problem));
    store_close(store);
}

struct audits_seen {
    int64_t last;
    unsigned count;
};

static bool take_audit(void *user, const struct store_audit *entry)
{
    struct audits_seen *seen = user;
    assert_true(entry->audit_id < seen->last);
    assert_int_equal(entry->ts_ns, 4 - (int64_t)seen->count);
    seen->last = entry->audit_id;
    seen->count++;
    assert_string_equal(entry->action, "key.create");
    assert_string_equal(entry->detail, "");
    return true;
}

static void audit_entries_come_newest_first(void **state)
{
    struct store *store = fixture_store(*state);
    struct audits_seen seen = {.last = INT64_MAX};
    for (int i = 0; i < 5; i++) {
        const struct store_audit entry = {.ts_ns = i, .actor = "local", .action = "key.create", .subject = "ci"};
        MUST(store_audit_add(store, &entry, &problem));
    }
    MUST(store_audits(store, 0, 2, take_audit, &seen, &problem));
    assert_int_equal(seen.count, 2);
    MUST(store_audits(store, seen.last, 100, take_audit, &seen, &problem));
    assert_int_equal(seen.count, 5);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(sessions_are_filtered),
        TEST(one_session_has_tags_gpus_losses_and_state),
        TEST(pages_hold_every_session_once_in_order),
        TEST(a_deleted_session_leaves_nothing_behind),
        TEST(old_sessions_go_unless_they_are_kept),
        TEST(the_oldest_complete_sessions_make_room),
        TEST(keys_are_found_by_hash_and_changed),
        TEST(a_revoked_key_stays_revoked_whoever_writes_at_the_same_time),
        TEST(configurations_are_only_changed_from_the_latest_revision),
        TEST(audit_entries_come_newest_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
