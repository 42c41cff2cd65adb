/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's saved state of a session, and its search for sessions. */
#include "session_fixture.h"

#include "agent/discovery.h"
#include "agent/session_state.h"
#include "agent/slot_map.h"
#include "base/directory.h"
#include "base/remote_config.h"
#include "logfile/session_dir.h"
#include "upload/backoff.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

static void a_state_survives_a_round_trip(void **state)
{
    struct state_dir dir;
    struct session_state saved, loaded;
    struct problem problem = {""};
    char path[512];
    fixture_path(path, *state, "deep/below");
    assert_int_equal(state_dir_open(&dir, path, "http://a/api/v1", &problem), GPUFL_OK);
    session_state_init(&saved, FIXTURE_ID);
    saved.is_complete = true;
    saved.is_acknowledged = false;
    saved.channels[CHANNEL_SCOPE] = (struct channel_state){
        .next_line = 77,
        .next_window = 3,
        .has_shutdown = true,
        .pending = {.is_set = true, .first = 77, .last = 99, .coding = BODY_ZSTD, .crc32 = UINT32_MAX}};
    assert_int_equal(session_state_save(&dir, &saved, &problem), GPUFL_OK);
    assert_int_equal(session_state_load(&dir, FIXTURE_ID, &loaded, &problem), GPUFL_OK);
    assert_memory_equal(&loaded, &saved, sizeof saved);
    /* Another server was sent nothing. */
    dir.server = "http://b/api/v1";
    assert_int_equal(session_state_load(&dir, FIXTURE_ID, &loaded, &problem), GPUFL_E_NOT_FOUND);
    assert_int_equal(loaded.channels[CHANNEL_SCOPE].next_line, 1);
    state_dir_close(&dir);
}

static void a_damaged_state_is_reported_and_ignored(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]",
        "{\"schema_version\":1,\"server\":\"s\",\"channels\":{\"device\":{\"next_line\":0,\"next_window\":1}}}",
        ("{\"schema_version\":1,\"server\":\"s\",\"channels\":{\"device\":{\"next_line\":5,\"next_window\":1,"
         "\"pending\":{\"first\":9,\"last\":2,\"crc32\":1}}}}")};
    struct state_dir dir;
    struct session_state loaded;
    struct problem problem = {""};
    assert_int_equal(state_dir_open(&dir, *state, "s", &problem), GPUFL_OK);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(file_replace(dir.fd, FIXTURE_ID ".json", texts[i], strlen(texts[i])), GPUFL_OK);
        assert_int_equal(session_state_load(&dir, FIXTURE_ID, &loaded, &problem), GPUFL_E_DAMAGED);
        assert_int_equal(loaded.channels[CHANNEL_DEVICE].next_line, 1);
        assert_false(loaded.channels[CHANNEL_DEVICE].pending.is_set);
    }
    state_dir_close(&dir);
}

static bool is_known(void *user, const char *session_id)
{
    return strcmp(user, session_id) == 0;
}

static void states_of_sessions_long_gone_are_removed(void **state)
{
    static const char *const ids[] = {"old-and-known", "old-and-gone", "new-and-gone"};
    static const struct timespec long_ago[2] = {{1, 0}, {1, 0}};
    struct state_dir dir;
    struct problem problem = {""};
    assert_int_equal(state_dir_open(&dir, *state, "s", &problem), GPUFL_OK);
    for (int i = 0; i < 3; i++) {
        struct session_state session;
        char name[80];
        session_state_init(&session, ids[i]);
        assert_int_equal(session_state_save(&dir, &session, &problem), GPUFL_OK);
        snprintf(name, sizeof name, "%s.json", ids[i]);
        if (i < 2)
            assert_int_equal(utimensat(dir.fd, name, long_ago, 0), 0);
    }
    char known[] = "old-and-known";
    session_state_prune(&dir, 3600, is_known, known);
    assert_true(fixture_exists(*state, "old-and-known.json"));
    assert_false(fixture_exists(*state, "old-and-gone.json"));
    assert_true(fixture_exists(*state, "new-and-gone.json"));
    state_dir_close(&dir);
}

static void only_one_agent_can_use_the_directory(void **state)
{
    struct state_dir first, second;
    struct problem problem = {""};
    assert_int_equal(state_dir_open(&first, *state, "s", &problem), GPUFL_OK);
    assert_int_equal(state_dir_open(&second, *state, "s", &problem), GPUFL_E_BUSY);
    state_dir_close(&first);
    assert_int_equal(state_dir_open(&second, *state, "s", &problem), GPUFL_OK);
    state_dir_close(&second);
}

static void a_failed_write_leaves_the_old_file(void **state)
{
    struct rlimit before, none = {0, RLIM_INFINITY};
    struct bytes text = {0};
    signal(SIGXFSZ, SIG_IGN);
    int fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_replace(fd, "x", "old", 3), GPUFL_OK);
    getrlimit(RLIMIT_FSIZE, &before);
    none.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_FSIZE, &none);
    gpufl_status status = file_replace(fd, "x", "new!", 4);
    int error = errno;
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, GPUFL_E_IO);
    assert_int_equal(error, EFBIG);
    assert_int_equal(file_load(fd, "x", 100, &text), GPUFL_OK);
    assert_string_equal(bytes_text(&text), "old");
    assert_int_equal(faccessat(fd, "x.part", F_OK, 0), -1);
    bytes_clear(&text);
    assert_int_equal(file_load(fd, "x", 2, &text), GPUFL_E_LIMIT);
    assert_int_equal(file_load(fd, ".", 2, &text), GPUFL_E_INVALID);
    bytes_free(&text);
    close(fd);
}

struct found {
    char names[8][64];
    int count;
};

static void take_session(void *user, const char *dir)
{
    struct found *found = user;
    assert_true(found->count < 8);
    snprintf(found->names[found->count++], 64, "%.63s", strrchr(dir, '/') + 1);
}

static void take_change(void *user, int32_t slot)
{
    *(int32_t *)user = slot;
}

static void sessions_below_a_root_are_found_and_their_changes_reported(void **state)
{
    static const char second_id[] = "11111111-2222-3333-4444-555555555555";
    struct discovery discovery;
    struct found found = {.count = 0};
    char path[512], below[512], link[512];
    struct problem problem = {""};
    fixture_path(path, *state, "app");
    fixture_path(below, path, FIXTURE_ID);
    assert_int_equal(directory_make(below, &problem), GPUFL_OK);
    fixture_path(path, *state, second_id);
    assert_int_equal(directory_make(path, &problem), GPUFL_OK);
    fixture_path(link, *state, "99999999-2222-3333-4444-555555555555");
    assert_int_equal(symlink(path, link), 0);
    discovery_open(&discovery);
    discovery_scan(&discovery, *state, take_session, &found);
    assert_int_equal(found.count, 2); /* the symbolic link is not followed */
    assert_string_not_equal(found.names[0], found.names[1]);
    if (discovery.fd >= 0) {
        int32_t slot = -9;
        discovery.is_changed = false;
        assert_true(discovery_watch(&discovery, below, 5));
        fixture_path(path, below, "device.log");
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        discovery_listen(&discovery, take_change, &slot);
        assert_int_equal(slot, 5);
        assert_false(discovery.is_changed);
        fixture_path(path, *state, "app/new");
        assert_int_equal(directory_make(path, &problem), GPUFL_OK);
        discovery_listen(&discovery, take_change, &slot);
        assert_true(discovery.is_changed);
    }
    discovery_close(&discovery);
}

static void a_lock_that_cannot_be_checked_is_not_considered_free(void **state)
{
    char path[512];
    int dir_fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(session_lock_look(dir_fd), SESSION_LOCK_FREE); /* there is no lock file */
    int lock_fd = session_lock_open(dir_fd);
    assert_true(lock_fd >= 0);
    assert_int_equal(session_lock_look(dir_fd), SESSION_LOCK_HELD);
    close(lock_fd);
    assert_int_equal(session_lock_look(dir_fd), SESSION_LOCK_FREE);
    fixture_path(path, *state, SESSION_LOCK_NAME);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("elsewhere", path), 0);
    assert_int_equal(session_lock_look(dir_fd), SESSION_LOCK_UNKNOWN);
    assert_false(session_lock_is_held(dir_fd));
    close(dir_fd);
}

static void slots_are_found_by_their_text(void **state)
{
    (void)state;
    struct slot_map map = {0};
    char text[16];
    assert_int_equal(slot_map_get(&map, "a"), UINT32_MAX);
    for (uint32_t i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "%u", i);
        assert_true(slot_map_put(&map, text, i * 2));
    }
    assert_true(slot_map_put(&map, "17", 5));
    assert_int_equal(slot_map_get(&map, "17"), 5);
    assert_int_equal(slot_map_get(&map, "299"), 598);
    assert_int_equal(slot_map_get(&map, "300"), UINT32_MAX);
    slot_map_clear(&map);
    assert_int_equal(slot_map_get(&map, "17"), UINT32_MAX);
}

static void pauses_grow_and_stay_below_their_limit(void **state)
{
    (void)state;
    int64_t longest = 0;
    for (unsigned i = 0; i < 2000; i++) {
        assert_in_range(backoff_ms(1, 500, 60000), 0, 500);
        assert_in_range(backoff_ms(3, 500, 60000), 0, 2000);
        int64_t late = backoff_ms(200, 500, 60000);
        assert_in_range(late, 0, 60000);
        longest = late > longest ? late : longest;
    }
    assert_true(longest > 30000);
}

static void a_remote_configuration_cannot_set_directories_or_keys(void **state)
{
    (void)state;
    assert_true(remote_config_may_set("profiling_engine"));
    assert_true(remote_config_may_set("system_sample_rate_ms"));
    assert_false(remote_config_may_set("log_path"));
    assert_false(remote_config_may_set("app_name"));
    assert_false(remote_config_may_set("backend_url"));
    assert_false(remote_config_may_set("api_key"));
    assert_true(remote_config_name_is_valid("training-7_b.x"));
    assert_false(remote_config_name_is_valid(""));
    assert_false(remote_config_name_is_valid("../x"));
    assert_false(remote_config_name_is_valid(".x"));
    assert_false(remote_config_name_is_valid("a b"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_state_survives_a_round_trip),
        TEST(a_damaged_state_is_reported_and_ignored),
        TEST(states_of_sessions_long_gone_are_removed),
        TEST(only_one_agent_can_use_the_directory),
        TEST(a_failed_write_leaves_the_old_file),
        TEST(sessions_below_a_root_are_found_and_their_changes_reported),
        TEST(a_lock_that_cannot_be_checked_is_not_considered_free),
        cmocka_unit_test(slots_are_found_by_their_text),
        cmocka_unit_test(pauses_grow_and_stay_below_their_limit),
        cmocka_unit_test(a_remote_configuration_cannot_set_directories_or_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
