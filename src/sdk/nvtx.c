/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/nvtx.h"

#include "capture/given_names.h"
#include "driver/cuda.h"
#include "driver/cupti_events.h"
#include "sdk/amd_session.h"
#include "sdk/nvtx_event.h"
#include "sdk/session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* The part of NVTX 3's binary interface that is used. */
enum {
    nvtx_table_callbacks = 1,
    nvtx_module_core = 1,
    nvtx_module_cuda = 2,
    nvtx_module_cudart = 4,
    nvtx_module_core2 = 5
};
enum {
    core_mark_ex = 1,
    core_mark_a,
    core_mark_w,
    core_range_start_ex,
    core_range_start_a,
    core_range_start_w,
    core_range_end,
    core_range_push_ex,
    core_range_push_a,
    core_range_push_w,
    core_range_pop,
    core_name_category_a,
    core_name_category_w,
    core_name_thread_a,
    core_name_thread_w
};
enum { cuda_name_stream_a = 5, cuda_name_stream_w, cudart_name_stream_a = 3, cudart_name_stream_w };
enum {
    core2_mark_ex = 1,
    core2_range_start_ex,
    core2_range_end,
    core2_range_push_ex,
    core2_range_pop,
    core2_resource_create,
    core2_name_category_a = 8,
    core2_name_category_w,
    core2_register_string_a,
    core2_register_string_w,
    core2_domain_create_a,
    core2_domain_create_w
};
enum { resource_thread = 1 << 16 | 3, resource_cuda_stream = 4 << 16 | 3, resource_cudart_stream = 5 << 16 | 1 };
enum { level_unknown = -2 /* NVTX_NO_PUSH_POP_TRACKING */, level_none = -1 };

struct nvtx_callbacks {
    size_t struct_size;
    int (*module_table)(uint32_t module, void ***table, unsigned *size);
};
struct nvtx_resource { /* nvtxResourceAttributes_t */
    uint16_t version, size;
    int32_t type;
    uint64_t id;
    int32_t message_type;
    union nvtx_message message;
};
_Static_assert(offsetof(struct nvtx_resource, message) == 24, "nvtxResourceAttributes_t, message");

static _Atomic uint64_t next_range_id = 1;
static const uint64_t roctx_range_bit = UINT64_C(1) << 63; /* ROCTX ids must not collide with NVTX's */

/* schema enum scope_source */
enum {
    source_nvtx_push = 1,
    source_nvtx_start,
    source_roctx_push,
    source_roctx_start,
    source_roctx_mark,
    source_nvtx_mark
};

static int on_domain_push_ex(const void *domain, const struct nvtx_attributes *attributes)
{
    struct nvtx_scratch scratch;
    struct scope_text text = {.source = source_nvtx_push};
    bool has_stack;
    if (!gpufl_is_recording())
        return level_unknown;
    if (!nvtx_read_domain(domain, &text, &has_stack))
        return level_none;
    if (!has_stack) {
        nvtx_lose(NVTX_LOSS_DOMAIN);
        return level_unknown;
    }
    nvtx_read_event(attributes, &scratch, &text);
    int level = scope_begin(&text);
    return level < 0 ? level_unknown : level;
}

static int on_domain_pop(const void *domain)
{
    struct scope_text text;
    bool has_stack;
    if (!gpufl_is_recording())
        return level_unknown;
    if (!nvtx_read_domain(domain, &text, &has_stack))
        return level_none;
    return has_stack ? scope_end(text.stack) : level_unknown;
}

static uint64_t on_domain_start_ex(const void *domain, const struct nvtx_attributes *attributes)
{
    struct nvtx_scratch scratch;
    struct scope_text text = {.source = source_nvtx_start};
    bool has_stack;
    uint64_t id = atomic_fetch_add(&next_range_id, 1);
    if (gpufl_is_recording() && nvtx_read_domain(domain, &text, &has_stack)) {
        nvtx_read_event(attributes, &scratch, &text);
        thread_log_range_start(&text, id);
    }
    return id;
}

static void on_domain_mark_ex(const void *domain, const struct nvtx_attributes *attributes)
{
    struct nvtx_scratch scratch;
    struct scope_text text = {.source = source_nvtx_mark};
    bool has_stack;
    if (!gpufl_is_recording() || !nvtx_read_domain(domain, &text, &has_stack))
        return;
    nvtx_read_event(attributes, &scratch, &text);
    thread_log_mark(&text);
}

static void on_end(uint64_t id)
{
    if (gpufl_is_recording())
        thread_log_range_end(id);
}
static void on_domain_end(const void *domain, uint64_t id)
{
    (void)domain;
    on_end(id);
}

static struct nvtx_attributes only_ascii(const char *message)
{
    return (struct nvtx_attributes){.size = sizeof(struct nvtx_attributes),
                                    .message_type = NVTX_MESSAGE_ASCII,
                                    .message.ascii = message ? message : ""};
}
static struct nvtx_attributes only_unicode(const wchar_t *message)
{
    return (struct nvtx_attributes){.size = sizeof(struct nvtx_attributes),
                                    .message_type = NVTX_MESSAGE_UNICODE,
                                    .message.unicode = message ? message : L""};
}
static int on_push_ex(const struct nvtx_attributes *attributes)
{
    return on_domain_push_ex(NULL, attributes);
}
static int on_push_a(const char *message)
{
    struct nvtx_attributes attributes = only_ascii(message);
    return on_domain_push_ex(NULL, &attributes);
}
static int on_push_w(const wchar_t *message)
{
    struct nvtx_attributes attributes = only_unicode(message);
    return on_domain_push_ex(NULL, &attributes);
}
static uint64_t on_start_ex(const struct nvtx_attributes *attributes)
{
    return on_domain_start_ex(NULL, attributes);
}
static uint64_t on_start_a(const char *message)
{
    struct nvtx_attributes attributes = only_ascii(message);
    return on_domain_start_ex(NULL, &attributes);
}
static uint64_t on_start_w(const wchar_t *message)
{
    struct nvtx_attributes attributes = only_unicode(message);
    return on_domain_start_ex(NULL, &attributes);
}
static void on_mark_ex(const struct nvtx_attributes *attributes)
{
    on_domain_mark_ex(NULL, attributes);
}
static void on_mark_a(const char *message)
{
    struct nvtx_attributes attributes = only_ascii(message);
    on_domain_mark_ex(NULL, &attributes);
}
static void on_mark_w(const wchar_t *message)
{
    struct nvtx_attributes attributes = only_unicode(message);
    on_domain_mark_ex(NULL, &attributes);
}
static int on_pop(void)
{
    return on_domain_pop(NULL);
}

static void *on_domain_create_a(const char *text)
{
    return text ? nvtx_domain_handle(text, strlen(text)) : NULL;
}
static void *on_domain_create_w(const wchar_t *text)
{
    struct nvtx_scratch scratch;
    return text ? nvtx_domain_handle(scratch.text, nvtx_narrow(text, scratch.text, sizeof scratch.text)) : NULL;
}
static void *on_register_a(const void *domain, const char *text)
{
    (void)domain;
    return text ? nvtx_string_handle(text, strlen(text)) : NULL;
}
static void *on_register_w(const void *domain, const wchar_t *text)
{
    struct nvtx_scratch scratch;
    (void)domain;
    return text ? nvtx_string_handle(scratch.text, nvtx_narrow(text, scratch.text, sizeof scratch.text)) : NULL;
}

/* Names are recorded whether or not a session is running. */
static void give_name(enum given_name_kind kind, uint64_t id, const char *domain, int32_t message_type,
                      union nvtx_message message)
{
    struct nvtx_scratch scratch;
    const char *text;
    size_t size;
    if (!message.ascii)
        return;
    nvtx_read_message(message_type, &message, &scratch, &text, &size);
    char name[NVTX_TEXT_BYTES_MAX + 1];
    memcpy(name, text, size);
    name[size] = '\0';
    given_names_set(&(struct given_name){kind, id, domain, name});
}

static void on_name_category(const void *domain, uint32_t category, int32_t type, union nvtx_message name)
{
    struct scope_text text = {0};
    bool has_stack;
    if (nvtx_read_domain(domain, &text, &has_stack))
        give_name(GIVEN_CATEGORY, category, text.tag ? text.tag : "", type, name);
}
static void on_name_domain_category_a(const void *domain, uint32_t category, const char *name)
{
    on_name_category(domain, category, NVTX_MESSAGE_ASCII, (union nvtx_message){.ascii = name});
}
static void on_name_domain_category_w(const void *domain, uint32_t category, const wchar_t *name)
{
    on_name_category(domain, category, NVTX_MESSAGE_UNICODE, (union nvtx_message){.unicode = name});
}
static void on_name_category_a(uint32_t category, const char *name)
{
    on_name_domain_category_a(NULL, category, name);
}
static void on_name_category_w(uint32_t category, const wchar_t *name)
{
    on_name_domain_category_w(NULL, category, name);
}
static void on_name_thread_a(uint32_t thread_id, const char *name)
{
    give_name(GIVEN_THREAD, thread_id, "", NVTX_MESSAGE_ASCII, (union nvtx_message){.ascii = name});
}
static void on_name_thread_w(uint32_t thread_id, const wchar_t *name)
{
    give_name(GIVEN_THREAD, thread_id, "", NVTX_MESSAGE_UNICODE, (union nvtx_message){.unicode = name});
}

/* Only while CUPTI is in use, which knows the stream's number. */
static void name_stream(void *stream, int32_t type, union nvtx_message name)
{
    struct cuda *cuda;
    uint32_t id;
    if (gpufl_is_recording() && cuda_load(&cuda, false, NULL) == GPUFL_OK &&
        cupti_stream_id(cuda_current_context(cuda), stream, &id))
        give_name(GIVEN_STREAM, id, "", type, name);
}
static void on_name_stream_a(void *stream, const char *name)
{
    name_stream(stream, NVTX_MESSAGE_ASCII, (union nvtx_message){.ascii = name});
}
static void on_name_stream_w(void *stream, const wchar_t *name)
{
    name_stream(stream, NVTX_MESSAGE_UNICODE, (union nvtx_message){.unicode = name});
}

/* The handle is only ever used to destroy the resource, which is ignored. */
static void *on_resource_create(const void *domain, const struct nvtx_resource *resource)
{
    (void)domain;
    if (!resource || resource->size < sizeof *resource)
        return NULL;
    if (resource->type == resource_thread)
        give_name(GIVEN_THREAD, (uint32_t)resource->id, "", resource->message_type, resource->message);
    else if (resource->type == resource_cuda_stream || resource->type == resource_cudart_stream)
        name_stream((void *)(uintptr_t)resource->id, resource->message_type, resource->message);
    return NULL;
}

void roctx_range(enum rocprofiler_range range, const char *text, uint64_t range_id)
{
    struct nvtx_scratch scratch;
    struct nvtx_attributes attributes = only_ascii(text);
    struct scope_text scope = {.stack = SCOPE_STACK_ROCTX};
    if (!gpufl_is_recording())
        return;
    nvtx_read_event(&attributes, &scratch, &scope);
    switch (range) {
    case ROCPROFILER_RANGE_PUSH:
        scope.source = source_roctx_push;
        (void)scope_begin(&scope);
        break;
    case ROCPROFILER_RANGE_POP:
        (void)scope_end(SCOPE_STACK_ROCTX);
        break;
    case ROCPROFILER_RANGE_MARK:
        scope.source = source_roctx_mark;
        thread_log_mark(&scope);
        break;
    case ROCPROFILER_RANGE_START:
        scope.source = source_roctx_start;
        thread_log_range_start(&scope, roctx_range_bit | range_id);
        break;
    case ROCPROFILER_RANGE_STOP:
        thread_log_range_end(roctx_range_bit | range_id);
        break;
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
    HOOK(nvtx_module_core, core_mark_ex, on_mark_ex),
    HOOK(nvtx_module_core, core_mark_a, on_mark_a),
    HOOK(nvtx_module_core, core_mark_w, on_mark_w),
    HOOK(nvtx_module_core, core_range_push_a, on_push_a),
    HOOK(nvtx_module_core, core_range_push_w, on_push_w),
    HOOK(nvtx_module_core, core_range_push_ex, on_push_ex),
    HOOK(nvtx_module_core, core_range_pop, on_pop),
    HOOK(nvtx_module_core, core_range_start_a, on_start_a),
    HOOK(nvtx_module_core, core_range_start_w, on_start_w),
    HOOK(nvtx_module_core, core_range_start_ex, on_start_ex),
    HOOK(nvtx_module_core, core_range_end, on_end),
    HOOK(nvtx_module_core, core_name_category_a, on_name_category_a),
    HOOK(nvtx_module_core, core_name_category_w, on_name_category_w),
    HOOK(nvtx_module_core, core_name_thread_a, on_name_thread_a),
    HOOK(nvtx_module_core, core_name_thread_w, on_name_thread_w),
    HOOK(nvtx_module_cuda, cuda_name_stream_a, on_name_stream_a),
    HOOK(nvtx_module_cuda, cuda_name_stream_w, on_name_stream_w),
    HOOK(nvtx_module_cudart, cudart_name_stream_a, on_name_stream_a),
    HOOK(nvtx_module_cudart, cudart_name_stream_w, on_name_stream_w),
    HOOK(nvtx_module_core2, core2_mark_ex, on_domain_mark_ex),
    HOOK(nvtx_module_core2, core2_range_push_ex, on_domain_push_ex),
    HOOK(nvtx_module_core2, core2_range_pop, on_domain_pop),
    HOOK(nvtx_module_core2, core2_range_start_ex, on_domain_start_ex),
    HOOK(nvtx_module_core2, core2_range_end, on_domain_end),
    HOOK(nvtx_module_core2, core2_resource_create, on_resource_create),
    HOOK(nvtx_module_core2, core2_name_category_a, on_name_domain_category_a),
    HOOK(nvtx_module_core2, core2_name_category_w, on_name_domain_category_w),
    HOOK(nvtx_module_core2, core2_register_string_a, on_register_a),
    HOOK(nvtx_module_core2, core2_register_string_w, on_register_w),
    HOOK(nvtx_module_core2, core2_domain_create_a, on_domain_create_a),
    HOOK(nvtx_module_core2, core2_domain_create_w, on_domain_create_w),
};

int nvtx_attach(nvtx_get_table get_table)
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

void nvtx_abandon(void)
{
    given_names_abandon();
    nvtx_handles_abandon();
}
