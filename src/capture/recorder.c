/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/recorder.h"

#include "base/clock.h"
#include "format/json.h"

#include <stdio.h>
#include <string.h>

enum {
    batch_rows = 2048,
    usual_channels = 1u << CHANNEL_DEVICE | 1u << CHANNEL_SCOPE | 1u << CHANNEL_SYSTEM,
    dictionary_line_bytes = 1 << 20, /* of names, about */
    waiting_bytes_max = 32 << 20     /* of all dictionaries: one line always holds them */
};

/* The thread that takes a cause from NONE to TAKEN fills it in; the collector writes it when it is READY. */
enum cause_state { CAUSE_NONE, CAUSE_TAKEN, CAUSE_READY, CAUSE_WRITTEN };

static const struct {
    const char *word, *record_type, *text;
} loss_words[LOSS_REASON_COUNT] = {
#define LOSS_WORDS(name, word, record, text) {word, record, text},
    LOSS_MAP(LOSS_WORDS)
#undef LOSS_WORDS
};

static const enum record_type written_batches[] = {
    RECORD_LAUNCH_CONFIG_BATCH, /* before the kernels that refer to it */
    RECORD_SCOPE_EVENT_BATCH,   RECORD_KERNEL_EVENT_BATCH,          RECORD_MEMCPY_EVENT_BATCH,
    RECORD_MEMSET_EVENT_BATCH,  RECORD_SYNCHRONIZATION_EVENT_BATCH, RECORD_MEMORY_ALLOC_EVENT_BATCH,
    RECORD_GRAPH_LAUNCH_BATCH,  RECORD_LAUNCH_EVENT_BATCH,          RECORD_PROFILE_SAMPLE_BATCH,
    RECORD_PM_SAMPLE_BATCH,
};
enum { written_batch_count = sizeof written_batches / sizeof *written_batches };

/* Of some losses only the event is known, not how much it cost. */
static bool is_counted(int reason)
{
    return reason != LOSS_TAKEN_OVER && reason != LOSS_PM_OVERFLOW && reason != LOSS_PC_BUFFER_FULL &&
           reason != LOSS_PC_FAILED && reason != LOSS_DRIVER_GONE;
}

void recorder_open_plain(struct recorder *recorder, struct log_writer *writer, const char *session_id,
                         const char *app_name, unsigned channels)
{
    memset(recorder, 0, sizeof *recorder);
    recorder->writer = writer;
    recorder->session_id = session_id;
    recorder->app_name = app_name;
    recorder->channels = channels;
}

gpufl_status recorder_open(struct recorder *recorder, struct log_writer *writer, const char *session_id,
                           const char *app_name)
{
    recorder_open_plain(recorder, writer, session_id, app_name, usual_channels);
    for (int i = 0; i < written_batch_count; i++) {
        gpufl_status status = batch_init(&recorder->batches[written_batches[i]], written_batches[i], batch_rows);
        if (status != GPUFL_OK) {
            recorder_close(recorder);
            return status;
        }
    }
    return GPUFL_OK;
}

void recorder_close(struct recorder *recorder)
{
    for (int i = 0; i < written_batch_count; i++)
        batch_free(&recorder->batches[written_batches[i]]);
    for (int i = 0; i < DICTIONARY_COUNT; i++)
        bytes_free(&recorder->entries[i]);
    bytes_free(&recorder->line);
}

struct bytes *recorder_begin(struct recorder *recorder, enum record_type type)
{
    struct bytes *line = &recorder->line;
    bytes_clear(line);
    bytes_append_format(line, "{\"version\":%d,\"type\":\"%s\",\"session_id\":\"%s\"", record_catalogue[type].version,
                        record_catalogue[type].name, recorder->session_id);
    return line;
}

void recorder_end(struct recorder *recorder, enum record_type type)
{
    enum channel channel = record_catalogue[type].channel;
    if (recorder->line.failed)
        return;
    /* A line that could not be written is counted by the writer and becomes a loss record later. */
    if (channel == CHANNEL_COUNT)
        (void)log_writer_line_all(recorder->writer, recorder->channels, type, &recorder->line);
    else
        (void)log_writer_line(recorder->writer, channel, type, &recorder->line, 1);
}

static size_t waiting_bytes(const struct recorder *recorder)
{
    size_t bytes = 0;
    for (int i = 0; i < DICTIONARY_COUNT; i++)
        bytes += recorder->entries[i].size;
    return bytes;
}

/* Whole or, when there is no room for it, not at all. */
static bool entry_append(struct bytes *entries, size_t room, uint32_t id, const char *text, size_t size)
{
    size_t before = entries->size;
    if (size > room)
        return false;
    bytes_append_format(entries, "%s\"%u\":", before ? "," : "", id);
    json_string(entries, text, size);
    if (!entries->failed && entries->size - before <= room)
        return true;
    entries->size = before;
    entries->failed = false;
    return false;
}

void recorder_define(struct recorder *recorder, enum dictionary dictionary, uint32_t id, const char *text, size_t size)
{
    size_t room = waiting_bytes_max - waiting_bytes(recorder);
    if (!entry_append(&recorder->entries[dictionary], room, id, text, size)) {
        recorder_lose(recorder, LOSS_WAITING_NAMES, 1);
        return;
    }
    if (waiting_bytes(recorder) < recorder->waiting_tried + dictionary_line_bytes)
        return;
    int channel = 0;
    while (!(dictionary_catalogue[dictionary].channels & 1u << channel))
        channel++;
    recorder_write_dictionaries(recorder, (enum channel)channel);
}

void recorder_write_dictionaries(struct recorder *recorder, enum channel channel)
{
    bool has_entries = false;
    for (int i = 0; i < DICTIONARY_COUNT; i++)
        has_entries |= recorder->entries[i].size && (dictionary_catalogue[i].channels & 1u << channel);
    if (!has_entries)
        return;
    struct bytes *line = recorder_begin(recorder, RECORD_DICTIONARY_UPDATE);
    unsigned channels = 0, dictionaries = 0;
    for (int i = 0; i < DICTIONARY_COUNT; i++) {
        const struct bytes *entries = &recorder->entries[i];
        if (!entries->size || !(dictionary_catalogue[i].channels & 1u << channel))
            continue;
        bytes_append_format(line, ",\"%s\":{", dictionary_catalogue[i].name);
        bytes_append(line, entries->data, entries->size);
        bytes_append_char(line, '}');
        channels |= dictionary_catalogue[i].channels;
        dictionaries |= 1u << i;
    }
    bool is_written = !line->failed;
    for (int i = 0; i < CHANNEL_COUNT && !line->failed; i++)
        if (channels & 1u << i)
            is_written &= !log_writer_line(recorder->writer, (enum channel)i, RECORD_DICTIONARY_UPDATE, line, 1);
    /* Without its names all that follows is nameless: they wait until there is room. */
    for (int i = 0; i < DICTIONARY_COUNT && is_written; i++)
        if (dictionaries & 1u << i)
            bytes_clear(&recorder->entries[i]);
    recorder->waiting_tried = waiting_bytes(recorder);
}

static void write_batch(struct recorder *recorder, enum record_type type)
{
    struct batch *batch = &recorder->batches[type];
    if (!batch->row_count)
        return;
    /* What a row refers to stands before it in its channel. */
    if (type == RECORD_KERNEL_EVENT_BATCH)
        write_batch(recorder, RECORD_LAUNCH_CONFIG_BATCH);
    else if (type != RECORD_SCOPE_EVENT_BATCH && record_catalogue[type].channel == CHANNEL_SCOPE)
        write_batch(recorder, RECORD_SCOPE_EVENT_BATCH);
    recorder_write_dictionaries(recorder, record_catalogue[type].channel);
    uint64_t rows = batch->row_count;
    bytes_clear(&recorder->line);
    batch_encode(batch, recorder->session_id, "", &recorder->line);
    if (!recorder->line.failed)
        (void)log_writer_line(recorder->writer, record_catalogue[type].channel, type, &recorder->line, rows);
}

int64_t *recorder_row(struct recorder *recorder, enum record_type type, int64_t time_ns)
{
    struct batch *batch = &recorder->batches[type];
    if (batch_is_full(batch))
        write_batch(recorder, type);
    if (!batch->row_count) {
        batch->base_time_ns = time_ns;
        recorder->batch_since_mono_ns[type] = clock_mono_ns();
    }
    int64_t *row = batch_row(batch);
    row[type == RECORD_PM_SAMPLE_BATCH ? PM_SAMPLE_DT_NS : 0] = time_ns - batch->base_time_ns;
    return row;
}

void recorder_lose_because(struct recorder *recorder, enum loss_reason reason, uint64_t count, const char *cause)
{
    struct loss_cause *first = &recorder->causes[reason];
    int none = CAUSE_NONE;
    if (*cause && atomic_compare_exchange_strong(&first->state, &none, CAUSE_TAKEN)) {
        snprintf(first->problem.text, sizeof first->problem.text, "%s", cause);
        atomic_store(&first->state, CAUSE_READY);
    }
    /* After its cause, so that the record of this loss has it; the release makes it seen with the count. */
    atomic_fetch_add_explicit(&recorder->lost[reason], count, memory_order_release);
}

/* count 0: how much was lost is not known; cause NULL: not told. Returns false when there was no room for the record. */
static bool write_loss(struct recorder *recorder, const char *reason, const char *record_type, uint64_t count,
                       const char *text, const char *cause)
{
    struct bytes *line = recorder_begin(recorder, RECORD_LOSS);
    bytes_append_format(line, ",\"ts_ns\":%lld,\"reason\":\"%s\",\"record_type\":\"%s\",\"count\":",
                        (long long)clock_wall_ns(), reason, record_type);
    if (count)
        json_uint(line, count);
    else
        bytes_append_text(line, "null");
    json_key(line, "message");
    json_text(line, text);
    if (cause) {
        json_key(line, "cause");
        json_text(line, cause);
    }
    return !line->failed &&
           !log_writer_line(recorder->writer, record_catalogue[RECORD_LOSS].channel, RECORD_LOSS, line, 1);
}

static void write_losses(struct recorder *recorder)
{
    for (int i = 0; i < LOSS_REASON_COUNT; i++) {
        uint64_t lost = atomic_load(&recorder->lost[i]);
        if (lost == recorder->lost_written[i])
            continue;
        struct loss_cause *cause = &recorder->causes[i];
        bool has_cause = atomic_load(&cause->state) == CAUSE_READY;
        if (!write_loss(recorder, loss_words[i].word, loss_words[i].record_type,
                        is_counted(i) ? lost - recorder->lost_written[i] : 0, loss_words[i].text,
                        has_cause ? cause->problem.text : NULL))
            return; /* no room; say it again next time */
        recorder->lost_written[i] = lost;
        if (has_cause)
            atomic_store(&cause->state, CAUSE_WRITTEN);
    }
    struct log_writer_stats stats;
    log_writer_stats(recorder->writer, &stats);
    for (int type = 1; type < RECORD_TYPE_COUNT; type++) {
        uint64_t lost = stats.lost_rows[type];
        if (lost == recorder->disk_lost_written[type] || type == RECORD_LOSS)
            continue;
        if (!write_loss(recorder, "disk", record_catalogue[type].name, lost - recorder->disk_lost_written[type],
                        stats.last_errno ? strerror(stats.last_errno)
                                         : "a line was too long for a reader, or there was no memory for it",
                        NULL))
            return;
        recorder->disk_lost_written[type] = lost;
    }
}

void recorder_flush(struct recorder *recorder, int64_t age_ms)
{
    int64_t now_ns = clock_mono_ns();
    for (int i = 0; i < written_batch_count; i++) {
        enum record_type type = written_batches[i];
        if (recorder->batches[type].row_count && now_ns - recorder->batch_since_mono_ns[type] >= age_ms * 1000000)
            write_batch(recorder, type);
    }
    if (!age_ms)
        for (int channel = 0; channel < CHANNEL_COUNT; channel++)
            recorder_write_dictionaries(recorder, (enum channel)channel);
    write_losses(recorder);
}

void recorder_append_totals(struct recorder *recorder, struct bytes *out)
{
    struct log_writer_stats stats;
    log_writer_stats(recorder->writer, &stats);
    bytes_append_text(out, ",\"rows\":{");
    for (int type = 1; type < RECORD_TYPE_COUNT; type++)
        if (stats.rows[type] && record_catalogue[type].is_batch) {
            json_key(out, record_catalogue[type].name);
            json_uint(out, stats.rows[type]);
        }
    bytes_append_text(out, "},\"lost\":{");
    for (int i = 0; i < LOSS_REASON_COUNT; i++)
        if (atomic_load(&recorder->lost[i]) && is_counted(i)) {
            json_key(out, loss_words[i].word);
            json_uint(out, atomic_load(&recorder->lost[i]));
        }
    uint64_t disk_lost = 0;
    for (int type = 1; type < RECORD_TYPE_COUNT; type++)
        disk_lost += type == RECORD_LOSS ? 0 : stats.lost_rows[type]; /* those are said again */
    if (disk_lost) {
        json_key(out, "disk");
        json_uint(out, disk_lost);
    }
    bytes_append_char(out, '}');
}

uint64_t recorder_lost_total(const struct recorder *recorder)
{
    uint64_t total = 0;
    for (int i = 0; i < LOSS_REASON_COUNT; i++)
        total += atomic_load(&recorder->lost[i]);
    return total;
}
