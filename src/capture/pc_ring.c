/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/pc_ring.h"

#include "base/clock.h"
#include "base/ring.h"
#include "format/json.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    RING_BYTES = 8 << 20,
    FUNCTION_BYTES_MAX = 4 << 20, /* of names and their keys */
    SYMBOL_BYTES_MAX = 64 * 1024, /* longer names are cut */
    COUNTS_MAX = 512
};

enum { RECORD_CONFIG = 1, RECORD_FUNCTION, RECORD_SAMPLES };

struct config_record {
    struct ring_record head;
    struct pc_config config;
    uint32_t stall_count;
    struct stall_reason stalls[];
};
struct function_record {
    struct ring_record head;
    uint64_t cubin_crc;
    uint32_t function;
    char symbol[]; /* NUL-terminated */
};
struct samples_record {
    struct ring_record head;
    struct pc_interval interval;
    uint32_t count;
    struct pc_count counts[];
};

/* A function's identity: two modules may have the same name, and CUPTI reports 0 for an unknown cubin. */
struct function_key {
    uint64_t cubin_crc;
    uint32_t function_index;
    char symbol[SYMBOL_BYTES_MAX];
};

struct pc_ring {
    struct recorder *recorder;
    pthread_mutex_t lock; /* of everything but the reader's end of the ring */
    struct ring ring;
    struct intern functions;           /* function_key, truncated to its length, to the number that samples carry */
    struct function_key key;           /* scratch */
    bool is_defined[PC_FUNCTIONS_MAX]; /* by number - 1: its definition is in the ring */
};

gpufl_status pc_ring_make(struct pc_ring **out, struct recorder *recorder)
{
    struct pc_ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return GPUFL_E_NO_MEMORY;
    ring->recorder = recorder;
    ring->functions.text_bytes_max = FUNCTION_BYTES_MAX;
    ring->ring.capacity = RING_BYTES;
    ring->ring.data = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring->ring.data == MAP_FAILED) {
        free(ring);
        return GPUFL_E_NO_MEMORY;
    }
    pthread_mutex_init(&ring->lock, NULL);
    *out = ring;
    return GPUFL_OK;
}

void pc_ring_free(struct pc_ring *ring)
{
    if (!ring)
        return;
    munmap(ring->ring.data, RING_BYTES);
    intern_free(&ring->functions);
    pthread_mutex_destroy(&ring->lock);
    free(ring);
}

size_t pc_ring_bytes(const struct pc_ring *ring)
{
    return sizeof *ring + RING_BYTES + FUNCTION_BYTES_MAX;
}

static void *reserve(struct pc_ring *ring, uint32_t kind, size_t size)
{
    struct ring_record *record = ring_reserve(&ring->ring, size, 0);
    if (record)
        record->kind = kind;
    return record;
}

bool pc_ring_push_config(struct pc_ring *ring, const struct pc_config *config, const struct stall_reasons *stalls)
{
    size_t stall_bytes = stalls->count * sizeof(struct stall_reason);
    pthread_mutex_lock(&ring->lock);
    struct config_record *record = reserve(ring, RECORD_CONFIG, sizeof *record + stall_bytes);
    if (record) {
        record->config = *config;
        record->stall_count = stalls->count;
        memcpy(record->stalls, stalls->reasons, stall_bytes);
        ring_commit(&ring->ring, &record->head);
    }
    pthread_mutex_unlock(&ring->lock);
    return record != NULL;
}

/* The number of the sample's function, defined for the reader first; 0: no room for it. */
static uint32_t function_number(struct pc_ring *ring, const struct pc_sample *sample)
{
    struct function_key *key = &ring->key;
    size_t size = strnlen(sample->function, SYMBOL_BYTES_MAX);
    key->cubin_crc = sample->cubin_crc;
    key->function_index = sample->function_index;
    memcpy(key->symbol, sample->function, size);
    uint32_t number = intern_id(&ring->functions, key, offsetof(struct function_key, symbol) + size, NULL);
    if (!number || number > PC_FUNCTIONS_MAX || ring->is_defined[number - 1])
        return number <= PC_FUNCTIONS_MAX ? number : 0;
    struct function_record *record = reserve(ring, RECORD_FUNCTION, sizeof *record + size + 1);
    if (!record)
        return 0;
    record->cubin_crc = sample->cubin_crc;
    record->function = number;
    memcpy(record->symbol, key->symbol, size);
    record->symbol[size] = '\0';
    ring_commit(&ring->ring, &record->head);
    ring->is_defined[number - 1] = true;
    return number;
}

static void push_counts(struct pc_ring *ring, const struct pc_interval *interval, const struct pc_count *counts,
                        uint32_t count)
{
    struct samples_record *record = reserve(ring, RECORD_SAMPLES, sizeof *record + count * sizeof *counts);
    if (record) {
        record->interval = *interval;
        record->count = count;
        memcpy(record->counts, counts, count * sizeof *counts);
        ring_commit(&ring->ring, &record->head);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        recorder_lose(ring->recorder, LOSS_PC_TABLE, counts[i].samples);
}

void pc_ring_push_samples(struct pc_ring *ring, const struct pc_interval *interval, const struct pc_sample *samples,
                          size_t count)
{
    struct pc_count counts[COUNTS_MAX];
    uint32_t waiting = 0, number = 0;
    pthread_mutex_lock(&ring->lock);
    for (size_t i = 0; i < count; i++) {
        const struct pc_sample *sample = &samples[i];
        /* The stall reasons of a PC, and usually the PCs of a function, are adjacent. */
        if (i == 0 || sample->function != sample[-1].function || sample->function_index != sample[-1].function_index ||
            sample->cubin_crc != sample[-1].cubin_crc)
            number = function_number(ring, sample);
        if (!number) {
            recorder_lose(ring->recorder, LOSS_PC_TABLE, sample->samples);
            continue;
        }
        counts[waiting++] =
            (struct pc_count){sample->pc_offset, number, sample->stall_index, sample->samples, sample->correlation_id};
        if (waiting == COUNTS_MAX) {
            push_counts(ring, interval, counts, waiting);
            waiting = 0;
        }
    }
    if (waiting)
        push_counts(ring, interval, counts, waiting);
    pthread_mutex_unlock(&ring->lock);
}

static void write_config(struct pc_ring *ring, const struct config_record *record)
{
    const struct pc_config *config = &record->config;
    struct bytes *line = recorder_begin(ring->recorder, RECORD_PC_SAMPLING_CONFIG);
    bytes_append_format(line,
                        ",\"ts_ns\":%lld,\"device_id\":%u,\"context_id\":%u,\"mode\":\"%s\",\"period_cycles\":%llu",
                        (long long)clock_log_ns(), config->device_id, config->context_id,
                        config->is_serialized ? "serialized" : "continuous", 1ull << config->period_exponent);
    bytes_append_format(line, ",\"target_rate_hz\":%u,\"hardware_buffer_bytes\":%llu,\"stall_reasons\":{",
                        config->rate_hz, (unsigned long long)config->hardware_buffer_bytes);
    for (uint32_t i = 0; i < record->stall_count; i++) {
        bytes_append_format(line, "%s\"%u\":", i ? "," : "", record->stalls[i].index);
        json_text(line, record->stalls[i].name);
    }
    bytes_append_char(line, '}');
    recorder_end(ring->recorder, RECORD_PC_SAMPLING_CONFIG);
}

/* Otherwise samples would touch every page up to the ring's end, over the course of an hour. */
static void rewind_if_empty(struct pc_ring *ring)
{
    if (pthread_mutex_trylock(&ring->lock) != 0) /* a push is in progress */
        return;
    if (!ring_peek(&ring->ring))
        ring_rewind(&ring->ring);
    pthread_mutex_unlock(&ring->lock);
}

void pc_ring_read(struct pc_ring *ring, struct pc_attribution *attribution, int64_t complete_ns)
{
    const struct ring_record *record;
    while ((record = ring_peek(&ring->ring))) {
        if (record->kind == RECORD_SAMPLES) {
            const struct samples_record *samples = (const struct samples_record *)(const void *)record;
            if (samples->interval.end_ns > complete_ns)
                return;
            pc_attribution_add(attribution, &samples->interval, samples->counts, samples->count);
        } else if (record->kind == RECORD_FUNCTION) {
            const struct function_record *function = (const struct function_record *)(const void *)record;
            pc_attribution_define(attribution, function->function, function->cubin_crc, function->symbol);
        } else {
            const struct config_record *config = (const struct config_record *)(const void *)record;
            write_config(ring, config);
            for (uint32_t i = 0; i < config->stall_count; i++)
                pc_attribution_stall(attribution, config->config.device_id, config->stalls[i].index,
                                     config->stalls[i].name);
        }
        ring_release(&ring->ring, record);
    }
    rewind_if_empty(ring);
}
