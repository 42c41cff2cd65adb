/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/nvtx.h"

#include "capture/thread_log.h"
#include "sdk/amd_session.h"
#include "sdk/session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* The binary interface of NVTX 3, as far as ranges need it. */
enum { nvtx_table_callbacks = 1, nvtx_module_core = 1, nvtx_module_core2 = 5 };
enum {
    core_range_start_ex = 4,
    core_range_start_a,
    core_range_start_w,
    core_range_end,
    core_range_push_ex,
    core_range_push_a,
    core_range_push_w,
    core_range_pop
};
enum {
    core2_range_start_ex = 2,
    core2_range_end,
    core2_range_push_ex,
    core2_range_pop,
    core2_register_string_a = 10,
    core2_register_string_w,
    core2_domain_create_a,
    core2_domain_create_w
};
enum { message_ascii = 1, message_unicode = 2, message_registered = 3 };

struct nvtx_callbacks {
    size_t struct_size;
    int (*module_table)(uint32_t module, void ***table, unsigned *size);
};
struct nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved0;
    uint64_t payload;
    int32_t message_type;
    int32_t reserved1;
    union {
        const char *ascii;
        const wchar_t *unicode;
        const struct name *registered;
    } message;
};
_Static_assert(offsetof(struct nvtx_attributes, message) == 40, "nvtxEventAttributes_t, message");

/* What our handles (domains, registered strings) point to: text, kept for the life of the process as
 * NVTX promises no end of use. */
struct name {
    uint32_t size;
    char text[];
};

enum { names_max = 16384, name_bytes_max = 4096 };
static _Atomic uint32_t name_count;
static _Atomic uint64_t next_range_id = 1;
static const uint64_t roctx_range_bit = UINT64_C(1) << 63; /* its ids are its own: they must not meet NVTX's */

static struct name *name_make(const char *text, size_t size)
{
    if (size > name_bytes_max)
        size = name_bytes_max;
    /* Bounded: a program that registers strings without end gets unnamed ones. */
    if (atomic_fetch_add(&name_count, 1) >= names_max)
        return NULL;
    struct name *name = malloc(sizeof *name + size + 1);
    if (name) {
        name->size = (uint32_t)size;
        memcpy(name->text, text, size);
        name->text[size] = '\0';
    }
    return name;
}

static size_t narrow(const wchar_t *wide, char *out, size_t capacity)
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

/* The event's message; wide ones are converted into `scratch`. */
static void event_text(const struct nvtx_attributes *attributes, struct scope_text *text, char *scratch)
{
    text->name = "(unnamed)";
    text->name_size = strlen(text->name);
    if (!attributes || attributes->size < offsetof(struct nvtx_attributes, message) + sizeof attributes->message ||
        !attributes->message.ascii)
        return;
    if (attributes->message_type == message_ascii) {
        text->name = attributes->message.ascii;
        text->name_size = strlen(text->name);
    } else if (attributes->message_type == message_unicode) {
        text->name = scratch;
        text->name_size = narrow(attributes->message.unicode, scratch, name_bytes_max);
    } else if (attributes->message_type == message_registered) {
        text->name = attributes->message.registered->text;
        text->name_size = attributes->message.registered->size;
    }
}

/* PyTorch numbers its ranges, "aten::mm, seq = 5, op_id = 12": without the numbers all calls of an op are one scope. */
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

/* schema enum scope_source */
enum { source_nvtx_push = 1, source_nvtx_start, source_roctx_push, source_roctx_start, source_roctx_mark };

static int push(struct scope_text *text, const struct name *domain)
{
    static _Thread_local int depth; /* what nvtxRangePush returns */
    text->name_size = unnumbered_size(text->name, text->name_size);
    text->source = text->source ? text->source : source_nvtx_push;
    text->tag = domain ? domain->text : NULL;
    text->tag_size = domain ? domain->size : 0;
    scope_begin(text);
    return depth++;
}

static int pop(void)
{
    scope_end();
    return 0;
}

static uint64_t range_start(struct scope_text *text, const struct name *domain)
{
    uint64_t id = atomic_fetch_add(&next_range_id, 1);
    if (gpufl_is_recording()) {
        text->source = source_nvtx_start;
        text->tag = domain ? domain->text : NULL;
        text->tag_size = domain ? domain->size : 0;
        thread_log_range_start(text, id);
    }
    return id;
}

static int on_push_a(const char *message)
{
    struct scope_text text = {.name = message ? message : "", .name_size = message ? strlen(message) : 0};
    return push(&text, NULL);
}
static int on_push_w(const wchar_t *message)
{
    char scratch[name_bytes_max];
    struct scope_text text = {.name = scratch, .name_size = message ? narrow(message, scratch, sizeof scratch) : 0};
    return push(&text, NULL);
}
static int on_domain_push_ex(const struct name *domain, const struct nvtx_attributes *attributes)
{
    char scratch[name_bytes_max];
    struct scope_text text = {0};
    event_text(attributes, &text, scratch);
    return push(&text, domain);
}
static int on_push_ex(const struct nvtx_attributes *attributes)
{
    return on_domain_push_ex(NULL, attributes);
}
static int on_pop(void)
{
    return pop();
}
static int on_domain_pop(const struct name *domain)
{
    (void)domain;
    return pop();
}
static uint64_t on_domain_start_ex(const struct name *domain, const struct nvtx_attributes *attributes)
{
    char scratch[name_bytes_max];
    struct scope_text text = {0};
    event_text(attributes, &text, scratch);
    return range_start(&text, domain);
}
static uint64_t on_start_ex(const struct nvtx_attributes *attributes)
{
    return on_domain_start_ex(NULL, attributes);
}
static uint64_t on_start_a(const char *message)
{
    struct scope_text text = {.name = message ? message : "", .name_size = message ? strlen(message) : 0};
    return range_start(&text, NULL);
}
static uint64_t on_start_w(const wchar_t *message)
{
    char scratch[name_bytes_max];
    struct scope_text text = {.name = scratch, .name_size = message ? narrow(message, scratch, sizeof scratch) : 0};
    return range_start(&text, NULL);
}
static void on_end(uint64_t id)
{
    if (gpufl_is_recording())
        thread_log_range_end(id);
}
static void on_domain_end(const struct name *domain, uint64_t id)
{
    (void)domain;
    on_end(id);
}
static struct name *on_domain_create_a(const char *text)
{
    return text ? name_make(text, strlen(text)) : NULL;
}
static struct name *on_domain_create_w(const wchar_t *text)
{
    char scratch[name_bytes_max];
    return text ? name_make(scratch, narrow(text, scratch, sizeof scratch)) : NULL;
}
static struct name *on_register_a(const struct name *domain, const char *text)
{
    (void)domain;
    return on_domain_create_a(text);
}
static struct name *on_register_w(const struct name *domain, const wchar_t *text)
{
    (void)domain;
    return on_domain_create_w(text);
}

void roctx_range(enum rocprofiler_range range, const char *text, uint64_t range_id)
{
    struct scope_text scope = {.name = text, .name_size = text ? strlen(text) : 0};
    if (range == ROCPROFILER_RANGE_PUSH) {
        scope.source = source_roctx_push;
        (void)push(&scope, NULL);
    } else if (range == ROCPROFILER_RANGE_POP) {
        (void)pop();
    } else if (gpufl_is_recording()) {
        /* A mark is a range of its own that ends where it begins. */
        uint64_t id =
            range == ROCPROFILER_RANGE_MARK ? atomic_fetch_add(&next_range_id, 1) : roctx_range_bit | range_id;
        scope.source = range == ROCPROFILER_RANGE_MARK ? source_roctx_mark : source_roctx_start;
        if (range != ROCPROFILER_RANGE_STOP)
            thread_log_range_start(&scope, id);
        if (range != ROCPROFILER_RANGE_START)
            thread_log_range_end(id);
    }
}

struct hook {
    uint32_t module;
    unsigned index;
    void (*function)(void);
};
#define HOOK(module, index, function)             \
    {                                             \
        module, index, (void (*)(void))(function) \
    }

static const struct hook hooks[] = {
    HOOK(nvtx_module_core, core_range_push_a, on_push_a),
    HOOK(nvtx_module_core, core_range_push_w, on_push_w),
    HOOK(nvtx_module_core, core_range_push_ex, on_push_ex),
    HOOK(nvtx_module_core, core_range_pop, on_pop),
    HOOK(nvtx_module_core, core_range_start_a, on_start_a),
    HOOK(nvtx_module_core, core_range_start_w, on_start_w),
    HOOK(nvtx_module_core, core_range_start_ex, on_start_ex),
    HOOK(nvtx_module_core, core_range_end, on_end),
    HOOK(nvtx_module_core2, core2_range_push_ex, on_domain_push_ex),
    HOOK(nvtx_module_core2, core2_range_pop, on_domain_pop),
    HOOK(nvtx_module_core2, core2_range_start_ex, on_domain_start_ex),
    HOOK(nvtx_module_core2, core2_range_end, on_domain_end),
    HOOK(nvtx_module_core2, core2_register_string_a, on_register_a),
    HOOK(nvtx_module_core2, core2_register_string_w, on_register_w),
    HOOK(nvtx_module_core2, core2_domain_create_a, on_domain_create_a),
    HOOK(nvtx_module_core2, core2_domain_create_w, on_domain_create_w),
};

int gpufl_nvtx_attach(nvtx_get_table get_table)
{
    const struct nvtx_callbacks *callbacks = get_table ? get_table(nvtx_table_callbacks) : NULL;
    if (!callbacks || callbacks->struct_size < sizeof *callbacks || !callbacks->module_table)
        return 0;
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
        void **table = NULL;
        unsigned size = 0;
        if (!callbacks->module_table(hooks[i].module, &table, &size) || !table || hooks[i].index >= size ||
            !table[hooks[i].index])
            continue;
        /* The table holds addresses of the client's function pointers. */
        memcpy(table[hooks[i].index], &hooks[i].function, sizeof hooks[i].function);
    }
    return 1;
}

int gpufl_injected_start(void)
{
    return session_start(NULL, true) == GPUFL_OK;
}
