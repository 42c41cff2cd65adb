/* SPDX-License-Identifier: Apache-2.0 */
#include "code/image.h"

#include "code/amdgpu.h"
#include "code/byte_reader.h"
#include "code/cubin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ELF_HEADER_SIZE = 64,
    SECTION_HEADER_SIZE = 64,
    SYMBOL_SIZE = 24,
    MACHINE_OFFSET = 18,
    MACHINE_CUDA = 190,
    MACHINE_AMDGPU = 224,
    TYPE_RELOCATABLE = 1,
    SECTION_SYMTAB = 2,
    SECTION_NOBITS = 8,
    SECTION_DYNSYM = 11,
    SECTION_SYMTAB_SHNDX = 18,
    SECTION_INDEX_ESCAPE = 0xffff, /* the real index is in another section */
    SECTION_INDEX_RESERVED = 0xff00,
    SECTION_FLAG_CODE = 4,
    SYMBOL_OBJECT = 1,
    SYMBOL_FUNCTION = 2,
    SYMBOL_OTHER_ENTRY = 0x10,
    NVIDIA_INSTRUCTION_BYTES = 16,
    AMD_INSTRUCTION_BYTES = 4,
};

struct elf_header {
    uint64_t section_offset;
    uint32_t section_entry_size, section_count, name_section;
};

/* Describes a file that only contains code, for the error message. */
static const char *bundle_words(const struct code_image *image)
{
    static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__", compressed[] = "CCOB";
    if (image->size >= sizeof bundle - 1 && !memcmp(image->bytes, bundle, sizeof bundle - 1))
        return ": it is a bundle of code for several GPUs (extract one with clang-offload-bundler --unbundle)";
    if (image->size >= sizeof compressed - 1 && !memcmp(image->bytes, compressed, sizeof compressed - 1))
        return ": it is a compressed bundle of code (extract it with clang-offload-bundler --unbundle)";
    return "";
}

static gpufl_status machine_read(struct code_image *image, struct problem *problem)
{
    if (image->size >= 4 && memcmp(image->bytes, "\177ELF", 4) != 0)
        return problem_set(problem, GPUFL_E_INVALID, "no ELF magic at offset 0%s", bundle_words(image));
    if (image->size < ELF_HEADER_SIZE)
        return problem_set(problem, GPUFL_E_INVALID, "%zu bytes are less than an ELF header", image->size);
    if (image->bytes[4] != 2 || image->bytes[5] != 1)
        return problem_set(problem, GPUFL_E_INVALID, "not a 64-bit little-endian ELF (offset 4)");
    image->abi_version = image->bytes[8];
    struct byte_reader reader = byte_reader_over(image->bytes, image->size);
    reader.at = 16;
    uint16_t type = byte_reader_u16(&reader);
    uint16_t machine = byte_reader_u16(&reader); /* at MACHINE_OFFSET */
    if (machine != MACHINE_CUDA && machine != MACHINE_AMDGPU)
        return problem_set(problem, GPUFL_E_INVALID, "machine %u is neither CUDA nor AMDGPU (offset 18)", machine);
    image->vendor = machine == MACHINE_AMDGPU ? IMAGE_AMD : IMAGE_NVIDIA;
    image->is_linked = machine == MACHINE_AMDGPU && type != TYPE_RELOCATABLE;
    reader.at = 48;
    image->flags = byte_reader_u32(&reader);
    return GPUFL_OK;
}

static gpufl_status elf_header_read(const struct code_image *image, struct elf_header *header, struct problem *problem)
{
    struct byte_reader reader = byte_reader_over(image->bytes, image->size);
    reader.at = 40;
    header->section_offset = byte_reader_u64(&reader);
    reader.at = 58;
    header->section_entry_size = byte_reader_u16(&reader);
    header->section_count = byte_reader_u16(&reader);
    header->name_section = byte_reader_u16(&reader);
    if (header->section_entry_size < SECTION_HEADER_SIZE || header->section_offset > image->size ||
        image->size - header->section_offset < header->section_entry_size)
        return problem_set(problem, GPUFL_E_INVALID, "no section headers at offset %" PRIu64, header->section_offset);
    /* If a count does not fit into 16 bits, it is stored in the first section header, which is otherwise empty. */
    reader.at = (size_t)header->section_offset + 32;
    uint64_t long_count = byte_reader_u64(&reader);
    uint32_t long_name_section = byte_reader_u32(&reader);
    if (header->section_count == 0)
        header->section_count = long_count > UINT32_MAX ? UINT32_MAX : (uint32_t)long_count;
    if (header->name_section == SECTION_INDEX_ESCAPE)
        header->name_section = long_name_section;
    if ((image->size - header->section_offset) / header->section_entry_size < header->section_count)
        return problem_set(problem, GPUFL_E_INVALID,
                           "%" PRIu32 " section headers at offset %" PRIu64 " go beyond the end (%zu bytes)",
                           header->section_count, header->section_offset, image->size);
    return GPUFL_OK;
}

/* The last byte must be NUL, so that every string ends inside the table. (In a hostile file all strings could share one
 * distant end; searching for each end would be slow.) */
static struct image_strings strings_of(const struct code_image *image, const struct image_section *section)
{
    struct image_strings strings = {(const char *)image->bytes + section->offset, section->size};
    if (strings.size && strings.text[strings.size - 1])
        strings.size = 0;
    return strings;
}

struct image_strings image_strings(const struct code_image *image, const char *section_name)
{
    uint32_t index = image_section_find(image, section_name, 0);
    return index ? strings_of(image, &image->sections[index]) : (struct image_strings){0};
}

/* A stripped AMD code object has only the symbols that its loader needs, which include its kernels. */
static void symbol_table_choose(struct code_image *image)
{
    uint32_t dynamic = 0;
    for (uint32_t i = 1; i < image->section_count && !image->symbol_table; i++) {
        if (image->sections[i].type == SECTION_SYMTAB)
            image->symbol_table = i;
        else if (image->sections[i].type == SECTION_DYNSYM && !dynamic)
            dynamic = i;
    }
    if (!image->symbol_table && image->vendor == IMAGE_AMD)
        image->symbol_table = dynamic;
    uint32_t link = image->sections[image->symbol_table].link;
    if (image->symbol_table && link < image->section_count)
        image->symbol_names = strings_of(image, &image->sections[link]);
}

static gpufl_status sections_read(struct code_image *image, const struct elf_header *header, struct problem *problem)
{
    if (header->name_section >= header->section_count)
        return problem_set(problem, GPUFL_E_INVALID, "no section %" PRIu32 " for the names of the sections",
                           header->name_section);
    image->sections = calloc(header->section_count, sizeof *image->sections);
    if (!image->sections)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %" PRIu32 " sections", header->section_count);
    image->section_count = header->section_count;
    struct byte_reader reader = byte_reader_over(image->bytes, image->size);
    for (uint32_t i = 0; i < image->section_count; i++) {
        struct image_section *section = &image->sections[i];
        reader.at = (size_t)(header->section_offset + (uint64_t)i * header->section_entry_size) + 4;
        section->type = byte_reader_u32(&reader);
        section->flags = byte_reader_u64(&reader);
        section->address = byte_reader_u64(&reader);
        section->offset = byte_reader_u64(&reader);
        section->size = byte_reader_u64(&reader);
        section->link = byte_reader_u32(&reader);
        section->info = byte_reader_u32(&reader);
        byte_reader_skip(&reader, 8);
        section->entry_size = byte_reader_u64(&reader);
        if (section->type == SECTION_NOBITS || section->type == 0)
            section->offset = section->size = 0;
        if (section->offset > image->size || section->size > image->size - section->offset)
            return problem_set(problem, GPUFL_E_INVALID,
                               "section %" PRIu32 " (%" PRIu64 " bytes at offset %" PRIu64
                               ") goes beyond the end (%zu bytes)",
                               i, section->size, section->offset, image->size);
    }
    struct image_strings names = strings_of(image, &image->sections[header->name_section]);
    for (uint32_t i = 0; i < image->section_count; i++) {
        reader.at = (size_t)(header->section_offset + (uint64_t)i * header->section_entry_size);
        uint32_t name = byte_reader_u32(&reader);
        image->sections[i].name = i ? image_strings_at(&names, name) : "";
        if (!image->sections[i].name)
            return problem_set(problem, GPUFL_E_INVALID,
                               "the name of section %" PRIu32 " lies outside section %" PRIu32, i,
                               header->name_section);
        if (image->sections[i].type == SECTION_SYMTAB_SHNDX)
            image->long_index_table = i;
    }
    symbol_table_choose(image);
    return GPUFL_OK;
}

static uint64_t symbol_count(const struct code_image *image)
{
    return image->symbol_table ? image->sections[image->symbol_table].size / SYMBOL_SIZE : 0;
}

/* The section of a symbol whose index does not fit into 16 bits. */
static uint32_t long_section_index(const struct code_image *image, uint32_t symbol_index)
{
    const struct image_section *table = &image->sections[image->long_index_table];
    struct byte_reader reader = byte_reader_over(image->bytes + table->offset, (size_t)table->size);
    byte_reader_skip(&reader, (uint64_t)symbol_index * 4);
    return byte_reader_u32(&reader);
}

bool image_symbol_read(const struct code_image *image, uint32_t symbol_index, struct image_symbol *symbol)
{
    if (symbol_index >= symbol_count(image))
        return false;
    const struct image_section *table = &image->sections[image->symbol_table];
    struct byte_reader reader = byte_reader_over(image->bytes + table->offset, (size_t)table->size);
    reader.at = (size_t)symbol_index * SYMBOL_SIZE;
    uint32_t name = byte_reader_u32(&reader);
    symbol->type = byte_reader_u8(&reader) & 0xf;
    symbol->other = byte_reader_u8(&reader);
    uint32_t section = byte_reader_u16(&reader);
    symbol->value = byte_reader_u64(&reader);
    symbol->size = byte_reader_u64(&reader);
    if (section == SECTION_INDEX_ESCAPE)
        section = long_section_index(image, symbol_index);
    else if (section >= SECTION_INDEX_RESERVED)
        section = 0;
    symbol->section = section < image->section_count ? section : 0;
    if (image->is_linked && symbol->section)
        symbol->value -= image->sections[symbol->section].address;
    symbol->name = image_strings_at(&image->symbol_names, name);
    return true;
}

static gpufl_status function_add(struct code_image *image, uint32_t index, const struct image_symbol *symbol,
                                 struct problem *problem)
{
    if (!symbol->name)
        return problem_set(problem, GPUFL_E_INVALID, "symbol %" PRIu32 " has its name outside the string table", index);
    const struct image_section *section = &image->sections[symbol->section];
    if (symbol->value > section->size || symbol->size > section->size - symbol->value)
        return problem_set(problem, GPUFL_E_INVALID,
                           "function of symbol %" PRIu32 " (%" PRIu64 " bytes at offset %" PRIu64
                           ") goes beyond its section %" PRIu32 " (%" PRIu64 " bytes)",
                           index, symbol->size, symbol->value, symbol->section, section->size);
    image->functions[image->function_count++] = (struct image_function){
        .name = symbol->name,
        .symbol_index = index,
        .section = symbol->section,
        .offset = symbol->value,
        .size = symbol->size,
        .is_entry = image->vendor == IMAGE_NVIDIA && symbol->other & SYMBOL_OTHER_ENTRY,
    };
    return GPUFL_OK;
}

static gpufl_status functions_read(struct code_image *image, struct problem *problem)
{
    uint64_t count = symbol_count(image);
    uint64_t functions = 0;
    struct image_symbol symbol;
    for (uint64_t i = 1; i < count; i++)
        functions += image_symbol_read(image, (uint32_t)i, &symbol) && symbol.type == SYMBOL_FUNCTION && symbol.section;
    if (!functions)
        return GPUFL_OK;
    image->functions = calloc((size_t)functions, sizeof *image->functions);
    if (!image->functions)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %" PRIu64 " functions", functions);
    for (uint64_t i = 1; i < count; i++) {
        if (!image_symbol_read(image, (uint32_t)i, &symbol) || symbol.type != SYMBOL_FUNCTION || !symbol.section)
            continue;
        gpufl_status status = function_add(image, (uint32_t)i, &symbol, problem);
        if (status)
            return status;
    }
    return GPUFL_OK;
}

struct code_address {
    uint64_t address;
    uint32_t function; /* index */
};

static int address_order(const void *left, const void *right)
{
    const struct code_address *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

/* A kernel's descriptor is 64 bytes of data with the relative address of its code. */
static void descriptor_use(struct code_image *image, const struct code_address *addresses,
                           const struct image_symbol *symbol)
{
    const struct image_section *data = &image->sections[symbol->section];
    if (symbol->type != SYMBOL_OBJECT || symbol->size != AMDGPU_DESCRIPTOR_BYTES || data->size < symbol->size ||
        symbol->value > data->size - symbol->size)
        return;
    struct byte_reader reader = byte_reader_over(image->bytes + data->offset + symbol->value, (size_t)symbol->size);
    reader.at = AMDGPU_DESCRIPTOR_ENTRY;
    struct code_address key = {.address = data->address + symbol->value + byte_reader_u64(&reader)};
    const struct code_address *found =
        bsearch(&key, addresses, image->function_count, sizeof *addresses, address_order);
    if (!found)
        return;
    image->functions[found->function].descriptor = data->offset + symbol->value;
    image->functions[found->function].is_entry = true;
}

static gpufl_status kernels_find(struct code_image *image, struct problem *problem)
{
    if (!image->is_linked || !image->function_count)
        return GPUFL_OK;
    struct code_address *addresses = malloc(image->function_count * sizeof *addresses);
    if (!addresses)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %" PRIu32 " functions", image->function_count);
    for (uint32_t i = 0; i < image->function_count; i++) {
        const struct image_function *function = &image->functions[i];
        addresses[i].address = image->sections[function->section].address + function->offset;
        addresses[i].function = i;
    }
    qsort(addresses, image->function_count, sizeof *addresses, address_order);
    uint64_t count = symbol_count(image);
    struct image_symbol symbol;
    for (uint64_t i = 1; i < count; i++)
        if (image_symbol_read(image, (uint32_t)i, &symbol) && symbol.section)
            descriptor_use(image, addresses, &symbol);
    free(addresses);
    return GPUFL_OK;
}

gpufl_status image_open(struct code_image *image, const void *bytes, size_t size, struct problem *problem)
{
    *image = (struct code_image){.bytes = bytes, .size = size};
    struct elf_header header = {0};
    gpufl_status status = machine_read(image, problem);
    if (!status)
        status = elf_header_read(image, &header, problem);
    if (status)
        return status;
    if (image->vendor == IMAGE_AMD)
        amdgpu_arch(image);
    else
        cubin_arch(image);
    status = sections_read(image, &header, problem);
    if (!status)
        status = functions_read(image, problem);
    if (!status)
        status = kernels_find(image, problem);
    if (status)
        image_close(image);
    return status;
}

enum image_vendor image_vendor_of(const void *bytes, size_t size)
{
    struct byte_reader reader = byte_reader_over(bytes, size);
    byte_reader_skip(&reader, MACHINE_OFFSET);
    return byte_reader_u16(&reader) == MACHINE_AMDGPU ? IMAGE_AMD : IMAGE_NVIDIA;
}

const char *image_language(enum image_vendor vendor)
{
    return vendor == IMAGE_AMD ? "ISA" : "SASS";
}

void image_close(struct code_image *image)
{
    free(image->sections);
    free(image->functions);
    *image = (struct code_image){0};
}

const struct image_function *image_function_find(const struct code_image *image, const char *name)
{
    for (uint32_t i = 0; i < image->function_count; i++)
        if (!strcmp(image->functions[i].name, name))
            return &image->functions[i];
    return NULL;
}

const struct image_function *image_function_at(const struct code_image *image, uint32_t symbol_index)
{
    for (uint32_t i = 0; i < image->function_count; i++)
        if (image->functions[i].symbol_index == symbol_index)
            return &image->functions[i];
    return NULL;
}

const struct image_function *image_function_host(const struct code_image *image, const struct image_function *function)
{
    const struct image_function *host = function;
    for (uint32_t i = 0; i < image->function_count; i++) {
        const struct image_function *candidate = &image->functions[i];
        bool is_better = candidate->is_entry != host->is_entry ? candidate->is_entry : candidate->size > host->size;
        if (candidate->section == function->section && is_better)
            host = candidate;
    }
    return host;
}

uint32_t image_section_find(const struct code_image *image, const char *name, uint32_t after)
{
    for (uint64_t i = (uint64_t)after + 1; i < image->section_count; i++)
        if (!strcmp(image->sections[i].name, name))
            return (uint32_t)i;
    return 0;
}

uint32_t image_section_at(const struct code_image *image, uint64_t address)
{
    /* Linkers produce a few dozen; the limit keeps look-ups in hostile files fast. */
    enum { sections_max = 4096 };
    for (uint32_t i = 1; i < image->section_count && i < sections_max; i++) {
        const struct image_section *section = &image->sections[i];
        if (section->flags & SECTION_FLAG_CODE && section->size && address >= section->address &&
            address - section->address < section->size)
            return i;
    }
    return 0;
}

const uint8_t *image_code(const struct code_image *image, const struct image_function *function)
{
    return image->bytes + image->sections[function->section].offset + function->offset;
}

unsigned image_instruction_unit(enum image_vendor vendor)
{
    return vendor == IMAGE_AMD ? AMD_INSTRUCTION_BYTES : NVIDIA_INSTRUCTION_BYTES;
}

bool image_words_print(const struct code_image *image, const struct image_function *function, uint64_t pc,
                       unsigned size, char out[IMAGE_WORDS_SIZE])
{
    unsigned unit = image_instruction_unit(image->vendor);
    out[0] = '\0';
    if (size < unit || pc > function->size || function->size - pc < size)
        return false;
    struct byte_reader reader = byte_reader_over(image_code(image, function) + pc, size);
    if (image->vendor == IMAGE_NVIDIA) {
        uint64_t low = byte_reader_u64(&reader), high = byte_reader_u64(&reader);
        snprintf(out, IMAGE_WORDS_SIZE, "0x%016" PRIx64 " 0x%016" PRIx64, high, low);
        return true;
    }
    size_t used = 0;
    while (byte_reader_left(&reader) >= unit && used < IMAGE_WORDS_SIZE - sizeof " 0x00000000")
        used += (size_t)snprintf(out + used, IMAGE_WORDS_SIZE - used, "%s0x%08" PRIx32, used ? " " : "",
                                 byte_reader_u32(&reader));
    return true;
}
