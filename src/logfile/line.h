/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a line: ,"seq":N,"crc":"xxxxxxxx"} and LF. The CRC-32C covers every byte of the line before ,"crc". Pure
 * functions on bytes, any thread. */
#ifndef GPUFL_LOGFILE_LINE_H
#define GPUFL_LOGFILE_LINE_H

#include "base/bytes.h"
#include "format/catalogue.h"

#define LINE_SIZE_MAX ((size_t)64 << 20) /* longer lines are skipped and reported */
#define LINE_TRAILER_MAX 64

/* Writes the trailer, including LF, of a line whose object so far is `object` (without its closing brace); returns its
 * size. */
size_t line_trailer(char out[LINE_TRAILER_MAX], const char *object, size_t size, uint64_t seq);
/* Appends ,"crc":"xxxxxxxx"} and LF to the object that starts at `begin` in out and has no closing brace yet. */
void line_append_crc(struct bytes *out, size_t begin);

enum line_crc { LINE_CRC_NONE, LINE_CRC_GOOD, LINE_CRC_BAD };

struct line_end {
    enum line_crc crc;
    size_t object_size; /* bytes before ,"crc"; the complete line if it has none */
    int64_t seq;        /* of the trailer; -1: none */
};
/* line: without LF. */
struct line_end line_end_read(const char *line, size_t size);

/* The record type by the line's first "type" member, without parsing the line: a guess that the parser of the line must
 * confirm. RECORD_UNKNOWN when in doubt. */
enum record_type line_type_guess(const char *line, size_t size);

#endif
