/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the structures in include/gpufl. A program carries the size that its header had: the library accepts every
 * size from the end of 1.0 on, reads and writes no further than that size, and treats the rest as zero. Comparing with
 * sizeof would refuse older programs as soon as a structure grows (tests/packaging/test_abi_growth.py). */
#ifndef GPUFL_SDK_PUBLIC_STRUCT_H
#define GPUFL_SDK_PUBLIC_STRUCT_H

#include <stddef.h>

/* The size of a structure whose last member is this one. */
#define SIZE_THROUGH(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

enum { STRUCT_SIZE_MAX = 65536 }; /* larger: not initialized */

#endif
