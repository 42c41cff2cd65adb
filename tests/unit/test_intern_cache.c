/* SPDX-License-Identifier: Apache-2.0 */
/* A name table with bounded memory: which names are evicted, and which keep their ids. */
#include "base/intern_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { bytes_max = 64 * 1024 };

static uint32_t number_id(struct intern_cache *cache, int number, bool *is_new)
{
    char text[32];
    int size = snprintf(text, sizeof text, "name %d", number);
    return intern_cache_id(cache, text, (size_t)size, is_new);
}

static void a_used_name_keeps_its_id_while_others_are_evicted(void **state)
{
    (void)state;
    struct intern_cache cache = {.bytes_max = bytes_max};
    uint32_t used_id = intern_cache_id(&cache, "used", 4, NULL), last_id = used_id;
    *intern_cache_value(&cache, used_id) = 7;
    for (int i = 0; i < 100000; i++) {
        bool is_new;
        uint32_t id = number_id(&cache, i, &is_new);
        assert_true(is_new);
        assert_int_equal(id, last_id + 1); /* no id is reused */
        last_id = id;
        assert_int_equal(intern_cache_id(&cache, "used", 4, &is_new), used_id);
        assert_false(is_new);
        assert_true(intern_cache_bytes(&cache) < 4 * bytes_max);
    }
    assert_int_equal(*intern_cache_value(&cache, used_id), 7);
    assert_string_equal(intern_cache_entry(&cache, used_id)->text, "used");
    assert_string_equal(intern_cache_entry(&cache, last_id)->text, "name 99999");
    assert_true(cache.forgotten > 90000);
    intern_cache_free(&cache);
}

static void an_evicted_name_comes_back_with_a_new_id(void **state)
{
    (void)state;
    struct intern_cache cache = {.bytes_max = bytes_max};
    bool is_new;
    uint32_t first_id = number_id(&cache, 0, &is_new);
    for (int i = 1; i < 10000; i++)
        number_id(&cache, i, NULL);
    assert_null(intern_cache_entry(&cache, first_id));
    assert_null(intern_cache_value(&cache, first_id));
    uint32_t second_id = number_id(&cache, 0, &is_new);
    assert_true(is_new);
    assert_true(second_id > 9999);
    assert_string_equal(intern_cache_entry(&cache, second_id)->text, "name 0");
    intern_cache_free(&cache);
}

static void a_use_by_id_prevents_eviction(void **state)
{
    (void)state;
    struct intern_cache cache = {.bytes_max = bytes_max};
    uint32_t first_id = number_id(&cache, 0, NULL);
    for (int i = 1; i < 10000; i++) {
        number_id(&cache, i, NULL);
        intern_cache_use(&cache, first_id);
        assert_non_null(intern_cache_entry(&cache, first_id));
    }
    intern_cache_free(&cache);
}

static void too_many_used_names_are_evicted_and_come_back(void **state)
{
    (void)state;
    struct intern_cache cache = {.bytes_max = bytes_max};
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 2000; i++)
            assert_int_not_equal(number_id(&cache, i, NULL), 0);
    assert_true(intern_cache_bytes(&cache) < 4 * bytes_max);
    intern_cache_free(&cache);
}

static void a_name_larger_than_the_limit_is_refused_without_evictions(void **state)
{
    (void)state;
    struct intern_cache cache = {.bytes_max = bytes_max};
    static char large[bytes_max];
    bool is_new;
    uint32_t id = number_id(&cache, 1, NULL);
    assert_int_equal(intern_cache_id(&cache, large, sizeof large, NULL), 0);
    assert_int_equal(number_id(&cache, 1, &is_new), id);
    assert_false(is_new);
    intern_cache_free(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_used_name_keeps_its_id_while_others_are_evicted),
        cmocka_unit_test(an_evicted_name_comes_back_with_a_new_id),
        cmocka_unit_test(a_use_by_id_prevents_eviction),
        cmocka_unit_test(too_many_used_names_are_evicted_and_come_back),
        cmocka_unit_test(a_name_larger_than_the_limit_is_refused_without_evictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
