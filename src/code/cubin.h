/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of NVIDIA code: the names of its architectures, the PTX that it was made from, and its toolkit. */
#ifndef GPUFL_CODE_CUBIN_H
#define GPUFL_CODE_CUBIN_H

#include "code/image.h"

/* Sets image->arch from the ELF header. */
void cubin_arch(struct code_image *image);
bool cubin_has_ptx(const struct code_image *image);
/* Appends the PTX text that the compiler stored with line information, with LF as line end. */
void cubin_ptx(const struct code_image *image, struct bytes *out);
/* The tool that made it ("ptxas Cuda compilation tools, release 13.0, V13.0.88"); "" if unknown. */
void cubin_toolkit(const struct code_image *image, char *out, size_t out_size);

#endif
