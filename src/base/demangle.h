/* SPDX-License-Identifier: Apache-2.0 */
/* Demangles C++ names with the C++ runtime's demangler, which is looked up at run time, so that C programs need not
 * link it. */
#ifndef GPUFL_BASE_DEMANGLE_H
#define GPUFL_BASE_DEMANGLE_H

#include "base/bytes.h"

/* Replaces out's content by the demangled name, or by the symbol itself if it is not a mangled name or no demangler is
 * available. */
void demangle(const char *symbol, struct bytes *out);

#endif
