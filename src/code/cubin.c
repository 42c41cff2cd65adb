/* SPDX-License-Identifier: Apache-2.0 */
#include "code/cubin.h"

#include "code/byte_reader.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECTION_NOTE = 7,
    ABI_VERSION_SM_HIGH = 8, /* since CUDA 13: the SM number is in bits 8 to 15 of the flags */
    NOTE_TOOLKIT = 2000,
};

void cubin_arch(struct code_image *image)
{
    bool is_new = image->abi_version >= ABI_VERSION_SM_HIGH;
    uint32_t sm = is_new ? image->flags >> 8 & 0xff : image->flags & 0xff;
    bool is_specific = image->flags & (is_new ? 0x8 : 0x800);
    snprintf(image->arch, sizeof image->arch, "sm_%" PRIu32 "%s", sm, is_specific ? "a" : "");
}

static bool is_ptx(const struct image_section *section)
{
    /* The linker appends a number for each object that it joins. */
    static const char name[] = ".nv_debug_ptx_txt";
    size_t size = sizeof name - 1;
    return !strncmp(section->name, name, size) && (section->name[size] == '\0' || section->name[size] == '.') &&
           section->size;
}

bool cubin_has_ptx(const struct code_image *image)
{
    for (uint32_t i = 1; i < image->section_count; i++)
        if (is_ptx(&image->sections[i]))
            return true;
    return false;
}

void cubin_ptx(const struct code_image *image, struct bytes *out)
{
    for (uint32_t i = 1; i < image->section_count; i++) {
        const struct image_section *section = &image->sections[i];
        if (!is_ptx(section) || !bytes_reserve(out, (size_t)section->size))
            continue;
        const char *text = (const char *)image->bytes + section->offset;
        for (uint64_t at = 0; at < section->size; at++)
            bytes_append_char(out, text[at] ? text[at] : '\n');
    }
}

void cubin_toolkit(const struct code_image *image, char *out, size_t out_size)
{
    snprintf(out, out_size, "%s", "");
    uint32_t index = image_section_find(image, ".note.nv.tkinfo", 0);
    if (!index || image->sections[index].type != SECTION_NOTE)
        return;
    const struct image_section *section = &image->sections[index];
    struct byte_reader note = byte_reader_over(image->bytes + section->offset, (size_t)section->size);
    uint32_t name_size = byte_reader_u32(&note);
    uint32_t content_size = byte_reader_u32(&note);
    uint32_t type = byte_reader_u32(&note);
    byte_reader_skip(&note, ((uint64_t)name_size + 3) & ~(uint64_t)3);
    if (note.failed || type != NOTE_TOOLKIT || content_size > byte_reader_left(&note))
        return;
    struct byte_reader content = byte_reader_over(note.data + note.at, content_size);
    byte_reader_skip(&content, 8); /* version, an empty string */
    uint32_t tool = byte_reader_u32(&content);
    uint32_t version = byte_reader_u32(&content);
    byte_reader_skip(&content, 8); /* build, options */
    struct byte_reader names = content;
    byte_reader_skip(&names, tool);
    byte_reader_skip(&content, version);
    const char *tool_text = byte_reader_text(&names);
    const char *version_text = byte_reader_text(&content);
    if (!names.failed && !content.failed)
        snprintf(out, out_size, "%s %s", tool_text, version_text);
}
