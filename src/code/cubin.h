/* SPDX-License-Identifier: Apache-2.0 */
/* A cubin (ELF64 of machine 190): its functions, their code, and what the
 * toolkit left beside it. The bytes are untrusted and borrowed: they must outlive
 * the cubin, and every name points into them. Read only once open: any thread. */
#ifndef GPUFL_CODE_CUBIN_H
#define GPUFL_CODE_CUBIN_H

#include "base/bytes.h"
#include "base/status.h"

enum { CUBIN_INSTRUCTION_BYTES = 16 }; /* of every architecture since sm_70 */

struct cubin_section {
    const char *name;
    uint32_t type, link, info;
    uint64_t offset, size; /* within the bytes, also checked; 0, 0 where the file holds nothing */
    uint64_t entry_size;
};

struct cubin_function {
    const char *name;      /* mangled; "$kernel$name" for a device function that was not inlined */
    uint32_t symbol_index; /* CUPTI's functionIndex, nvdisasm's -fun */
    uint32_t section;      /* of its code */
    uint64_t offset, size; /* within that section, also checked */
    bool is_entry;         /* a kernel */
};

/* A string table in the bytes, ended by NUL. */
struct cubin_strings {
    const char *text; /* borrowed */
    uint64_t size;
};

struct cubin_symbol {
    const char *name;
    uint32_t section; /* 0: undefined or absolute */
    uint64_t value, size;
    uint8_t type, other;
};

struct cubin {
    const uint8_t *bytes; /* borrowed */
    size_t size;
    char arch[16];                    /* "sm_90", "sm_90a" */
    struct cubin_section *sections;   /* owned */
    struct cubin_function *functions; /* owned; by symbol index */
    uint32_t section_count, function_count;
    struct cubin_strings symbol_names;
    uint32_t symbol_table, long_index_table; /* sections; 0: none */
};

/* GPUFL_E_INVALID: not a cubin, or damaged; the problem names the place. */
NODISCARD gpufl_status cubin_open(struct cubin *cubin, const void *bytes, size_t size, struct problem *problem);
void cubin_close(struct cubin *cubin);

/* NULL when there is none. */
const struct cubin_function *cubin_function_find(const struct cubin *cubin, const char *name);
const struct cubin_function *cubin_function_at(const struct cubin *cubin, uint32_t symbol_index);
/* The kernel (or, without one, the largest function) in whose section the function lies: its offsets are the section's,
 * which is how counters and line tables count. */
const struct cubin_function *cubin_function_host(const struct cubin *cubin, const struct cubin_function *function);
/* The section's index, from `after` + 1 on; 0: none. */
uint32_t cubin_section_find(const struct cubin *cubin, const char *name, uint32_t after);
/* The strings of the section of that name; empty when it has none or does not end with one. */
struct cubin_strings cubin_strings(const struct cubin *cubin, const char *section_name);
/* The string at that offset; NULL outside. Its end may be far away in a hostile file. */
static inline const char *cubin_strings_at(const struct cubin_strings *strings, uint64_t offset)
{
    return offset < strings->size ? strings->text + offset : NULL;
}
/* False for an index outside the symbol table. */
bool cubin_symbol_read(const struct cubin *cubin, uint32_t symbol_index, struct cubin_symbol *symbol);

/* The code, borrowed. */
const uint8_t *cubin_code(const struct cubin *cubin, const struct cubin_function *function);
/* The instruction at that offset of the function; false beyond its end. */
bool cubin_word(const struct cubin *cubin, const struct cubin_function *function, uint64_t pc, uint64_t word[2]);

bool cubin_has_ptx(const struct cubin *cubin);
/* Appends the PTX text that the compiler kept with line information, lines ended by LF. */
void cubin_ptx(const struct cubin *cubin, struct bytes *out);
/* The tool that made it ("ptxas Cuda compilation tools, release 13.0, V13.0.88"); "" when it does not say. */
void cubin_toolkit(const struct cubin *cubin, char *out, size_t out_size);

#endif
