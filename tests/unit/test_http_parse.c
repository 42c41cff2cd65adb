/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_parse.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

static bool address_is(const char *text, const char *written, bool is_loopback)
{
    struct http_address address;
    char out[HTTP_ADDRESS_TEXT_SIZE];
    if (http_address_parse(&address, text, NULL))
        return false;
    http_address_write((const struct sockaddr *)&address.storage, out);
    return !strcmp(out, written) && http_address_is_loopback((const struct sockaddr *)&address.storage) == is_loopback;
}

static void addresses_are_host_and_port(void **state)
{
    (void)state;
    assert_true(address_is("127.0.0.1:8080", "127.0.0.1", true));
    assert_true(address_is("localhost:0", "127.0.0.1", true));
    assert_true(address_is("[::1]:65535", "::1", true));
    assert_true(address_is("0.0.0.0:80", "0.0.0.0", false));
    assert_true(address_is(":8080", "::", false));
    assert_true(address_is("*:8080", "::", false));
    assert_true(address_is("[::ffff:127.0.0.1]:1", "127.0.0.1", true));
    static const char *const bad[] = {
        "",      "8080",          "127.0.0.1",      "127.0.0.1:",     "127.0.0.1:65536", "::1:8080",
        "[::1]", "[::1:80",       "[127.0.0.1]:80", "example.org:80", "127.0.0.1:-1",    "1.2.3:80",
        "[]:80", "127.0.0.1:80x", "[::1]x:80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct http_address address;
        struct problem problem = {""};
        assert_int_equal(http_address_parse(&address, bad[i], &problem), GPUFL_E_INVALID);
        assert_non_null(strstr(problem.text, "127.0.0.1:8080"));
    }
}

static void targets_are_decoded_part_by_part(void **state)
{
    (void)state;
    struct http_target target;
    assert_int_equal(http_target_parse(&target, "/a%20b/%C3%A9/c?x=1+2&y=%26%3D&flag&z=", NULL), GPUFL_OK);
    assert_int_equal(target.segment_count, 3);
    assert_memory_equal(target.segments[0].at, "a b", 3);
    assert_memory_equal(target.segments[1].at, "\xC3\xA9", 2);
    assert_int_equal(target.segments[2].size, 1);
    assert_int_equal(target.path.size, strlen("/a%20b/%C3%A9/c"));
    assert_memory_equal(target.path.at, "/a%20b/%C3%A9/c", target.path.size);
    assert_int_equal(target.query_count, 4);
    assert_string_equal(target.query[0].value, "1 2");
    assert_string_equal(target.query[1].value, "&=");
    assert_string_equal(target.query[2].name, "flag");
    assert_string_equal(target.query[2].value, "");
    assert_string_equal(target.query[3].name, "z");
    assert_string_equal(target.query[3].value, "");
    http_target_free(&target);
    assert_int_equal(http_target_parse(&target, "/", NULL), GPUFL_OK);
    assert_int_equal(target.segment_count, 0);
    http_target_free(&target);
}

static void ambiguous_targets_are_rejected(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",        "*",         "a",     "http://host/a", "//a",      "/a//b",     "/a/",       "/..",
        "/a/../b", "/%2e%2e/b", "/%2E",  "/a%2fb",        "/a%5cb",   "/a\\b",     "/a%00",     "/a%0d%0a",
        "/a%",     "/a%4",      "/a%zz", "/a b",          "/\x80",    "/%80",      "/a%c0%af",  "/%ed%a0%80",
        "/a?x=%",  "/a?x=%0a",  "/a?=1", "/a#b",          "/a?x=%fe", "/<script>", "/a?x=\x7f", "/a%7f",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct http_target target;
        struct problem problem = {""};
        assert_int_equal(http_target_parse(&target, bad[i], &problem), GPUFL_E_INVALID);
        assert_true(problem.text[0] && !target.text);
    }
}

static void targets_have_limits(void **state)
{
    (void)state;
    struct http_target target;
    char text[HTTP_TARGET_BYTES_MAX + 2];
    memset(text, 'a', sizeof text);
    text[0] = '/';
    text[HTTP_TARGET_BYTES_MAX + 1] = '\0';
    assert_int_equal(http_target_parse(&target, text, NULL), GPUFL_E_LIMIT);
    text[HTTP_TARGET_BYTES_MAX] = '\0';
    assert_int_equal(http_target_parse(&target, text, NULL), GPUFL_OK);
    http_target_free(&target);
    for (size_t i = 0; i < 2 * (HTTP_SEGMENTS_MAX + 1); i += 2)
        memcpy(text + i, "/a", 3);
    assert_int_equal(http_target_parse(&target, text, NULL), GPUFL_E_LIMIT);
    memcpy(text, "/?", 2);
    for (size_t i = 2; i < 2 + 2 * (HTTP_QUERY_MAX + 1); i += 2)
        memcpy(text + i, "a&", 3);
    assert_int_equal(http_target_parse(&target, text, NULL), GPUFL_E_LIMIT);
}

static bool pattern_gives(const char *pattern, const char *path, const char *values)
{
    struct http_target target;
    struct http_match match;
    char joined[256] = "";
    assert_int_equal(http_pattern_check(pattern, NULL), GPUFL_OK);
    assert_int_equal(http_target_parse(&target, path, NULL), GPUFL_OK);
    bool matches = http_pattern_matches(pattern, &target, &match);
    size_t used = 0;
    for (unsigned i = 0; matches && i < match.count; i++)
        used += (size_t)snprintf(joined + used, sizeof joined - used, "%.*s=%.*s;", (int)match.names[i].size,
                                 match.names[i].at, (int)match.values[i].size, match.values[i].at);
    http_target_free(&target);
    return matches && !strcmp(joined, values);
}

static void patterns_bind_the_parts_of_a_path(void **state)
{
    (void)state;
    assert_true(pattern_gives("/", "/", ""));
    assert_true(pattern_gives("/a/b", "/a/b?c", ""));
    assert_true(pattern_gives("/s/{id}/k/{name}", "/s/1%20x/k/y", "id=1 x;name=y;"));
    assert_true(pattern_gives("/{path...}", "/", "path=;"));
    assert_true(pattern_gives("/static/{path...}", "/static/a/b.%6As", "path=a/b.js;"));
    assert_false(pattern_gives("/a", "/", ""));
    assert_false(pattern_gives("/", "/a", ""));
    assert_false(pattern_gives("/a", "/a/b", ""));
    assert_false(pattern_gives("/a/{id}", "/a", ""));
    static const char *const bad[] = {"", "a", "//", "/a//b", "/{rest...}/a", "/{a", "/a}b", "/{}", "/{...}/x", "/a/"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(http_pattern_check(bad[i], NULL), GPUFL_E_INVALID);
}

static void encodings_are_chosen_by_quality(void **state)
{
    (void)state;
    assert_int_equal(http_encoding_choose(NULL), HTTP_IDENTITY);
    assert_int_equal(http_encoding_choose(""), HTTP_IDENTITY);
    assert_int_equal(http_encoding_choose("gzip, deflate, br, zstd"), HTTP_ZSTD);
    assert_int_equal(http_encoding_choose("gzip;q=1.0, zstd;q=0.5"), HTTP_GZIP);
    assert_int_equal(http_encoding_choose("zstd;q=0,gzip;q=0"), HTTP_IDENTITY);
    assert_int_equal(http_encoding_choose("*"), HTTP_GZIP);
    assert_int_equal(http_encoding_choose("br"), HTTP_IDENTITY);
    assert_int_equal(http_encoding_choose("GZIP ; q=0.001"), HTTP_GZIP);
    assert_int_equal(http_encoding_choose("xgzip, gzipx"), HTTP_IDENTITY);
    assert_true(http_encoding_is_accepted("*;q=0.1", "gzip"));
    assert_false(http_encoding_is_accepted("gzip;q=0, *", "gzip"));
}

static void etags_are_compared_weakly(void **state)
{
    (void)state;
    assert_true(http_etag_matches("\"a\"", "W/\"a\""));
    assert_true(http_etag_matches("\"x\", W/\"a\"", "W/\"a\""));
    assert_true(http_etag_matches("*", "\"a\""));
    assert_false(http_etag_matches(NULL, "\"a\""));
    assert_false(http_etag_matches("\"ab\"", "\"a\""));
    assert_false(http_etag_matches("a", "\"a\""));
    assert_false(http_etag_matches("\"a", "\"a\""));
}

static void tokens_hosts_and_origins_are_read_strictly(void **state)
{
    (void)state;
    char name[HTTP_HOST_SIZE];
    assert_int_equal(http_bearer_token("Bearer gpfl_abc").size, 8);
    assert_memory_equal(http_bearer_token("bearer  gpfl_abc ").at, "gpfl_abc", 8);
    assert_int_equal(http_bearer_token("Basic gpfl_abc").size, 0);
    assert_int_equal(http_bearer_token("Bearer a b").size, 0);
    assert_int_equal(http_bearer_token("Bearer").size, 0);
    assert_int_equal(http_bearer_token(NULL).size, 0);
    assert_true(http_host_parse("LocalHost:8080", name) && !strcmp(name, "localhost") && http_host_is_safe(name));
    assert_true(http_host_parse("[::1]:80", name) && !strcmp(name, "::1") && http_host_is_safe(name));
    assert_true(http_host_parse("192.0.2.7", name) && http_host_is_safe(name));
    assert_true(http_host_parse("evil.example", name) && !http_host_is_safe(name));
    assert_true(http_host_parse("127.0.0.1.evil.example", name) && !http_host_is_safe(name));
    static const char *const bad[] = {"",    ":80", "a:b",     "a:",     "[::1",   "[]",
                                      "a b", "a/b", "a:80:80", "user@a", "a:99999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(http_host_parse(bad[i], name));
    assert_true(http_origin_is_own("http://127.0.0.1:8080", "127.0.0.1:8080"));
    assert_false(http_origin_is_own("http://127.0.0.1:8081", "127.0.0.1:8080"));
    assert_false(http_origin_is_own("null", "127.0.0.1:8080"));
    assert_false(http_origin_is_own("ftp://127.0.0.1:8080", "127.0.0.1:8080"));
}

static void sizes_are_plain_decimal(void **state)
{
    (void)state;
    uint64_t size;
    assert_true(http_size_parse("18446744073709551615", &size) && size == UINT64_MAX);
    assert_true(http_size_parse("0", &size) && size == 0);
    static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "0x1", "1,1", "18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(http_size_parse(bad[i], &size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_host_and_port),
        cmocka_unit_test(targets_are_decoded_part_by_part),
        cmocka_unit_test(ambiguous_targets_are_rejected),
        cmocka_unit_test(targets_have_limits),
        cmocka_unit_test(patterns_bind_the_parts_of_a_path),
        cmocka_unit_test(encodings_are_chosen_by_quality),
        cmocka_unit_test(etags_are_compared_weakly),
        cmocka_unit_test(tokens_hosts_and_origins_are_read_strictly),
        cmocka_unit_test(sizes_are_plain_decimal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
