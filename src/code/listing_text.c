/* SPDX-License-Identifier: Apache-2.0 */
#include "code/listing_text.h"

#include "code/byte_reader.h"

#include <stdlib.h>

static const char hex_digits[] = "0123456789abcdefABCDEF";

static const char *spaces_skip(const char *at)
{
    return at + strspn(at, " \t");
}

/* Truncates the text and removes trailing spaces and semicolons. */
static void text_end(char *text, size_t size)
{
    while (size && strchr(" \t\r;", text[size - 1]))
        size--;
    text[size] = '\0';
    /* Terminals must not interpret the text. */
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
}

/* nvdisasm: the offset in a comment, then the text, then, in some versions, the encoding. */
static bool nvidia_line(char *line, uint64_t *pc, char **text)
{
    const char *at = spaces_skip(line);
    if (strncmp(at, "/*", 2) != 0)
        return false;
    const char *digits = at + 2;
    size_t count = strspn(digits, hex_digits);
    if (!count || count > 16 || strncmp(digits + count, "*/", 2) != 0)
        return false;
    *pc = strtoull(digits, NULL, 16);
    *text = line + (spaces_skip(digits + count + 2) - line);
    const char *encoding = strstr(*text, "/* 0x");
    text_end(*text, encoding ? (size_t)(encoding - *text) : strlen(*text));
    return (*text)[0] != '\0';
}

/* `.section .text.name,"ax",@progbits`: true if it is the function's; *is_header: it is such a line. */
static bool section_line(const char *line, const char *name, bool *is_header)
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

static bool nvidia_read(struct listing_text *listing, char *line, struct instruction *instruction)
{
    const struct image_function *function = listing->function;
    bool is_header;
    bool is_ours = section_line(line, listing->image->sections[function->section].name, &is_header);
    if (is_header)
        listing->is_inside = is_ours;
    uint64_t pc;
    char *text;
    if (is_header || !listing->is_inside || !nvidia_line(line, &pc, &text) || pc < function->offset)
        return false;
    *instruction = (struct instruction){pc - function->offset, text, image_instruction_unit(listing->image->vendor)};
    return instruction->pc % instruction->size == 0;
}

/* Compares the words after the address with the code and returns their size; 0 if they differ. */
static unsigned encoding_check(const struct listing_text *listing, uint64_t pc, const char **at)
{
    enum { WORD_DIGITS = 8, WORD_BYTES = 4 };
    const struct image_function *function = listing->function;
    struct byte_reader code = byte_reader_over(image_code(listing->image, function), (size_t)function->size);
    byte_reader_skip(&code, pc);
    unsigned size = 0;
    while (strspn(*at, hex_digits) == WORD_DIGITS) {
        if (byte_reader_u32(&code) != strtoul(*at, NULL, 16) || code.failed)
            return 0;
        size += WORD_BYTES;
        *at = spaces_skip(*at + WORD_DIGITS);
    }
    return size;
}

/* llvm-objdump: `\ts_cbranch_execz 27   // 00000000191C: BF88001B <vector_add+0x8c>` */
static bool amd_read(struct listing_text *listing, char *line, struct instruction *instruction)
{
    char *comment = strstr(line, "//");
    if (!comment)
        return false;
    const char *digits = spaces_skip(comment + 2);
    size_t count = strspn(digits, hex_digits);
    if (!count || count > 16 || digits[count] != ':')
        return false;
    const struct image_function *function = listing->function;
    uint64_t begin = function->offset;
    if (listing->image->is_linked)
        begin += listing->image->sections[function->section].address;
    uint64_t pc = strtoull(digits, NULL, 16) - begin;
    const char *at = spaces_skip(digits + count + 1);
    unsigned size = pc < function->size ? encoding_check(listing, pc, &at) : 0;
    if (!size)
        return false;
    char *text = line + (spaces_skip(line) - line);
    text_end(text, (size_t)(comment - text));
    size_t used = strlen(text), target = strcspn(at, "\r");
    if (*at == '<' && target > 2 && at[target - 1] == '>') {
        text[used] = ' ';
        memmove(text + used + 1, at, target);
        text_end(text, used + 1 + target);
    }
    *instruction = (struct instruction){pc, text, size};
    return used != 0;
}

struct listing_text listing_text_over(const struct code_image *image, const struct image_function *function, char *text)
{
    /* An nvdisasm that prints no section names prints only the requested section. */
    return (struct listing_text){.image = image, .function = function, .rest = text, .is_inside = true};
}

bool listing_text_next(struct listing_text *listing, struct instruction *instruction)
{
    while (listing->rest) {
        char *line = listing->rest, *end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        listing->rest = end;
        if (listing->image->vendor == IMAGE_AMD ? amd_read(listing, line, instruction)
                                                : nvidia_read(listing, line, instruction))
            return true;
    }
    return false;
}
