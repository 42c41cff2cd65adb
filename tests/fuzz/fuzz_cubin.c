/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a cubin; everything that it then says about itself must lie within them. */
#include "code/line_table.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void functions_visit(const struct cubin *cubin)
{
    for (uint32_t i = 0; i < cubin->function_count; i++) {
        const struct cubin_function *function = &cubin->functions[i];
        const uint8_t *code = cubin_code(cubin, function);
        if (code < cubin->bytes || function->size > (size_t)(cubin->bytes + cubin->size - code))
            abort();
        if (cubin_function_host(cubin, function)->section != function->section ||
            !cubin_function_find(cubin, function->name) || cubin_function_at(cubin, function->symbol_index) != function)
            abort();
        uint64_t word[2];
        if (cubin_word(cubin, function, function->size, word))
            abort();
        if (i == 256)
            break; /* looking up each by name takes time squared */
    }
}

static void lines_visit(const struct cubin *cubin, enum line_table_kind kind)
{
    struct line_table table;
    struct problem problem = {""};
    if (line_table_open(&table, cubin, kind, &problem)) {
        if (!problem.text[0])
            abort();
        return;
    }
    struct line_frame frames[LINE_FRAMES_MAX];
    for (uint32_t i = 0; i < cubin->function_count && i < 256; i++) {
        const struct cubin_function *function = &cubin->functions[i];
        for (uint64_t pc = 0; pc < function->size && pc < 4096; pc += CUBIN_INSTRUCTION_BYTES)
            (void)line_table_find(&table, function->section, function->offset + pc, frames, LINE_FRAMES_MAX);
    }
    line_table_close(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cubin cubin;
    struct problem problem = {""};
    if (cubin_open(&cubin, data, size, &problem) != GPUFL_OK) {
        if (!problem.text[0] || cubin.functions || cubin.sections)
            abort();
        return 0;
    }
    functions_visit(&cubin);
    char toolkit[64];
    cubin_toolkit(&cubin, toolkit, sizeof toolkit);
    struct bytes ptx = {.limit = 1 << 20};
    cubin_ptx(&cubin, &ptx);
    if (ptx.size && !cubin_has_ptx(&cubin))
        abort();
    bytes_free(&ptx);
    lines_visit(&cubin, LINE_TABLE_SOURCE);
    lines_visit(&cubin, LINE_TABLE_PTX);
    cubin_close(&cubin);
    return 0;
}
