/* SPDX-License-Identifier: Apache-2.0 */
/* Prototypes of the look-alike NVML, from the product's own declarations. */
#ifndef FAKES_NVML_FAKE_H
#define FAKES_NVML_FAKE_H

#include "driver/nvml_abi.h"
#include "fake_gpu.h"

#define NVML_FAKE_PROTOTYPE(member, symbol, params) FAKE_API int symbol params;
NVML_ABI_FUNCTIONS(NVML_FAKE_PROTOTYPE)
FAKE_API nvml_abi_error_string_fn nvmlErrorString;

/* The error that a call must return instead of working: not initialized, a fault, an invalid device; else success. */
int nvml_check(const char *function, const void *device);
void *nvml_first_device(void);

#endif
