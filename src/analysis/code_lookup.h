/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the instruction text and source line of (code object, function, pc). Code in the log is decompressed and parsed
 * on first use. The text comes from the log's listing, else from nvdisasm or llvm-objdump if the caller allows running
 * them, else it is the raw words. One owner, one thread; borrows the model. */
#ifndef GPUFL_ANALYSIS_CODE_LOOKUP_H
#define GPUFL_ANALYSIS_CODE_LOOKUP_H

#include "analysis/session.h"
#include "code/disassembly.h"
#include "code/line_table.h"

enum code_effort {
    CODE_UNREAD,      /* only what the rows contain */
    CODE_STORED,      /* also code and listings in the log */
    CODE_NAMED_TOOLS, /* also the disassemblers set in the environment */
    CODE_TOOLS        /* also those found on the machine; never in the profiled process */
};

struct code_function {
    const struct session_model *model;
    struct opened_object *object;          /* NULL: no code */
    const struct image_function *function; /* NULL: not in that code */
    const struct code_listing *listing;    /* NULL: not in the log */
    enum image_vendor vendor;
    const char *problem;            /* why instructions or lines are missing; "" when complete */
    struct disassembly disassembly; /* owned; empty unless the tool ran */
};

/* Texts live as long as the lookup. */
struct code_text {
    const char *sass;                          /* "" unknown */
    const char *file;                          /* "" unknown */
    uint32_t line;                             /* 0 unknown */
    bool is_raw;                               /* sass holds the instruction's raw words */
    char words[IMAGE_WORDS_SIZE];              /* "": the log contains no code of it */
    struct line_frame frames[LINE_FRAMES_MAX]; /* innermost first; more than one: inlined */
    size_t frame_count;
};

struct code_lookup {
    const struct session_model *model;
    enum code_effort effort;
    struct opened_object *objects; /* owned; by index of the model's code objects */
    struct intern texts;
    unsigned tool_runs;
    bool is_without_tool[2]; /* by vendor; not found, failed or timed out: not tried again */
    bool has_failed;         /* out of memory */
};

NODISCARD gpufl_status code_lookup_open(struct code_lookup *lookup, const struct session_model *model,
                                        enum code_effort effort);
void code_lookup_close(struct code_lookup *lookup);
struct code_function code_lookup_function(struct code_lookup *lookup, uint64_t cubin_crc, const char *symbol);
void code_function_close(struct code_function *function);
void code_lookup_at(struct code_lookup *lookup, const struct code_function *function, uint32_t pc_offset,
                    struct code_text *text);
/* Offset of the next instruction, as far as known. */
uint64_t code_function_next(const struct code_function *function, uint64_t pc_offset);
/* The code object that contains the function; NULL: missing or unreadable. */
const struct code_image *code_function_image(const struct code_function *function);
/* Why its code has no source lines; "" if it has, or if there is no code. */
const char *code_function_line_problem(const struct code_function *function);
/* Appends the PTX that the function's cubin was made from; false: the log has none. */
bool code_function_ptx(const struct code_function *function, struct bytes *out);
/* Offset after the last known instruction; 0: none is known. */
uint64_t code_function_size(const struct code_function *function);
/* The file's text; NULL: not in the log. */
const struct source_content *code_source(const struct session_model *model, const char *file, uint32_t source_file_id);
/* A line of a file whose text is in the log, else NULL. source_file_id: of v1, may be 0. */
const char *code_source_line(const struct session_model *model, const char *file, uint32_t source_file_id,
                             uint32_t line);

#endif
