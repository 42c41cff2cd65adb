/* SPDX-License-Identifier: Apache-2.0 */
/* Formats numbers and names for display: three significant digits and a unit, thousands separators, bars, names that
 * are escaped and shortened in the middle. */
#ifndef GPUFL_ANALYSIS_QUANTITY_H
#define GPUFL_ANALYSIS_QUANTITY_H

#include "base/bytes.h"

struct quantity {
    char text[32];
};

struct quantity quantity_time(double ns);          /* 640 ns, 64.2 us, 18.7 ms, 38.2 s, 75.0 min, 12.1 h */
struct quantity quantity_bytes(double bytes);      /* 118 GB */
struct quantity quantity_memory(double bytes);     /* 88.1 GiB */
struct quantity quantity_rate(double bytes_per_s); /* 24.1 GB/s */
struct quantity quantity_count(uint64_t count);    /* 2,184,902 */
struct quantity quantity_percent(double fraction); /* 62.6 %, < 0.1 % */

/* Appends the text with control characters, bidirectional controls and invalid UTF-8 as \xNN. */
void text_escape(struct bytes *out, const char *text, size_t size);
/* Columns that valid UTF-8 takes on a terminal. */
size_t text_columns(const char *text, size_t size);
/* Appends escaped text, at most `columns` wide: the middle of longer text becomes an ellipsis. columns 0: no limit. */
void text_cut(struct bytes *out, const char *text, size_t size, size_t columns);
/* The same, keeping the first `front` columns if that leaves some for the end. */
void text_cut_behind(struct bytes *out, const char *text, size_t size, size_t columns, size_t front);
/* The same for a demangled kernel name (kernel_name.c): "void " is always removed; if the rest does not fit,
 * namespaces, parameter lists and names inside functions are removed before the middle. */
void text_kernel_name(struct bytes *out, const char *name, size_t size, size_t columns);
/* WHOLE: unchanged; SIMPLE: without namespaces and parameter lists; CUT: as text_kernel_name does. */
enum kernel_name_form { KERNEL_NAME_WHOLE, KERNEL_NAME_SIMPLE, KERNEL_NAME_CUT };
void text_kernel_name_as(struct bytes *out, const char *name, size_t size, enum kernel_name_form form, size_t columns);
/* A bar of `cells` cells, filled to the fraction in eighths; no trailing blanks. */
void text_bar(struct bytes *out, double fraction, unsigned cells);

#endif
