/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a cubin or an AMDGPU code object: everything that the parser returns must lie within them. */
#include "code/amdgpu_occupancy.h"
#include "code/cubin.h"
#include "code/line_table.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void kernel_visit(const struct code_image *image, const struct image_function *function)
{
    struct amdgpu_kernel kernel;
    struct amdgpu_target target;
    if (amdgpu_kernel_read(image, function, &kernel) != (image->vendor == IMAGE_AMD && function->is_entry))
        abort();
    struct amdgpu_demand demand = amdgpu_kernel_demand(&kernel);
    if (!amdgpu_target_parse(image->arch, &target))
        return;
    struct amdgpu_occupancy occupancy = amdgpu_occupancy(&target, &demand);
    if (!occupancy.problem && (!occupancy.waves || occupancy.waves > occupancy.waves_max * occupancy.simd_count))
        abort();
}

static void functions_visit(const struct code_image *image)
{
    for (uint32_t i = 0; i < image->function_count; i++) {
        const struct image_function *function = &image->functions[i];
        const uint8_t *code = image_code(image, function);
        if (code < image->bytes || function->size > (size_t)(image->bytes + image->size - code))
            abort();
        if (image_function_host(image, function)->section != function->section ||
            !image_function_find(image, function->name) || image_function_at(image, function->symbol_index) != function)
            abort();
        char words[IMAGE_WORDS_SIZE];
        unsigned unit = image_instruction_unit(image->vendor);
        if (image_words_print(image, function, function->size, unit, words) || words[0])
            abort();
        kernel_visit(image, function);
        if (i == 256)
            break; /* looking up every name takes quadratic time */
    }
}

static void lines_visit(const struct code_image *image, enum line_table_kind kind)
{
    struct line_table table;
    struct problem problem = {""};
    if (line_table_open(&table, image, kind, &problem)) {
        if (!problem.text[0])
            abort();
        return;
    }
    struct line_frame frames[LINE_FRAMES_MAX];
    for (uint32_t i = 0; i < image->function_count && i < 256; i++) {
        const struct image_function *function = &image->functions[i];
        for (uint64_t pc = 0; pc < function->size && pc < 4096; pc += image_instruction_unit(image->vendor))
            (void)line_table_find(&table, function->section, function->offset + pc, frames, LINE_FRAMES_MAX);
    }
    line_table_close(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct code_image image;
    struct problem problem = {""};
    if (image_open(&image, data, size, &problem) != GPUFL_OK) {
        if (!problem.text[0] || image.functions || image.sections)
            abort();
        return 0;
    }
    functions_visit(&image);
    char toolkit[64];
    cubin_toolkit(&image, toolkit, sizeof toolkit);
    struct bytes ptx = {.limit = 1 << 20};
    cubin_ptx(&image, &ptx);
    if (ptx.size && !cubin_has_ptx(&image))
        abort();
    bytes_free(&ptx);
    lines_visit(&image, LINE_TABLE_SOURCE);
    lines_visit(&image, LINE_TABLE_PTX);
    image_close(&image);
    return 0;
}
