/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/line.h"

#include "base/crc32c.h"

static const char crc_key[] = ",\"crc\":\"";
static const char seq_key[] = ",\"seq\":";
static const char type_key[] = "\"type\":\"";

enum { CRC_DIGITS = 8, CRC_MEMBER_SIZE = sizeof crc_key - 1 + CRC_DIGITS + 1, SEQ_DIGITS_MAX = 19, TYPE_WITHIN = 256 };

/* ,"crc":"xxxxxxxx"} LF; returns the end. */
static char *write_crc(char *at, uint32_t crc)
{
    memcpy(at, crc_key, sizeof crc_key - 1);
    at += sizeof crc_key - 1;
    for (int shift = 28; shift >= 0; shift -= 4)
        *at++ = "0123456789abcdef"[crc >> shift & 15];
    memcpy(at, "\"}\n", 3);
    return at + 3;
}

size_t line_trailer(char out[LINE_TRAILER_MAX], const char *object, size_t size, uint64_t seq)
{
    memcpy(out, seq_key, sizeof seq_key - 1);
    char *at = digits_u64(out + sizeof seq_key - 1, seq);
    uint32_t crc = crc32c(crc32c(0, object, size), out, (size_t)(at - out));
    return (size_t)(write_crc(at, crc) - out);
}

void line_append_crc(struct bytes *out, size_t begin)
{
    if (out->failed || !bytes_reserve(out, LINE_TRAILER_MAX))
        return;
    char *end = write_crc(out->data + out->size, crc32c(0, out->data + begin, out->size - begin));
    out->size = (size_t)(end - out->data);
}

static bool read_hex(const char *at, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < CRC_DIGITS; i++) {
        char c = at[i];
        if (c >= '0' && c <= '9')
            *value = *value << 4 | (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *value = *value << 4 | (uint32_t)(c - 'a' + 10);
        else
            return false;
    }
    return true;
}

/* The N of a ,"seq":N that ends at `end`. */
static int64_t read_seq(const char *line, size_t end)
{
    size_t at = end;
    while (at > 0 && end - at < SEQ_DIGITS_MAX && line[at - 1] >= '0' && line[at - 1] <= '9')
        at--;
    const size_t key = sizeof seq_key - 1;
    if (at == end || at < key || memcmp(line + at - key, seq_key, key) != 0)
        return -1;
    uint64_t seq = 0;
    for (; at < end; at++)
        seq = seq * 10 + (uint64_t)(line[at] - '0');
    return seq <= INT64_MAX ? (int64_t)seq : -1;
}

struct line_end line_end_read(const char *line, size_t size)
{
    struct line_end end = {.crc = LINE_CRC_NONE, .object_size = size, .seq = -1};
    if (size < 2 || line[size - 1] != '}')
        return end;
    size_t object = size - 1;
    uint32_t crc = 0;
    if (object > CRC_MEMBER_SIZE && line[object - 1] == '"') {
        const char *member = line + object - CRC_MEMBER_SIZE;
        if (!memcmp(member, crc_key, sizeof crc_key - 1)) {
            object -= CRC_MEMBER_SIZE;
            end.object_size = object;
            bool is_good = read_hex(member + sizeof crc_key - 1, &crc) && crc32c(0, line, object) == crc;
            end.crc = is_good ? LINE_CRC_GOOD : LINE_CRC_BAD;
        }
    }
    end.seq = read_seq(line, object);
    return end;
}

enum record_type line_type_guess(const char *line, size_t size)
{
    const char *key = memmem(line, size < TYPE_WITHIN ? size : TYPE_WITHIN, type_key, sizeof type_key - 1);
    if (!key)
        return RECORD_UNKNOWN;
    const char *name = key + sizeof type_key - 1;
    size_t left = size - (size_t)(name - line);
    const char *quote = memchr(name, '"', left < TYPE_WITHIN ? left : TYPE_WITHIN);
    return quote ? record_type_of(name, (size_t)(quote - name)) : RECORD_UNKNOWN;
}
