/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of a function, with text if nvdisasm or llvm-objdump is found. Texts are cached by content under
 * $XDG_CACHE_HOME/gpufl/sass or ~/.cache/gpufl/sass (directory 0700, files 0600). One owner; only for the command line
 * and reports, since it may start a program. */
#ifndef GPUFL_CODE_DISASSEMBLY_H
#define GPUFL_CODE_DISASSEMBLY_H

#include "code/image.h"

struct instruction {
    uint64_t pc;      /* offset in the function */
    const char *text; /* "@P0 EXIT", "s_endpgm"; NULL: unknown */
    unsigned size;    /* bytes; without text, the size of the smallest instruction */
};

struct disassembly {
    struct instruction *instructions; /* owned; by pc, without gaps */
    size_t count;
    size_t text_count; /* instructions with text */
    char *output;      /* owned; contains the texts */
};

struct disassembly_options {
    const char *tool;       /* path; NULL: search for it */
    const char *cache_dir;  /* NULL: the default; "": no cache */
    unsigned time_limit_ms; /* 0: 20 s */
    const int *stop_fd;     /* the tool is stopped when it becomes readable; NULL: none */
};

/* The function's instructions. A tool that is missing, fails or hangs is not a failure: there are then no texts, and
 * the problem has the reason (otherwise ""). options may be NULL. */
NODISCARD gpufl_status disassembly_read(struct disassembly *disassembly, const struct code_image *image,
                                        const struct image_function *function,
                                        const struct disassembly_options *options, struct problem *problem);
/* The two steps separately, to get several functions from one output. Thread-safe; several may run in parallel. */
/* The function to print in order to get this one: nvdisasm prints device functions that were not inlined together with
 * the kernel whose section they share. */
const struct image_function *disassembly_printed(const struct code_image *image, const struct image_function *function);
/* The tool's output for such a function, from the tool or the cache. The caller frees out, which is empty on failure.
 * GPUFL_E_LIMIT: also if it was stopped. */
NODISCARD gpufl_status disassembly_print(struct bytes *out, const struct code_image *image,
                                         const struct image_function *printed,
                                         const struct disassembly_options *options, struct problem *problem);
/* print NULL: the instructions have no texts. */
NODISCARD gpufl_status disassembly_parse(struct disassembly *disassembly, const struct code_image *image,
                                         const struct image_function *function, const struct bytes *print,
                                         struct problem *problem);
void disassembly_free(struct disassembly *disassembly);
/* The instruction that contains the offset; NULL outside the function. */
const struct instruction *disassembly_at(const struct disassembly *disassembly, uint64_t pc);

#endif
