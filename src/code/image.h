/* SPDX-License-Identifier: Apache-2.0 */
/* GPU code as loaded by the driver, an ELF64 file: a cubin (machine 190) or an AMDGPU code object (machine 224), with
 * its sections, symbols, functions and instructions. The bytes are untrusted and borrowed: they must outlive the image,
 * and all names point into them. Read-only once open; thread-safe. */
#ifndef GPUFL_CODE_IMAGE_H
#define GPUFL_CODE_IMAGE_H

#include "base/bytes.h"
#include "base/status.h"

enum image_vendor { IMAGE_NVIDIA, IMAGE_AMD };

struct image_section {
    const char *name;
    uint32_t type, link, info;
    uint64_t flags, address;
    uint64_t offset, size; /* checked to be inside the bytes; 0, 0 if the file has no content for it */
    uint64_t entry_size;
};

struct image_function {
    const char *name;      /* mangled; NVIDIA: "$kernel$name" for a device function that was not inlined */
    uint32_t symbol_index; /* CUPTI's functionIndex, nvdisasm's -fun */
    uint32_t section;      /* section of its code */
    uint64_t offset, size; /* checked to be inside that section */
    uint64_t descriptor;   /* AMD: checked offset in the bytes of the kernel's descriptor of 64 bytes; 0: none */
    bool is_entry;         /* a kernel */
};

/* A string table in the bytes, ends with NUL. */
struct image_strings {
    const char *text; /* borrowed */
    uint64_t size;
};

struct image_symbol {
    const char *name;
    uint32_t section;     /* 0: undefined or absolute */
    uint64_t value, size; /* value: offset in the section; not checked */
    uint8_t type, other;
};

struct code_image {
    const uint8_t *bytes; /* borrowed */
    size_t size;
    enum image_vendor vendor;
    char arch[40];                    /* "sm_90a", "gfx1100", "gfx90a:sramecc+:xnack-" */
    struct image_section *sections;   /* owned */
    struct image_function *functions; /* owned; by symbol index */
    uint32_t section_count, function_count;
    struct image_strings symbol_names;
    uint32_t symbol_table, long_index_table; /* sections; 0: none */
    uint32_t flags;
    uint8_t abi_version;
    bool is_linked; /* AMD: positions in the code are addresses, not offsets in sections */
};

/* GPUFL_E_INVALID: not GPU code, or damaged; the problem has the position. */
NODISCARD gpufl_status image_open(struct code_image *image, const void *bytes, size_t size, struct problem *problem);
void image_close(struct code_image *image);
/* The vendor that the bytes appear to belong to: AMD if certain, else image_open reports the problem. */
enum image_vendor image_vendor_of(const void *bytes, size_t size);
/* The name of the instruction language: "SASS" or "ISA". */
const char *image_language(enum image_vendor vendor);

/* NULL if there is none. */
const struct image_function *image_function_find(const struct code_image *image, const char *name);
const struct image_function *image_function_at(const struct code_image *image, uint32_t symbol_index);
/* The kernel (or if there is none, the largest function) of the function's section: NVIDIA's counters and line tables
 * use offsets in the section. */
const struct image_function *image_function_host(const struct code_image *image, const struct image_function *function);
/* The section's index, searching from `after` + 1; 0: none. */
uint32_t image_section_find(const struct code_image *image, const char *name, uint32_t after);
/* The code section at that address; 0: none. */
uint32_t image_section_at(const struct code_image *image, uint64_t address);
/* The strings of the section of that name; empty if there is no such section or it does not end with NUL. */
struct image_strings image_strings(const struct code_image *image, const char *section_name);
/* The string at that offset; NULL outside. In a hostile file its end may be far away. */
static inline const char *image_strings_at(const struct image_strings *strings, uint64_t offset)
{
    return offset < strings->size ? strings->text + offset : NULL;
}
/* False for an index outside the symbol table. */
bool image_symbol_read(const struct code_image *image, uint32_t symbol_index, struct image_symbol *symbol);

/* The code, borrowed. */
const uint8_t *image_code(const struct code_image *image, const struct image_function *function);
/* Bytes of the smallest instruction, of which all sizes are multiples: NVIDIA's all have 16 (since sm_70), AMD's 4 to
 * 24. */
enum { IMAGE_INSTRUCTION_MAX = 24 };
unsigned image_instruction_unit(enum image_vendor vendor);
enum { IMAGE_WORDS_SIZE = 80 };
/* The encoding of the instruction of that size at that offset of the function, as printed by disassemblers: for NVIDIA
 * "0x000fe20000000800 0x00000a00ff017b82" (high half first), for AMD "0xc0020002 0x00000018". False, and "", beyond the
 * function's end. */
bool image_words_print(const struct code_image *image, const struct image_function *function, uint64_t pc,
                       unsigned size, char out[IMAGE_WORDS_SIZE]);

#endif
