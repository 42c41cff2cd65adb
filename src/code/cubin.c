/* SPDX-License-Identifier: Apache-2.0 */
#include "code/cubin.h"

#include "code/byte_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ELF_HEADER_SIZE = 64,
    SECTION_HEADER_SIZE = 64,
    SYMBOL_SIZE = 24,
    MACHINE_CUDA = 190,
    SECTION_SYMTAB = 2,
    SECTION_NOTE = 7,
    SECTION_NOBITS = 8,
    SECTION_SYMTAB_SHNDX = 18,
    SECTION_INDEX_ESCAPE = 0xffff, /* the real index is elsewhere */
    SECTION_INDEX_RESERVED = 0xff00,
    SYMBOL_FUNCTION = 2,
    SYMBOL_OTHER_ENTRY = 0x10,
    ABI_VERSION_SM_HIGH = 8, /* since CUDA 13: the SM number in bits 8 to 15 of the flags */
    NOTE_TOOLKIT = 2000,
};

struct elf_header {
    uint8_t abi_version;
    uint32_t flags;
    uint64_t section_offset;
    uint32_t section_entry_size, section_count, name_section;
};

static gpufl_status elf_header_read(const struct cubin *cubin, struct elf_header *header, struct problem *problem)
{
    if (cubin->size < ELF_HEADER_SIZE)
        return problem_set(problem, GPUFL_E_INVALID, "cubin: %zu bytes are less than an ELF header", cubin->size);
    if (memcmp(cubin->bytes, "\177ELF", 4) != 0)
        return problem_set(problem, GPUFL_E_INVALID, "cubin: no ELF magic at offset 0");
    if (cubin->bytes[4] != 2 || cubin->bytes[5] != 1)
        return problem_set(problem, GPUFL_E_INVALID, "cubin: not a 64-bit little-endian ELF (offset 4)");
    header->abi_version = cubin->bytes[8];
    struct byte_reader reader = byte_reader_over(cubin->bytes, cubin->size);
    reader.at = 18;
    uint16_t machine = byte_reader_u16(&reader);
    if (machine != MACHINE_CUDA)
        return problem_set(problem, GPUFL_E_INVALID, "cubin: machine %u is not CUDA (offset 18)", machine);
    reader.at = 40;
    header->section_offset = byte_reader_u64(&reader);
    header->flags = byte_reader_u32(&reader);
    reader.at = 58;
    header->section_entry_size = byte_reader_u16(&reader);
    header->section_count = byte_reader_u16(&reader);
    header->name_section = byte_reader_u16(&reader);
    if (header->section_entry_size < SECTION_HEADER_SIZE || header->section_offset > cubin->size ||
        cubin->size - header->section_offset < header->section_entry_size)
        return problem_set(problem, GPUFL_E_INVALID, "cubin: no section headers at offset %" PRIu64,
                           header->section_offset);
    /* Counts that do not fit 16 bits stand in the first, otherwise empty section. */
    reader.at = (size_t)header->section_offset + 32;
    uint64_t long_count = byte_reader_u64(&reader);
    uint32_t long_name_section = byte_reader_u32(&reader);
    if (header->section_count == 0)
        header->section_count = long_count > UINT32_MAX ? UINT32_MAX : (uint32_t)long_count;
    if (header->name_section == SECTION_INDEX_ESCAPE)
        header->name_section = long_name_section;
    if ((cubin->size - header->section_offset) / header->section_entry_size < header->section_count)
        return problem_set(problem, GPUFL_E_INVALID,
                           "cubin: %" PRIu32 " section headers at offset %" PRIu64 " go beyond the end (%zu bytes)",
                           header->section_count, header->section_offset, cubin->size);
    return GPUFL_OK;
}

static void arch_name(struct cubin *cubin, const struct elf_header *header)
{
    bool is_new = header->abi_version >= ABI_VERSION_SM_HIGH;
    uint32_t sm = is_new ? header->flags >> 8 & 0xff : header->flags & 0xff;
    bool is_specific = header->flags & (is_new ? 0x8 : 0x800);
    snprintf(cubin->arch, sizeof cubin->arch, "sm_%" PRIu32 "%s", sm, is_specific ? "a" : "");
}

/* The last byte must be NUL, which spares the search for each string's end: in a hostile file they could all share one
 * far away. */
static struct cubin_strings strings_of(const struct cubin *cubin, const struct cubin_section *section)
{
    struct cubin_strings strings = {(const char *)cubin->bytes + section->offset, section->size};
    if (strings.size && strings.text[strings.size - 1])
        strings.size = 0;
    return strings;
}

struct cubin_strings cubin_strings(const struct cubin *cubin, const char *section_name)
{
    uint32_t index = cubin_section_find(cubin, section_name, 0);
    return index ? strings_of(cubin, &cubin->sections[index]) : (struct cubin_strings){0};
}

static gpufl_status sections_read(struct cubin *cubin, const struct elf_header *header, struct problem *problem)
{
    if (header->name_section >= header->section_count)
        return problem_set(problem, GPUFL_E_INVALID, "cubin: no section %" PRIu32 " for the names of the sections",
                           header->name_section);
    cubin->sections = calloc(header->section_count, sizeof *cubin->sections);
    if (!cubin->sections)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %" PRIu32 " sections", header->section_count);
    cubin->section_count = header->section_count;
    struct byte_reader reader = byte_reader_over(cubin->bytes, cubin->size);
    for (uint32_t i = 0; i < cubin->section_count; i++) {
        struct cubin_section *section = &cubin->sections[i];
        reader.at = (size_t)(header->section_offset + (uint64_t)i * header->section_entry_size) + 4;
        section->type = byte_reader_u32(&reader);
        byte_reader_skip(&reader, 16); /* flags, address */
        section->offset = byte_reader_u64(&reader);
        section->size = byte_reader_u64(&reader);
        section->link = byte_reader_u32(&reader);
        section->info = byte_reader_u32(&reader);
        byte_reader_skip(&reader, 8);
        section->entry_size = byte_reader_u64(&reader);
        if (section->type == SECTION_NOBITS || section->type == 0)
            section->offset = section->size = 0;
        if (section->offset > cubin->size || section->size > cubin->size - section->offset)
            return problem_set(problem, GPUFL_E_INVALID,
                               "cubin: section %" PRIu32 " (%" PRIu64 " bytes at offset %" PRIu64
                               ") goes beyond the end (%zu bytes)",
                               i, section->size, section->offset, cubin->size);
    }
    struct cubin_strings names = strings_of(cubin, &cubin->sections[header->name_section]);
    for (uint32_t i = 0; i < cubin->section_count; i++) {
        reader.at = (size_t)(header->section_offset + (uint64_t)i * header->section_entry_size);
        uint32_t name = byte_reader_u32(&reader);
        cubin->sections[i].name = i ? cubin_strings_at(&names, name) : "";
        if (!cubin->sections[i].name)
            return problem_set(problem, GPUFL_E_INVALID,
                               "cubin: the name of section %" PRIu32 " lies outside section %" PRIu32, i,
                               header->name_section);
        if (cubin->sections[i].type == SECTION_SYMTAB && !cubin->symbol_table) {
            cubin->symbol_table = i;
            uint32_t link = cubin->sections[i].link;
            if (link < cubin->section_count)
                cubin->symbol_names = strings_of(cubin, &cubin->sections[link]);
        }
        if (cubin->sections[i].type == SECTION_SYMTAB_SHNDX)
            cubin->long_index_table = i;
    }
    return GPUFL_OK;
}

static uint64_t symbol_count(const struct cubin *cubin)
{
    return cubin->symbol_table ? cubin->sections[cubin->symbol_table].size / SYMBOL_SIZE : 0;
}

/* The section of a symbol whose index did not fit 16 bits. */
static uint32_t long_section_index(const struct cubin *cubin, uint32_t symbol_index)
{
    const struct cubin_section *table = &cubin->sections[cubin->long_index_table];
    struct byte_reader reader = byte_reader_over(cubin->bytes + table->offset, (size_t)table->size);
    byte_reader_skip(&reader, (uint64_t)symbol_index * 4);
    return byte_reader_u32(&reader);
}

bool cubin_symbol_read(const struct cubin *cubin, uint32_t symbol_index, struct cubin_symbol *symbol)
{
    if (symbol_index >= symbol_count(cubin))
        return false;
    const struct cubin_section *table = &cubin->sections[cubin->symbol_table];
    struct byte_reader reader = byte_reader_over(cubin->bytes + table->offset, (size_t)table->size);
    reader.at = (size_t)symbol_index * SYMBOL_SIZE;
    uint32_t name = byte_reader_u32(&reader);
    symbol->type = byte_reader_u8(&reader) & 0xf;
    symbol->other = byte_reader_u8(&reader);
    uint32_t section = byte_reader_u16(&reader);
    symbol->value = byte_reader_u64(&reader);
    symbol->size = byte_reader_u64(&reader);
    if (section == SECTION_INDEX_ESCAPE)
        section = long_section_index(cubin, symbol_index);
    else if (section >= SECTION_INDEX_RESERVED)
        section = 0;
    symbol->section = section < cubin->section_count ? section : 0;
    symbol->name = cubin_strings_at(&cubin->symbol_names, name);
    return true;
}

static gpufl_status function_add(struct cubin *cubin, uint32_t index, const struct cubin_symbol *symbol,
                                 struct problem *problem)
{
    if (!symbol->name)
        return problem_set(problem, GPUFL_E_INVALID, "cubin: symbol %" PRIu32 " has its name outside the string table",
                           index);
    const struct cubin_section *section = &cubin->sections[symbol->section];
    if (symbol->value > section->size || symbol->size > section->size - symbol->value)
        return problem_set(problem, GPUFL_E_INVALID,
                           "cubin: function of symbol %" PRIu32 " (%" PRIu64 " bytes at offset %" PRIu64
                           ") goes beyond its section %" PRIu32 " (%" PRIu64 " bytes)",
                           index, symbol->size, symbol->value, symbol->section, section->size);
    cubin->functions[cubin->function_count++] = (struct cubin_function){
        .name = symbol->name,
        .symbol_index = index,
        .section = symbol->section,
        .offset = symbol->value,
        .size = symbol->size,
        .is_entry = symbol->other & SYMBOL_OTHER_ENTRY,
    };
    return GPUFL_OK;
}

static gpufl_status functions_read(struct cubin *cubin, struct problem *problem)
{
    uint64_t count = symbol_count(cubin);
    uint64_t functions = 0;
    struct cubin_symbol symbol;
    for (uint64_t i = 1; i < count; i++)
        functions += cubin_symbol_read(cubin, (uint32_t)i, &symbol) && symbol.type == SYMBOL_FUNCTION && symbol.section;
    if (!functions)
        return GPUFL_OK;
    cubin->functions = calloc((size_t)functions, sizeof *cubin->functions);
    if (!cubin->functions)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %" PRIu64 " functions", functions);
    for (uint64_t i = 1; i < count; i++) {
        if (!cubin_symbol_read(cubin, (uint32_t)i, &symbol) || symbol.type != SYMBOL_FUNCTION || !symbol.section)
            continue;
        gpufl_status status = function_add(cubin, (uint32_t)i, &symbol, problem);
        if (status)
            return status;
    }
    return GPUFL_OK;
}

gpufl_status cubin_open(struct cubin *cubin, const void *bytes, size_t size, struct problem *problem)
{
    *cubin = (struct cubin){.bytes = bytes, .size = size};
    struct elf_header header = {0};
    gpufl_status status = elf_header_read(cubin, &header, problem);
    if (status)
        return status;
    arch_name(cubin, &header);
    status = sections_read(cubin, &header, problem);
    if (!status)
        status = functions_read(cubin, problem);
    if (status)
        cubin_close(cubin);
    return status;
}

void cubin_close(struct cubin *cubin)
{
    free(cubin->sections);
    free(cubin->functions);
    *cubin = (struct cubin){0};
}

const struct cubin_function *cubin_function_find(const struct cubin *cubin, const char *name)
{
    for (uint32_t i = 0; i < cubin->function_count; i++)
        if (!strcmp(cubin->functions[i].name, name))
            return &cubin->functions[i];
    return NULL;
}

const struct cubin_function *cubin_function_at(const struct cubin *cubin, uint32_t symbol_index)
{
    for (uint32_t i = 0; i < cubin->function_count; i++)
        if (cubin->functions[i].symbol_index == symbol_index)
            return &cubin->functions[i];
    return NULL;
}

const struct cubin_function *cubin_function_host(const struct cubin *cubin, const struct cubin_function *function)
{
    const struct cubin_function *host = function;
    for (uint32_t i = 0; i < cubin->function_count; i++) {
        const struct cubin_function *candidate = &cubin->functions[i];
        bool is_better = candidate->is_entry != host->is_entry ? candidate->is_entry : candidate->size > host->size;
        if (candidate->section == function->section && is_better)
            host = candidate;
    }
    return host;
}

uint32_t cubin_section_find(const struct cubin *cubin, const char *name, uint32_t after)
{
    for (uint64_t i = (uint64_t)after + 1; i < cubin->section_count; i++)
        if (!strcmp(cubin->sections[i].name, name))
            return (uint32_t)i;
    return 0;
}

const uint8_t *cubin_code(const struct cubin *cubin, const struct cubin_function *function)
{
    return cubin->bytes + cubin->sections[function->section].offset + function->offset;
}

bool cubin_word(const struct cubin *cubin, const struct cubin_function *function, uint64_t pc, uint64_t word[2])
{
    if (pc > function->size || function->size - pc < CUBIN_INSTRUCTION_BYTES)
        return false;
    struct byte_reader reader = byte_reader_over(cubin_code(cubin, function) + pc, CUBIN_INSTRUCTION_BYTES);
    word[0] = byte_reader_u64(&reader);
    word[1] = byte_reader_u64(&reader);
    return true;
}

static bool is_ptx(const struct cubin_section *section)
{
    /* The linker appends a number for each object that it joins. */
    static const char name[] = ".nv_debug_ptx_txt";
    size_t size = sizeof name - 1;
    return !strncmp(section->name, name, size) && (section->name[size] == '\0' || section->name[size] == '.') &&
           section->size;
}

bool cubin_has_ptx(const struct cubin *cubin)
{
    for (uint32_t i = 1; i < cubin->section_count; i++)
        if (is_ptx(&cubin->sections[i]))
            return true;
    return false;
}

void cubin_ptx(const struct cubin *cubin, struct bytes *out)
{
    for (uint32_t i = 1; i < cubin->section_count; i++) {
        const struct cubin_section *section = &cubin->sections[i];
        if (!is_ptx(section) || !bytes_reserve(out, (size_t)section->size))
            continue;
        const char *text = (const char *)cubin->bytes + section->offset;
        for (uint64_t at = 0; at < section->size; at++)
            bytes_append_char(out, text[at] ? text[at] : '\n');
    }
}

void cubin_toolkit(const struct cubin *cubin, char *out, size_t out_size)
{
    snprintf(out, out_size, "%s", "");
    uint32_t index = cubin_section_find(cubin, ".note.nv.tkinfo", 0);
    if (!index || cubin->sections[index].type != SECTION_NOTE)
        return;
    const struct cubin_section *section = &cubin->sections[index];
    struct byte_reader note = byte_reader_over(cubin->bytes + section->offset, (size_t)section->size);
    uint32_t name_size = byte_reader_u32(&note);
    uint32_t content_size = byte_reader_u32(&note);
    uint32_t type = byte_reader_u32(&note);
    byte_reader_skip(&note, ((uint64_t)name_size + 3) & ~(uint64_t)3);
    if (note.failed || type != NOTE_TOOLKIT || content_size > byte_reader_left(&note))
        return;
    struct byte_reader content = byte_reader_over(note.data + note.at, content_size);
    byte_reader_skip(&content, 8); /* version, an empty string */
    uint32_t tool = byte_reader_u32(&content);
    uint32_t version = byte_reader_u32(&content);
    byte_reader_skip(&content, 8); /* build, options */
    struct byte_reader names = content;
    byte_reader_skip(&names, tool);
    byte_reader_skip(&content, version);
    const char *tool_text = byte_reader_text(&names);
    const char *version_text = byte_reader_text(&content);
    if (!names.failed && !content.failed)
        snprintf(out, out_size, "%s %s", tool_text, version_text);
}
