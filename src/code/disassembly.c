/* SPDX-License-Identifier: Apache-2.0 */
#include "code/disassembly.h"

#include "code/disassembler.h"
#include "code/listing_text.h"
#include "code/sass_cache.h"

#include <inttypes.h>
#include <stdlib.h>

enum { TIME_LIMIT_MS = 20000, OUTPUT_MAX = 64 << 20 };

/* Adds instructions of the smallest size, without text. */
static void gap_fill(struct disassembly *disassembly, uint64_t *at, uint64_t end, unsigned unit)
{
    for (; *at < end && end - *at >= unit; *at += unit)
        disassembly->instructions[disassembly->count++] = (struct instruction){.pc = *at, .size = unit};
}

/* Assigns the tool's output, which is modified, to the instructions. */
static void output_parse(struct disassembly *disassembly, const struct code_image *image,
                         const struct image_function *function)
{
    unsigned unit = image_instruction_unit(image->vendor);
    uint64_t at = 0;
    struct listing_text listing = listing_text_over(image, function, disassembly->output);
    struct instruction instruction;
    disassembly->count = 0;
    while (listing_text_next(&listing, &instruction)) {
        uint64_t left = function->size >= instruction.pc ? function->size - instruction.pc : 0;
        if (instruction.pc < at || left < instruction.size || instruction.pc % unit)
            continue; /* a duplicate, out of order, or outside the function */
        gap_fill(disassembly, &at, instruction.pc, unit);
        disassembly->instructions[disassembly->count++] = instruction;
        disassembly->text_count++;
        at = instruction.pc + instruction.size;
    }
    gap_fill(disassembly, &at, function->size, unit);
}

static gpufl_status instructions_make(struct disassembly *disassembly, const struct code_image *image,
                                      const struct image_function *function, struct problem *problem)
{
    unsigned unit = image_instruction_unit(image->vendor);
    size_t count = (size_t)(function->size / unit);
    disassembly->instructions = calloc(count ? count : 1, sizeof *disassembly->instructions);
    if (!disassembly->instructions)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %zu instructions", count);
    uint64_t at = 0;
    gap_fill(disassembly, &at, function->size, unit);
    return GPUFL_OK;
}

/* Reads the tool's text from the cache; otherwise runs the tool and stores its output there. */
static gpufl_status output_get(const struct code_image *image, const struct image_function *function,
                               const struct disassembly_options *options, struct bytes *out, struct problem *problem)
{
    char found[PATH_MAX], usual[PATH_MAX];
    struct sass_cache_key key = {.image = image, .symbol_index = function->symbol_index, .tool = options->tool};
    if (!key.tool) {
        gpufl_status status = disassembler_find(image->vendor, found, problem);
        if (status)
            return status;
        key.tool = found;
    }
    const char *cache = options->cache_dir;
    if (!cache)
        cache = sass_cache_directory(usual) ? usual : "";
    if (*cache && sass_cache_read(cache, &key, out))
        return GPUFL_OK;
    const struct disassembler_call call = {
        .tool = key.tool,
        .image = image,
        .function = function,
        .time_limit_ms = options->time_limit_ms ? options->time_limit_ms : TIME_LIMIT_MS,
        .stop_fd = options->stop_fd,
    };
    gpufl_status status = disassembler_run(&call, out, problem);
    /* Store the output only if it looks like a listing. */
    const char *mark = image->vendor == IMAGE_AMD ? "// 0" : "/*0000*/";
    bool is_listing = !status && out->size && memmem(out->data, out->size, mark, strlen(mark));
    if (is_listing && *cache)
        sass_cache_write(cache, &key, out);
    return status;
}

const struct image_function *disassembly_printed(const struct code_image *image, const struct image_function *function)
{
    return image->vendor == IMAGE_NVIDIA ? image_function_host(image, function) : function;
}

gpufl_status disassembly_print(struct bytes *out, const struct code_image *image, const struct image_function *printed,
                               const struct disassembly_options *options, struct problem *problem)
{
    static const struct disassembly_options defaults = {0};
    *out = (struct bytes){.limit = OUTPUT_MAX};
    gpufl_status status = output_get(image, printed, options ? options : &defaults, out, problem);
    if (!status && (out->failed || !out->size || memchr(out->data, 0, out->size)))
        status = problem_set(problem, GPUFL_E_DAMAGED, "%s printed no text", disassembler_name(image->vendor));
    if (status)
        bytes_free(out);
    return status;
}

gpufl_status disassembly_parse(struct disassembly *disassembly, const struct code_image *image,
                               const struct image_function *function, const struct bytes *print,
                               struct problem *problem)
{
    *disassembly = (struct disassembly){0};
    gpufl_status status = instructions_make(disassembly, image, function, problem);
    if (status || !print)
        return status;
    disassembly->output = malloc(print->size + 1);
    if (!disassembly->output) {
        disassembly_free(disassembly);
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %zu bytes of text", print->size);
    }
    memcpy(disassembly->output, print->data, print->size);
    disassembly->output[print->size] = '\0';
    output_parse(disassembly, image, function);
    if (!disassembly->text_count)
        (void)problem_set(problem, GPUFL_E_DAMAGED, "%s printed no instruction of %.200s",
                          disassembler_name(image->vendor), function->name);
    return GPUFL_OK;
}

gpufl_status disassembly_read(struct disassembly *disassembly, const struct code_image *image,
                              const struct image_function *function, const struct disassembly_options *options,
                              struct problem *problem)
{
    if (problem)
        problem->text[0] = '\0';
    struct bytes print;
    bool is_printed = !disassembly_print(&print, image, disassembly_printed(image, function), options, problem);
    gpufl_status status = disassembly_parse(disassembly, image, function, is_printed ? &print : NULL, problem);
    bytes_free(&print);
    return status;
}

void disassembly_free(struct disassembly *disassembly)
{
    free(disassembly->instructions);
    free(disassembly->output);
    *disassembly = (struct disassembly){0};
}

const struct instruction *disassembly_at(const struct disassembly *disassembly, uint64_t pc)
{
    size_t low = 0, high = disassembly->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (disassembly->instructions[middle].pc <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    const struct instruction *found = low ? &disassembly->instructions[low - 1] : NULL;
    return found && pc - found->pc < found->size ? found : NULL;
}
