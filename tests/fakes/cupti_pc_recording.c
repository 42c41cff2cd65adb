/* SPDX-License-Identifier: Apache-2.0 */
/* Plays FAKE_PC_RECORDING: each read is the next one that was recorded. */
#include "cupti_pc_sampling.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 64 << 20, HEADER_BYTES = 24, BLOCK_BYTES = 8, STALLS_MAX = 256, NAMES_MAX = 65536 };
enum { BLOCK_STALL = 1, BLOCK_NAME = 2, BLOCK_READ = 3, BLOCK_FINAL = 4, READ_HEADER_BYTES = 24 };

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static uint8_t *bytes;
static size_t size;
static struct pc_recorded_stall stalls[STALLS_MAX];
static size_t stall_count;
static char *names[NAMES_MAX];
static size_t cursors[2]; /* of reads and of what Disable left */
static size_t pcs_taken[2];

static uint32_t u32_at(size_t at)
{
    uint32_t value;
    memcpy(&value, bytes + at, sizeof value);
    return value;
}

static void unreadable(void)
{
    fprintf(stderr, "fake CUPTI: %s is not a readable recording of PC samples\n", getenv("FAKE_PC_RECORDING"));
    abort(); /* a test that silently replays nothing would pass for the wrong reason */
}

static char *text_at(size_t at, size_t length)
{
    char *text = calloc(1, length + 1);
    if (text == NULL)
        abort();
    memcpy(text, bytes + at, length);
    return text;
}

static void blocks_index(void)
{
    for (size_t at = HEADER_BYTES; at < size;) {
        if (size - at < BLOCK_BYTES || u32_at(at + 4) > size - at - BLOCK_BYTES || u32_at(at + 4) < 4)
            unreadable();
        uint32_t kind = u32_at(at), length = u32_at(at + 4), number = u32_at(at + BLOCK_BYTES);
        if (kind == BLOCK_STALL && stall_count < STALLS_MAX)
            stalls[stall_count++] = (struct pc_recorded_stall){number, text_at(at + BLOCK_BYTES + 4, length - 4)};
        else if (kind == BLOCK_NAME && number < NAMES_MAX && names[number] == NULL)
            names[number] = text_at(at + BLOCK_BYTES + 4, length - 4);
        at += BLOCK_BYTES + length;
    }
}

static void recording_open(void)
{
    const char *path = getenv("FAKE_PC_RECORDING");
    if (path == NULL || *path == '\0')
        return;
    FILE *file = fopen(path, "rb");
    bytes = malloc(FILE_BYTES_MAX);
    if (file == NULL || bytes == NULL)
        unreadable();
    size = fread(bytes, 1, FILE_BYTES_MAX, file);
    fclose(file);
    if (size < HEADER_BYTES || memcmp(bytes, "CUPTIPCS", 8) != 0 || u32_at(8) != 1)
        unreadable();
    blocks_index();
    cursors[0] = cursors[1] = HEADER_BYTES;
}

bool pc_recording_is_wanted(void)
{
    pthread_once(&opened, recording_open);
    return bytes != NULL;
}

size_t pc_recording_stalls(const struct pc_recorded_stall **out)
{
    *out = stalls;
    return stall_count;
}

/* One recorded PC into a place of the caller's; returns where the next begins. */
static size_t pc_read(size_t at, size_t end, uint8_t *place, size_t pc_bytes)
{
    struct pc_sampling_abi_pc mine = {0}, recorded = {0};
    if (end - at < PC_SAMPLING_ABI_PC_BYTES_12_4)
        unreadable();
    memcpy(&mine, place, pc_bytes);
    memcpy(&recorded, bytes + at, PC_SAMPLING_ABI_PC_BYTES_12_4);
    at += PC_SAMPLING_ABI_PC_BYTES_12_4;
    size_t stall_bytes = recorded.stall_count * sizeof(struct pc_sampling_abi_stall);
    if (recorded.stall_count > mine.stall_count || stall_bytes > end - at)
        unreadable();
    memcpy(mine.stalls, bytes + at, stall_bytes);
    uintptr_t name = (uintptr_t)recorded.function_name;
    recorded.size = mine.size;
    recorded.stalls = mine.stalls;
    recorded.function_name = name < NAMES_MAX && names[name] != NULL ? strdup(names[name]) : NULL;
    memcpy(place, &recorded, pc_bytes);
    return at + stall_bytes;
}

bool pc_recording_read(struct pc_sampling_abi_data *data, size_t pc_bytes, bool is_final, int *result)
{
    size_t *cursor = &cursors[is_final];
    while (*cursor < size && u32_at(*cursor) != (is_final ? BLOCK_FINAL : BLOCK_READ))
        *cursor += BLOCK_BYTES + u32_at(*cursor + 4);
    if (*cursor >= size)
        return false;
    size_t at = *cursor + BLOCK_BYTES, end = at + u32_at(*cursor + 4);
    struct pc_sampling_abi_data recorded;
    if (end - at < READ_HEADER_BYTES + sizeof recorded)
        unreadable();
    uint32_t pc_count = u32_at(at + 20), code = u32_at(at + 16);
    memcpy(&recorded, bytes + at + READ_HEADER_BYTES, sizeof recorded);
    at += READ_HEADER_BYTES + sizeof recorded;
    bool is_begin = pcs_taken[is_final] == 0;
    for (size_t i = 0; i < pcs_taken[is_final]; i++) {
        struct pc_sampling_abi_pc pc;
        memcpy(&pc, bytes + at, sizeof pc);
        at += sizeof pc + pc.stall_count * sizeof(struct pc_sampling_abi_stall);
    }
    size_t count = pc_count - pcs_taken[is_final];
    count = count < data->collect_pcs ? count : data->collect_pcs;
    for (size_t i = 0; i < count; i++)
        at = pc_read(at, end, (uint8_t *)data->pcs + i * pc_bytes, pc_bytes);
    pcs_taken[is_final] += count;
    data->total_pcs = count;
    data->remaining_pcs = pc_count - pcs_taken[is_final];
    data->range_id = recorded.range_id;
    data->total_samples = is_begin ? recorded.total_samples : 0;
    data->dropped_samples = is_begin ? recorded.dropped_samples : 0;
    data->non_user_samples = is_begin ? recorded.non_user_samples : 0;
    data->is_hardware_buffer_full = recorded.is_hardware_buffer_full;
    if (data->remaining_pcs == 0) {
        *cursor = end;
        pcs_taken[is_final] = 0;
    }
    *result = (int)code;
    return true;
}
