/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/sha256.h"

#include <string.h>

/* FIPS 180-4's examples, and the two sizes around which the padding changes. */
static const struct {
    const char *text;
    size_t repeats;
    const char *hex;
} vectors[] = {
    {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    {"a", 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
    {"a", 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
};

static void known_texts_have_their_known_hashes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        struct sha256 hash;
        char hex[SHA256_HEX_SIZE];
        sha256_begin(&hash);
        for (size_t j = 0; j < vectors[i].repeats; j++)
            sha256_add(&hash, vectors[i].text, strlen(vectors[i].text));
        sha256_end_hex(&hash, hex);
        assert_string_equal(hex, vectors[i].hex);
    }
}

static void pieces_of_any_size_give_the_same_hash(void **state)
{
    (void)state;
    char text[300], whole[SHA256_HEX_SIZE], pieces[SHA256_HEX_SIZE];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7);
    sha256_hex_of(text, sizeof text, whole);
    for (size_t step = 1; step < sizeof text; step++) {
        struct sha256 hash;
        sha256_begin(&hash);
        for (size_t at = 0; at < sizeof text; at += step)
            sha256_add(&hash, text + at, sizeof text - at < step ? sizeof text - at : step);
        sha256_end_hex(&hash, pieces);
        assert_string_equal(pieces, whole);
    }
}

static void secrets_are_compared_completely(void **state)
{
    (void)state;
    assert_true(bytes_are_equal_secretly("abcd", "abcd", 4));
    assert_false(bytes_are_equal_secretly("abcd", "abce", 4));
    assert_false(bytes_are_equal_secretly("abcd", "bbcd", 4));
    assert_true(bytes_are_equal_secretly("abcd", "abce", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts_have_their_known_hashes),
        cmocka_unit_test(pieces_of_any_size_give_the_same_hash),
        cmocka_unit_test(secrets_are_compared_completely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
