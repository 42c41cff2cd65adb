/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one session directory, whoever wrote it and in whatever state it is: our live, rotated and sealed files;
 * GPUFlight's layout (published .log.gz windows with sidecars, .tmp/ active and retired files, and the older
 * <app>.<channel>.log with rotated .1, .2 newest first). The input is untrusted: damaged lines are skipped, counted and
 * reported with file, line and reason. */
#ifndef GPUFL_LOGFILE_READER_H
#define GPUFL_LOGFILE_READER_H

#include "format/batch.h"
#include "format/json.h"

enum log_issue_kind {
    LOG_ISSUE_DAMAGED_LINE,  /* not JSON, crc mismatch, wrong columns */
    LOG_ISSUE_TORN_TAIL,     /* last line incomplete: the writer was killed */
    LOG_ISSUE_MISSING_LINES, /* seq gap */
    LOG_ISSUE_DUPLICATE_LINE,
    LOG_ISSUE_BAD_SEGMENT,    /* sealed file damaged, or its CRC, count or seq range wrong */
    LOG_ISSUE_UNREADABLE,     /* open/read failed, symlink, over a limit */
    LOG_ISSUE_BAD_REFERENCE,  /* a row uses a dictionary id that was never defined */
    LOG_ISSUE_COUNT_MISMATCH, /* rows differ from the shutdown record's counts */
    LOG_ISSUE_LOSS,           /* a loss record: gpufl itself recorded that something is missing */
    LOG_ISSUE_UNFINISHED      /* no shutdown record */
};

struct log_issue {
    enum log_issue_kind kind;
    char file[128]; /* name inside the session directory */
    uint64_t line;  /* from 1; 0 = whole file */
    uint64_t count; /* affected lines or records, 0: unknown */
    char text[512];
};

struct log_line {
    enum record_type type; /* RECORD_UNKNOWN: count and skip it */
    const char *type_name;
    enum channel channel;
    const char *file;
    uint64_t line;
    int64_t seq;                     /* -1: the line has none (v1) */
    const struct batch_view *batch;  /* batches only; valid during the call */
    const struct json_value *object; /* everything else; valid during the call */
};

/* Return false to stop reading. */
typedef bool (*log_line_fn)(void *user, const struct log_line *line);
typedef void (*log_issue_fn)(void *user, const struct log_issue *issue);

struct log_summary {
    uint64_t lines, bytes, files, damaged_lines, missing_lines, unknown_types;
    uint64_t rows[RECORD_TYPE_COUNT];
    uint64_t sealed_files, sealed_bytes;
    /* Removed from old segments to keep the session below its limit; a loss record counts them. */
    uint64_t trimmed_lines, trimmed_rows[RECORD_TYPE_COUNT];
    bool has_torn_tail, has_shutdown, is_synthetic_shutdown, is_live /* the writer holds the lock */;
    /* Only some record types were requested: rows is not complete; batch_rows counts the rows of all batches if
     * known. */
    bool is_part, has_batch_rows;
    uint64_t batch_rows;
};

/* Counts a delivered line, but not its bytes. */
void log_summary_add(struct log_summary *summary, const struct log_line *line);

/* Reads all channels: job_start first, then per channel in file and seq order: system, scope, device, sass (scopes
 * before kernels). Records written to all channels are delivered once. path: a session directory, or a directory of
 * sessions, of which the newest is read. GPUFL_E_NOT_FOUND: there is none. */
NODISCARD gpufl_status log_read(const char *path, log_line_fn on_line, log_issue_fn on_issue, void *user,
                                struct log_summary *summary, struct problem *problem);

#define SESSION_PATH_SIZE 512
/* Session directories below a base directory, newest first; ids are 36-character UUIDs. */
struct session_list {
    char (*paths)[SESSION_PATH_SIZE];
    size_t count;
};
NODISCARD gpufl_status session_list_find(struct session_list *list, const char *base, struct problem *problem);
void session_list_free(struct session_list *list);

/* The session that is read if the path is a directory of sessions. */
struct newest_session {
    char path[SESSION_PATH_SIZE];
    size_t count; /* sessions in the directory; 0: the path itself is a session, and `path` is "" */
};
NODISCARD gpufl_status session_find_newest(const char *path, struct newest_session *newest, struct problem *problem);

/* verify.c: everything log_read detects, plus dictionary references, row counts compared with the shutdown record, and
 * loss records. */
struct verify_report {
    struct log_summary summary;
    struct log_issue *issues; /* owned; at most 1000 are stored, issue_count counts all */
    uint64_t issue_count;
    uint64_t lost_records; /* sum of loss records with known counts */
    bool has_unknown_loss;
    bool is_complete; /* nothing is missing */
};
NODISCARD gpufl_status verify_session(const char *path, struct verify_report *report, struct problem *problem);
void verify_report_free(struct verify_report *report);

#endif
