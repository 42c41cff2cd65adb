/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of DWARF line programs, which line_table.c needs before it runs a unit's program. */
#ifndef GPUFL_CODE_LINE_PROGRAM_H
#define GPUFL_CODE_LINE_PROGRAM_H

#include "code/byte_reader.h"
#include "code/line_table.h"

struct line_unit {
    uint16_t version;
    bool is_64bit;
    uint8_t min_instruction_bytes, line_range, opcode_base;
    int8_t line_base;
    uint8_t operand_counts[256]; /* of standard opcodes */
    uint32_t *paths;             /* owned; ids in the table's intern, by the program's file number */
    uint32_t path_count;
    size_t program_begin, program_end; /* in the section */
};

/* Reads the header of the unit at section->at, and advances section->at past the unit. */
NODISCARD gpufl_status line_unit_read(struct line_unit *unit, struct byte_reader *section, struct line_table *table,
                                      const char *section_name, struct problem *problem);
void line_unit_free(struct line_unit *unit);
/* Adds the file of DW_LNE_define_file: name, directory, time, size. */
bool line_unit_define(struct line_unit *unit, struct byte_reader *operands, struct line_table *table);

#endif
