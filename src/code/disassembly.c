/* SPDX-License-Identifier: Apache-2.0 */
#include "code/disassembly.h"

#include "code/disassembler.h"
#include "code/sass_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIME_LIMIT_MS = 20000, OUTPUT_MAX = 64 << 20 };

static const char *spaces_skip(const char *at)
{
    return at + strspn(at, " \t");
}

/* Ends the text before the encoding that some versions print behind it, and before spaces and semicolon. */
static void text_trim(char *text)
{
    char *comment = strstr(text, "/* 0x");
    size_t size = comment ? (size_t)(comment - text) : strlen(text);
    while (size && strchr(" \t\r;", text[size - 1]))
        size--;
    text[size] = '\0';
    /* It goes to terminals; nothing in it may steer them. */
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
}

/* A line of an instruction: its offset in a comment, then its text; false for any other line. */
static bool line_parse(char *line, uint64_t *pc, char **text)
{
    const char *at = spaces_skip(line);
    if (strncmp(at, "/*", 2) != 0)
        return false;
    const char *digits = at + 2;
    size_t count = strspn(digits, "0123456789abcdefABCDEF");
    if (!count || count > 16 || strncmp(digits + count, "*/", 2) != 0)
        return false;
    *pc = strtoull(digits, NULL, 16);
    *text = line + (spaces_skip(digits + count + 2) - line);
    text_trim(*text);
    return (*text)[0] != '\0';
}

/* `.section .text.name,"ax",@progbits`: whether it is the function's; *is_header says whether it is such a line. */
static bool section_parse(const char *line, const char *name, bool *is_header)
{
    const char *at = spaces_skip(line);
    static const char word[] = ".section";
    *is_header = !strncmp(at, word, sizeof word - 1) && (at[sizeof word - 1] == ' ' || at[sizeof word - 1] == '\t');
    if (!*is_header)
        return false;
    at = spaces_skip(at + sizeof word);
    size_t size = strlen(name);
    return !strncmp(at, name, size) && (!at[size] || strchr(", \t\r", at[size]));
}

/* Gives texts of the tool's output, which is changed on the way, to the instructions. */
static void output_parse(struct disassembly *disassembly, const struct cubin_function *function, const char *section)
{
    bool is_inside = true; /* a tool that names no section prints the one that it was asked for */
    for (char *line = disassembly->output, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        bool is_header;
        bool is_ours = section_parse(line, section, &is_header);
        uint64_t pc;
        char *text;
        if (is_header) {
            is_inside = is_ours;
        } else if (is_inside && line_parse(line, &pc, &text) && pc >= function->offset) {
            pc -= function->offset;
            uint64_t index = pc / CUBIN_INSTRUCTION_BYTES;
            if (pc % CUBIN_INSTRUCTION_BYTES || index >= disassembly->count || disassembly->instructions[index].text)
                continue;
            disassembly->instructions[index].text = text;
            disassembly->text_count++;
        }
    }
}

static gpufl_status words_read(struct disassembly *disassembly, const struct cubin *cubin,
                               const struct cubin_function *function, struct problem *problem)
{
    size_t count = (size_t)(function->size / CUBIN_INSTRUCTION_BYTES);
    disassembly->instructions = calloc(count ? count : 1, sizeof *disassembly->instructions);
    if (!disassembly->instructions)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %zu instructions", count);
    disassembly->count = count;
    for (size_t i = 0; i < count; i++) {
        struct instruction *instruction = &disassembly->instructions[i];
        instruction->pc = (uint64_t)i * CUBIN_INSTRUCTION_BYTES;
        (void)cubin_word(cubin, function, instruction->pc, instruction->word);
    }
    return GPUFL_OK;
}

/* The tool's text from the cache, or from the tool and then into the cache. */
static gpufl_status output_get(const struct cubin *cubin, uint32_t symbol_index,
                               const struct disassembly_options *options, struct bytes *out, struct problem *problem)
{
    char found[PATH_MAX], usual[PATH_MAX];
    struct sass_cache_key key = {.cubin = cubin, .symbol_index = symbol_index, .tool = options->tool};
    if (!key.tool) {
        gpufl_status status = disassembler_find(found, problem);
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
        .cubin = cubin,
        .symbol_index = symbol_index,
        .time_limit_ms = options->time_limit_ms ? options->time_limit_ms : TIME_LIMIT_MS,
    };
    gpufl_status status = disassembler_run(&call, out, problem);
    /* Kept only when it can be of use next time. */
    static const char first_offset[] = "/*0000*/";
    bool is_listing = !status && out->size && memmem(out->data, out->size, first_offset, sizeof first_offset - 1);
    if (is_listing && *cache)
        sass_cache_write(cache, &key, out);
    return status;
}

gpufl_status disassembly_read(struct disassembly *disassembly, const struct cubin *cubin,
                              const struct cubin_function *function, const struct disassembly_options *options,
                              struct problem *problem)
{
    static const struct disassembly_options defaults = {0};
    *disassembly = (struct disassembly){0};
    if (problem)
        problem->text[0] = '\0';
    gpufl_status status = words_read(disassembly, cubin, function, problem);
    if (status)
        return status;
    struct bytes output = {.limit = OUTPUT_MAX};
    /* Device functions that were not inlined are printed with the kernel whose section they share. */
    uint32_t symbol_index = cubin_function_host(cubin, function)->symbol_index;
    if (output_get(cubin, symbol_index, options ? options : &defaults, &output, problem)) {
        bytes_free(&output);
        return GPUFL_OK;
    }
    (void)bytes_text(&output); /* NUL-terminates in place */
    if (output.failed || !output.size || memchr(output.data, 0, output.size)) {
        (void)problem_set(problem, GPUFL_E_DAMAGED, "nvdisasm printed no text");
        bytes_free(&output);
        return GPUFL_OK;
    }
    disassembly->output = output.data;
    output_parse(disassembly, function, cubin->sections[function->section].name);
    if (!disassembly->text_count)
        (void)problem_set(problem, GPUFL_E_DAMAGED, "nvdisasm printed no instruction of %.200s", function->name);
    return GPUFL_OK;
}

void disassembly_free(struct disassembly *disassembly)
{
    free(disassembly->instructions);
    free(disassembly->output);
    *disassembly = (struct disassembly){0};
}

const struct instruction *disassembly_at(const struct disassembly *disassembly, uint64_t pc)
{
    uint64_t index = pc / CUBIN_INSTRUCTION_BYTES;
    return index < disassembly->count ? &disassembly->instructions[index] : NULL;
}

void instruction_print(const struct instruction *instruction, char *out, size_t out_size)
{
    if (instruction->text)
        snprintf(out, out_size, "%s", instruction->text);
    else
        snprintf(out, out_size, "0x%016" PRIx64 " 0x%016" PRIx64, instruction->word[1], instruction->word[0]);
}
