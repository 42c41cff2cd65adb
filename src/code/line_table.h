/* SPDX-License-Identifier: Apache-2.0 */
/* Maps instructions to source lines with the DWARF 2 to 5 line programs of GPU code (.debug_line), including inlined
 * calls, and to lines of the PTX text (.nv_debug_line_sass). The image is untrusted and borrowed: it must outlive the
 * table. Read-only once open; thread-safe. */
#ifndef GPUFL_CODE_LINE_TABLE_H
#define GPUFL_CODE_LINE_TABLE_H

#include "base/intern.h"
#include "code/image.h"
#include "code/inlined_calls.h"

enum line_table_kind { LINE_TABLE_SOURCE, LINE_TABLE_PTX };

struct line_row {
    uint64_t address; /* in the section */
    uint32_t line;
    uint32_t path;     /* id in `paths`; 0: none */
    uint32_t caller;   /* row of the same sequence that this one was inlined into, from 1; 0: not inlined */
    uint32_t function; /* offset of the inlined function's name in .debug_str, plus 1; 0: unknown */
};

/* Rows of one range of code, by address. */
struct line_sequence {
    uint32_t section;
    uint32_t first_row, row_count;
    uint64_t end; /* first address after it */
};

struct line_table {
    const struct code_image *image; /* borrowed */
    struct line_row *rows;          /* owned, like the next two */
    struct line_sequence *sequences;
    struct inlined_calls inlined; /* owned; AMD only */
    struct intern paths;
    struct image_strings strings, line_strings; /* .debug_str, .debug_line_str */
    size_t row_count, row_capacity, sequence_count, sequence_capacity;
    uint32_t skipped_sequences; /* without a function, or with decreasing addresses */
    uint32_t unit_count;
};

/* One source position; an inlined call has one frame per function. */
struct line_frame {
    const char *path;     /* directory and name as known to the compiler; "" for PTX */
    uint32_t line;        /* from 1; 0: the compiler generated no line */
    const char *function; /* mangled, if it was inlined and its name is known; else NULL */
};

enum { LINE_FRAMES_MAX = 32 };

/* GPUFL_E_NOT_FOUND: the image has no such table (compiled without -lineinfo). GPUFL_E_INVALID: damaged; the problem
 * has the section and offset. */
NODISCARD gpufl_status line_table_open(struct line_table *table, const struct code_image *image,
                                       enum line_table_kind kind, struct problem *problem);
void line_table_close(struct line_table *table);

/* Fills frames, innermost first, for the instruction at that offset of the section (function->section, function->offset
 * + pc). Returns their number, at most max; 0 if nothing is known. */
size_t line_table_find(const struct line_table *table, uint32_t section, uint64_t address, struct line_frame *frames,
                       size_t max);

#endif
