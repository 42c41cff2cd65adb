/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti_records.h"

#include "base/current_thread.h"
#include "cupti_buffers.h"
#include "faults.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXTERNAL_KINDS = 6, EXTERNAL_DEPTH = 64 };

static atomic_ullong kinds_enabled;                        /* bit per kind */
static atomic_ullong calls_enabled[2][CALL_ID_LIMIT / 64]; /* [is runtime], bit per callback id */
static atomic_bool has_system_thread_ids;
static _Atomic(cupti_abi_timestamp_fn *) client_clock;
static _Thread_local struct {
    uint64_t ids[EXTERNAL_KINDS][EXTERNAL_DEPTH];
    uint32_t depth[EXTERNAL_KINDS];
} external;

uint64_t clock_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void records_set_clock(cupti_abi_timestamp_fn *now)
{
    atomic_store(&client_clock, now);
}

uint64_t record_time(uint64_t wall_ns)
{
    cupti_abi_timestamp_fn *now = atomic_load(&client_clock);
    return now != NULL && wall_ns != 0 ? wall_ns + (now() - clock_now_ns()) : wall_ns;
}

uint32_t cupti_version_played(void)
{
    return (uint32_t)fault_number("version", cupti_release);
}

size_t record_size(uint32_t kind)
{
    uint32_t version = cupti_version_played();
    switch (kind) {
    case CUPTI_ABI_KIND_KERNEL:
    case CUPTI_ABI_KIND_CONCURRENT_KERNEL:
        return version >= CUPTI_ABI_VERSION_13_0 ? CUPTI_ABI_KERNEL_BYTES_13_0 : CUPTI_ABI_KERNEL_BYTES_12_0;
    case CUPTI_ABI_KIND_MEMCPY:
        return version >= CUPTI_ABI_VERSION_12_8 ? CUPTI_ABI_MEMCPY_BYTES_12_8 : CUPTI_ABI_MEMCPY_BYTES_12_0;
    case CUPTI_ABI_KIND_MEMCPY2:
        return CUPTI_ABI_MEMCPY_PEER_BYTES;
    case CUPTI_ABI_KIND_MEMSET:
        return CUPTI_ABI_MEMSET_BYTES;
    case CUPTI_ABI_KIND_DRIVER:
    case CUPTI_ABI_KIND_RUNTIME:
    case CUPTI_ABI_KIND_INTERNAL_LAUNCH_API:
        return CUPTI_ABI_API_BYTES;
    case CUPTI_ABI_KIND_OVERHEAD:
        return version >= CUPTI_ABI_VERSION_12_4   ? CUPTI_ABI_OVERHEAD_BYTES_12_4
               : version >= CUPTI_ABI_VERSION_12_2 ? CUPTI_ABI_OVERHEAD_BYTES_12_2
                                                   : CUPTI_ABI_OVERHEAD_BYTES_12_0;
    case CUPTI_ABI_KIND_SYNCHRONIZATION:
        return version >= CUPTI_ABI_VERSION_12_8 ? CUPTI_ABI_SYNCHRONIZATION_BYTES_12_8
                                                 : CUPTI_ABI_SYNCHRONIZATION_BYTES_12_0;
    case CUPTI_ABI_KIND_EXTERNAL_CORRELATION:
        return CUPTI_ABI_EXTERNAL_BYTES;
    case CUPTI_ABI_KIND_MEMORY2:
        return version >= CUPTI_ABI_VERSION_12_6 ? CUPTI_ABI_MEMORY_BYTES_12_6 : CUPTI_ABI_MEMORY_BYTES_12_0;
    case 8: /* DEVICE, CONTEXT, STREAM: only in recordings, which are of 13.0 */
        return 184;
    case 9:
        return 32;
    case 37:
        return 24;
    default:
        return 0;
    }
}

bool kind_is_enabled(uint32_t kind)
{
    return kind < 64 && ((atomic_load(&kinds_enabled) >> kind) & 1) != 0;
}

void kind_enable(uint32_t kind, bool is_enabled)
{
    if (is_enabled)
        atomic_fetch_or(&kinds_enabled, 1ull << kind);
    else
        atomic_fetch_and(&kinds_enabled, ~(1ull << kind));
}

void call_enable(uint32_t kind, uint32_t cbid, bool is_enabled)
{
    atomic_ullong *word = &calls_enabled[kind == CUPTI_ABI_KIND_RUNTIME][cbid / 64];
    if (is_enabled)
        atomic_fetch_or(word, 1ull << (cbid % 64));
    else
        atomic_fetch_and(word, ~(1ull << (cbid % 64)));
}

void calls_enable(uint32_t kind, bool is_enabled)
{
    for (uint32_t i = 0; i < CALL_ID_LIMIT / 64; i++)
        atomic_store(&calls_enabled[kind == CUPTI_ABI_KIND_RUNTIME][i], is_enabled ? ~0ull : 0);
}

bool record_is_wanted(const void *record)
{
    struct cupti_abi_api api;
    memcpy(&api, record, 2 * sizeof(uint32_t));
    if (api.kind == CUPTI_ABI_KIND_DRIVER || api.kind == CUPTI_ABI_KIND_RUNTIME) {
        atomic_ullong *words = calls_enabled[api.kind == CUPTI_ABI_KIND_RUNTIME];
        return api.cbid < CALL_ID_LIMIT && ((atomic_load(&words[api.cbid / 64]) >> (api.cbid % 64)) & 1) != 0;
    }
    return kind_is_enabled(api.kind);
}

void records_set_system_thread_ids(bool is_system)
{
    atomic_store(&has_system_thread_ids, is_system);
}

int external_push(uint32_t kind, uint64_t id)
{
    if (kind == 0 || kind >= EXTERNAL_KINDS || external.depth[kind] >= EXTERNAL_DEPTH)
        return CUPTI_INVALID_PARAMETER;
    external.ids[kind][external.depth[kind]++] = id;
    return CUPTI_ABI_SUCCESS;
}

int external_pop(uint32_t kind, uint64_t *last_id)
{
    if (kind == 0 || kind >= EXTERNAL_KINDS)
        return CUPTI_INVALID_PARAMETER;
    if (external.depth[kind] == 0)
        return CUPTI_QUEUE_EMPTY;
    uint64_t id = external.ids[kind][--external.depth[kind]];
    if (last_id != NULL)
        *last_id = id;
    return CUPTI_ABI_SUCCESS;
}

static uint32_t thread_id(void)
{
    return atomic_load(&has_system_thread_ids) ? current_thread_id() : (uint32_t)(uintptr_t)pthread_self();
}

void record_call(const struct fake_call *call)
{
    struct cupti_abi_api api = {.kind = call->domain == FAKE_DOMAIN_RUNTIME ? CUPTI_ABI_KIND_RUNTIME
                                                                            : CUPTI_ABI_KIND_DRIVER,
                                .cbid = call->cbid,
                                .start = call->start_ns,
                                .end = call->end_ns,
                                .process_id = (uint32_t)getpid(),
                                .thread_id = thread_id(),
                                .correlation_id = call->correlation_id,
                                .return_value = (uint32_t)call->result};
    if (!record_is_wanted(&api))
        return;
    struct channel *channel = channel_of_thread();
    for (uint32_t kind = 1; kind < EXTERNAL_KINDS; kind++) {
        if (external.depth[kind] == 0)
            continue;
        struct cupti_abi_external record = {.kind = CUPTI_ABI_KIND_EXTERNAL_CORRELATION,
                                            .external_kind = kind,
                                            .external_id = external.ids[kind][external.depth[kind] - 1],
                                            .correlation_id = call->correlation_id};
        channel_write(channel, &record, sizeof record, false);
    }
    channel_write(channel, &api, sizeof api, false);
}

void record_sync(const struct fake_sync *sync)
{
    struct cupti_abi_synchronization record = {.kind = CUPTI_ABI_KIND_SYNCHRONIZATION,
                                               .type = sync->type,
                                               .start = sync->start_ns,
                                               .end = sync->end_ns,
                                               .correlation_id = sync->correlation_id,
                                               .context_id = sync->context_id,
                                               .stream_id = sync->stream_id,
                                               .event_id = sync->event_id};
    if (record_is_wanted(&record))
        channel_write(channel_of_thread(), &record, record_size(record.kind), false);
}

void record_memory(const struct fake_memory *memory)
{
    struct cupti_abi_memory record = {.kind = CUPTI_ABI_KIND_MEMORY2,
                                      .operation =
                                          memory->is_free ? CUPTI_ABI_MEMORY_RELEASE : CUPTI_ABI_MEMORY_ALLOCATION,
                                      .memory_kind = 3, /* device */
                                      .correlation_id = memory->correlation_id,
                                      .address = memory->address,
                                      .bytes = memory->bytes,
                                      .timestamp = memory->time_ns,
                                      .process_id = (uint32_t)getpid(),
                                      .device_id = memory->device_id,
                                      .context_id = memory->context_id,
                                      .stream_id = CUPTI_ABI_INVALID_ID};
    if (record_is_wanted(&record))
        channel_write(channel_of_thread(), &record, record_size(record.kind), false);
}

void record_make_request_overhead(uint64_t start_ns, uint64_t end_ns, void *record, size_t *size)
{
    struct cupti_abi_overhead overhead = {.kind = CUPTI_ABI_KIND_OVERHEAD,
                                          .overhead_kind = 7 << 16,
                                          .object_kind = 2, /* a thread */
                                          .object_id = {(uint32_t)getpid(), thread_id(), 0},
                                          .start = start_ns,
                                          .end = end_ns};
    *size = record_size(CUPTI_ABI_KIND_OVERHEAD);
    memcpy(record, &overhead, *size);
}

bool record_make_absurd(uint64_t n, void *record, size_t *size)
{
    uint64_t now_ns = clock_now_ns();
    memset(record, 0xff, RECORD_BYTES_MAX);
    if (n % 3 == 0) { /* ends before it starts, has no name, nothing makes sense */
        struct cupti_abi_kernel *kernel = record;
        kernel->kind = CUPTI_ABI_KIND_CONCURRENT_KERNEL;
        kernel->start = now_ns;
        kernel->end = now_ns - 1000000;
        kernel->name = NULL;
        *size = record_size(kernel->kind);
        return false;
    }
    if (n % 3 == 1) { /* the call of nothing, far in the future */
        struct cupti_abi_api api = {.kind = CUPTI_ABI_KIND_RUNTIME,
                                    .cbid = UINT32_MAX,
                                    .start = UINT64_MAX - 1,
                                    .end = 1,
                                    .thread_id = UINT32_MAX};
        memcpy(record, &api, sizeof api);
        *size = sizeof api;
        return false;
    }
    *size = 48; /* a kind nobody knows: where the next record begins cannot be known */
    return true;
}
