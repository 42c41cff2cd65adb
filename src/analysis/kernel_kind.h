/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel computes, according to its name. Kinds and patterns are in schema/kernel_kinds.json; docs/kernel-kinds.md
 * explains them. Pure functions; names are untrusted. */
#ifndef GPUFL_ANALYSIS_KERNEL_KIND_H
#define GPUFL_ANALYSIS_KERNEL_KIND_H

/* The largest groups first, KIND_UNKNOWN last. */
enum kernel_kind {
#define KERNEL_KIND(id, name, label) KIND_##id,
#include "analysis/kernel_kinds.inc"
#undef KERNEL_KIND
    KERNEL_KIND_COUNT
};

/* Looks at the first 8 KiB of a mangled or demangled name. NULL: KIND_UNKNOWN. */
enum kernel_kind kernel_kind_of(const char *name);
const char *kernel_kind_name(enum kernel_kind kind);  /* sort_scan: in JSON and tables */
const char *kernel_kind_label(enum kernel_kind kind); /* sort and scan: for people */

#endif
