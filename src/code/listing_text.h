/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the output of nvdisasm and llvm-objdump line by line. The input is untrusted: lines that do not look like an
 * instruction of the function, or do not match its encoding, are skipped. Texts contain no terminal control
 * characters. */
#ifndef GPUFL_CODE_LISTING_TEXT_H
#define GPUFL_CODE_LISTING_TEXT_H

#include "code/disassembly.h"

struct listing_text {
    const struct code_image *image;
    const struct image_function *function;
    char *rest;     /* unread part, NUL-terminated and modified; NULL: the end */
    bool is_inside; /* NVIDIA: inside the function's section */
};

struct listing_text listing_text_over(const struct code_image *image, const struct image_function *function,
                                      char *text);
/* The next instruction, in the order of the tool's output; false at the end. */
bool listing_text_next(struct listing_text *listing, struct instruction *instruction);

#endif
