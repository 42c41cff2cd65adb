/* SPDX-License-Identifier: Apache-2.0 */
#include "code/line_program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH_SIZE_MAX = 4096, ENTRY_FORMATS_MAX = 32 };
enum { CONTENT_PATH = 1, CONTENT_DIRECTORY = 2 };
enum {
    FORM_BLOCK2 = 0x03,
    FORM_BLOCK4 = 0x04,
    FORM_DATA2 = 0x05,
    FORM_DATA4 = 0x06,
    FORM_DATA8 = 0x07,
    FORM_STRING = 0x08,
    FORM_BLOCK = 0x09,
    FORM_BLOCK1 = 0x0a,
    FORM_DATA1 = 0x0b,
    FORM_STRP = 0x0e,
    FORM_UDATA = 0x0f,
    FORM_DATA16 = 0x1e,
    FORM_LINE_STRP = 0x1f,
};

struct directory_list {
    const char **names; /* owned; the names are borrowed */
    size_t count, capacity;
};

static bool directory_add(struct directory_list *list, const char *name)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 16;
        const char **names = realloc(list->names, capacity * sizeof *names);
        if (!names)
            return false;
        list->names = names;
        list->capacity = capacity;
    }
    list->names[list->count++] = name;
    return true;
}

static size_t path_append(char *path, size_t size, const char *part)
{
    if (part[0] == '/')
        size = 0; /* an absolute path discards the part before it */
    /* The precision limits the read: the end of a hostile name may be far away. */
    int added = snprintf(path + size, PATH_SIZE_MAX - size, "%s%.*s", size && path[size - 1] != '/' ? "/" : "",
                         PATH_SIZE_MAX, part);
    return added < 0 || size + (size_t)added >= PATH_SIZE_MAX ? PATH_SIZE_MAX : size + (size_t)added;
}

/* The id of the joined path; 0 (unknown) if it is too long or memory is out. */
static uint32_t path_id(struct line_table *table, const struct directory_list *directories, uint16_t version,
                        uint64_t directory, const char *name)
{
    char path[PATH_SIZE_MAX];
    size_t size = 0;
    path[0] = '\0';
    if (version >= 5 && directory && directories->count)
        size = path_append(path, size, directories->names[0]);
    /* Before version 5, directory 0 is the compilation directory, which only .debug_info contains. */
    uint64_t index = version >= 5 ? directory : directory - 1;
    if (size < PATH_SIZE_MAX && index < directories->count)
        size = path_append(path, size, directories->names[index]);
    if (size < PATH_SIZE_MAX)
        size = path_append(path, size, name);
    return size && size < PATH_SIZE_MAX ? intern_id(&table->paths, path, size, NULL) : 0;
}

static bool path_add(struct line_unit *unit, uint32_t id)
{
    uint32_t count = unit->path_count;
    if (!(count & (count - 1))) { /* doubled at each power of two */
        uint32_t *paths = realloc(unit->paths, (count ? (size_t)count * 2 : 1) * sizeof *paths);
        if (!paths)
            return false;
        unit->paths = paths;
    }
    unit->paths[unit->path_count++] = id;
    return true;
}

/* Version 2 to 4: strings up to an empty one, then files with directory, time and size. */
static bool old_tables_read(struct line_unit *unit, struct byte_reader *header, struct line_table *table,
                            struct directory_list *directories)
{
    for (;;) {
        const char *name = byte_reader_text(header);
        if (header->failed || !*name)
            break;
        if (!directory_add(directories, name))
            return false;
    }
    if (!path_add(unit, 0)) /* files count from 1 */
        return false;
    while (!header->failed) {
        const char *name = byte_reader_text(header);
        if (header->failed || !*name)
            break;
        uint64_t directory = byte_reader_uleb(header);
        byte_reader_uleb(header);
        byte_reader_uleb(header);
        if (!path_add(unit, path_id(table, directories, unit->version, directory, name)))
            return false;
    }
    return true;
}

struct form_value {
    const char *text;
    uint64_t number;
};

/* False for a form that a line table cannot contain. */
static bool form_read(const struct line_unit *unit, struct byte_reader *header, const struct line_table *table,
                      uint64_t form, struct form_value *value)
{
    unsigned offset_size = unit->is_64bit ? 8 : 4;
    *value = (struct form_value){.text = ""};
    switch (form) {
    case FORM_STRING:
        value->text = byte_reader_text(header);
        return true;
    case FORM_STRP:
        value->text = image_strings_at(&table->strings, byte_reader_number(header, offset_size));
        return true;
    case FORM_LINE_STRP:
        value->text = image_strings_at(&table->line_strings, byte_reader_number(header, offset_size));
        return true;
    case FORM_UDATA:
        value->number = byte_reader_uleb(header);
        return true;
    case FORM_DATA1:
    case FORM_DATA2:
    case FORM_DATA4:
    case FORM_DATA8:
        value->number = byte_reader_number(header, form == FORM_DATA1   ? 1
                                                   : form == FORM_DATA2 ? 2
                                                   : form == FORM_DATA4 ? 4
                                                                        : 8);
        return true;
    case FORM_DATA16:
        byte_reader_skip(header, 16);
        return true;
    case FORM_BLOCK:
        byte_reader_skip(header, byte_reader_uleb(header));
        return true;
    case FORM_BLOCK1:
    case FORM_BLOCK2:
    case FORM_BLOCK4:
        byte_reader_skip(header, byte_reader_number(header, form == FORM_BLOCK1 ? 1 : form == FORM_BLOCK2 ? 2 : 4));
        return true;
    default:
        return false;
    }
}

/* Reads a table of version 5: directories (into the list) or files (into the unit). */
static bool entries_read(struct line_unit *unit, struct byte_reader *header, struct line_table *table,
                         struct directory_list *directories, bool is_files)
{
    uint64_t formats[ENTRY_FORMATS_MAX][2];
    uint8_t format_count = byte_reader_u8(header);
    if (format_count > ENTRY_FORMATS_MAX) {
        header->failed = true;
        return true;
    }
    for (unsigned i = 0; i < format_count; i++) {
        formats[i][0] = byte_reader_uleb(header);
        formats[i][1] = byte_reader_uleb(header);
    }
    uint64_t count = byte_reader_uleb(header);
    if (count && !format_count)
        header->failed = true; /* entries without bytes: there could be any number of them */
    for (uint64_t entry = 0; entry < count && !header->failed; entry++) {
        const char *name = "";
        uint64_t directory = 0;
        for (unsigned i = 0; i < format_count; i++) {
            struct form_value value;
            if (!form_read(unit, header, table, formats[i][1], &value) || !value.text) {
                header->failed = true;
                break;
            }
            if (formats[i][0] == CONTENT_PATH)
                name = value.text;
            else if (formats[i][0] == CONTENT_DIRECTORY)
                directory = value.number;
        }
        if (header->failed)
            break;
        if (is_files ? !path_add(unit, path_id(table, directories, unit->version, directory, name))
                     : !directory_add(directories, name))
            return false;
    }
    return true;
}

/* Reads the fields before the tables; false if they are invalid. */
static bool fixed_part_read(struct line_unit *unit, struct byte_reader *header)
{
    unit->version = byte_reader_u16(header);
    if (unit->version < 2 || unit->version > 5)
        return false;
    if (unit->version >= 5)
        byte_reader_skip(header, 2); /* sizes of addresses and segment selectors */
    uint64_t header_size = byte_reader_number(header, unit->is_64bit ? 8 : 4);
    if (header_size > byte_reader_left(header))
        return false;
    unit->program_begin = header->at + (size_t)header_size;
    header->size = unit->program_begin;
    unit->min_instruction_bytes = byte_reader_u8(header);
    /* Operations per instruction (1: no bundles), and the default of is_stmt. */
    byte_reader_skip(header, unit->version >= 4 ? 2 : 1);
    unit->line_base = (int8_t)byte_reader_u8(header);
    unit->line_range = byte_reader_u8(header);
    unit->opcode_base = byte_reader_u8(header);
    for (unsigned opcode = 1; opcode < unit->opcode_base; opcode++)
        unit->operand_counts[opcode] = byte_reader_u8(header);
    return !header->failed && unit->line_range && unit->opcode_base;
}

gpufl_status line_unit_read(struct line_unit *unit, struct byte_reader *section, struct line_table *table,
                            const char *section_name, struct problem *problem)
{
    size_t begin = section->at;
    memset(unit, 0, sizeof *unit);
    uint64_t size = byte_reader_u32(section);
    if (size == UINT32_MAX) {
        unit->is_64bit = true;
        size = byte_reader_u64(section);
    }
    if (section->failed || size > byte_reader_left(section))
        return problem_set(problem, GPUFL_E_INVALID, "%s: the unit at offset %zu goes beyond the section (%zu bytes)",
                           section_name, begin, section->size);
    unit->program_end = section->at + (size_t)size;
    struct byte_reader header = *section;
    header.size = unit->program_end;
    section->at = unit->program_end;
    if (!size) {
        unit->program_begin = unit->program_end;
        return GPUFL_OK;
    }
    struct directory_list directories = {0};
    bool is_good = fixed_part_read(unit, &header), has_memory = true;
    if (is_good) {
        if (unit->version < 5)
            has_memory = old_tables_read(unit, &header, table, &directories);
        else
            has_memory = entries_read(unit, &header, table, &directories, false) &&
                         entries_read(unit, &header, table, &directories, true);
    }
    free(directories.names);
    if (is_good && has_memory && !header.failed)
        return GPUFL_OK;
    line_unit_free(unit);
    if (!has_memory)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a line table");
    return problem_set(problem, GPUFL_E_INVALID, "%s: the header of the unit at offset %zu is damaged near offset %zu",
                       section_name, begin, header.at);
}

void line_unit_free(struct line_unit *unit)
{
    free(unit->paths);
    unit->paths = NULL;
    unit->path_count = 0;
}

bool line_unit_define(struct line_unit *unit, struct byte_reader *operands, struct line_table *table)
{
    const char *name = byte_reader_text(operands);
    struct directory_list none = {0};
    return operands->failed || path_add(unit, path_id(table, &none, unit->version, 0, name));
}
