/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata note of an AMDGPU code object: MessagePack, of which only a kernel's numbers are read. The input is
 * untrusted: reads stay inside the bytes, there is no recursion, and the time is linear in the size. */
#ifndef GPUFL_CODE_AMDGPU_METADATA_H
#define GPUFL_CODE_AMDGPU_METADATA_H

#include "code/amdgpu.h"

/* Sets the fields that the metadata has for the kernel and leaves the rest of *kernel unchanged. False: no metadata
 * note, a damaged one, or one without the kernel. */
bool amdgpu_metadata_read(const struct code_image *image, const char *kernel_name, struct amdgpu_kernel *kernel);

#endif
