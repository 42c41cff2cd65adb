/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/nvtx_event.h"

#include <string.h>

size_t nvtx_narrow(const wchar_t *wide, char *out, size_t capacity)
{
    size_t size = 0;
    for (; *wide; wide++) {
        uint32_t c = (uint32_t)*wide;
        char encoded[4];
        size_t count = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (size + count > capacity)
            break;
        if (count == 1) {
            encoded[0] = (char)c;
        } else {
            static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
            for (size_t i = count - 1; i > 0; i--, c >>= 6)
                encoded[i] = (char)(0x80 | (c & 0x3f));
            encoded[0] = (char)(lead[count] | (c & 0x3f));
        }
        memcpy(out + size, encoded, count);
        size += count;
    }
    return size;
}

/* The number of bytes that form whole UTF-8 characters; invalid UTF-8 is not checked. */
static size_t cut_size(const char *text, size_t size_max)
{
    size_t size = strnlen(text, size_max + 1);
    if (size <= size_max)
        return size;
    for (size = size_max; size && size_max - size < 3 && ((unsigned char)text[size] & 0xc0) == 0x80;)
        size--;
    return size;
}

/* PyTorch numbers its ranges, "aten::mm, seq = 5, op_id = 12": without the numbers all calls of an operator are one
 * scope. */
static size_t unnumbered_size(const char *name, size_t size)
{
    static const char *const labels[] = {", seq = ", ", op_id = "};
    for (;;) {
        size_t end = size;
        while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
            end--;
        size_t cut = size;
        for (size_t i = 0; end < size && i < sizeof labels / sizeof *labels; i++) {
            size_t label_size = strlen(labels[i]);
            if (end > label_size && !memcmp(name + end - label_size, labels[i], label_size))
                cut = end - label_size;
        }
        if (cut == size)
            return size;
        size = cut;
    }
}

static void read_registered(const void *handle, const char **text, size_t *size)
{
    const struct nvtx_name *name;
    enum nvtx_found found = nvtx_string_find(handle, &name);
    if (found == NVTX_FULL)
        nvtx_lose(NVTX_LOSS_STRING);
    if (found != NVTX_FOUND)
        return;
    *text = name->text;
    *size = name->size;
}

void nvtx_read_message(int32_t type, const union nvtx_message *message, struct nvtx_scratch *scratch, const char **text,
                       size_t *size)
{
    static const char unnamed[] = "(unnamed)";
    *text = unnamed;
    *size = sizeof unnamed - 1;
    if (!message->ascii)
        return;
    if (type == NVTX_MESSAGE_ASCII) {
        *text = message->ascii;
        *size = cut_size(*text, NVTX_TEXT_BYTES_MAX);
    } else if (type == NVTX_MESSAGE_UNICODE) {
        *text = scratch->text;
        *size = nvtx_narrow(message->unicode, scratch->text, sizeof scratch->text);
    } else if (type == NVTX_MESSAGE_REGISTERED) {
        read_registered(message->registered, text, size);
    }
}

/* Narrow payloads are widened to the 64-bit number of their kind. */
static void read_payload(const struct nvtx_attributes *attributes, struct scope_details *details)
{
    enum { u64 = 1, i64, f64, u32, i32, f32 };
    uint32_t low = (uint32_t)attributes->payload;
    float narrow;
    double wide;
    if (attributes->payload_type < u64 || attributes->payload_type > f32)
        return;
    details->payload_type = (uint8_t)attributes->payload_type;
    details->payload = attributes->payload;
    if (details->payload_type == u32)
        details->payload = low;
    else if (details->payload_type == i32)
        details->payload = (uint64_t)(int64_t)(int32_t)low;
    if (details->payload_type == f32) {
        memcpy(&narrow, &low, sizeof narrow);
        wide = narrow;
        memcpy(&details->payload, &wide, sizeof wide);
    }
}

void nvtx_read_event(const struct nvtx_attributes *attributes, struct nvtx_scratch *scratch, struct scope_text *text)
{
    static const struct nvtx_attributes none;
    size_t size = attributes ? attributes->size : 0;
    if (size < offsetof(struct nvtx_attributes, message) + sizeof none.message)
        attributes = &none;
    nvtx_read_message(attributes->message_type, &attributes->message, scratch, &text->name, &text->name_size);
    text->name_size = unnumbered_size(text->name, text->name_size);
    text->details.category = attributes->category;
    text->details.has_color = attributes->color_type == 1; /* NVTX_COLOR_ARGB */
    text->details.color = text->details.has_color ? attributes->color : 0;
    read_payload(attributes, &text->details);
}

bool nvtx_read_domain(const void *domain, struct scope_text *text, bool *has_stack)
{
    const struct nvtx_name *name;
    uint32_t number;
    *has_stack = true;
    text->stack = SCOPE_STACK_NVTX;
    if (!domain)
        return true;
    enum nvtx_found found = nvtx_domain_find(domain, &name, &number);
    if (found == NVTX_FOUND) {
        text->stack = SCOPE_STACK_DOMAINS + number;
        text->tag = name->text;
        text->tag_size = name->size;
    }
    *has_stack = found == NVTX_FOUND;
    return found != NVTX_UNKNOWN;
}
