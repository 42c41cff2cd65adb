/* SPDX-License-Identifier: Apache-2.0 */
#include "format/json_lex.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void json_lex_init(struct json_lexer *lexer, const char *text, size_t size)
{
    *lexer = (struct json_lexer){.start = text, .at = text, .end = text + size, .line_start = text, .line = 1};
}

bool json_lex_fail(struct json_lexer *lexer, const char *at, const char *format, ...)
{
    if (!lexer->reason_at) {
        va_list args;
        va_start(args, format);
        vsnprintf(lexer->reason, sizeof lexer->reason, format, args);
        va_end(args);
        lexer->reason_at = at;
    }
    return false;
}

void json_lex_space(struct json_lexer *lexer)
{
    for (; lexer->at < lexer->end; lexer->at++) {
        if (*lexer->at == '\n') {
            lexer->line++;
            lexer->line_start = lexer->at + 1;
        } else if (*lexer->at != ' ' && *lexer->at != '\t' && *lexer->at != '\r') {
            return;
        }
    }
}

bool json_lex_expect(struct json_lexer *lexer, char c, const char *what)
{
    json_lex_space(lexer);
    if (lexer->at == lexer->end || *lexer->at != c)
        return json_lex_fail(lexer, lexer->at, "expected %s", what);
    lexer->at++;
    return true;
}

size_t utf8_sequence_size(const char *at, const char *end)
{
    const unsigned char *byte = (const unsigned char *)at;
    size_t left = (size_t)(end - at);
    if (left == 0)
        return 0;
    if (byte[0] < 0x80)
        return 1;
    /* The second byte's range excludes overlong forms, surrogates and values above U+10FFFF. */
    unsigned char low = 0x80, high = 0xBF;
    size_t size;
    if (byte[0] >= 0xC2 && byte[0] <= 0xDF) {
        size = 2;
    } else if (byte[0] >= 0xE0 && byte[0] <= 0xEF) {
        size = 3;
        if (byte[0] == 0xE0)
            low = 0xA0;
        else if (byte[0] == 0xED)
            high = 0x9F;
    } else if (byte[0] >= 0xF0 && byte[0] <= 0xF4) {
        size = 4;
        if (byte[0] == 0xF0)
            low = 0x90;
        else if (byte[0] == 0xF4)
            high = 0x8F;
    } else {
        return 0;
    }
    if (left < size || byte[1] < low || byte[1] > high)
        return 0;
    for (size_t i = 2; i < size; i++)
        if ((byte[i] & 0xC0) != 0x80)
            return 0;
    return size;
}

char *utf8_put(char *out, uint32_t code)
{
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xC0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *out++ = (char)(0xE0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    } else {
        *out++ = (char)(0xF0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3F));
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    }
    return out;
}

/* The value of \uXXXX at `at`, or -1. */
static int32_t unicode_escape(const char *at, const char *end)
{
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    int32_t code = 0;
    for (int i = 2; i < 6; i++) {
        char c = at[i];
        int32_t digit;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if (c >= 'a' && c <= 'f')
            digit = c - 'a' + 10;
        else if (c >= 'A' && c <= 'F')
            digit = c - 'A' + 10;
        else
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

/* Size of the escape at `at` and its code point; 0 with a reason: invalid. */
static size_t escape_size(const char *at, const char *end, uint32_t *code, const char **reason)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *letter = end - at >= 2 && at[1] ? strchr(letters, at[1]) : NULL;
    if (letter) {
        *code = (unsigned char)values[letter - letters];
        return 2;
    }
    int32_t first = unicode_escape(at, end);
    if (first < 0) {
        *reason = "invalid escape in a string";
        return 0;
    }
    *code = (uint32_t)first;
    if (first < 0xD800 || first > 0xDFFF)
        return 6;
    int32_t second = unicode_escape(at + 6, end);
    if (first > 0xDBFF || second < 0xDC00 || second > 0xDFFF) {
        *reason = "unpaired surrogate in a string";
        return 0;
    }
    *code = 0x10000 + ((uint32_t)(first - 0xD800) << 10) + (uint32_t)(second - 0xDC00);
    return 12;
}

char *json_unescape(char *out, const struct json_span *span)
{
    const char *at = span->text, *end = at + span->size;
    while (at < end) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        size_t plain = (size_t)((escape ? escape : end) - at);
        memcpy(out, at, plain);
        out += plain;
        if (!escape)
            break;
        uint32_t code = 0;
        const char *reason;
        size_t size = escape_size(escape, end, &code, &reason);
        if (size == 0)
            break;
        out = utf8_put(out, code);
        at = escape + size;
    }
    return out;
}

static bool lex_string(struct json_lexer *lexer, struct json_span *span)
{
    const char *opening = lexer->at, *at = opening + 1;
    *span = (struct json_span){.text = at};
    while (at < lexer->end) {
        unsigned char c = (unsigned char)*at;
        if (c == '"') {
            span->size = (size_t)(at - span->text);
            lexer->at = at + 1;
            return true;
        }
        if (c < 0x20)
            return json_lex_fail(lexer, at, "control character in a string");
        size_t size = 1;
        if (c == '\\') {
            uint32_t code;
            const char *reason = "";
            size = escape_size(at, lexer->end, &code, &reason);
            if (size == 0)
                return json_lex_fail(lexer, at, "%s", reason);
            span->has_escape = true;
        } else if (c >= 0x80) {
            size = utf8_sequence_size(at, lexer->end);
            if (size == 0)
                return json_lex_fail(lexer, at, "invalid UTF-8");
        }
        at += size;
    }
    return json_lex_fail(lexer, opening, "unterminated string");
}

/* strtod depends on the host program's radix character and needs a NUL. */
static double number_from_text(const char *text, size_t size)
{
    char copy[JSON_NUMBER_SIZE_MAX + 1];
    memcpy(copy, text, size);
    copy[size] = '\0';
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return (double)NAN;
    double value = strtod_l(copy, NULL, plain);
    freelocale(plain);
    return value;
}

static double number_value(const char *text, size_t size, uint64_t mantissa, bool is_exact, long exponent)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    /* Both operands are exact, so there is one rounding, as in strtod. */
    if (!is_exact || mantissa > UINT64_C(1) << 53 || exponent < -22 || exponent > 22)
        return number_from_text(text, size);
    double value = exponent < 0 ? (double)mantissa / powers[-exponent] : (double)mantissa * powers[exponent];
    return *text == '-' ? -value : value;
}

struct digits {
    uint64_t value;
    bool fits;
};

static const char *digits_take(const char *at, const char *end, struct digits *digits)
{
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (digits->value > (UINT64_MAX - digit) / 10)
            digits->fits = false;
        else
            digits->value = digits->value * 10 + digit;
    }
    return at;
}

bool json_lex_number(struct json_lexer *lexer, struct json_number *number)
{
    const char *start = lexer->at, *at = start, *end = lexer->end;
    struct digits mantissa = {.fits = true}, power = {.fits = true};
    bool is_negative = *at == '-', is_integer = true;
    *number = (struct json_number){0};
    at += is_negative;
    const char *digits = at;
    at = digits_take(at, end, &mantissa);
    if (at == digits)
        return json_lex_fail(lexer, at, "expected a digit");
    if (*digits == '0' && at - digits > 1)
        return json_lex_fail(lexer, digits, "a number must not start with 0");
    long exponent = 0;
    if (at < end && *at == '.') {
        digits = ++at;
        at = digits_take(at, end, &mantissa);
        if (at == digits)
            return json_lex_fail(lexer, at, "expected a digit after '.'");
        exponent = -(long)(at - digits);
        is_integer = false;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        bool is_down = at < end && *at == '-';
        at += at < end && (*at == '-' || *at == '+');
        digits = at;
        at = digits_take(at, end, &power);
        if (at == digits)
            return json_lex_fail(lexer, at, "expected a digit in the exponent");
        long shift = power.fits && power.value < 100000 ? (long)power.value : 100000;
        exponent += is_down ? -shift : shift;
        is_integer = false;
    }
    size_t size = (size_t)(at - start);
    if (size > JSON_NUMBER_SIZE_MAX)
        return json_lex_fail(lexer, start, "number of more than %d characters", JSON_NUMBER_SIZE_MAX);
    uint64_t largest = is_negative ? UINT64_C(1) << 63 : UINT64_MAX;
    number->is_negative = is_negative;
    number->magnitude = mantissa.value;
    number->is_integer = is_integer && mantissa.fits && mantissa.value <= largest;
    number->value = number_value(start, size, mantissa.value, mantissa.fits, exponent);
    if (!isfinite(number->value))
        return json_lex_fail(lexer, start, "number out of range");
    lexer->at = at;
    return true;
}

static bool lex_word(struct json_lexer *lexer, struct json_token *token)
{
    static const struct {
        const char *word;
        size_t size;
        enum json_kind kind;
    } words[] = {{"null", 4, JSON_NULL}, {"true", 4, JSON_TRUE}, {"false", 5, JSON_FALSE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if ((size_t)(lexer->end - lexer->at) >= words[i].size && !memcmp(lexer->at, words[i].word, words[i].size)) {
            lexer->at += words[i].size;
            token->kind = words[i].kind;
            return true;
        }
    }
    return json_lex_fail(lexer, lexer->at, "expected a value");
}

static enum json_event lex_open(struct json_lexer *lexer, bool is_object)
{
    if (lexer->depth == JSON_DEPTH_MAX) {
        json_lex_fail(lexer, lexer->at, "nested deeper than %d levels", JSON_DEPTH_MAX);
        return JSON_EVENT_FAILED;
    }
    lexer->at++;
    lexer->depth++;
    lexer->objects = lexer->objects << 1 | is_object;
    lexer->is_first = true;
    return JSON_EVENT_OPEN;
}

static enum json_event lex_value(struct json_lexer *lexer, struct json_token *token)
{
    token->start = lexer->at;
    token->line = lexer->line;
    token->column = (uint32_t)(lexer->at - lexer->line_start) + 1;
    lexer->is_first = false;
    bool is_read;
    char c = lexer->at < lexer->end ? *lexer->at : '\0';
    if (c == '{' || c == '[') {
        token->kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
        return lex_open(lexer, c == '{');
    }
    if (c == '"') {
        token->kind = JSON_STRING;
        is_read = lex_string(lexer, &token->text);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        is_read = json_lex_number(lexer, &token->number);
        token->kind = is_read && token->number.is_integer ? JSON_INT : JSON_DOUBLE;
    } else {
        is_read = lex_word(lexer, token);
    }
    return is_read ? JSON_EVENT_SCALAR : JSON_EVENT_FAILED;
}

enum json_event json_lex_next(struct json_lexer *lexer, struct json_token *token)
{
    token->has_key = false;
    json_lex_space(lexer);
    if (lexer->depth > 0) {
        bool is_object = lexer->objects & 1;
        if (lexer->at < lexer->end && *lexer->at == (is_object ? '}' : ']')) {
            lexer->at++;
            lexer->depth--;
            lexer->objects >>= 1;
            lexer->is_first = false;
            return JSON_EVENT_CLOSE;
        }
        if (!lexer->is_first && !json_lex_expect(lexer, ',', is_object ? "',' or '}'" : "',' or ']'"))
            return JSON_EVENT_FAILED;
        json_lex_space(lexer);
        if (is_object) {
            if (lexer->at == lexer->end || *lexer->at != '"') {
                json_lex_fail(lexer, lexer->at,
                              lexer->is_first ? "expected a member name or '}'" : "expected a member name");
                return JSON_EVENT_FAILED;
            }
            if (!lex_string(lexer, &token->key) || !json_lex_expect(lexer, ':', "':'"))
                return JSON_EVENT_FAILED;
            token->has_key = true;
            json_lex_space(lexer);
        }
    }
    return lex_value(lexer, token);
}

bool json_lex_skip_rest(struct json_lexer *lexer)
{
    unsigned outer = lexer->depth - 1;
    struct json_token token;
    while (lexer->depth > outer)
        if (json_lex_next(lexer, &token) == JSON_EVENT_FAILED)
            return false;
    return true;
}
