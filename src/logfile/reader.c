/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/reader.h"

#include "base/crc32c.h"
#include "base/intern.h"
#include "logfile/line.h"
#include "logfile/line_source.h"
#include "logfile/log_line.h"
#include "logfile/segment.h"
#include "logfile/segment_trim.h"
#include "logfile/session_source.h"
#include "logfile/windows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The order of reading: scopes before the kernels that refer to them. */
static const enum channel channel_order[CHANNEL_COUNT] = {CHANNEL_SYSTEM, CHANNEL_SCOPE, CHANNEL_DEVICE, CHANNEL_SASS};

enum { FIRST_LINES = 4, BLOCK_BYTES = 128 << 10, GROWTH_FILES_MAX = 1000 };
#define SEEN_BYTES_MAX ((size_t)8 << 20)

struct reader {
    log_line_fn on_line;
    log_issue_fn on_issue;
    void *user;
    struct log_summary *summary;
    struct session_files files;
    bool *is_shadowed; /* per file: another file has the same lines */
    struct batch_view view;
    struct intern seen; /* already delivered records of those that are written to all channels */
    const struct session_file *file;
    uint64_t line;
    bool is_stopped;
    bool has_no_memory;  /* a line could not be checked, so reading stopped */
    int64_t newer;       /* the version of a record that only a newer gpufl can read; stopped at that line. 0: none */
    char newer_file[64]; /* a copy: files that appear while reading are listed on the stack */
    uint64_t newer_line;
    /* of the channel being read */
    uint64_t next_seq;
    uint64_t damaged_since; /* damaged lines since the last valid seq, which explain a gap */
    uint64_t trimmed_left;  /* lines that trimming removed and whose gap was not seen yet */
    bool has_end;           /* the channel has a shutdown record written by the program */
    bool has_pending;       /* a damaged line that is not yet reported: see settle_damage */
    struct log_issue pending;
    const struct session_file *unended[CHANNEL_COUNT]; /* last files of channels without that record */
    bool has_numbers; /* our session: GPUFlight neither numbers lines nor ends every channel */
};

static void report_issue(struct reader *reader, const struct log_issue *issue)
{
    if (reader->on_issue)
        reader->on_issue(reader->user, issue);
}

PRINTF_LIKE(5, 6)
static struct log_issue make_issue(const struct reader *reader, enum log_issue_kind kind, uint64_t line, uint64_t count,
                                   const char *format, ...)
{
    struct log_issue issue = {.kind = kind, .line = line, .count = count};
    if (reader->file)
        snprintf(issue.file, sizeof issue.file, "%.127s", reader->file->name);
    va_list args;
    va_start(args, format);
    vsnprintf(issue.text, sizeof issue.text, format, args);
    va_end(args);
    return issue;
}

#define REPORT(reader, ...)                                        \
    do {                                                           \
        struct log_issue issue_ = make_issue(reader, __VA_ARGS__); \
        report_issue(reader, &issue_);                             \
    } while (0)

/* A damaged line is reported when the next line is known: a launcher that marks the end of a killed program's session
 * terminates the torn line and appends a synthetic shutdown. That is a torn tail, not damage. */
static void settle_damage(struct reader *reader, bool is_before_synthetic_end)
{
    if (!reader->has_pending)
        return;
    reader->has_pending = false;
    if (is_before_synthetic_end) {
        reader->pending.kind = LOG_ISSUE_TORN_TAIL;
        reader->summary->has_torn_tail = true;
        reader->summary->damaged_lines--;
    }
    report_issue(reader, &reader->pending);
}

static void add_damage(struct reader *reader, const char *reason)
{
    settle_damage(reader, false);
    reader->summary->damaged_lines++;
    reader->damaged_since++;
    reader->pending = make_issue(reader, LOG_ISSUE_DAMAGED_LINE, reader->line, 1, "%s; line skipped", reason);
    reader->has_pending = true;
}

/* Checks the channel's numbering; false: a line with this number was already read. */
static bool follow_seq(struct reader *reader, const struct log_line *line)
{
    if (line->seq < 0)
        return true;
    uint64_t seq = (uint64_t)line->seq, expected = reader->next_seq;
    if (seq < expected) {
        REPORT(reader, LOG_ISSUE_DUPLICATE_LINE, reader->line, 1, "duplicate line number %" PRIu64 "; line skipped",
               seq);
        return false;
    }
    uint64_t gap = seq - expected;
    uint64_t missing = gap > reader->damaged_since ? gap - reader->damaged_since : 0;
    uint64_t trimmed = missing < reader->trimmed_left ? missing : reader->trimmed_left;
    reader->trimmed_left -= trimmed;
    missing -= trimmed;
    if (missing) {
        reader->summary->missing_lines += missing;
        REPORT(reader, LOG_ISSUE_MISSING_LINES, reader->line, missing,
               "%" PRIu64 " line%s missing before line number %" PRIu64, missing, missing == 1 ? " is" : "s are", seq);
    }
    reader->next_seq = seq + 1;
    reader->damaged_since = 0;
    struct trimmed_rows rows;
    if (line->type == RECORD_LOSS && trimmed_rows_read(line->object, &rows)) {
        reader->trimmed_left += rows.lines - 1;
        reader->summary->trimmed_lines += rows.lines;
        reader->summary->trimmed_rows[rows.type] += rows.rows;
    }
    return true;
}

/* Records that are written to every channel are delivered once. */
static bool is_repetition(struct reader *reader, const struct log_line *line)
{
    char key[LINE_IDENTITY_MAX];
    size_t size = log_line_identity(line, key);
    bool is_new = false;
    return size && intern_id(&reader->seen, key, size, &is_new) && !is_new;
}

void log_summary_add(struct log_summary *summary, const struct log_line *line)
{
    summary->rows[line->type] += line->batch ? line->batch->row_count : 1;
    summary->unknown_types += line->type == RECORD_UNKNOWN;
    if (line->type == RECORD_SHUTDOWN) {
        bool is_synthetic = json_get_bool(line->object, "synthetic", false);
        summary->is_synthetic_shutdown = is_synthetic && (!summary->has_shutdown || summary->is_synthetic_shutdown);
        summary->has_shutdown = true;
    }
}

/* A record type gets a new version when its readers would misread it: stopping is better than wrong numbers. */
static bool is_of_newer_format(struct reader *reader, const struct log_line *line)
{
    int64_t version = line->batch ? line->batch->version : json_get_int(line->object, "version", 0);
    if (line->type == RECORD_UNKNOWN || version <= record_catalogue[line->type].version)
        return false;
    reader->newer = version;
    snprintf(reader->newer_file, sizeof reader->newer_file, "%s", line->file);
    reader->newer_line = line->line;
    reader->is_stopped = true;
    return true;
}

static void deliver(struct reader *reader, const struct log_line *line)
{
    if (is_repetition(reader, line))
        return;
    log_summary_add(reader->summary, line);
    if (reader->on_line && !reader->on_line(reader->user, line))
        reader->is_stopped = true;
}

/* is_tail: the file's last bytes, without LF. */
static void take_line(struct reader *reader, const char *text, size_t size, bool is_tail, bool is_last_file)
{
    struct log_line line = {.channel = reader->file->channel, .file = reader->file->name, .line = reader->line};
    struct json_document document = {0};
    char reason[LINE_REASON_SIZE];
    reader->summary->lines++;
    gpufl_status status = log_line_decode(&line, &reader->view, &document, text, size, reason);
    if (status == GPUFL_OK) {
        bool is_synthetic = line.type == RECORD_SHUTDOWN && json_get_bool(line.object, "synthetic", false);
        settle_damage(reader, is_synthetic);
        reader->has_end |= line.type == RECORD_SHUTDOWN && !is_synthetic;
        if (!is_of_newer_format(reader, &line) && follow_seq(reader, &line))
            deliver(reader, &line);
    } else if (status == GPUFL_E_NO_MEMORY) {
        reader->has_no_memory = reader->is_stopped = true;
    } else if (!is_tail || !is_last_file) {
        add_damage(reader, reason);
    } else if (!reader->summary->is_live) {
        /* A running writer may be writing this line. */
        reader->summary->has_torn_tail = true;
        REPORT(reader, LOG_ISSUE_TORN_TAIL, reader->line, 1,
               "the last line is incomplete (%zu bytes): its writer was killed", size);
    }
    json_free(&document);
}

static void take_lines(struct reader *reader, struct line_source *source, bool is_last_file)
{
    while (!reader->is_stopped) {
        const char *text;
        size_t size;
        enum line_result result = line_source_next(source, &text, &size);
        reader->line++;
        if (result == LINE_NO_MORE)
            break;
        if (result == LINE_FAILED) {
            REPORT(reader, source->coding == LINE_CODING_PLAIN ? LOG_ISSUE_UNREADABLE : LOG_ISSUE_BAD_SEGMENT,
                   reader->line, 0, "%s; the rest of the file is lost", source->reason);
            break;
        }
        if (result == LINE_TOO_LONG)
            add_damage(reader, "longer than 64 MiB");
        else
            take_line(reader, text, size, result == LINE_UNENDED, is_last_file);
    }
}

static uint32_t crc_of_file(int fd, uint64_t size)
{
    uint32_t crc = 0;
    char *block = malloc(BLOCK_BYTES);
    for (uint64_t at = 0; block && at < size;) {
        uint64_t want = size - at < BLOCK_BYTES ? size - at : BLOCK_BYTES;
        ssize_t got = pread(fd, block, (size_t)want, (off_t)at);
        if (got <= 0)
            break;
        crc = crc32c(crc, block, (size_t)got);
        at += (uint64_t)got;
    }
    free(block);
    return crc;
}

/* Checks a sealed file before reading its lines; returns the size of the part that holds lines. */
static uint64_t open_segment(struct reader *reader, int fd, uint64_t size, struct segment_footer *footer)
{
    struct problem problem = {""};
    const struct session_file *file = reader->file;
    reader->summary->sealed_files++;
    reader->summary->sealed_bytes += size;
    *footer = (struct segment_footer){0};
    if (segment_footer_read(fd, footer, &problem)) {
        REPORT(reader, LOG_ISSUE_BAD_SEGMENT, 0, 0, "%.200s", problem.text);
        return size;
    }
    if (strcmp(footer->channel, channel_names[file->channel]) != 0 || footer->segment != file->index)
        REPORT(reader, LOG_ISSUE_BAD_SEGMENT, 0, 0, "the footer belongs to %s segment %" PRIu64, footer->channel,
               footer->segment);
    if (crc_of_file(fd, footer->frame_bytes) != footer->frame_crc32c)
        REPORT(reader, LOG_ISSUE_BAD_SEGMENT, 0, 0, "the CRC does not match the footer");
    return footer->frame_bytes;
}

static void close_segment(struct reader *reader, const struct segment_footer *footer)
{
    uint64_t lines = reader->line ? reader->line - 1 : 0;
    if (!footer->lines || reader->is_stopped)
        return;
    if (lines != footer->lines)
        REPORT(reader, LOG_ISSUE_BAD_SEGMENT, 0, 0, "%" PRIu64 " lines, but the footer declares %" PRIu64, lines,
               footer->lines);
    else if (reader->next_seq != footer->last_seq + 1 && !reader->damaged_since)
        REPORT(reader, LOG_ISSUE_BAD_SEGMENT, 0, 0,
               "the last line has number %" PRIu64 ", but the footer declares %" PRIu64, reader->next_seq - 1,
               footer->last_seq);
}

/* Takes over fd (-1: opening failed, errno says why). */
static gpufl_status read_log(struct reader *reader, const struct session_file *file, int fd, bool is_last)
{
    struct stat status;
    reader->file = file;
    reader->line = 0;
    if (fd < 0 || fstat(fd, &status)) {
        REPORT(reader, LOG_ISSUE_UNREADABLE, 0, 0, "cannot be opened: %s", session_file_error(errno));
        if (fd >= 0)
            close(fd);
        reader->file = NULL;
        return GPUFL_OK;
    }
    uint64_t size = (uint64_t)status.st_size, input_bytes = size;
    reader->summary->files++;
    reader->summary->bytes += size;
    struct segment_footer footer = {0};
    struct problem problem = {""};
    if (file->kind == SESSION_FILE_SEALED)
        input_bytes = open_segment(reader, fd, size, &footer);
    else if (file->kind == SESSION_FILE_WINDOW && !window_matches_sidecar(&reader->files, file, fd, &problem))
        REPORT(reader, LOG_ISSUE_BAD_SEGMENT, 0, 0, "%.200s", problem.text);
    struct line_source source;
    gpufl_status result = line_source_open(&source, fd, session_file_coding(file), input_bytes);
    if (!result) {
        take_lines(reader, &source, is_last);
        close_segment(reader, &footer);
        line_source_close(&source);
    }
    close(fd);
    reader->file = NULL;
    return result;
}

/* Opens the rotated or sealed file with this number; -1 with errno. A sealed file exists before its plain file is
 * removed, so looking for the plain one first finds one of them. */
static int open_numbered(const struct reader *reader, struct session_file *file)
{
    session_name_rotated(file->name, sizeof file->name, file->channel, file->index, "");
    file->kind = SESSION_FILE_ROTATED;
    int fd = session_file_open(reader->files.dir_fd, file->name);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    session_name_rotated(file->name, sizeof file->name, file->channel, file->index, ".zst");
    file->kind = SESSION_FILE_SEALED;
    return session_file_open(reader->files.dir_fd, file->name);
}

/* Reads a channel that is being written. Files are rotated, sealed and removed meanwhile, so they are opened by number
 * instead of from the listing; the live file is read only while no file has its future number. */
static gpufl_status read_growing_channel(struct reader *reader, enum channel channel, uint64_t first, uint64_t last)
{
    struct session_file file = {.channel = channel, .index = first};
    gpufl_status status = GPUFL_OK;
    while (!status && !reader->is_stopped && file.index <= last + GROWTH_FILES_MAX) {
        int fd = open_numbered(reader, &file);
        if (fd >= 0 || errno != ENOENT) {
            status = read_log(reader, &file, fd, false);
        } else if (file.index > last) {
            struct session_file live = {.channel = channel, .kind = SESSION_FILE_LIVE};
            session_name_live(live.name, sizeof live.name, channel);
            int live_fd = session_file_open(reader->files.dir_fd, live.name);
            bool is_missing = live_fd < 0 && errno == ENOENT;
            fd = open_numbered(reader, &file);
            if (fd < 0)
                return is_missing ? GPUFL_OK : read_log(reader, &live, live_fd, true);
            if (live_fd >= 0)
                close(live_fd);
            status = read_log(reader, &file, fd, false);
        }
        file.index++;
    }
    return status;
}

static gpufl_status read_channel(struct reader *reader, enum channel channel)
{
    const struct session_files *files = &reader->files;
    size_t last = files->log_count;
    uint64_t first_index = 1, last_index = 0;
    bool is_ours = true;
    for (size_t i = 0; i < files->log_count; i++) {
        const struct session_file *file = &files->items[i];
        if (file->channel != channel || reader->is_shadowed[i])
            continue;
        last = i;
        is_ours &= file->kind <= SESSION_FILE_SEALED;
        first_index = last_index || !file->index ? first_index : file->index;
        last_index = file->index ? file->index : last_index;
    }
    reader->next_seq = 1;
    reader->damaged_since = reader->trimmed_left = 0;
    reader->has_end = false;
    gpufl_status status = GPUFL_OK;
    if (reader->summary->is_live && is_ours && last < files->log_count) {
        status = read_growing_channel(reader, channel, first_index, last_index);
    } else {
        for (size_t i = 0; i < files->log_count && !status && !reader->is_stopped; i++) {
            const struct session_file *file = &files->items[i];
            if (file->channel == channel && !reader->is_shadowed[i])
                status = read_log(reader, file, session_file_open(files->dir_fd, file->name), i == last);
        }
    }
    settle_damage(reader, false);
    reader->has_numbers |= reader->next_seq > 1;
    if (!reader->has_end && last < files->log_count)
        reader->unended[channel] = &files->items[last];
    return status;
}

/* Delivers the job_start record first; the copies in the channels are then skipped as repetitions. */
static bool deliver_job_start(struct reader *reader, const struct session_file *file)
{
    int fd = session_file_open(reader->files.dir_fd, file->name);
    struct line_source source;
    if (fd < 0)
        return false;
    bool is_found = false;
    if (!line_source_open(&source, fd, session_file_coding(file), UINT64_MAX)) {
        for (uint64_t i = 1; i <= FIRST_LINES && !is_found; i++) {
            const char *text;
            size_t size;
            enum line_result result = line_source_next(&source, &text, &size);
            if (result != LINE_WHOLE && result != LINE_UNENDED)
                break;
            struct log_line line = {.channel = file->channel, .file = file->name, .line = i};
            struct json_document document = {0};
            char reason[LINE_REASON_SIZE];
            is_found = line_type_guess(text, size) == RECORD_JOB_START &&
                       !log_line_decode(&line, &reader->view, &document, text, size, reason) &&
                       line.type == RECORD_JOB_START;
            if (is_found && !is_of_newer_format(reader, &line))
                deliver(reader, &line);
            reader->file = is_found ? file : NULL;
            json_free(&document);
        }
        line_source_close(&source);
    }
    close(fd);
    return is_found;
}

static void find_job_start(struct reader *reader)
{
    const struct session_files *files = &reader->files;
    for (int c = 0; c < CHANNEL_COUNT; c++) {
        size_t i = 0;
        while (i < files->log_count && (files->items[i].channel != channel_order[c] || reader->is_shadowed[i]))
            i++;
        if (i < files->log_count && deliver_job_start(reader, &files->items[i]))
            return;
    }
}

static void report_end(struct reader *reader)
{
    struct log_summary *summary = reader->summary;
    reader->file = NULL;
    if (reader->is_stopped)
        return;
    if (reader->on_issue)
        windows_report_missing(&reader->files, reader->on_issue, reader->user);
    if (summary->has_shutdown && !summary->is_synthetic_shutdown) {
        for (int i = 0; i < CHANNEL_COUNT && reader->has_numbers && !summary->is_live; i++) {
            reader->file = reader->unended[channel_order[i]];
            if (reader->file)
                REPORT(reader, LOG_ISSUE_MISSING_LINES, 0, 0,
                       "no shutdown record, although other channels have one: the end of this channel is missing");
        }
        reader->file = NULL;
        return;
    }
    REPORT(reader, LOG_ISSUE_UNFINISHED, 0, 0, "%s",
           summary->is_live        ? "the session is still being written"
           : summary->has_shutdown ? "the program ended without closing the session; its launcher recorded the end"
                                   : "no shutdown record: the program was killed or is still running on another host");
}

gpufl_status log_read(const char *path, log_line_fn on_line, log_issue_fn on_issue, void *user,
                      struct log_summary *summary, struct problem *problem)
{
    *summary = (struct log_summary){0};
    struct reader reader = {.on_line = on_line, .on_issue = on_issue, .user = user, .summary = summary};
    reader.seen.text_bytes_max = SEEN_BYTES_MAX;
    gpufl_status status = session_files_find(&reader.files, path, problem);
    if (status)
        return status;
    summary->is_live = session_lock_is_held(reader.files.dir_fd);
    reader.is_shadowed = calloc(reader.files.count + 1, sizeof *reader.is_shadowed);
    if (!status && !reader.is_shadowed) {
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to read %s", path);
    } else if (!status) {
        session_files_mark_shadowed(&reader.files, reader.is_shadowed);
        find_job_start(&reader);
        for (int i = 0; i < CHANNEL_COUNT && !status && !reader.is_stopped; i++)
            status = read_channel(&reader, channel_order[i]);
        status = reader.has_no_memory ? GPUFL_E_NO_MEMORY : status;
        if (status)
            problem_set(problem, status, "no memory to read %s", path);
        else if (reader.newer)
            status = problem_set(problem, GPUFL_E_UNSUPPORTED,
                                 "cannot read '%.300s': %s:%" PRIu64 " has log format %" PRIi64
                                 ", and gpufl " GPUFL_VERSION_STRING " reads format " WIRE_VERSION
                                 ". Install a newer gpufl.",
                                 path, reader.newer_file, reader.newer_line, reader.newer);
        else
            report_end(&reader);
    }
    free(reader.is_shadowed);
    intern_free(&reader.seen);
    batch_view_free(&reader.view);
    session_files_free(&reader.files);
    return status;
}
