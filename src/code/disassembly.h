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
    const int *stop_fd;     /* the tool is ended as soon as it is readable; NULL: none */
};

/* The function's instructions. A missing, failing or hanging tool is no failure: then there are no texts, and the
 * problem says why ("" when there are). options may be NULL. */
NODISCARD gpufl_status disassembly_read(struct disassembly *disassembly, const struct code_image *image,
                                        const struct image_function *function,
                                        const struct disassembly_options *options, struct problem *problem);
/* Its two halves, for whoever wants several functions out of one text; any thread, also several at once. */
/* The function whose print has this one in it: nvdisasm prints device functions that were not inlined with the kernel
 * whose section they share. */
const struct image_function *disassembly_printed(const struct code_image *image, const struct image_function *function);
/* What the tool prints of such a function, or the cache has of it. The caller frees out, which is empty on failure.
 * GPUFL_E_LIMIT: also when it was stopped. */
NODISCARD gpufl_status disassembly_print(struct bytes *out, const struct code_image *image,
                                         const struct image_function *printed,
                                         const struct disassembly_options *options, struct problem *problem);
/* print NULL: there is none, and the instructions have no texts. */
NODISCARD gpufl_status disassembly_parse(struct disassembly *disassembly, const struct code_image *image,
                                         const struct image_function *function, const struct bytes *print,
                                         struct problem *problem);
void disassembly_free(struct disassembly *disassembly);
/* The instruction with that offset in it; NULL outside the function. */
const struct instruction *disassembly_at(const struct disassembly *disassembly, uint64_t pc);

#endif
