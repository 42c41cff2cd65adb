/* SPDX-License-Identifier: Apache-2.0 */
#include "code/amdgpu_metadata.h"

#include "code/byte_reader.h"

enum { SECTION_NOTE = 7, NOTE_METADATA = 32 };
enum value_kind { VALUE_OTHER, VALUE_NUMBER, VALUE_TEXT, VALUE_ARRAY, VALUE_MAP };

/* The head of a value; the contents of a string, array or map are still unread. */
struct value {
    enum value_kind kind;
    uint64_t number; /* or the number of bytes, elements or pairs */
};

static uint64_t wide_number(struct byte_reader *reader, unsigned power)
{
    unsigned width = 1u << power;
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++)
        value = value << 8 | byte_reader_u8(reader); /* big-endian, unlike everything else here */
    return value;
}

static struct value value_read(struct byte_reader *reader)
{
    uint8_t tag = byte_reader_u8(reader);
    if (tag <= 0x7f)
        return (struct value){VALUE_NUMBER, tag};
    if (tag <= 0x8f)
        return (struct value){VALUE_MAP, tag & 0xf};
    if (tag <= 0x9f)
        return (struct value){VALUE_ARRAY, tag & 0xf};
    if (tag <= 0xbf)
        return (struct value){VALUE_TEXT, tag & 0x1f};
    if (tag >= 0xcc && tag <= 0xcf)
        return (struct value){VALUE_NUMBER, wide_number(reader, tag - 0xccu)};
    if (tag >= 0xd9 && tag <= 0xdb)
        return (struct value){VALUE_TEXT, wide_number(reader, tag - 0xd9u)};
    if (tag == 0xdc || tag == 0xdd)
        return (struct value){VALUE_ARRAY, wide_number(reader, tag - 0xdcu + 1)};
    if (tag == 0xde || tag == 0xdf)
        return (struct value){VALUE_MAP, wide_number(reader, tag - 0xdeu + 1)};
    /* Binary data, floating point, signed numbers and extensions: never used for a kernel's numbers. */
    if (tag >= 0xc4 && tag <= 0xc6)
        byte_reader_skip(reader, wide_number(reader, tag - 0xc4u));
    else if (tag >= 0xc7 && tag <= 0xc9)
        byte_reader_skip(reader, wide_number(reader, tag - 0xc7u) + 1);
    else if (tag == 0xca || tag == 0xcb)
        byte_reader_skip(reader, tag == 0xca ? 4 : 8);
    else if (tag >= 0xd0 && tag <= 0xd3)
        byte_reader_skip(reader, (uint64_t)1 << (tag - 0xd0));
    else if (tag >= 0xd4 && tag <= 0xd8)
        byte_reader_skip(reader, ((uint64_t)1 << (tag - 0xd4)) + 1);
    return (struct value){VALUE_OTHER, 0};
}

/* Skips the contents of a value whose head was read. */
static void inside_skip(struct byte_reader *reader, struct value value)
{
    uint64_t waiting = 0;
    for (;;) {
        if (value.kind == VALUE_TEXT)
            byte_reader_skip(reader, value.number);
        else if (value.kind == VALUE_ARRAY || value.kind == VALUE_MAP)
            waiting += value.kind == VALUE_MAP ? value.number * 2 : value.number;
        /* Each value takes at least one byte. */
        if (waiting > byte_reader_left(reader))
            reader->failed = true;
        if (!waiting || reader->failed)
            return;
        waiting--;
        value = value_read(reader);
    }
}

static bool is_text(const struct byte_reader *reader, struct value value, const char *text)
{
    size_t size = strlen(text);
    return value.kind == VALUE_TEXT && value.number == size && byte_reader_left(reader) >= size &&
           !memcmp(reader->data + reader->at, text, size);
}

/* "name.kd" */
static bool is_symbol(const struct byte_reader *reader, struct value value, const char *name)
{
    static const char ending[] = ".kd";
    if (value.kind != VALUE_TEXT || value.number < sizeof ending - 1 || byte_reader_left(reader) < value.number)
        return false;
    size_t size = (size_t)value.number - (sizeof ending - 1);
    const char *text = (const char *)reader->data + reader->at;
    return !memcmp(text + size, ending, sizeof ending - 1) && strnlen(name, size + 1) == size &&
           !memcmp(text, name, size);
}

static void group_size_read(struct byte_reader *reader, struct value value, uint32_t group_size[3])
{
    if (value.kind != VALUE_ARRAY || value.number != 3) {
        inside_skip(reader, value);
        return;
    }
    uint32_t sizes[3] = {0};
    bool is_good = true;
    for (unsigned i = 0; i < 3; i++) {
        struct value element = value_read(reader);
        is_good = is_good && element.kind == VALUE_NUMBER && element.number && element.number < AMDGPU_UNKNOWN;
        sizes[i] = is_good ? (uint32_t)element.number : 0;
        inside_skip(reader, element);
    }
    if (is_good && !reader->failed)
        memcpy(group_size, sizes, sizeof sizes);
}

/* Reads one member of a kernel's map; true if it contains the name of the wanted kernel. */
static bool member_read(struct byte_reader *reader, const char *kernel_name, struct amdgpu_kernel *kernel)
{
    const struct {
        const char *key;
        uint32_t *value;
    } numbers[] = {
        {".vgpr_count", &kernel->vgpr_count},
        {".agpr_count", &kernel->agpr_count},
        {".sgpr_count", &kernel->sgpr_count},
        {".vgpr_spill_count", &kernel->vgpr_spills},
        {".sgpr_spill_count", &kernel->sgpr_spills},
        {".group_segment_fixed_size", &kernel->lds_bytes},
        {".private_segment_fixed_size", &kernel->scratch_bytes},
        {".kernarg_segment_size", &kernel->kernarg_bytes},
        {".wavefront_size", &kernel->wave_size},
        {".max_flat_workgroup_size", &kernel->group_size_max},
    };
    struct value key = value_read(reader);
    uint32_t *wanted = NULL;
    for (size_t i = 0; !wanted && i < sizeof numbers / sizeof *numbers; i++)
        wanted = is_text(reader, key, numbers[i].key) ? numbers[i].value : NULL;
    bool is_symbol_key = is_text(reader, key, ".symbol"), is_group = is_text(reader, key, ".reqd_workgroup_size");
    inside_skip(reader, key);
    struct value value = value_read(reader);
    if (is_group) {
        group_size_read(reader, value, kernel->group_size);
        return false;
    }
    bool is_it = is_symbol_key && is_symbol(reader, value, kernel_name);
    if (wanted && value.kind == VALUE_NUMBER && value.number < AMDGPU_UNKNOWN && !reader->failed)
        *wanted = (uint32_t)value.number;
    inside_skip(reader, value);
    return is_it;
}

static bool kernels_read(struct byte_reader *reader, struct value kernels, const char *kernel_name,
                         struct amdgpu_kernel *kernel)
{
    for (uint64_t i = 0; kernels.kind == VALUE_ARRAY && i < kernels.number && !reader->failed; i++) {
        struct value map = value_read(reader);
        if (map.kind != VALUE_MAP) {
            inside_skip(reader, map);
            continue;
        }
        struct amdgpu_kernel found = *kernel;
        bool is_it = false;
        for (uint64_t k = 0; k < map.number && !reader->failed; k++)
            is_it |= member_read(reader, kernel_name, &found);
        if (is_it && !reader->failed) {
            *kernel = found;
            return true;
        }
    }
    return false;
}

static bool content_read(struct byte_reader content, const char *kernel_name, struct amdgpu_kernel *kernel)
{
    struct value top = value_read(&content);
    for (uint64_t i = 0; top.kind == VALUE_MAP && i < top.number && !content.failed; i++) {
        struct value key = value_read(&content);
        bool is_kernels = is_text(&content, key, "amdhsa.kernels");
        inside_skip(&content, key);
        struct value value = value_read(&content);
        if (is_kernels)
            return kernels_read(&content, value, kernel_name, kernel);
        inside_skip(&content, value);
    }
    return false;
}

bool amdgpu_metadata_read(const struct code_image *image, const char *kernel_name, struct amdgpu_kernel *kernel)
{
    static const char owner[] = "AMDGPU";
    for (uint32_t i = 1; i < image->section_count; i++) {
        const struct image_section *section = &image->sections[i];
        if (section->type != SECTION_NOTE)
            continue;
        struct byte_reader notes = byte_reader_over(image->bytes + section->offset, (size_t)section->size);
        while (byte_reader_left(&notes)) {
            uint64_t name_size = byte_reader_u32(&notes), content_size = byte_reader_u32(&notes);
            uint32_t type = byte_reader_u32(&notes);
            size_t name_at = notes.at;
            byte_reader_skip(&notes, (name_size + 3) & ~(uint64_t)3);
            bool is_ours = !notes.failed && type == NOTE_METADATA && name_size == sizeof owner &&
                           !memcmp(notes.data + name_at, owner, sizeof owner);
            if (is_ours && content_size <= byte_reader_left(&notes))
                return content_read(byte_reader_over(notes.data + notes.at, (size_t)content_size), kernel_name, kernel);
            byte_reader_skip(&notes, (content_size + 3) & ~(uint64_t)3);
        }
    }
    return false;
}
