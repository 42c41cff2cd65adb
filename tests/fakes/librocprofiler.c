/* SPDX-License-Identifier: Apache-2.0 */
/* Look-alike librocprofiler-sdk.so: tools, contexts, services, buffers. */
#include "faults.h"
#include "rocprofiler_fake.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXTS = 8, BUFFERS = 8, SERVICES = 16, BUFFER_RECORDS = 4096 };
/* rocprofiler_status_t of 1.0; earlier ones are one lower from 13 on */
enum {
    STATUS_ERROR = 1,
    STATUS_CONTEXT_NOT_FOUND = 2,
    STATUS_BUFFER_NOT_FOUND = 3,
    STATUS_KIND_NOT_FOUND = 4,
    STATUS_LOCKED = 16,
    STATUS_INVALID_ARGUMENT = 19
};

struct slot {
    struct rocprofiler_abi_header header;
    _Alignas(8) uint8_t record[FAKE_RECORD_BYTES];
};
struct buffer {
    pthread_mutex_t put, deliver;
    struct slot *slots, *spare; /* one is filled while the other is read */
    size_t count, watermark;
    uint64_t context, dropped;
    rocprofiler_abi_buffer_callback callback;
    void *user;
};
struct service {
    uint64_t context, buffer;
    int kind;
    bool is_callback;
    rocprofiler_abi_callback callback;
    rocprofiler_abi_counting_callback counting;
    void *user;
    bool is_operation[1024], has_operations;
};

static struct {
    pthread_mutex_t mutex;
    atomic_int init; /* 0 not yet, -1 under way, 1 done */
    rocprofiler_abi_configure forced;
    struct rocprofiler_abi_configure_result *tools[8];
    int tool_count, context_count, buffer_count, service_count;
    atomic_bool is_active[CONTEXTS + 1];
    struct buffer buffers[BUFFERS];
    struct service services[SERVICES];
} fake = {.mutex = PTHREAD_MUTEX_INITIALIZER};

uint32_t fake_release(void)
{
    return (uint32_t)fault_number("rocprofiler_version", FAKE_ROCPROFILER_RELEASE);
}

/* ---- tools ---- */

static void tools_finalize(void)
{
    for (int i = 0; i < fake.tool_count; i++)
        if (fake.tools[i]->finalize)
            fake.tools[i]->finalize(fake.tools[i]->tool_data);
}

static void tool_add(rocprofiler_abi_configure configure)
{
    struct rocprofiler_abi_client_id_1 client = {sizeof client, NULL, (uint32_t)fake.tool_count};
    /* The older struct begins with the name. */
    void *id = fake_release() >= 10000 ? (void *)&client : (void *)&client.name;
    struct rocprofiler_abi_configure_result *result = configure(fake_release(), "fake", (uint32_t)fake.tool_count, id);
    if (result && client.name)
        fake.tools[fake.tool_count++] = result;
}

static void tools_find(void)
{
    if (fake.forced)
        tool_add(fake.forced);
    const char *list = getenv("ROCP_TOOL_LIBRARIES");
    char text[4096];
    snprintf(text, sizeof text, "%s", list ? list : "");
    /* As the real one: without a colon it is one name, and with one what follows the last colon is not read. */
    bool is_list = strchr(text, ':') != NULL;
    for (char *name = text; *name;) {
        char *colon = strchr(name, ':');
        if (is_list && !colon)
            break;
        if (colon)
            *colon = '\0';
        void *handle = *name ? dlopen(name, RTLD_LOCAL | RTLD_LAZY) : NULL;
        rocprofiler_abi_configure configure =
            handle ? __extension__(rocprofiler_abi_configure) dlsym(handle, "rocprofiler_configure") : NULL;
        if (configure)
            tool_add(configure);
        name = colon ? colon + 1 : name + strlen(name);
    }
}

static void initialize(void)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&fake.init, &none, -1))
        return;
    atexit(tools_finalize);
    tools_find();
    for (int i = 0; i < fake.tool_count; i++)
        (void)fake.tools[i]->initialize(NULL, fake.tools[i]->tool_data);
    atomic_store(&fake.init, 1);
}

FAKE_API int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables,
                                       uint64_t count)
{
    (void)version, (void)instance;
    if (strcmp(name, "hip") != 0 || count != 1)
        return STATUS_ERROR;
    initialize();
    *(struct fake_hip_table *)tables[0] = (struct fake_hip_table){
#define FAKE_MEMBER(type, name, parameters) .name = name,
        FAKE_ROCPROFILER_HOOKS(FAKE_MEMBER)
#undef FAKE_MEMBER
    };
    return 0;
}

FAKE_API int rocprofiler_force_configure(rocprofiler_abi_configure configure)
{
    int fault = fault_result("rocprofiler_force_configure");
    if (fault || atomic_load(&fake.init) != 0 || fake.forced)
        return fault ? fault : STATUS_LOCKED;
    if (fault_number("rocprofiler_silent", 0))
        return 0;
    setenv("ROCPROFILER_REGISTER_FORCE_LOAD", "1", 1); /* as the real one: HIP's start shall find it */
    fake.forced = configure;
    initialize();
    return 0;
}

FAKE_API int rocprofiler_is_initialized(int *answer)
{
    *answer = fault_number("rocprofiler_first", 0) ? 1 : atomic_load(&fake.init);
    return fault_result("rocprofiler_is_initialized");
}

FAKE_API int rocprofiler_get_version(uint32_t *major, uint32_t *minor, uint32_t *patch)
{
    uint32_t release = fake_release();
    *major = release / 10000;
    *minor = release / 100 % 100;
    *patch = release % 100;
    return fault_result("rocprofiler_get_version");
}

FAKE_API const char *rocprofiler_get_status_name(int status)
{
    (void)fault_result("rocprofiler_get_status_name");
    return status == STATUS_LOCKED ? "ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED" : "ROCPROFILER_STATUS_ERROR";
}

FAKE_API int rocprofiler_get_timestamp(uint64_t *now)
{
    *now = fake_rocprofiler_now();
    return fault_result("rocprofiler_get_timestamp");
}

/* ---- contexts ---- */

static int configuring(const char *function)
{
    int fault = fault_result(function);
    return fault ? fault : atomic_load(&fake.init) > -1 ? STATUS_LOCKED : 0;
}

FAKE_API int rocprofiler_create_context(struct rocprofiler_abi_id *context)
{
    int status = configuring("rocprofiler_create_context");
    if (!status && fake.context_count == CONTEXTS)
        status = STATUS_ERROR;
    if (!status && context->handle && fake_release() >= 10000)
        status = STATUS_INVALID_ARGUMENT;
    if (!status)
        context->handle = (uint64_t)++fake.context_count;
    return status;
}

static int context_set(const char *function, struct rocprofiler_abi_id context, bool is_active)
{
    int fault = fault_result(function);
    if (fault)
        return fault;
    if (!context.handle || context.handle > (uint64_t)fake.context_count)
        return STATUS_CONTEXT_NOT_FOUND;
    atomic_store(&fake.is_active[context.handle], is_active);
    return 0;
}

FAKE_API int rocprofiler_start_context(struct rocprofiler_abi_id context)
{
    return context_set("rocprofiler_start_context", context, true);
}

FAKE_API int rocprofiler_stop_context(struct rocprofiler_abi_id context)
{
    return context_set("rocprofiler_stop_context", context, false);
}

/* ---- buffers ---- */

FAKE_API int rocprofiler_create_buffer(struct rocprofiler_abi_id context, size_t bytes, size_t watermark, int policy,
                                       rocprofiler_abi_buffer_callback callback, void *user,
                                       struct rocprofiler_abi_id *id)
{
    int status = configuring("rocprofiler_create_buffer");
    if (!status && (fake.buffer_count == BUFFERS || policy != ROCPROFILER_ABI_POLICY_LOSSLESS || !callback ||
                    watermark > bytes || id->handle))
        status = STATUS_INVALID_ARGUMENT;
    if (status)
        return status;
    struct buffer *buffer = &fake.buffers[fake.buffer_count];
    *buffer = (struct buffer){.slots = calloc(BUFFER_RECORDS, sizeof(struct slot)),
                              .spare = calloc(BUFFER_RECORDS, sizeof(struct slot)),
                              .watermark = BUFFER_RECORDS / 4,
                              .context = context.handle,
                              .callback = callback,
                              .user = user};
    pthread_mutex_init(&buffer->put, NULL);
    pthread_mutex_init(&buffer->deliver, NULL);
    id->handle = (uint64_t)++fake.buffer_count;
    return 0;
}

static void buffer_flush(uint64_t id)
{
    struct buffer *buffer = &fake.buffers[id - 1];
    static _Thread_local struct rocprofiler_abi_header *headers[BUFFER_RECORDS];
    pthread_mutex_lock(&buffer->deliver);
    pthread_mutex_lock(&buffer->put);
    struct slot *full = buffer->slots;
    size_t count = buffer->count;
    uint64_t dropped = buffer->dropped;
    buffer->slots = buffer->spare;
    buffer->spare = full;
    buffer->count = 0; /* drops are counted from the start, as by the real one */
    pthread_mutex_unlock(&buffer->put);
    for (size_t i = 0; i < count; i++)
        headers[i] = &full[i].header;
    if (count) /* an empty buffer is not handed over, whatever was dropped */
        buffer->callback((struct rocprofiler_abi_id){buffer->context}, (struct rocprofiler_abi_id){id}, headers, count,
                         buffer->user, dropped);
    pthread_mutex_unlock(&buffer->deliver);
}

FAKE_API int rocprofiler_flush_buffer(struct rocprofiler_abi_id buffer)
{
    int fault = fault_result("rocprofiler_flush_buffer");
    if (fault)
        return fault;
    if (!buffer.handle || buffer.handle > (uint64_t)fake.buffer_count)
        return STATUS_BUFFER_NOT_FOUND;
    buffer_flush(buffer.handle);
    return 0;
}

FAKE_API int rocprofiler_create_callback_thread(struct rocprofiler_abi_id *thread)
{
    thread->handle = 1;
    return configuring("rocprofiler_create_callback_thread");
}

FAKE_API int rocprofiler_assign_callback_thread(struct rocprofiler_abi_id buffer, struct rocprofiler_abi_id thread)
{
    int status = configuring("rocprofiler_assign_callback_thread");
    return status ? status : buffer.handle && thread.handle ? 0 : STATUS_INVALID_ARGUMENT;
}

/* ---- services ---- */

static struct service *service_add(struct rocprofiler_abi_id context, int kind, int *status)
{
    if (!*status &&
        (!context.handle || context.handle > (uint64_t)fake.context_count || fake.service_count == SERVICES))
        *status = STATUS_CONTEXT_NOT_FOUND;
    if (*status)
        return NULL;
    struct service *service = &fake.services[fake.service_count++];
    *service = (struct service){.context = context.handle, .kind = kind};
    return service;
}

FAKE_API int rocprofiler_configure_buffer_tracing_service(struct rocprofiler_abi_id context, int kind,
                                                          const int32_t *operations, size_t count,
                                                          struct rocprofiler_abi_id buffer)
{
    int status = configuring("rocprofiler_configure_buffer_tracing_service");
    struct service *service = service_add(context, kind, &status);
    if (!service)
        return status;
    service->buffer = buffer.handle;
    service->has_operations = count > 0;
    for (size_t i = 0; i < count; i++)
        service->is_operation[operations[i] & 1023] = true;
    return 0;
}

FAKE_API int rocprofiler_configure_callback_tracing_service(struct rocprofiler_abi_id context, int kind,
                                                            const int32_t *operations, size_t count,
                                                            rocprofiler_abi_callback callback, void *user)
{
    (void)operations, (void)count;
    int status = configuring("rocprofiler_configure_callback_tracing_service");
    struct service *service = service_add(context, kind, &status);
    if (!service)
        return status;
    service->is_callback = true;
    service->callback = callback;
    service->user = user;
    return 0;
}

FAKE_API int FAKE_COUNTING_SERVICE(struct rocprofiler_abi_id context, struct rocprofiler_abi_id buffer,
                                   rocprofiler_abi_counting_callback callback, void *user)
{
    int status = configuring(NAME_OF(FAKE_COUNTING_SERVICE));
    struct service *service = service_add(context, FAKE_KIND_COUNTING, &status);
    if (!service)
        return status;
    service->buffer = buffer.handle;
    service->counting = callback;
    service->user = user;
    return 0;
}

static struct service *service_find(int kind, bool is_callback)
{
    for (int i = 0; i < fake.service_count; i++) {
        struct service *service = &fake.services[i];
        if (service->kind == kind && service->is_callback == is_callback &&
            atomic_load(&fake.is_active[service->context]))
            return service;
    }
    return NULL;
}

static bool is_every(const char *fault, uint64_t number)
{
    int64_t every = fault_number(fault, 0);
    return every > 0 && number % (uint64_t)every == 0;
}

static void buffer_append(struct buffer *buffer, uint32_t category, uint32_t kind, const void *record, size_t size)
{
    struct slot *slot = &buffer->slots[buffer->count++];
    memcpy(slot->record, record, size < FAKE_RECORD_BYTES ? size : FAKE_RECORD_BYTES);
    slot->header = (struct rocprofiler_abi_header){category, kind, slot->record};
}

uint64_t fake_service_of(int kind)
{
    const struct service *service = service_find(kind, false);
    return service && service->buffer ? (uint64_t)(service - fake.services) + 1 : 0;
}

void fake_buffer_put(int kind, uint32_t category, uint32_t record_kind, const void *record, size_t size)
{
    fake_buffer_put_to(fake_service_of(kind), category, record_kind, record, size);
}

void fake_buffer_put_to(uint64_t number_of_service, uint32_t category, uint32_t record_kind, const void *record,
                        size_t size)
{
    static atomic_ullong numbers;
    if (!number_of_service)
        return;
    const struct service *service = &fake.services[number_of_service - 1];
    if (service->kind == ROCPROFILER_ABI_KIND_HIP_RUNTIME_API && service->has_operations &&
        !service->is_operation[((const struct rocprofiler_abi_call_0 *)record)->operation & 1023])
        return;
    struct buffer *buffer = &fake.buffers[service->buffer - 1];
    uint64_t number = atomic_fetch_add(&numbers, 1) + 1;
    pthread_mutex_lock(&buffer->put);
    while (buffer->count + 3 > BUFFER_RECORDS) {
        pthread_mutex_unlock(&buffer->put);
        buffer_flush(service->buffer);
        pthread_mutex_lock(&buffer->put);
    }
    if (is_every("rocprofiler_drop_every", number)) {
        buffer->dropped++;
    } else {
        buffer_append(buffer, category, record_kind, record, size);
        if (is_every("rocprofiler_short_every", number))
            *(uint64_t *)(void *)buffer->slots[buffer->count - 1].record = 24;
    }
    if (is_every("rocprofiler_unknown_every", number))
        buffer_append(buffer, ROCPROFILER_ABI_CATEGORY_TRACING, 61, record, size);
    bool is_full = buffer->count >= buffer->watermark;
    pthread_mutex_unlock(&buffer->put);
    if (is_full)
        buffer_flush(service->buffer);
}

void fake_callback(int kind, int32_t operation, uint32_t phase, uint64_t correlation, void *payload)
{
    struct service *service = service_find(kind, true);
    if (!service)
        return;
    union rocprofiler_abi_user_data data = {0};
    if (fake_release() >= 10000) {
        const struct rocprofiler_abi_callback_1 record = {.context_id = service->context,
                                                          .correlation = {correlation, {0}},
                                                          .kind = (uint32_t)kind,
                                                          .operation = operation,
                                                          .phase = phase,
                                                          .payload = payload};
        ((void (*)(struct rocprofiler_abi_callback_1, union rocprofiler_abi_user_data *, void *))service->callback)(
            record, &data, service->user);
    } else {
        const struct rocprofiler_abi_callback_0 record = {.context_id = service->context,
                                                          .correlation = {correlation, {0}},
                                                          .kind = (uint32_t)kind,
                                                          .operation = operation,
                                                          .phase = phase,
                                                          .payload = payload};
        ((void (*)(struct rocprofiler_abi_callback_0, union rocprofiler_abi_user_data *, void *))service->callback)(
            record, &data, service->user);
    }
}

bool fake_counting_config(const struct rocprofiler_abi_counting_data *data, struct rocprofiler_abi_id *config)
{
    const struct service *service = service_find(FAKE_KIND_COUNTING, false);
    union rocprofiler_abi_user_data user_data = {0};
    if (service)
        service->counting(*data, config, &user_data, service->user);
    return service && config->handle;
}
