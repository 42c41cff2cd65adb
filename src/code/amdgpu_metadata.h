/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata note of an AMDGPU code object: MessagePack, of which only a kernel's numbers are read. Untrusted; never
 * looks outside the bytes, never recurses, takes time by their number. */
#ifndef GPUFL_CODE_AMDGPU_METADATA_H
#define GPUFL_CODE_AMDGPU_METADATA_H

#include "code/amdgpu.h"

/* Sets what the metadata says about the kernel, and leaves the rest of *kernel as it is. False when it says nothing:
 * there is no such note, it is damaged, or it does not know the kernel. */
bool amdgpu_metadata_read(const struct code_image *image, const char *kernel_name, struct amdgpu_kernel *kernel);

#endif
