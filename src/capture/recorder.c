/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/recorder.h"

#include "base/clock.h"
#include "format/json.h"

#include <stdio.h>
#include <string.h>

enum {
    batch_rows = 2048,
    usual_channels = 1u << CHANNEL_DEVICE | 1u << CHANNEL_SCOPE | 1u << CHANNEL_SYSTEM,
    dictionary_line_bytes = 1 << 20, /* of names, approximately */
    entry_bytes_max = 4 << 20        /* of one name: the pending entries of all dictionaries always fit in a line */
};

/* The thread that moves a cause from NONE to TAKEN fills it in; the collector writes it when it is READY. */
enum cause_state { CAUSE_NONE, CAUSE_TAKEN, CAUSE_READY, CAUSE_WRITTEN };

static const struct {
    const char *word, *record_type, *text;
} loss_words[LOSS_REASON_COUNT] = {
#define LOSS_WORDS(name, word, record, text) {word, record, text},
    LOSS_MAP(LOSS_WORDS)
#undef LOSS_WORDS
};

static const struct {
    const char *word, *text;
} writer_loss_words[LOG_LOSS_COUNT] = {
    [LOG_LOSS_DISK] = {"disk", "a line was too long for a reader, or there was no memory for it"},
    [LOG_LOSS_QUEUE] = {"write_queue_full",
                        "records arrived faster than the disk could write them, and the memory for records that "
                        "wait to be written was full"},
    [LOG_LOSS_PAUSE] = {"disk_floor", "recording was paused: less space was free than must remain free "
                                      "(GPUFL_MIN_FREE_BYTES)"},
    [LOG_LOSS_LIMIT] = {"log_limit", "the session had reached its size limit (GPUFL_MAX_LOG_BYTES), and older "
                                     "records could not be dropped in time"},
};

static const enum record_type written_batches[] = {
    RECORD_LAUNCH_CONFIG_BATCH, /* before the kernels that refer to it */
    RECORD_SCOPE_EVENT_BATCH,   RECORD_KERNEL_EVENT_BATCH,          RECORD_MEMCPY_EVENT_BATCH,
    RECORD_MEMSET_EVENT_BATCH,  RECORD_SYNCHRONIZATION_EVENT_BATCH, RECORD_MEMORY_ALLOC_EVENT_BATCH,
    RECORD_GRAPH_LAUNCH_BATCH,  RECORD_LAUNCH_EVENT_BATCH,          RECORD_PROFILE_SAMPLE_BATCH,
    RECORD_PM_SAMPLE_BATCH,     RECORD_SCOPE_ADOPTION_BATCH,
};
enum { written_batch_count = sizeof written_batches / sizeof *written_batches };

/* For some losses only the event is known, not how many records it cost. */
static bool is_counted(int reason)
{
    return reason != LOSS_TAKEN_OVER && reason != LOSS_PM_OVERFLOW && reason != LOSS_PC_BUFFER_FULL &&
           reason != LOSS_PC_FAILED && reason != LOSS_DRIVER_GONE && reason != LOSS_HUNG_CALL;
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

void recorder_take_losses(struct recorder *recorder, const struct recorder *abandoned)
{
    for (int i = 0; i < LOSS_REASON_COUNT; i++) {
        atomic_store(&recorder->lost[i], atomic_load(&abandoned->lost[i]));
        recorder->lost_written[i] = abandoned->lost_written[i];
    }
    recorder->channels |= abandoned->channels;
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
    /* A line that could not be written, or for which memory was exhausted, is counted by the writer and becomes a
     * loss record later. */
    if (channel == CHANNEL_COUNT)
        (void)log_writer_line_all(recorder->writer, recorder->channels, type, &recorder->line);
    else
        (void)log_writer_line(recorder->writer, channel, type, &recorder->line, 1);
}

/* Appends the entry, unless it does not fit in a line. */
static bool entry_append(struct bytes *entries, uint32_t id, const char *text, size_t size)
{
    size_t before = entries->size;
    if (size > entry_bytes_max)
        return false;
    bytes_append_format(entries, "%s\"%u\":", before ? "," : "", id);
    json_string(entries, text, size);
    if (!entries->failed && entries->size - before <= entry_bytes_max)
        return true;
    entries->size = before;
    entries->failed = false;
    return false;
}

void recorder_define(struct recorder *recorder, enum dictionary dictionary, uint32_t id, const char *text, size_t size)
{
    if (!entry_append(&recorder->entries[dictionary], id, text, size)) {
        recorder_lose(recorder, LOSS_LONG_NAMES, 1);
        return;
    }
    if (recorder->entries[dictionary].size < dictionary_line_bytes)
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
    unsigned channels = 0;
    for (int i = 0; i < DICTIONARY_COUNT; i++) {
        struct bytes *entries = &recorder->entries[i];
        if (!entries->size || !(dictionary_catalogue[i].channels & 1u << channel))
            continue;
        bytes_append_format(line, ",\"%s\":{", dictionary_catalogue[i].name);
        bytes_append(line, entries->data, entries->size);
        bytes_append_char(line, '}');
        channels |= dictionary_catalogue[i].channels;
        bytes_clear(entries);
    }
    /* The writer keeps them until they are written: without the names, all later rows are nameless. */
    for (int i = 0; i < CHANNEL_COUNT; i++)
        if (channels & 1u << i)
            (void)log_writer_line(recorder->writer, (enum channel)i, RECORD_DICTIONARY_UPDATE, line, 1);
}

static void write_batch(struct recorder *recorder, enum record_type type)
{
    struct batch *batch = &recorder->batches[type];
    if (!batch->row_count)
        return;
    /* A row must follow everything it refers to in its channel. */
    if (type == RECORD_KERNEL_EVENT_BATCH)
        write_batch(recorder, RECORD_LAUNCH_CONFIG_BATCH);
    else if (type != RECORD_SCOPE_EVENT_BATCH && record_catalogue[type].channel == CHANNEL_SCOPE)
        write_batch(recorder, RECORD_SCOPE_EVENT_BATCH);
    recorder_write_dictionaries(recorder, record_catalogue[type].channel);
    uint64_t rows = batch->row_count;
    bytes_clear(&recorder->line);
    batch_encode(batch, recorder->session_id, "", &recorder->line);
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
    /* After its cause, so that the record of this loss includes it; the release makes the cause visible with the
     * count. */
    atomic_fetch_add_explicit(&recorder->lost[reason], count, memory_order_release);
}

struct loss_record {
    const char *reason, *record_type, *message;
    const char *cause;        /* NULL: not given */
    uint64_t count;           /* 0: unknown */
    int64_t start_ns, end_ns; /* 0: unknown */
};

/* False when there was no room for the record. */
static bool write_loss(struct recorder *recorder, const struct loss_record *loss)
{
    struct bytes *line = recorder_begin(recorder, RECORD_LOSS);
    bytes_append_format(line, ",\"ts_ns\":%lld,\"reason\":\"%s\",\"record_type\":\"%s\",\"count\":",
                        (long long)clock_log_ns(), loss->reason, loss->record_type);
    if (loss->count)
        json_uint(line, loss->count);
    else
        bytes_append_text(line, "null");
    json_key(line, "message");
    json_text(line, loss->message);
    if (loss->cause) {
        json_key(line, "cause");
        json_text(line, loss->cause);
    }
    if (loss->start_ns)
        bytes_append_format(line, ",\"start_ns\":%lld,\"end_ns\":%lld", (long long)loss->start_ns,
                            (long long)loss->end_ns);
    return !line->failed &&
           !log_writer_line(recorder->writer, record_catalogue[RECORD_LOSS].channel, RECORD_LOSS, line, 1);
}

/* Writes loss records for what the log's writer could not write. */
static void write_writer_losses(struct recorder *recorder, const struct log_writer_stats *stats)
{
    for (int why = 0; why < LOG_LOSS_COUNT; why++)
        for (int type = 1; type < RECORD_TYPE_COUNT; type++) {
            uint64_t lost = stats->lost_rows[why][type], *reported = &recorder->writer_lost_reported[why][type];
            if (lost == *reported || type == RECORD_LOSS)
                continue; /* a lost loss record is written again */
            bool is_disk = why == LOG_LOSS_DISK && stats->last_errno;
            const struct loss_record loss = {
                .reason = writer_loss_words[why].word,
                .record_type = record_catalogue[type].name,
                .message = is_disk ? strerror(stats->last_errno) : writer_loss_words[why].text,
                .count = lost - *reported,
                .start_ns = stats->lost_since_ns[why],
                .end_ns = stats->lost_until_ns[why],
            };
            if (!write_loss(recorder, &loss))
                return;
            *reported = lost;
        }
    log_writer_loss_reported(recorder->writer);
}

/* is_last: also while lines are being lost; otherwise a loss record per round would wait for the disk. */
static void write_losses(struct recorder *recorder, bool is_last)
{
    struct log_writer_stats stats;
    log_writer_stats(recorder->writer, &stats);
    if (stats.is_in_trouble && !is_last)
        return;
    for (int i = 0; i < LOSS_REASON_COUNT; i++) {
        uint64_t lost = atomic_load(&recorder->lost[i]);
        if (lost == recorder->lost_written[i])
            continue;
        struct loss_cause *cause = &recorder->causes[i];
        bool has_cause = atomic_load(&cause->state) == CAUSE_READY;
        const struct loss_record loss = {
            .reason = loss_words[i].word,
            .record_type = loss_words[i].record_type,
            .message = loss_words[i].text,
            .cause = has_cause ? cause->problem.text : NULL,
            .count = is_counted(i) ? lost - recorder->lost_written[i] : 0,
        };
        if (!write_loss(recorder, &loss))
            return; /* no room; write it again next time */
        recorder->lost_written[i] = lost;
        if (has_cause)
            atomic_store(&cause->state, CAUSE_WRITTEN);
    }
    write_writer_losses(recorder, &stats);
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
    write_losses(recorder, !age_ms);
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
    for (int why = 0; why < LOG_LOSS_COUNT; why++) {
        uint64_t lost = 0;
        for (int type = 1; type < RECORD_TYPE_COUNT; type++)
            lost += type == RECORD_LOSS ? 0 : stats.lost_rows[why][type];
        if (lost) {
            json_key(out, writer_loss_words[why].word);
            json_uint(out, lost);
        }
    }
    bytes_append_char(out, '}');
}

uint64_t recorder_lost_total(const struct recorder *recorder)
{
    uint64_t total = 0;
    for (int i = 0; i < LOSS_REASON_COUNT; i++)
        total += atomic_load(&recorder->lost[i]);
    struct log_writer_stats stats;
    log_writer_stats(recorder->writer, &stats);
    for (int type = 1; type < RECORD_TYPE_COUNT; type++)
        total += stats.lost_rows[LOG_LOSS_QUEUE][type] + stats.lost_rows[LOG_LOSS_LIMIT][type];
    return total;
}
