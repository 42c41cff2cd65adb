/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base64.h"
#include "logfile/packed_bytes.h"

#include <stdlib.h>

static void the_examples_of_the_rfc_are_encoded_and_decoded(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct bytes text = {0}, back = {0};
        base64_encode(&text, pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(bytes_text(&text), pairs[i][1]);
        assert_true(base64_decode(&back, text.data, text.size, NULL));
        assert_string_equal(bytes_text(&back), pairs[i][0]);
        bytes_free(&text);
        bytes_free(&back);
    }
}

static void all_bytes_survive_at_every_length(void **state)
{
    (void)state;
    unsigned char data[256];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 167 + 13);
    for (size_t size = 0; size <= sizeof data; size++) {
        struct bytes text = {0}, back = {0};
        base64_encode(&text, data, size);
        assert_int_equal(text.size, (size + 2) / 3 * 4);
        assert_true(base64_decode(&back, text.data, text.size, NULL));
        assert_int_equal(back.size, size);
        if (size)
            assert_memory_equal(back.data, data, size);
        bytes_free(&text);
        bytes_free(&back);
    }
}

static void invalid_base64_is_refused_with_its_position(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bad_at;
    } cases[] = {{"Zg=", 3},      {"Zg", 2},        {"Z===", 1}, {"====", 0}, {"Zm9v Zg=", 4},
                 {"Zg==Zm9v", 2}, {"Zm9v\nZg=", 4}, {"Zh==", 1}, {"Zm9=", 2}, {"Zm-_", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes out = {0};
        bytes_append_text(&out, "before");
        size_t bad_at = 99;
        if (base64_decode(&out, cases[i].text, strlen(cases[i].text), &bad_at))
            fail_msg("'%s' was accepted", cases[i].text);
        assert_int_equal(bad_at, cases[i].bad_at);
        assert_string_equal(bytes_text(&out), "before");
        bytes_free(&out);
    }
}

static void packed_bytes_are_unpacked_or_refused_with_a_reason(void **state)
{
    (void)state;
    struct bytes packed = {0}, plain = {0};
    char data[5000];
    memset(data, 'x', sizeof data);
    assert_int_equal(packed_bytes_append(&packed, data, sizeof data, NULL), GPUFL_OK);
    assert_true(packed.size < 200);
    assert_int_equal(packed_bytes_read(&plain, packed.data, packed.size, sizeof data, 1 << 20, NULL), GPUFL_OK);
    assert_int_equal(plain.size, sizeof data);
    assert_memory_equal(plain.data, data, sizeof data);
    bytes_clear(&plain);

    struct problem problem = {""};
    assert_int_equal(packed_bytes_read(&plain, packed.data, packed.size, sizeof data, 4999, &problem), GPUFL_E_LIMIT);
    assert_int_equal(packed_bytes_read(&plain, packed.data, packed.size, 4999, 1 << 20, &problem), GPUFL_E_DAMAGED);
    assert_int_equal(packed_bytes_read(&plain, packed.data, packed.size - 4, sizeof data, 1 << 20, &problem),
                     GPUFL_E_DAMAGED);
    assert_int_equal(packed_bytes_read(&plain, "!!!!", 4, sizeof data, 1 << 20, &problem), GPUFL_E_DAMAGED);
    assert_non_null(strstr(problem.text, "character 0"));
    assert_int_equal(packed_bytes_read(&plain, "", 0, 0, 1 << 20, &problem), GPUFL_E_DAMAGED);
    assert_int_equal(plain.size, 0);

    struct bytes narrow = {.limit = 10};
    assert_int_equal(packed_bytes_append(&narrow, data, sizeof data, &problem), GPUFL_E_LIMIT);
    bytes_free(&narrow);
    bytes_free(&packed);
    bytes_free(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_rfc_are_encoded_and_decoded),
        cmocka_unit_test(all_bytes_survive_at_every_length),
        cmocka_unit_test(invalid_base64_is_refused_with_its_position),
        cmocka_unit_test(packed_bytes_are_unpacked_or_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
