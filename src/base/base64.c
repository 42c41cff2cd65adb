/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct bytes *out, const void *data, size_t size)
{
    const unsigned char *in = data;
    if (!size || !bytes_reserve(out, size / 3 * 4 + (size % 3 ? 4 : 0)))
        return;
    char *at = out->data + out->size;
    for (; size >= 3; in += 3, size -= 3) {
        uint32_t group = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
        *at++ = alphabet[group >> 18];
        *at++ = alphabet[group >> 12 & 63];
        *at++ = alphabet[group >> 6 & 63];
        *at++ = alphabet[group & 63];
    }
    if (size) {
        uint32_t group = (uint32_t)in[0] << 16 | (size > 1 ? (uint32_t)in[1] << 8 : 0);
        *at++ = alphabet[group >> 18];
        *at++ = alphabet[group >> 12 & 63];
        *at++ = size > 1 ? alphabet[group >> 6 & 63] : '=';
        *at++ = '=';
    }
    out->size = (size_t)(at - out->data);
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Reads a group of four characters, `count` of which are not padding. Returns the index of an invalid character, or
 * 4. */
static size_t group_read(const char *text, size_t count, uint32_t *group)
{
    *group = 0;
    for (size_t i = 0; i < 4; i++) {
        int value = i < count ? value_of(text[i]) : text[i] == '=' ? 0 : -1;
        if (value < 0)
            return i;
        *group = *group << 6 | (uint32_t)value;
    }
    /* The unused bits must be zero; otherwise two texts would decode to the same bytes. */
    uint32_t stray = count == 2 ? 0xffff : count == 3 ? 0xff : 0;
    return *group & stray ? count - 1 : 4;
}

bool base64_decode(struct bytes *out, const char *text, size_t size, size_t *bad_at)
{
    size_t before = out->size, bad = SIZE_MAX;
    if (size % 4) {
        bad = size;
        goto failed;
    }
    if (!bytes_reserve(out, size / 4 * 3))
        goto failed;
    for (size_t i = 0; i < size; i += 4) {
        size_t count = 4;
        if (i + 4 == size)
            count = text[i + 3] != '=' ? 4 : text[i + 2] != '=' ? 3 : 2;
        uint32_t group;
        size_t wrong = group_read(text + i, count, &group);
        if (wrong != 4) {
            bad = i + wrong;
            goto failed;
        }
        const char decoded[3] = {(char)(group >> 16), (char)(group >> 8 & 255), (char)(group & 255)};
        bytes_append(out, decoded, count - 1);
    }
    return true;
failed:
    out->size = before;
    if (bad_at)
        *bad_at = bad;
    return false;
}
