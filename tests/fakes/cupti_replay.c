/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti_replay.h"

#include "cupti_buffers.h"
#include "cupti_records.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

enum { RECORDING_LIMIT_BYTES = 64 << 20, HEADER_BYTES = 32 };

struct recording {
    uint8_t *bytes; /* names and records stay here while the process lives */
    const char **names;
    uint32_t name_count, buffer_count;
    size_t record_count;
    bool *is_wanted; /* by record, as the client had enabled kinds and calls when the replay began */
    size_t size, buffers_at;
    uint64_t first_ns; /* earliest time in it */
};
static struct recording recording;
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static pthread_mutex_t replay_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t position, record_number; /* of the next buffer */
static uint32_t buffers_left;
static uint64_t begun_ns; /* when this replay began */
static atomic_bool has_begun, is_done;

static uint32_t u32_at(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint64_t u64_at(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* Where a kind of record keeps its times and its name; 0: nowhere. */
struct places {
    size_t start, end, name;
};
static struct places record_places(uint32_t kind)
{
    switch (kind) {
    case CUPTI_ABI_KIND_CONCURRENT_KERNEL:
        return (struct places){offsetof(struct cupti_abi_kernel, start), offsetof(struct cupti_abi_kernel, end),
                               offsetof(struct cupti_abi_kernel, name)};
    case CUPTI_ABI_KIND_MEMCPY:
    case CUPTI_ABI_KIND_MEMSET:
        return (struct places){offsetof(struct cupti_abi_memcpy, start), offsetof(struct cupti_abi_memcpy, end), 0};
    case CUPTI_ABI_KIND_DRIVER:
    case CUPTI_ABI_KIND_RUNTIME:
    case CUPTI_ABI_KIND_SYNCHRONIZATION:
        return (struct places){offsetof(struct cupti_abi_api, start), offsetof(struct cupti_abi_api, end), 0};
    case CUPTI_ABI_KIND_OVERHEAD:
        return (struct places){offsetof(struct cupti_abi_overhead, start), offsetof(struct cupti_abi_overhead, end), 0};
    case CUPTI_ABI_KIND_MEMORY2:
        return (struct places){offsetof(struct cupti_abi_memory, timestamp), 0, 0};
    default:
        return (struct places){0, 0, 0};
    }
}

static uint8_t *file_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    uint8_t *packed = malloc(RECORDING_LIMIT_BYTES);
    size_t packed_size = packed != NULL ? fread(packed, 1, RECORDING_LIMIT_BYTES, file) : 0;
    fclose(file);
    unsigned long long plain_size = ZSTD_getFrameContentSize(packed, packed_size);
    uint8_t *plain = NULL;
    if (plain_size != ZSTD_CONTENTSIZE_ERROR && plain_size <= RECORDING_LIMIT_BYTES)
        plain = malloc(plain_size);
    if (plain != NULL && ZSTD_decompress(plain, plain_size, packed, packed_size) != plain_size) {
        free(plain);
        plain = NULL;
    }
    free(packed);
    *size = (size_t)plain_size;
    return plain;
}

/* Checks every length once, so that delivering need not. */
static bool recording_index(struct recording *r)
{
    if (r->size < HEADER_BYTES || memcmp(r->bytes, "CUPTIREC", 8) != 0 || u32_at(r->bytes + 8) != 1)
        return false;
    r->name_count = u32_at(r->bytes + 16);
    r->buffer_count = u32_at(r->bytes + 20);
    r->first_ns = u64_at(r->bytes + 24);
    size_t at = HEADER_BYTES;
    if (r->name_count > r->size || (r->names = calloc(r->name_count + 1u, sizeof *r->names)) == NULL)
        return false;
    for (uint32_t i = 0; i < r->name_count; i++) {
        if (r->size - at < 4 || u32_at(r->bytes + at) == 0 || u32_at(r->bytes + at) > r->size - at - 4 ||
            r->bytes[at + 4 + u32_at(r->bytes + at) - 1] != '\0')
            return false;
        r->names[i + 1] = (const char *)r->bytes + at + 4;
        at += 4 + u32_at(r->bytes + at);
    }
    r->buffers_at = at;
    for (uint32_t i = 0; i < r->buffer_count; i++) {
        if (r->size - at < 4 || u32_at(r->bytes + at) > r->size - at - 4)
            return false;
        size_t end = at + 4 + u32_at(r->bytes + at);
        for (at += 4; at < end; at += record_size(u32_at(r->bytes + at)), r->record_count++)
            if (end - at < 4 || record_size(u32_at(r->bytes + at)) == 0 ||
                record_size(u32_at(r->bytes + at)) > end - at)
                return false;
    }
    r->is_wanted = calloc(r->record_count + 1, sizeof *r->is_wanted);
    return at == r->size && r->is_wanted != NULL;
}

static void recording_open(void)
{
    const char *path = getenv("FAKE_REPLAY");
    if (path == NULL || *path == '\0')
        return;
    recording.bytes = file_read(path, &recording.size);
    if (recording.bytes == NULL || !recording_index(&recording)) {
        fprintf(stderr, "fake CUPTI: %s is not a readable recording\n", path);
        abort(); /* a test that silently replays nothing would pass for the wrong reason */
    }
    position = recording.buffers_at;
    buffers_left = recording.buffer_count;
}

bool replay_is_wanted(void)
{
    pthread_once(&opened, recording_open);
    return recording.bytes != NULL;
}

static void records_choose(void)
{
    size_t number = 0, at = recording.buffers_at;
    for (uint32_t i = 0; i < recording.buffer_count; i++) {
        size_t end = at + 4 + u32_at(recording.bytes + at);
        for (at += 4; at < end; at += record_size(u32_at(recording.bytes + at)))
            recording.is_wanted[number++] = record_is_wanted(recording.bytes + at);
    }
}

void replay_begin(void)
{
    if (!replay_is_wanted() || atomic_load(&has_begun))
        return;
    pthread_mutex_lock(&replay_lock);
    if (!atomic_load(&has_begun)) {
        records_choose();
        begun_ns = getenv("FAKE_REPLAY_TIMES") != NULL ? recording.first_ns : clock_now_ns();
        atomic_store(&has_begun, true);
    }
    pthread_mutex_unlock(&replay_lock);
}

static void time_shift(uint8_t *record, size_t place, uint64_t *latest_ns)
{
    uint64_t time_ns = place != 0 ? u64_at(record + place) : 0;
    if (time_ns == 0)
        return;
    time_ns = time_ns - recording.first_ns + begun_ns;
    memcpy(record + place, &time_ns, sizeof time_ns);
    if (time_ns > *latest_ns)
        *latest_ns = time_ns;
}

/* Copies one record with its times moved and its name found; returns its size. */
static size_t record_load(const uint8_t *from, uint8_t *record, uint64_t *latest_ns)
{
    size_t size = record_size(u32_at(from));
    memcpy(record, from, size);
    struct places places = record_places(u32_at(from));
    time_shift(record, places.start, latest_ns);
    time_shift(record, places.end, latest_ns);
    if (places.name != 0) {
        uint64_t index = u64_at(record + places.name);
        const char *name = index <= recording.name_count ? recording.names[index] : NULL;
        memcpy(record + places.name, &name, sizeof name);
    }
    return size;
}

/* The buffer at `position`; false when its last record is not due yet. */
static bool buffer_replay(bool may_wait)
{
    const uint8_t *records = recording.bytes + position + 4, *end = records + u32_at(recording.bytes + position);
    uint8_t record[RECORD_BYTES_MAX];
    uint64_t latest_ns = 0;
    for (const uint8_t *at = records; at < end; at += record_size(u32_at(at)))
        (void)record_load(at, record, &latest_ns);
    while (latest_ns > clock_now_ns()) {
        if (!may_wait)
            return false;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    for (const uint8_t *at = records; at < end;) {
        size_t size = record_load(at, record, &latest_ns);
        if (recording.is_wanted[record_number++])
            channel_write(channel_of_devices(), record, size, true);
        at += size;
    }
    channel_complete(channel_of_devices());
    position = (size_t)(end - recording.bytes);
    return true;
}

bool replay_advance(bool all_of_it)
{
    if (!atomic_load(&has_begun) || atomic_load(&is_done))
        return false;
    pthread_mutex_lock(&replay_lock);
    while (buffers_left > 0 && buffer_replay(all_of_it))
        buffers_left--;
    if (buffers_left == 0)
        atomic_store(&is_done, true);
    pthread_mutex_unlock(&replay_lock);
    return !atomic_load(&is_done);
}
