/* SPDX-License-Identifier: Apache-2.0 */
#include "session_fixture.h"

#include "body_fixture.h"
#include "server/body_decoder.h"

static const struct body_limits limits = {
    .plain_bytes_max = 64 << 20, .ratio_max = 100, .ratio_free_bytes = 1 << 20, .line_bytes_max = 1 << 20};

struct seen_lines {
    struct bytes text; /* complete lines, each followed by | */
    uint64_t whole, unended, too_long, last_number;
};

static void see(void *user, enum body_line kind, uint64_t number, const char *text, size_t size)
{
    struct seen_lines *seen = user;
    assert_true(number > seen->last_number);
    seen->last_number = number;
    seen->whole += kind == BODY_LINE_WHOLE;
    seen->unended += kind == BODY_LINE_UNENDED;
    seen->too_long += kind == BODY_LINE_TOO_LONG;
    bytes_append(&seen->text, text, size);
    bytes_append_char(&seen->text, '|');
}

static enum body_result decode(struct seen_lines *seen, enum content_coding coding, const struct bytes *body,
                               size_t piece, char reason[160])
{
    struct body_decoder decoder;
    *seen = (struct seen_lines){.last_number = 0};
    assert_int_equal(body_decoder_open(&decoder, coding, &limits, NULL), GPUFL_OK);
    enum body_result result = BODY_GOOD;
    for (size_t at = 0; at < body->size && result == BODY_GOOD; at += piece)
        result =
            body_decoder_feed(&decoder, body->data + at, body->size - at < piece ? body->size - at : piece, see, seen);
    if (result == BODY_GOOD)
        result = body_decoder_finish(&decoder, see, seen);
    snprintf(reason, 160, "%s", decoder.reason);
    body_decoder_close(&decoder);
    return result;
}

static const enum content_coding codings[] = {CONTENT_PLAIN, CONTENT_GZIP, CONTENT_ZSTD};
static const size_t pieces[] = {1, 2, 7, 1000, SIZE_MAX / 2};

static void every_coding_gives_the_same_lines_in_pieces_of_any_size(void **state)
{
    (void)state;
    static const char text[] = "first\nsecond\r\n\nfourth\nlast";
    char reason[160];
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned j = 0; j < sizeof pieces / sizeof *pieces; j++) {
            struct bytes body = body_make(codings[i], text, sizeof text - 1);
            struct seen_lines seen;
            assert_int_equal(decode(&seen, codings[i], &body, pieces[j], reason), BODY_GOOD);
            assert_string_equal(bytes_text(&seen.text), "first|second|fourth|last|");
            assert_int_equal(seen.whole, 3);
            assert_int_equal(seen.unended, 1);
            assert_int_equal(seen.last_number, 5);
            bytes_free(&seen.text);
            bytes_free(&body);
        }
    }
}

static void two_compressed_parts_form_one_body(void **state)
{
    (void)state;
    char reason[160];
    for (unsigned i = 1; i < 3; i++) {
        struct bytes body = body_make(codings[i], "one\ntw", 6), second = body_make(codings[i], "o\n", 2);
        struct seen_lines seen;
        bytes_append(&body, second.data, second.size);
        assert_int_equal(decode(&seen, codings[i], &body, 3, reason), BODY_GOOD);
        assert_string_equal(bytes_text(&seen.text), "one|two|");
        bytes_free(&seen.text);
        bytes_free(&second);
        bytes_free(&body);
    }
}

static void a_body_that_ends_anywhere_but_at_its_end_is_damaged(void **state)
{
    (void)state;
    static const char text[] = "first\nsecond\nthird\n";
    char reason[160];
    for (unsigned i = 1; i < 3; i++) {
        struct bytes body = body_make(codings[i], text, sizeof text - 1);
        size_t whole = body.size;
        for (body.size = 1; body.size < whole; body.size++) {
            struct seen_lines seen;
            assert_int_equal(decode(&seen, codings[i], &body, 5, reason), BODY_DAMAGED);
            assert_string_not_equal(reason, "");
            bytes_free(&seen.text);
        }
        bytes_free(&body);
    }
}

static void noise_is_damaged(void **state)
{
    (void)state;
    char reason[160];
    struct bytes noise = {0};
    for (unsigned i = 0; i < 5000; i++)
        bytes_append_char(&noise, (char)(i * i * 31 + i));
    for (unsigned i = 1; i < 3; i++) {
        struct seen_lines seen;
        assert_int_equal(decode(&seen, codings[i], &noise, 100, reason), BODY_DAMAGED);
        bytes_free(&seen.text);
    }
    bytes_free(&noise);
}

static void decoding_stops_when_a_body_grows_beyond_the_limit(void **state)
{
    (void)state;
    char reason[160];
    struct bytes zeros = {0};
    assert_true(bytes_reserve(&zeros, 32 << 20));
    memset(zeros.data, '\n', 32 << 20);
    zeros.size = 32 << 20;
    for (unsigned i = 1; i < 3; i++) {
        struct bytes bomb = body_make(codings[i], zeros.data, zeros.size);
        struct seen_lines seen;
        assert_true(bomb.size < 64 << 10);
        assert_int_equal(decode(&seen, codings[i], &bomb, 4096, reason), BODY_TOO_LARGE);
        assert_non_null(strstr(reason, "grows more than 100 times"));
        bytes_free(&seen.text);
        bytes_free(&bomb);
    }
    zeros.size = 0;
    bytes_free(&zeros);
}

static void a_line_beyond_the_limit_is_skipped_and_the_next_one_is_passed_on(void **state)
{
    (void)state;
    char reason[160];
    struct bytes text = {0};
    bytes_append_text(&text, "before\n");
    for (unsigned i = 0; i < 3 << 20; i++)
        bytes_append_char(&text, (char)('a' + i % 23));
    bytes_append_text(&text, "\nafter\n");
    for (unsigned i = 0; i < 3; i++) {
        struct bytes body = body_make(codings[i], text.data, text.size);
        struct seen_lines seen;
        enum body_result result = decode(&seen, codings[i], &body, 10000, reason);
        if (i == 0) {
            assert_int_equal(result, BODY_GOOD);
            assert_string_equal(bytes_text(&seen.text), "before||after|");
            assert_int_equal(seen.too_long, 1);
        } else {
            assert_int_equal(result, BODY_TOO_LARGE); /* it compresses too well */
        }
        bytes_free(&seen.text);
        bytes_free(&body);
    }
    bytes_free(&text);
}

static void codings_are_known_by_their_names(void **state)
{
    (void)state;
    enum content_coding coding;
    assert_true(content_coding_parse(NULL, &coding) && coding == CONTENT_PLAIN);
    assert_true(content_coding_parse("identity", &coding) && coding == CONTENT_PLAIN);
    assert_true(content_coding_parse("GZIP", &coding) && coding == CONTENT_GZIP);
    assert_true(content_coding_parse("zstd", &coding) && coding == CONTENT_ZSTD);
    assert_false(content_coding_parse("br", &coding));
    assert_false(content_coding_parse("gzip, gzip", &coding));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_coding_gives_the_same_lines_in_pieces_of_any_size),
        cmocka_unit_test(two_compressed_parts_form_one_body),
        cmocka_unit_test(a_body_that_ends_anywhere_but_at_its_end_is_damaged),
        cmocka_unit_test(noise_is_damaged),
        cmocka_unit_test(decoding_stops_when_a_body_grows_beyond_the_limit),
        cmocka_unit_test(a_line_beyond_the_limit_is_skipped_and_the_next_one_is_passed_on),
        cmocka_unit_test(codings_are_known_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
