/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing the URL of a ClickHouse store; nothing is connected to. */
#include "store/clickhouse_location.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct ch_location *parsed(const char *url)
{
    static struct ch_location location;
    struct problem problem = {""};
    if (ch_location_parse(&location, url, &problem))
        fail_msg("%s: %s", url, problem.text);
    return &location;
}

static void a_url_has_hosts_user_database_and_options(void **state)
{
    (void)state;
    unsetenv("GPUFL_CLICKHOUSE_PASSWORD");
    struct ch_location *location =
        parsed("clickhouse://ann:s%40cret@one:9000,two,[::1]:81/fleet?cluster=prod&ca_file=/ca");
    assert_int_equal(location->host_count, 3);
    assert_string_equal(location->hosts[0], "one:9000");
    assert_string_equal(location->hosts[1], "two:8123");
    assert_string_equal(location->hosts[2], "[::1]:81");
    assert_string_equal(location->user, "ann");
    assert_string_equal(location->password, "s@cret");
    assert_string_equal(location->database, "fleet");
    assert_string_equal(location->cluster, "prod");
    assert_string_equal(location->ca_file, "/ca");
    assert_false(location->has_tls);
}

static void omitted_parts_have_defaults(void **state)
{
    (void)state;
    unsetenv("GPUFL_CLICKHOUSE_PASSWORD");
    struct ch_location *location = parsed("clickhouse://db?tls=1");
    assert_string_equal(location->hosts[0], "db:8443");
    assert_string_equal(location->user, "default");
    assert_string_equal(location->password, "");
    assert_string_equal(location->database, "gpufl");
    assert_string_equal(location->cluster, "");
    assert_true(location->has_tls);
}

static void a_password_comes_from_the_environment_or_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/gpufl-password-XXXXXX", url[128];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "from file\n", 10), 10);
    close(fd);
    setenv("GPUFL_CLICKHOUSE_PASSWORD", "from environment", 1);
    assert_string_equal(parsed("clickhouse://db")->password, "from environment");
    snprintf(url, sizeof url, "clickhouse://db/x?password_file=%s", path);
    assert_string_equal(parsed(url)->password, "from file");
    assert_string_equal(parsed("clickhouse://a:own@db")->password, "own");
    unsetenv("GPUFL_CLICKHOUSE_PASSWORD");
    unlink(path);
}

static void text_that_could_become_sql_or_another_request_is_rejected(void **state)
{
    static const char *const bad[] = {"clickhouse://",
                                      "clickhouse://db:0",
                                      "clickhouse://db:70000",
                                      "clickhouse://db:80x",
                                      "clickhouse://one,,two",
                                      "clickhouse://d b",
                                      "clickhouse://db/a;b",
                                      "clickhouse://db/1a",
                                      "clickhouse://db/x?cluster=a%20b",
                                      "clickhouse://db/x?cluster=",
                                      "clickhouse://db/x?clustre=a",
                                      "clickhouse://db/x?tls=2",
                                      "clickhouse://db/x?password_file=/nonexistent/file",
                                      "clickhouse://us%0der@db",
                                      "clickhouse://user%4@db",
                                      "http://db"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ch_location location;
        struct problem problem = {""};
        if (!ch_location_parse(&location, bad[i], &problem))
            fail_msg("%s was accepted", bad[i]);
        assert_true(problem.text[0]);
    }
}

static void no_message_shows_the_password(void **state)
{
    struct ch_location location;
    struct problem problem = {""};
    (void)state;
    assert_int_equal(ch_location_parse(&location, "clickhouse://ann:hidden@db:x/", &problem), GPUFL_E_INVALID);
    assert_null(strstr(problem.text, "hidden"));
    assert_string_equal(location.password, "");
    assert_true(store_location_has_secret("clickhouse://ann:hidden@db"));
    assert_false(store_location_has_secret("clickhouse://ann@db:8123"));
    assert_false(store_location_has_secret("/data"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_has_hosts_user_database_and_options),
        cmocka_unit_test(omitted_parts_have_defaults),
        cmocka_unit_test(a_password_comes_from_the_environment_or_a_file),
        cmocka_unit_test(text_that_could_become_sql_or_another_request_is_rejected),
        cmocka_unit_test(no_message_shows_the_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
