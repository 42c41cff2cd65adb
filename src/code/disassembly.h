/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of a function: as text where nvdisasm is found, else as raw
 * words. Texts are cached by content under $XDG_CACHE_HOME/gpufl/sass or
 * ~/.cache/gpufl/sass (directory 0700, files 0600). One owner; only for the
 * command line and reports, since it may start a program. */
#ifndef GPUFL_CODE_DISASSEMBLY_H
#define GPUFL_CODE_DISASSEMBLY_H

#include "code/cubin.h"

struct instruction {
    uint64_t pc; /* offset in the function */
    uint64_t word[2];
    const char *text; /* "@P0 EXIT"; NULL: not known */
};

struct disassembly {
    struct instruction *instructions; /* owned; instructions[pc / CUBIN_INSTRUCTION_BYTES] */
    size_t count;
    size_t text_count; /* instructions with text */
    char *output;      /* owned; the texts lie in it */
};

struct disassembly_options {
    const char *tool;       /* path; NULL: it is looked for */
    const char *cache_dir;  /* NULL: the usual one; "": no cache */
    unsigned time_limit_ms; /* 0: 20 s */
};

/* The function's instructions. A missing, failing or hanging tool is no failure: then there are words only, and the
 * problem says why there is no text ("" when there is). options may be NULL. */
NODISCARD gpufl_status disassembly_read(struct disassembly *disassembly, const struct cubin *cubin,
                                        const struct cubin_function *function,
                                        const struct disassembly_options *options, struct problem *problem);
void disassembly_free(struct disassembly *disassembly);
/* NULL outside the function. */
const struct instruction *disassembly_at(const struct disassembly *disassembly, uint64_t pc);
/* The text, or "0x000fe20000000800 0x00000a00ff017b82" (high word first) where there is none. */
void instruction_print(const struct instruction *instruction, char *out, size_t out_size);

#endif
