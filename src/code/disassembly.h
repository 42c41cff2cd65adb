/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of a function: as text where nvdisasm or llvm-objdump is found,
 * else without. Texts are cached by content under $XDG_CACHE_HOME/gpufl/sass or
 * ~/.cache/gpufl/sass (directory 0700, files 0600). One owner; only for the
 * command line and reports, since it may start a program. */
#ifndef GPUFL_CODE_DISASSEMBLY_H
#define GPUFL_CODE_DISASSEMBLY_H

#include "code/image.h"

struct instruction {
    uint64_t pc;      /* offset in the function */
    const char *text; /* "@P0 EXIT", "s_endpgm"; NULL: not known */
    unsigned size;    /* bytes; without text those of the smallest one */
};

struct disassembly {
    struct instruction *instructions; /* owned; by pc, each begins where the one before ends */
    size_t count;
    size_t text_count; /* instructions with text */
    char *output;      /* owned; the texts lie in it */
};

struct disassembly_options {
    const char *tool;       /* path; NULL: it is looked for */
    const char *cache_dir;  /* NULL: the usual one; "": no cache */
    unsigned time_limit_ms; /* 0: 20 s */
};

/* The function's instructions. A missing, failing or hanging tool is no failure: then there are no texts, and the
 * problem says why ("" when there are). options may be NULL. */
NODISCARD gpufl_status disassembly_read(struct disassembly *disassembly, const struct code_image *image,
                                        const struct image_function *function,
                                        const struct disassembly_options *options, struct problem *problem);
void disassembly_free(struct disassembly *disassembly);
/* The instruction with that offset in it; NULL outside the function. */
const struct instruction *disassembly_at(const struct disassembly *disassembly, uint64_t pc);

#endif
