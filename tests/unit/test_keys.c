/* SPDX-License-Identifier: Apache-2.0 */
#include "session_fixture.h"

#include "base/clock.h"
#include "server/keys.h"
#include "server/token_bucket.h"
#include "store/store_engine.h"

struct key_fixture {
    char *dir;
    struct store *store;
    struct key_ring *ring;
};

static int open_fixture(void **state)
{
    static const struct key_limits limits = {0};
    static const struct store_options options = {.no_background = true};
    static struct key_fixture fixture;
    fixture = (struct key_fixture){.dir = strdup(fixture_dir())};
    assert_int_equal(store_open(&fixture.store, fixture.dir, &options, NULL), GPUFL_OK);
    assert_int_equal(key_ring_open(&fixture.ring, &limits), GPUFL_OK);
    *state = &fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct key_fixture *fixture = *state;
    key_ring_close(fixture->ring);
    store_close(fixture->store);
    fixture_remove(fixture->dir);
    free(fixture->dir);
    return 0;
}

/* Adds a key to the store and returns its text. */
static struct store_key key_add(struct key_fixture *fixture, int64_t scope, char text[KEY_TEXT_SIZE])
{
    struct store_key key;
    assert_int_equal(key_make(text, &key, NULL), GPUFL_OK);
    key.scope = scope;
    snprintf(key.name, sizeof key.name, "test");
    assert_int_equal(store_key_put(fixture->store, &key, NULL), GPUFL_OK);
    assert_int_equal(key_ring_load(fixture->ring, fixture->store, NULL), GPUFL_OK);
    return key;
}

static void key_change(struct key_fixture *fixture, struct store_key *key)
{
    assert_int_equal(store_key_put(fixture->store, key, NULL), GPUFL_OK);
    assert_int_equal(key_ring_load(fixture->ring, fixture->store, NULL), GPUFL_OK);
}

static struct http_access ask(struct key_ring *ring, const char *token, enum http_scope scope, bool is_key_needed)
{
    struct http_access access;
    const struct http_credentials credentials = {
        .scope = scope, .token = token, .token_size = token ? strlen(token) : 0, .peer = "192.0.2.1"};
    key_ring_authorize(ring, is_key_needed, &credentials, &access);
    if (access.status && token)
        assert_null(strstr(access.reason, token));
    return access;
}

static int status_of(struct key_ring *ring, const char *token, enum http_scope scope)
{
    return ask(ring, token, scope, true).status;
}

static void a_new_key_has_the_documented_form(void **state)
{
    (void)state;
    char one[KEY_TEXT_SIZE], two[KEY_TEXT_SIZE];
    struct store_key key, other;
    assert_int_equal(key_make(one, &key, NULL), GPUFL_OK);
    assert_int_equal(key_make(two, &other, NULL), GPUFL_OK);
    assert_int_equal(strlen(one), 37);
    assert_memory_equal(one, "gpfl_", 5);
    assert_int_equal(strspn(one + 5, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), 32);
    assert_string_not_equal(one, two);
    assert_int_equal(strlen(key.prefix), 8);
    assert_memory_equal(key.prefix, one, 8);
    assert_memory_not_equal(key.hash, other.hash, sizeof key.hash);
}

static void a_key_allows_its_scope_and_no_other(void **state)
{
    struct key_fixture *fixture = *state;
    char ingest[KEY_TEXT_SIZE], read[KEY_TEXT_SIZE], admin[KEY_TEXT_SIZE];
    key_add(fixture, KEY_SCOPE_INGEST, ingest);
    key_add(fixture, KEY_SCOPE_READ, read);
    key_add(fixture, KEY_SCOPE_ADMIN, admin);
    static const struct {
        unsigned key;
        enum http_scope scope;
        int status;
    } cases[] = {{0, HTTP_SCOPE_INGEST, 0},   {0, HTTP_SCOPE_READ, 403}, {0, HTTP_SCOPE_ADMIN, 403},
                 {1, HTTP_SCOPE_INGEST, 403}, {1, HTTP_SCOPE_READ, 0},   {1, HTTP_SCOPE_ADMIN, 403},
                 {2, HTTP_SCOPE_INGEST, 0},   {2, HTTP_SCOPE_READ, 0},   {2, HTTP_SCOPE_ADMIN, 0}};
    const char *const keys[] = {ingest, read, admin};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(status_of(fixture->ring, keys[cases[i].key], cases[i].scope), cases[i].status);
    struct key_counts counts;
    key_ring_counts(fixture->ring, &counts);
    assert_int_equal(counts.allowed, 5);
    assert_int_equal(counts.forbidden, 4);
}

static void wrong_revoked_and_expired_keys_are_rejected(void **state)
{
    struct key_fixture *fixture = *state;
    char text[KEY_TEXT_SIZE];
    struct store_key key = key_add(fixture, KEY_SCOPE_READ, text);
    assert_int_equal(status_of(fixture->ring, text, HTTP_SCOPE_READ), 0);
    assert_int_equal(status_of(fixture->ring, "gpfl_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", HTTP_SCOPE_READ), 401);
    assert_int_equal(status_of(fixture->ring, "short", HTTP_SCOPE_READ), 401);
    assert_int_equal(status_of(fixture->ring, NULL, HTTP_SCOPE_READ), 401);
    text[36] = text[36] == 'A' ? 'B' : 'A';
    assert_int_equal(status_of(fixture->ring, text, HTTP_SCOPE_READ), 401);

    struct store_key other = key_add(fixture, KEY_SCOPE_READ, text);
    other.revoked_ns = clock_wall_ns();
    key_change(fixture, &other);
    struct http_access access = ask(fixture->ring, text, HTTP_SCOPE_READ, true);
    assert_int_equal(access.status, 401);
    assert_non_null(strstr(access.reason, "revoked"));
    other = key_add(fixture, KEY_SCOPE_READ, text);
    other.expires_ns = clock_wall_ns() - 1;
    key_change(fixture, &other);
    assert_non_null(strstr(ask(fixture->ring, text, HTTP_SCOPE_READ, true).reason, "expired"));
    size_t active;
    assert_int_equal(key_ring_count(fixture->ring, &active), 3);
    assert_int_equal(active, 1);
    (void)key;
}

static void requests_without_a_key_are_allowed_only_where_none_is_needed(void **state)
{
    struct key_fixture *fixture = *state;
    assert_int_equal(ask(fixture->ring, NULL, HTTP_SCOPE_ADMIN, false).status, 0);
    assert_int_equal(ask(fixture->ring, NULL, HTTP_SCOPE_ADMIN, true).status, 401);
    /* A wrong key is reported as a mistake even where no key is needed. */
    assert_int_equal(ask(fixture->ring, "gpfl_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", HTTP_SCOPE_READ, false).status, 401);
    assert_string_equal(key_entry_name(NULL), "local");
}

static void keys_from_outside_the_store_survive_a_reload(void **state)
{
    struct key_fixture *fixture = *state;
    static const char text[] = "gpfl_from_a_file_that_is_long_enough";
    struct problem problem = {""};
    assert_int_equal(key_ring_add(fixture->ring, "short", 5, KEY_SCOPE_ADMIN, "file", &problem), GPUFL_E_INVALID);
    assert_null(strstr(problem.text, "short"));
    assert_int_equal(key_ring_add(fixture->ring, text, strlen(text), KEY_SCOPE_ADMIN, "file", NULL), GPUFL_OK);
    assert_int_equal(key_ring_load(fixture->ring, fixture->store, NULL), GPUFL_OK);
    struct http_access access = ask(fixture->ring, text, HTTP_SCOPE_ADMIN, true);
    assert_int_equal(access.status, 0);
    assert_string_equal(access.name, "gpfl_fro file");
}

static void requests_beyond_a_keys_rate_are_delayed(void **state)
{
    struct key_fixture *fixture = *state;
    char text[KEY_TEXT_SIZE];
    struct store_key key = key_add(fixture, KEY_SCOPE_READ, text);
    key.rate_per_s = 1;
    key_change(fixture, &key);
    unsigned allowed = 0;
    struct http_access access = {0};
    for (unsigned i = 0; i < 100 && !access.status; i++) {
        access = ask(fixture->ring, text, HTTP_SCOPE_READ, true);
        allowed += !access.status;
    }
    assert_int_equal(access.status, 429);
    assert_in_range(allowed, 1, 50);
    assert_in_range(access.retry_after_s, 1, 2);
}

static void a_key_whose_quota_is_used_up_may_still_read_but_not_send(void **state)
{
    struct key_fixture *fixture = *state;
    char text[KEY_TEXT_SIZE];
    struct store_key key = key_add(fixture, KEY_SCOPE_ADMIN, text);
    key.quota_bytes_per_day = 1000;
    key_change(fixture, &key);
    struct http_access access = ask(fixture->ring, text, HTTP_SCOPE_INGEST, true);
    assert_int_equal(access.status, 0);
    key_ring_count_bytes(fixture->ring, access.principal, 999);
    assert_int_equal(status_of(fixture->ring, text, HTTP_SCOPE_INGEST), 0);
    key_ring_count_bytes(fixture->ring, access.principal, 1);
    access = ask(fixture->ring, text, HTTP_SCOPE_INGEST, true);
    assert_int_equal(access.status, 429);
    assert_in_range(access.retry_after_s, 1, 86400);
    assert_int_equal(status_of(fixture->ring, text, HTTP_SCOPE_READ), 0);
}

static void refusals_are_counted_together_and_bounded(void **state)
{
    struct key_fixture *fixture = *state;
    char text[KEY_TEXT_SIZE];
    struct key_refusal refusals[KEY_REFUSALS_MAX + 1];
    key_add(fixture, KEY_SCOPE_READ, text);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(status_of(fixture->ring, text, HTTP_SCOPE_ADMIN), 403);
    assert_int_equal(status_of(fixture->ring, "gpfl_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", HTTP_SCOPE_READ), 401);
    assert_int_equal(status_of(fixture->ring, NULL, HTTP_SCOPE_READ),
                     401); /* a request without a key is not a refused key */
    assert_int_equal(key_ring_take_refusals(fixture->ring, refusals), 2);
    assert_int_equal(refusals[0].count, 3);
    assert_memory_equal(refusals[0].label, text, 8);
    assert_int_equal(refusals[1].count, 1);
    assert_string_equal(refusals[1].label, "");
    assert_int_equal(key_ring_take_refusals(fixture->ring, refusals), 0);

    for (unsigned i = 0; i < 100; i++) {
        char peer[32];
        snprintf(peer, sizeof peer, "192.0.2.%u", i);
        const struct http_credentials credentials = {
            .scope = HTTP_SCOPE_ADMIN, .token = text, .token_size = strlen(text), .peer = peer};
        struct http_access access;
        key_ring_authorize(fixture->ring, true, &credentials, &access);
    }
    assert_int_equal(key_ring_take_refusals(fixture->ring, refusals), KEY_REFUSALS_MAX + 1);
    assert_string_equal(refusals[0].peer, "192.0.2.0");
    assert_string_equal(refusals[KEY_REFUSALS_MAX].peer, "");
    assert_int_equal(refusals[KEY_REFUSALS_MAX].count, 100 - KEY_REFUSALS_MAX);
}

static void todays_bytes_are_restored_in_the_next_ring(void **state)
{
    struct key_fixture *fixture = *state;
    char text[KEY_TEXT_SIZE];
    struct store_key key = key_add(fixture, KEY_SCOPE_INGEST, text);
    key.quota_bytes_per_day = 1000;
    key_change(fixture, &key);
    struct http_access access = ask(fixture->ring, text, HTTP_SCOPE_INGEST, true);
    key_ring_count_bytes(fixture->ring, access.principal, 700);
    struct key_usage *list;
    size_t count;
    assert_int_equal(key_ring_usage(fixture->ring, &list, &count), GPUFL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(list[0].bytes, 700);
    assert_int_equal(strlen(list[0].fingerprint), KEY_FINGERPRINT_SIZE - 1);

    struct key_ring *next;
    const struct key_limits none = {0};
    assert_int_equal(key_ring_open(&next, &none), GPUFL_OK);
    assert_int_equal(key_ring_load(next, fixture->store, NULL), GPUFL_OK);
    key_ring_usage_restore(next, &list[0]);
    struct key_usage unknown = {.fingerprint = "0123456789abcdef", .day = list[0].day, .bytes = 5000};
    key_ring_usage_restore(next, &unknown);
    access = ask(next, text, HTTP_SCOPE_INGEST, true);
    assert_int_equal(access.status, 0);
    key_ring_count_bytes(next, access.principal, 300);
    assert_int_equal(status_of(next, text, HTTP_SCOPE_INGEST), 429);
    key_ring_close(next);
    free(list);
}

static void saving_the_time_of_use_changes_nothing_else(void **state)
{
    struct key_fixture *fixture = *state;
    char text[KEY_TEXT_SIZE];
    struct store_key key = key_add(fixture, KEY_SCOPE_READ, text), saved;
    assert_int_equal(status_of(fixture->ring, text, HTTP_SCOPE_READ), 0);
    /* Revoked by another server in between. */
    key.revoked_ns = 12345;
    assert_int_equal(store_key_put(fixture->store, &key, NULL), GPUFL_OK);
    key_ring_save_use(fixture->ring, fixture->store);
    assert_int_equal(store_key_find(fixture->store, key.hash, &saved, NULL), GPUFL_OK);
    assert_int_equal(saved.revoked_ns, 12345);
    assert_true(saved.last_used_ns != CELL_UNKNOWN);
    assert_string_equal(saved.name, "test");
}

/* A store in which another server revokes and shortens each key between any two steps of the code under test. */
static const struct store_engine *usual_engine;

static gpufl_status find_and_revoke(struct store *store, const uint8_t hash[STORE_KEY_HASH_SIZE], struct store_key *key,
                                    struct problem *problem)
{
    gpufl_status status = usual_engine->key_find(store, hash, key, problem);
    struct store_key revoked = *key;
    revoked.revoked_ns = 12345;
    revoked.expires_ns = 54321;
    return status ? status : usual_engine->key_put(store, &revoked, problem);
}

static gpufl_status revoke_and_use(struct store *store, const uint8_t hash[STORE_KEY_HASH_SIZE], int64_t used_ns,
                                   struct problem *problem)
{
    struct store_key key;
    gpufl_status status = find_and_revoke(store, hash, &key, problem);
    return status ? status : usual_engine->key_use(store, hash, used_ns, problem);
}

static void saving_the_time_of_use_does_not_undo_a_revocation(void **state)
{
    struct key_fixture *fixture = *state;
    char text[KEY_TEXT_SIZE];
    struct store_key key = key_add(fixture, KEY_SCOPE_READ, text), saved;
    assert_int_equal(status_of(fixture->ring, text, HTTP_SCOPE_READ), 0);
    usual_engine = fixture->store->engine;
    struct store_engine engine = *usual_engine;
    engine.key_find = find_and_revoke;
    engine.key_use = revoke_and_use;
    fixture->store->engine = &engine;
    key_ring_save_use(fixture->ring, fixture->store);
    fixture->store->engine = usual_engine;
    assert_int_equal(store_key_find(fixture->store, key.hash, &saved, NULL), GPUFL_OK);
    assert_int_equal(saved.revoked_ns, 12345);
    assert_int_equal(saved.expires_ns, 54321);
    assert_true(saved.last_used_ns != CELL_UNKNOWN);
}

static void a_bucket_allows_its_rate(void **state)
{
    (void)state;
    struct token_bucket bucket = {0};
    unsigned wait_s = 0, taken = 0;
    int64_t now_ns = 1000000000;
    for (unsigned i = 0; i < 1000; i++, now_ns += 10000000) /* ten seconds */
        taken += token_bucket_take(&bucket, 10, 20, 1, now_ns, &wait_s);
    assert_in_range(taken, 119, 122); /* the burst, and ten per second */
    /* A large amount is accepted, and later requests wait for it. */
    bucket = (struct token_bucket){0};
    assert_true(token_bucket_take(&bucket, 10, 20, 120, now_ns, &wait_s));
    assert_false(token_bucket_take(&bucket, 10, 20, 1, now_ns + 1, &wait_s));
    assert_int_equal(wait_s, 10);
    assert_true(token_bucket_take(&bucket, 10, 20, 1, now_ns + 11000000000, &wait_s));
    assert_true(token_bucket_take(&bucket, 0, 0, 1e9, now_ns, &wait_s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_key_has_the_documented_form),
        cmocka_unit_test(a_bucket_allows_its_rate),
        cmocka_unit_test_setup_teardown(a_key_allows_its_scope_and_no_other, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(wrong_revoked_and_expired_keys_are_rejected, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(requests_without_a_key_are_allowed_only_where_none_is_needed, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(keys_from_outside_the_store_survive_a_reload, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(requests_beyond_a_keys_rate_are_delayed, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(a_key_whose_quota_is_used_up_may_still_read_but_not_send, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(refusals_are_counted_together_and_bounded, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(todays_bytes_are_restored_in_the_next_ring, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(saving_the_time_of_use_changes_nothing_else, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(saving_the_time_of_use_does_not_undo_a_revocation, open_fixture, close_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
