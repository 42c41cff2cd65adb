/* SPDX-License-Identifier: Apache-2.0 */
#include "code/line_table.h"

#include "code/line_program.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ROWS_MAX = 4 << 20, PATH_BYTES_MAX = 16 << 20 };
enum { SECTION_RELA = 4, SECTION_REL = 9, RELA_SIZE = 24, REL_SIZE = 16, SECTION_FLAG_COMPRESSED = 0x800 };
enum {
    OP_EXTENDED = 0,
    OP_COPY = 1,
    OP_ADVANCE_PC = 2,
    OP_ADVANCE_LINE = 3,
    OP_SET_FILE = 4,
    OP_CONST_ADD_PC = 8,
    OP_FIXED_ADVANCE_PC = 9,
};
enum {
    EXTENDED_END_SEQUENCE = 0x01,
    EXTENDED_SET_ADDRESS = 0x02,
    EXTENDED_DEFINE_FILE = 0x03,
    EXTENDED_INLINED_CALL = 0x90,  /* NVIDIA: row of the call in this sequence, name of the function in .debug_str */
    EXTENDED_FUNCTION_NAME = 0x91, /* NVIDIA: only the name */
};

struct relocation {
    uint64_t offset;
    uint32_t symbol;
    bool has_addend; /* otherwise the addend is the value at the relocated place */
    uint64_t addend;
};

/* The section being read. */
struct line_reading {
    struct line_table *table;
    const char *section_name;
    struct byte_reader section;
    struct relocation *relocations; /* owned; by offset */
    size_t relocation_count;
    struct problem *problem;
};

/* The registers of the line-number state machine, and the sequence that its rows belong to. */
struct line_state {
    uint64_t address;
    uint32_t line, file, caller, function;
    uint32_t section; /* 0: no address yet */
    bool is_unusable; /* the sequence has no code, or goes backwards */
    size_t first_row;
};

static int relocation_order(const void *left, const void *right)
{
    const struct relocation *a = left, *b = right;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static gpufl_status relocations_add(struct line_reading *reading, const struct image_section *section)
{
    bool has_addend = section->type == SECTION_RELA;
    size_t count = (size_t)(section->size / (has_addend ? RELA_SIZE : REL_SIZE));
    if (!count)
        return GPUFL_OK;
    size_t total = reading->relocation_count + count;
    struct relocation *relocations = realloc(reading->relocations, total * sizeof *relocations);
    if (!relocations)
        return problem_set(reading->problem, GPUFL_E_NO_MEMORY, "no memory for %zu relocations", total);
    reading->relocations = relocations;
    const uint8_t *bytes = reading->table->image->bytes + section->offset;
    struct byte_reader reader = byte_reader_over(bytes, (size_t)section->size);
    while (reading->relocation_count < total) {
        struct relocation *relocation = &relocations[reading->relocation_count++];
        relocation->offset = byte_reader_u64(&reader);
        relocation->symbol = (uint32_t)(byte_reader_u64(&reader) >> 32);
        relocation->has_addend = has_addend;
        relocation->addend = has_addend ? byte_reader_u64(&reader) : 0;
    }
    return GPUFL_OK;
}

/* ptxas writes REL sections for older architectures (sm_80) and RELA sections for newer ones (sm_90). */
static gpufl_status relocations_read(struct line_reading *reading, uint32_t section)
{
    const struct code_image *image = reading->table->image;
    bool has_rel = false, has_rela = false;
    for (uint32_t i = 1; i < image->section_count; i++) {
        const struct image_section *table = &image->sections[i];
        bool *has_it = table->type == SECTION_RELA ? &has_rela : table->type == SECTION_REL ? &has_rel : NULL;
        if (!has_it || *has_it || table->info != section)
            continue;
        *has_it = true; /* one of each kind: a hostile file could list the same bytes a thousand times */
        gpufl_status status = relocations_add(reading, table);
        if (status)
            return status;
    }
    if (reading->relocation_count)
        qsort(reading->relocations, reading->relocation_count, sizeof *reading->relocations, relocation_order);
    return GPUFL_OK;
}

/* In linked code the operand of set_address is the address. Otherwise it is a placeholder, and the relocation at its
 * offset refers to the code. */
static void address_set(struct line_reading *reading, struct line_state *state, size_t operand_offset, uint64_t operand)
{
    const struct code_image *image = reading->table->image;
    struct image_symbol symbol = {0};
    if (image->is_linked) {
        symbol.section = image_section_at(image, operand);
        operand -= image->sections[symbol.section].address;
    }
    struct relocation key = {.offset = operand_offset};
    const struct relocation *relocation = reading->relocation_count && !image->is_linked
                                              ? bsearch(&key, reading->relocations, reading->relocation_count,
                                                        sizeof *reading->relocations, relocation_order)
                                              : NULL;
    if (relocation && !image_symbol_read(image, relocation->symbol, &symbol))
        symbol.section = 0;
    if (!symbol.section || (state->section && state->section != symbol.section)) {
        state->is_unusable = true;
        return;
    }
    state->section = symbol.section;
    state->address = symbol.value + (relocation && relocation->has_addend ? relocation->addend : operand);
}

static gpufl_status row_add(struct line_reading *reading, struct line_state *state, const struct line_unit *unit)
{
    struct line_table *table = reading->table;
    if (table->row_count == ROWS_MAX)
        return problem_set(reading->problem, GPUFL_E_LIMIT, "%s has more than %d rows", reading->section_name,
                           ROWS_MAX);
    if (table->row_count == table->row_capacity) {
        size_t capacity = table->row_capacity ? table->row_capacity * 2 : 256;
        struct line_row *rows = realloc(table->rows, capacity * sizeof *rows);
        if (!rows)
            return problem_set(reading->problem, GPUFL_E_NO_MEMORY, "no memory for %zu line rows", capacity);
        table->rows = rows;
        table->row_capacity = capacity;
    }
    size_t number = table->row_count - state->first_row; /* number of rows before this one */
    if (number && table->rows[table->row_count - 1].address > state->address)
        state->is_unusable = true;
    table->rows[table->row_count++] = (struct line_row){
        .address = state->address,
        .line = state->line,
        .path = state->file < unit->path_count ? unit->paths[state->file] : 0,
        /* A call precedes the rows inlined into it; any other reference could form a loop. */
        .caller = state->caller <= number ? state->caller : 0,
        .function = state->function,
    };
    return GPUFL_OK;
}

static void state_reset(struct line_state *state, const struct line_table *table)
{
    *state = (struct line_state){.line = 1, .file = 1, .first_row = table->row_count};
}

static gpufl_status sequence_end(struct line_reading *reading, struct line_state *state)
{
    struct line_table *table = reading->table;
    size_t count = table->row_count - state->first_row;
    if (count && table->rows[table->row_count - 1].address > state->address)
        state->is_unusable = true;
    if (state->is_unusable || !state->section || !count) {
        table->skipped_sequences += count != 0;
        table->row_count = state->first_row;
        state_reset(state, table);
        return GPUFL_OK;
    }
    if (table->sequence_count == table->sequence_capacity) {
        size_t capacity = table->sequence_capacity ? table->sequence_capacity * 2 : 16;
        struct line_sequence *sequences = realloc(table->sequences, capacity * sizeof *sequences);
        if (!sequences)
            return problem_set(reading->problem, GPUFL_E_NO_MEMORY, "no memory for %zu line sequences", capacity);
        table->sequences = sequences;
        table->sequence_capacity = capacity;
    }
    table->sequences[table->sequence_count++] = (struct line_sequence){
        .section = state->section,
        .first_row = (uint32_t)state->first_row,
        .row_count = (uint32_t)count,
        .end = state->address,
    };
    state_reset(state, table);
    return GPUFL_OK;
}

static gpufl_status extended_run(struct line_reading *reading, struct line_state *state, struct line_unit *unit,
                                 struct byte_reader *program)
{
    uint64_t size = byte_reader_uleb(program);
    if (!size || program->failed)
        return GPUFL_OK; /* ptxas pads with empty opcodes */
    struct byte_reader operands = *program;
    byte_reader_skip(program, size);
    if (program->failed)
        return GPUFL_OK;
    operands.size = program->at;
    switch (byte_reader_u8(&operands)) {
    case EXTENDED_END_SEQUENCE:
        return sequence_end(reading, state);
    case EXTENDED_SET_ADDRESS: {
        size_t offset = operands.at;
        unsigned width = size - 1 < 8 ? (unsigned)(size - 1) : 8;
        address_set(reading, state, offset, byte_reader_number(&operands, width));
        break;
    }
    case EXTENDED_DEFINE_FILE:
        if (!line_unit_define(unit, &operands, reading->table))
            return problem_set(reading->problem, GPUFL_E_NO_MEMORY, "no memory for a line table");
        break;
    case EXTENDED_INLINED_CALL: {
        uint64_t caller = byte_reader_uleb(&operands);
        uint64_t function = byte_reader_uleb(&operands);
        state->caller = caller > UINT32_MAX ? 0 : (uint32_t)caller;
        state->function = state->caller && function < UINT32_MAX ? (uint32_t)function + 1 : 0;
        break;
    }
    case EXTENDED_FUNCTION_NAME: {
        uint64_t function = byte_reader_uleb(&operands);
        state->function = function < UINT32_MAX ? (uint32_t)function + 1 : 0;
        break;
    }
    default:
        break;
    }
    program->failed |= operands.failed;
    return GPUFL_OK;
}

static void address_advance(struct line_state *state, const struct line_unit *unit, uint64_t operations)
{
    state->address += operations * unit->min_instruction_bytes;
}

static gpufl_status standard_run(struct line_reading *reading, struct line_state *state, const struct line_unit *unit,
                                 struct byte_reader *program, uint8_t opcode)
{
    switch (opcode) {
    case OP_COPY:
        return row_add(reading, state, unit);
    case OP_ADVANCE_PC:
        address_advance(state, unit, byte_reader_uleb(program));
        break;
    case OP_ADVANCE_LINE:
        state->line += (uint32_t)byte_reader_sleb(program);
        break;
    case OP_SET_FILE: {
        uint64_t file = byte_reader_uleb(program);
        state->file = file > UINT32_MAX ? UINT32_MAX : (uint32_t)file;
        break;
    }
    case OP_CONST_ADD_PC:
        address_advance(state, unit, (255u - unit->opcode_base) / unit->line_range);
        break;
    case OP_FIXED_ADVANCE_PC:
        state->address += byte_reader_u16(program);
        break;
    default: /* columns, flags and unknown opcodes, with the header's operand counts */
        for (unsigned i = 0; i < unit->operand_counts[opcode]; i++)
            byte_reader_uleb(program);
        break;
    }
    return GPUFL_OK;
}

static gpufl_status program_run(struct line_reading *reading, struct line_unit *unit)
{
    struct byte_reader program = reading->section;
    program.at = unit->program_begin;
    program.size = unit->program_end;
    struct line_state state;
    state_reset(&state, reading->table);
    gpufl_status status = GPUFL_OK;
    while (!status && byte_reader_left(&program)) {
        uint8_t opcode = byte_reader_u8(&program);
        if (opcode == OP_EXTENDED) {
            status = extended_run(reading, &state, unit, &program);
        } else if (opcode < unit->opcode_base) {
            status = standard_run(reading, &state, unit, &program, opcode);
        } else {
            unsigned special = opcode - unit->opcode_base;
            address_advance(&state, unit, special / unit->line_range);
            state.line += (uint32_t)(unit->line_base + (int)(special % unit->line_range));
            status = row_add(reading, &state, unit);
        }
    }
    if (!status && program.failed)
        status = problem_set(reading->problem, GPUFL_E_INVALID, "%s: the line program breaks off at offset %zu",
                             reading->section_name, program.at);
    if (!status && reading->table->row_count != state.first_row) {
        reading->table->row_count = state.first_row; /* rows without an end cover nothing */
        reading->table->skipped_sequences++;
    }
    return status;
}

static int sequence_order(const void *left, const void *right)
{
    const struct line_sequence *a = left, *b = right;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    return a->first_row < b->first_row ? -1 : a->first_row > b->first_row;
}

gpufl_status line_table_open(struct line_table *table, const struct code_image *image, enum line_table_kind kind,
                             struct problem *problem)
{
    const char *name = kind == LINE_TABLE_PTX ? ".nv_debug_line_sass" : ".debug_line";
    *table = (struct line_table){.image = image, .paths.text_bytes_max = PATH_BYTES_MAX};
    uint32_t index = image_section_find(image, name, 0);
    if (!index || !image->sections[index].size)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "no line information: build with %s",
                           image->vendor == IMAGE_AMD ? "-gline-tables-only" : "-lineinfo");
    if (image->sections[index].flags & SECTION_FLAG_COMPRESSED)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s is compressed: build with -gz=none", name);
    table->strings = image_strings(image, ".debug_str");
    table->line_strings = image_strings(image, ".debug_line_str");
    const struct image_section *section = &image->sections[index];
    struct line_reading reading = {
        .table = table,
        .section_name = name,
        .section = byte_reader_over(image->bytes + section->offset, (size_t)section->size),
        .problem = problem,
    };
    gpufl_status status = relocations_read(&reading, index);
    while (!status && byte_reader_left(&reading.section)) {
        struct line_unit unit;
        status = line_unit_read(&unit, &reading.section, table, name, problem);
        if (!status) {
            table->unit_count++;
            status = program_run(&reading, &unit);
            line_unit_free(&unit);
        }
    }
    free(reading.relocations);
    if (!status && image->is_linked && !inlined_calls_read(&table->inlined, table))
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for inlined calls");
    if (status)
        line_table_close(table);
    else if (table->sequence_count)
        qsort(table->sequences, table->sequence_count, sizeof *table->sequences, sequence_order);
    return status;
}

void line_table_close(struct line_table *table)
{
    free(table->rows);
    free(table->sequences);
    inlined_calls_free(&table->inlined);
    intern_free(&table->paths);
    *table = (struct line_table){0};
}

/* The linker joins the string sections of its objects without adjusting the offsets in their line programs: the offsets
 * are valid only in a cubin of one unit. */
static const char *function_name(const struct line_table *table, const struct line_row *row)
{
    if (!row->function || !row->caller || table->unit_count != 1)
        return NULL;
    uint32_t offset = row->function - 1;
    const char *name = image_strings_at(&table->strings, offset);
    return name && *name && (!offset || !name[-1]) ? name : NULL;
}

/* The last row at or before the address; NULL if the sequence does not cover it. */
static const struct line_row *row_find(const struct line_table *table, const struct line_sequence *sequence,
                                       uint64_t address)
{
    const struct line_row *rows = table->rows + sequence->first_row;
    if (address >= sequence->end || address < rows[0].address)
        return NULL;
    size_t low = 0, high = sequence->row_count; /* rows[low] is at or before the address, rows[high] after it */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (rows[middle].address <= address)
            low = middle;
        else
            high = middle;
    }
    return &rows[low];
}

/* Adds the calls that lead to the first frame. */
static size_t callers_add(const struct line_table *table, uint32_t section, uint64_t address, struct line_frame *frames,
                          size_t max)
{
    const struct inlined_call *calls[LINE_FRAMES_MAX];
    size_t room = max < LINE_FRAMES_MAX ? max : LINE_FRAMES_MAX;
    size_t count =
        room > 1 && frames[0].line
            ? inlined_calls_find(&table->inlined, table->image->sections[section].address + address, calls, room - 1)
            : 0;
    for (size_t i = 0; i < count; i++)
        frames[i + 1] = (struct line_frame){intern_text(&table->paths, calls[i]->path), calls[i]->line, NULL};
    return count + 1;
}

size_t line_table_find(const struct line_table *table, uint32_t section, uint64_t address, struct line_frame *frames,
                       size_t max)
{
    size_t low = 0, high = table->sequence_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->sequences[middle].section < section)
            low = middle + 1;
        else
            high = middle;
    }
    const struct line_row *row = NULL;
    for (; !row && low < table->sequence_count && table->sequences[low].section == section; low++)
        row = row_find(table, &table->sequences[low], address);
    if (!row)
        return 0;
    const struct line_row *rows = table->rows + table->sequences[low - 1].first_row;
    size_t count = 0;
    while (count < max) {
        frames[count++] = (struct line_frame){
            .path = intern_text(&table->paths, row->path),
            .line = row->line,
            .function = function_name(table, row),
        };
        if (!row->caller)
            break;
        row = &rows[row->caller - 1];
    }
    return table->image->is_linked ? callers_add(table, section, address, frames, max) : count;
}
