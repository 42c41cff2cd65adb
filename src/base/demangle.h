/* SPDX-License-Identifier: Apache-2.0 */
/* C++ names for people. Uses the C++ runtime's own demangler, which is looked
 * up at run time, so that C programs need not carry it. */
#ifndef GPUFL_BASE_DEMANGLE_H
#define GPUFL_BASE_DEMANGLE_H

#include "base/bytes.h"

/* Replaces out's content by the demangled name, or by the symbol itself when it
 * is not a mangled name or no demangler is at hand. */
void demangle(const char *symbol, struct bytes *out);

#endif
