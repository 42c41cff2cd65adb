/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the includes above. */
#include <cmocka.h>

#include "requirement.h"

#include "format/json.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *written(struct bytes *out, const char *text, size_t size)
{
    bytes_clear(out);
    json_string(out, text, size);
    return bytes_text(out);
}

/* Parses a copy of exactly `size` bytes on the heap, so that sanitizers detect reads past the end. */
static gpufl_status parsed(struct json_document *document, const char *text, size_t size, struct json_error *error)
{
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    gpufl_status status = json_parse(document, copy, size, error);
    free(copy);
    return status;
}

static void strings_are_escaped_and_invalid_utf8_is_replaced(void **state)
{
    (void)state;
    struct bytes out = {0};
    assert_string_equal(written(&out, "a\"b\\c/", 6), "\"a\\\"b\\\\c/\"");
    assert_string_equal(written(&out, "\b\f\n\r\t\x01\x1f\x7f", 8), "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    assert_string_equal(written(&out, "a\0b", 3), "\"a\\u0000b\"");
    assert_string_equal(written(&out, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9),
                        "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
    assert_string_equal(written(&out, "\xFF!", 2), "\"\xEF\xBF\xBD!\"");
    assert_string_equal(written(&out, "\xC3", 1), "\"\xEF\xBF\xBD\"");
    assert_string_equal(written(&out, "\xED\xA0\x80", 3), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
    assert_string_equal(written(&out, "\xC0\xAF", 2), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
    assert_string_equal(written(&out, "", 0), "\"\"");
    bytes_free(&out);
}

static void keys_place_their_own_commas(void **state)
{
    (void)state;
    struct bytes out = {0};
    bytes_append_char(&out, '{');
    json_key(&out, "a");
    json_int(&out, INT64_MIN);
    json_key(&out, "b");
    json_uint(&out, UINT64_MAX);
    json_key(&out, "c");
    json_text(&out, NULL);
    json_key(&out, "d");
    bytes_append_char(&out, '{');
    json_key(&out, "e");
    json_bool(&out, true);
    bytes_append_text(&out, "}}");
    assert_string_equal(bytes_text(&out), "{\"a\":-9223372036854775808,\"b\":18446744073709551615,\"c\":null,"
                                          "\"d\":{\"e\":true}}");
    bytes_free(&out);
}

static void check_double(struct bytes *out, double value)
{
    struct json_document document;
    bytes_clear(out);
    json_double(out, value);
    assert_int_equal(parsed(&document, out->data, out->size, NULL), GPUFL_OK);
    assert_memory_equal(&document.root->number, &value, sizeof value);
    json_free(&document);
}

static void doubles_read_back_exactly(void **state)
{
    (void)state;
    static const double values[] = {0.0,
                                    -0.0,
                                    1.0,
                                    0.1,
                                    1.0 / 3,
                                    DBL_MAX,
                                    DBL_MIN,
                                    5e-324,
                                    1e22,
                                    1e23,
                                    123456789.5,
                                    9007199254740993.0,
                                    1e-7,
                                    -2.5e-300,
                                    1e15,
                                    1e16,
                                    1e17,
                                    4.35,
                                    2.2250738585072011e-308};
    struct bytes out = {0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        check_double(&out, values[i]);
    uint64_t random = 7;
    for (int i = 0; i < 20000; i++) {
        double value;
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t bits = random ^ random >> 31;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            check_double(&out, value);
    }
    bytes_clear(&out);
    json_double(&out, 0.1);
    bytes_append_char(&out, ' ');
    json_double(&out, (double)NAN);
    bytes_append_char(&out, ' ');
    json_double(&out, -(double)INFINITY);
    assert_string_equal(bytes_text(&out), "0.1 null null");
    bytes_free(&out);
}

/* Sets an installed locale, or one built for this test. */
static bool set_comma_locale(void)
{
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") || setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        return true;
    char command[1024];
    snprintf(command, sizeof command, "mkdir -p %s/locales && localedef -i de_DE -f UTF-8 %s/locales/de_DE.UTF-8",
             BUILD_DIR, BUILD_DIR);
    setenv("LOCPATH", BUILD_DIR "/locales", 1);
    return system(command) == 0 && setlocale(LC_NUMERIC, "de_DE.UTF-8");
}

static void the_host_programs_locale_changes_nothing(void **state)
{
    (void)state;
    REQUIRE(set_comma_locale(), "a locale with a decimal comma (package locales)");
    struct bytes out = {0};
    json_double(&out, 1.5e-9);
    check_double(&out, 123456.789e150);
    bytes_clear(&out);
    json_double(&out, 2.25);
    assert_string_equal(bytes_text(&out), "2.25");
    bytes_free(&out);
    setlocale(LC_NUMERIC, "C");
}

static const char *const accepted[] = {"{}",
                                       "[]",
                                       "0",
                                       "-0",
                                       "-1",
                                       "1.5",
                                       "1e5",
                                       "1E+5",
                                       "1e-5",
                                       "-0.0",
                                       "null",
                                       "true",
                                       "false",
                                       "\"\"",
                                       " [ ] ",
                                       "\t\n\r [1 ,\n2]\n",
                                       "{\"a\":[{}]}",
                                       "{\"\":0}",
                                       "{\"a\":1,\"a\":2}",
                                       "[[[[]]]]",
                                       "\"\\u0041\\n\\/\"",
                                       "\"\\ud83d\\ude00\"",
                                       "\"\x7f\"",
                                       "\"\xC3\xA9\"",
                                       "\"\\u0000\"",
                                       "[1,2.0,\"x\",null,true,false,{},[]]",
                                       "123456789012345678901234567890",
                                       "0.00000000000000000000000000000000001",
                                       "\"\xF4\x8F\xBF\xBF\"",
                                       "1e-400"};

static const char *const rejected[] = {"",
                                       " ",
                                       "{",
                                       "[",
                                       "}",
                                       "]",
                                       "[1,]",
                                       "{\"a\":1,}",
                                       "[,1]",
                                       "[1 2]",
                                       "{\"a\" 1}",
                                       "{\"a\":}",
                                       "{a:1}",
                                       "{'a':1}",
                                       "{1:2}",
                                       "01",
                                       "-",
                                       "+1",
                                       ".5",
                                       "1.",
                                       "1.e5",
                                       "1e",
                                       "1e+",
                                       "-a",
                                       "0x10",
                                       "NaN",
                                       "Infinity",
                                       "-Infinity",
                                       "nul",
                                       "nulll",
                                       "True",
                                       "\"",
                                       "\"a",
                                       "\"\\\"",
                                       "\"\\x\"",
                                       "\"\\u12\"",
                                       "\"\\u123g\"",
                                       "\"\\ud800\"",
                                       "\"\\udc00\"",
                                       "\"\\ud800\\u0041\"",
                                       "\"\\ud800\\ud800\"",
                                       "\"\t\"",
                                       "\"\n\"",
                                       "\"\x01\"",
                                       "\"\xFF\"",
                                       "\"\xC0\xAF\"",
                                       "\"\xED\xA0\x80\"",
                                       "\"\xF5\x80\x80\x80\"",
                                       "\"\xE2\x82\"",
                                       "[1]]",
                                       "{} {}",
                                       "1 2",
                                       "// c\n1",
                                       "[1/**/]",
                                       "\xEF\xBB\xBF{}",
                                       "[\"a\",\n4\n,1,",
                                       "1e400",
                                       "-1e999",
                                       "\f1",
                                       "{\"a\":1 \"b\":2}",
                                       "[1}",
                                       "{\"a\":1]",
                                       "\302\2401"};

static void rfc_8259_texts_are_accepted_and_others_rejected(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        struct json_document document;
        struct json_error error = {0};
        if (parsed(&document, accepted[i], strlen(accepted[i]), &error))
            fail_msg("rejected %s: %s", accepted[i], error.text);
        json_free(&document);
    }
    for (size_t i = 0; i < sizeof rejected / sizeof *rejected; i++) {
        struct json_document document;
        struct json_error error = {0};
        if (parsed(&document, rejected[i], strlen(rejected[i]), &error) == GPUFL_OK)
            fail_msg("accepted %s", rejected[i]);
        assert_null(document.root);
        assert_null(document.blocks);
        assert_true(error.line >= 1 && error.column >= 1 && error.text[0]);
    }
    struct json_document document;
    assert_int_not_equal(parsed(&document, "1\0", 2, NULL), GPUFL_OK);
}

static void errors_have_a_position(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t line, column;
        const char *reason;
    } cases[] = {
        {"{\"a\":1 \"b\":2}", 1, 8, "expected ',' or '}'"},
        {"[1\n , 2\n  3]", 3, 3, "expected ',' or ']'"},
        {"{\n  \"a\" 1}", 2, 7, "expected ':'"},
        {"{\n  \"a\": x}", 2, 8, "expected a value"},
        {"{\"a\":1,}", 1, 8, "expected a member name"},
        {"{x", 1, 2, "expected a member name or '}'"},
        {"[\"ab\ncd\"]", 1, 5, "control character in a string"},
        {"[\"ab", 1, 2, "unterminated string"},
        {"[\"a\xFF\"]", 1, 4, "invalid UTF-8"},
        {"\"\\ud800\"", 1, 2, "unpaired surrogate in a string"},
        {"\"\\q\"", 1, 2, "invalid escape in a string"},
        {"[007]", 1, 2, "a number must not start with 0"},
        {"{}\n\nx", 3, 1, "unexpected text after the value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json_document document;
        struct json_error error;
        assert_int_equal(parsed(&document, cases[i].text, strlen(cases[i].text), &error), GPUFL_E_DAMAGED);
        assert_string_equal(error.text, cases[i].reason);
        assert_int_equal(error.line, cases[i].line);
        assert_int_equal(error.column, cases[i].column);
    }
}

static void nesting_is_bounded_at_64(void **state)
{
    (void)state;
    for (int depth = 64; depth <= 65; depth++) {
        char text[200];
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        struct json_document document;
        struct json_error error;
        gpufl_status status = parsed(&document, text, (size_t)depth * 2, &error);
        assert_int_equal(status, depth == 64 ? GPUFL_OK : GPUFL_E_DAMAGED);
        if (status)
            assert_int_equal(error.column, 65);
        json_free(&document);
    }
}

static void values_keep_kind_place_and_range(void **state)
{
    (void)state;
    static const char text[] = "{\"i\":-9223372036854775808,\"u\":18446744073709551615,\n \"big\":18446744073709551616,"
                               "\"s\":\"\\u20ac\\ud83d\\ude00\\u0000x\",\"a\":[1,2.5],\"t\":true,\"n\":null,\"i\":7}";
    struct json_document document;
    assert_int_equal(parsed(&document, text, sizeof text - 1, NULL), GPUFL_OK);
    const struct json_value *root = document.root;
    assert_int_equal(root->count, 8);
    assert_true(json_get_int(root, "i", 0) == INT64_MIN); /* the first of two */
    const struct json_value *u = json_member(root, "u");
    assert_true(u->is_unsigned && (uint64_t)u->integer == UINT64_MAX);
    assert_int_equal(json_get_int(root, "u", -5), -5);
    const struct json_value *big = json_member(root, "big");
    assert_int_equal(big->kind, JSON_DOUBLE);
    assert_true(big->number == 18446744073709551616.0);
    assert_int_equal(big->line, 2);
    assert_int_equal(big->column, 8);
    const struct json_value *s = json_member(root, "s");
    assert_int_equal(s->text_size, 9);
    assert_memory_equal(s->text, "\xE2\x82\xAC\xF0\x9F\x98\x80\0x", 10);
    const struct json_value *a = json_member(root, "a");
    assert_int_equal(a->count, 2);
    assert_int_equal(a->child->integer, 1);
    assert_true(a->child->next->number == 2.5 && !a->child->next->next);
    assert_true(json_get_bool(root, "t", false));
    assert_false(json_get_bool(root, "n", false));
    assert_string_equal(json_get_text(root, "missing", "fallback"), "fallback");
    assert_string_equal(json_get_text(root, "i", "fallback"), "fallback");
    assert_null(json_member(NULL, "x"));
    assert_null(json_member(a, "x"));
    json_free(&document);
    json_free(&document);
}

static void every_truncation_is_an_error(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":[1,-2.5e3,\"x\\u00e9\\n\xE2\x82\xAC\",{\"b\":null}],\"c\":{\"d\":true,\"e\":[[]]}}";
    for (size_t size = 0; size < sizeof text - 1; size++) {
        struct json_document document;
        assert_int_not_equal(parsed(&document, text, size, NULL), GPUFL_OK);
    }
}

static void long_arrays_and_strings_are_read(void **state)
{
    (void)state;
    struct bytes text = {0};
    bytes_append_char(&text, '[');
    for (int i = 0; i < 100000; i++)
        bytes_append_format(&text, "%d,", i);
    bytes_append_char(&text, '"');
    for (int i = 0; i < 3000000; i++)
        bytes_append_char(&text, 'x');
    bytes_append_text(&text, "\"]");
    struct json_document document;
    assert_int_equal(json_parse(&document, text.data, text.size, NULL), GPUFL_OK);
    assert_int_equal(document.root->count, 100001);
    const struct json_value *last = document.root->child;
    for (int i = 0; i < 100000; i++, last = last->next)
        assert_int_equal(last->integer, i);
    assert_int_equal(last->text_size, 3000000);
    json_free(&document);
    bytes_free(&text);
}

/* Each line: [hex of the UTF-8, the string, hex of the double's bits, the double]. */
static const char python_check[] = "import json,struct,sys\n"
                                   "n=0\n"
                                   "for line in sys.stdin.buffer:\n"
                                   "    h,s,b,d=json.loads(line.decode('utf-8'))\n"
                                   "    assert s.encode('utf-8').hex()==h,(h,s)\n"
                                   "    assert struct.pack('>d',float(d)).hex()==b,(b,d)\n"
                                   "    n+=1\n"
                                   "sys.exit(0 if n==2000 else 1)\n";

static void another_parser_reads_the_writers_output(void **state)
{
    (void)state;
    REQUIRE(access("/usr/bin/python3", X_OK) == 0, "python3");
    char command[1024];
    snprintf(command, sizeof command, "/usr/bin/python3 -c \"%s\"", python_check);
    FILE *python = popen(command, "w");
    assert_non_null(python);
    static const char *const pieces[] = {"\"",   "\\", "\n",          "\x01", "a", "\xC3\xA9", "\xF0\x9F\x98\x80",
                                         "\x7f", "/",  "\xEF\xBF\xBF"};
    uint64_t random = 11;
    struct bytes line = {0};
    for (int i = 0; i < 2000; i++) {
        char text[64] = "";
        size_t size = 0;
        for (int k = 0; k < 8; k++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            size += (size_t)snprintf(text + size, sizeof text - size, "%s", pieces[(random >> 33) % 10]);
        }
        uint64_t bits = random ^ random >> 29;
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            value = 0.5;
        memcpy(&bits, &value, sizeof bits);
        bytes_clear(&line);
        bytes_append_text(&line, "[\"");
        for (const char *c = text; *c; c++)
            bytes_append_format(&line, "%02x", (unsigned char)*c);
        bytes_append_text(&line, "\",");
        json_text(&line, text);
        bytes_append_format(&line, ",\"%016llx\",", (unsigned long long)bits);
        json_double(&line, value);
        bytes_append_text(&line, "]\n");
        fwrite(line.data, 1, line.size, python);
    }
    bytes_free(&line);
    assert_int_equal(pclose(python), 0);
}

static void the_memory_of_values_is_limited_by_their_texts_size(void **state)
{
    (void)state;
    struct bytes text = {0};
    struct json_document document;
    struct json_error error;
    bytes_append_char(&text, '[');
    while (text.size < 1 << 20)
        bytes_append_text(&text, "0,");
    bytes_append_text(&text, "0]");
    assert_int_equal(json_parse(&document, text.data, text.size, &error), GPUFL_E_LIMIT);
    assert_string_equal(error.text, "document has too many values");
    assert_null(document.blocks);

    /* The densest of our records, at its maximum size: the listing of a function. */
    bytes_clear(&text);
    bytes_append_char(&text, '[');
    while (text.size < 8 << 20)
        bytes_append_text(&text,
                          "{\"pc\":192,\"sass\":\"FADD R9, R2, R5\",\"file\":1,\"line\":7,\"inlined\":[{\"function\":"
                          "1,\"file\":2,\"line\":3}]},");
    text.data[text.size - 1] = ']';
    assert_int_equal(json_parse(&document, text.data, text.size, &error), GPUFL_OK);
    json_free(&document);
    bytes_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_escaped_and_invalid_utf8_is_replaced),
        cmocka_unit_test(keys_place_their_own_commas),
        cmocka_unit_test(doubles_read_back_exactly),
        cmocka_unit_test(the_host_programs_locale_changes_nothing),
        cmocka_unit_test(rfc_8259_texts_are_accepted_and_others_rejected),
        cmocka_unit_test(errors_have_a_position),
        cmocka_unit_test(nesting_is_bounded_at_64),
        cmocka_unit_test(the_memory_of_values_is_limited_by_their_texts_size),
        cmocka_unit_test(values_keep_kind_place_and_range),
        cmocka_unit_test(every_truncation_is_an_error),
        cmocka_unit_test(long_arrays_and_strings_are_read),
        cmocka_unit_test(another_parser_reads_the_writers_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
