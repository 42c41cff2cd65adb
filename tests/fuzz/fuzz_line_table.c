/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a line program, in a cubin in which every offset is relocated and the string sections consist of
 * the same bytes. */
#include "code/line_table.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT = 1, SYMBOLS, LINES, RELOCATIONS, STRINGS, LINE_STRINGS, SECTION_COUNT };
enum { TEXT_SIZE = 1024, SYMBOLS_AT = TEXT_SIZE, RELOCATIONS_AT = SYMBOLS_AT + 48, RELOCATED = 256 };
enum { DATA_AT = RELOCATIONS_AT + RELOCATED * 24 };

static void put(uint8_t *bytes, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

static void rows_check(const struct line_table *table)
{
    for (size_t i = 0; i < table->sequence_count; i++) {
        const struct line_sequence *sequence = &table->sequences[i];
        const struct line_row *rows = table->rows + sequence->first_row;
        for (uint32_t k = 0; k < sequence->row_count; k++) {
            if ((k && rows[k - 1].address > rows[k].address) || rows[k].address > sequence->end)
                abort();
            if (rows[k].caller > k)
                abort();
        }
    }
    for (uint64_t address = 0; address < 2 * TEXT_SIZE; address += 32) {
        struct line_frame frames[LINE_FRAMES_MAX];
        size_t count = line_table_find(table, TEXT, address, frames, LINE_FRAMES_MAX);
        for (size_t i = 0; i < count; i++)
            if (!frames[i].path || (frames[i].function && !frames[i].function[0]))
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = calloc(1, DATA_AT + size);
    if (!bytes)
        return 0;
    bytes[SYMBOLS_AT + 24 + 4] = 2; /* symbol 1: a function in TEXT */
    bytes[SYMBOLS_AT + 24 + 6] = TEXT;
    for (uint64_t i = 0; i < RELOCATED; i++) {
        put(bytes + RELOCATIONS_AT + i * 24, i);
        put(bytes + RELOCATIONS_AT + i * 24 + 8, (uint64_t)1 << 32 | 2);
    }
    if (size)
        memcpy(bytes + DATA_AT, data, size);
    struct image_section sections[SECTION_COUNT] = {
        [0] = {.name = ""},
        [TEXT] = {.name = ".text.f", .type = 1, .size = TEXT_SIZE},
        [SYMBOLS] = {.name = ".symtab", .type = 2, .offset = SYMBOLS_AT, .size = 48},
        [LINES] = {.name = ".debug_line", .type = 1, .offset = DATA_AT, .size = size},
        [RELOCATIONS] =
            {.name = ".rela.debug_line", .type = 4, .info = LINES, .offset = RELOCATIONS_AT, .size = RELOCATED * 24},
        [STRINGS] = {.name = ".debug_str", .type = 1, .offset = DATA_AT, .size = size},
        [LINE_STRINGS] = {.name = ".debug_line_str", .type = 1, .offset = DATA_AT, .size = size},
    };
    struct code_image cubin = {.bytes = bytes,
                               .size = DATA_AT + size,
                               .sections = sections,
                               .section_count = SECTION_COUNT,
                               .symbol_table = SYMBOLS};
    struct line_table table;
    struct problem problem = {""};
    gpufl_status status = line_table_open(&table, &cubin, LINE_TABLE_SOURCE, &problem);
    if (status == GPUFL_OK) {
        rows_check(&table);
        line_table_close(&table);
    } else if (!problem.text[0] || table.rows || table.sequences) {
        abort();
    }
    free(bytes);
    return 0;
}
