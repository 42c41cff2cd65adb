/* SPDX-License-Identifier: Apache-2.0 */
/* What nvdisasm and llvm-objdump print, line by line. Untrusted: what does not have the shape of an instruction of the
 * function, or not its encoding, is skipped. Texts have nothing in them that could steer a terminal. */
#ifndef GPUFL_CODE_LISTING_TEXT_H
#define GPUFL_CODE_LISTING_TEXT_H

#include "code/disassembly.h"

struct listing_text {
    const struct code_image *image;
    const struct image_function *function;
    char *rest;     /* what was not read yet, NUL-terminated; changed on the way; NULL: the end */
    bool is_inside; /* NVIDIA: within the function's section */
};

struct listing_text listing_text_over(const struct code_image *image, const struct image_function *function,
                                      char *text);
/* The next instruction; false at the end. In the order of the tool, which may be any. */
bool listing_text_next(struct listing_text *listing, struct instruction *instruction);

#endif
