/* SPDX-License-Identifier: Apache-2.0 */
/* Where the server stores sessions. One narrow interface, one engine per kind of database: a directory opens the
 * embedded SQLite engine; other engines have a URL and implement store_engine.h.
 *
 *   lines in   store_write_begin, store_write_line ..., store_write_commit (durable when it returns GPUFL_OK)
 *   lines out  store_read: struct log_line as log_read delivers them, so that src/analysis runs on them unchanged
 *   catalog    sessions, hosts, GPUs, keys, configurations, audit entries    (store_catalog.h)
 *   rollups    per kernel, scope path, metric and minute; timeline buckets   (store_rollup.h)
 *
 * The store itself derives the catalog entry of a session (application, host, state, counts, losses) from its lines: a
 * caller that writes lines has nothing else to update.
 *
 * Exactly once: a line with a seq counts once per (session, channel, seq), whichever window contains it; a batch
 * without seq in a write without a window id counts once per (session, record type, batch_id); and a whole window
 * counts once by its identity. When the same lines are delivered twice at the same time, one delivery is kept; the
 * other one's commit returns GPUFL_E_BUSY, and repeating it reports that the lines are stored.
 *
 * Threads: any number of threads may use a store; one write belongs to one thread at a time. Begin and write take no
 * longer than a look-up on disk; commit waits for the writer thread and its fsync. Memory is bounded by the options.
 * The store owns everything it passes to callbacks, valid during the call; callbacks may only read from the store.
 *
 * Status: GPUFL_E_LIMIT a size limit of the options; GPUFL_E_BUSY try again soon; GPUFL_E_IO disk full or unreadable
 * (nothing of the write is kept; it works again when there is space); GPUFL_E_DAMAGED the database is damaged;
 * GPUFL_E_VERSION it was written by a newer gpufl; GPUFL_E_NOT_FOUND no such session, key, configuration. */
#ifndef GPUFL_STORE_STORE_H
#define GPUFL_STORE_STORE_H

#include "logfile/reader.h"

struct store;       /* opaque */
struct store_write; /* opaque; owned by the store between begin and commit or abort */

enum { STORE_SESSION_ID_MAX = 128, STORE_WINDOW_ID_MAX = 128 };

struct store_options {
    bool is_read_only;        /* writing calls return GPUFL_E_PERMISSION; no background work */
    uint64_t bytes_max;       /* of the database; writes beyond return GPUFL_E_LIMIT. 0: limited by the disk */
    uint64_t write_bytes_max; /* memory of one write; 0: 64 MiB */
    uint64_t queue_bytes_max; /* memory of all writes waiting for their commit; 0: 256 MiB */
    unsigned readers_max;     /* database connections kept for readers; 0: 8 */
    bool no_background;       /* compaction and scope rollups run only in store_maintain: for tests and tools */
};

/* location: a directory (created if missing) or an engine's URL:
 * clickhouse://[user[:password]@]host:port[,host:port...]/database[?cluster=NAME]. One writing process per directory;
 * any number of processes may share a URL. */
NODISCARD gpufl_status store_open(struct store **out, const char *location, const struct store_options *options,
                                  struct problem *problem);
/* True when the URL contains a password: it must not be shown, and must not come from a command line. */
bool store_location_has_secret(const char *location);
/* Waits for commits in progress. The owners of open writes abort them before this. */
void store_close(struct store *store);

/* ---- writing ---- */

/* Identifies a delivery. window_id "": none; each line is deduplicated separately. */
struct store_identity {
    const char *session_id;
    const char *window_id; /* unique per session and channel: the agent's window id, or its first seq as text */
    enum channel channel;  /* CHANNEL_COUNT: several */
    uint32_t crc;          /* of the window as sent */
};
enum store_delivery {
    STORE_NEW,
    STORE_REPEATED, /* the window is stored already: acknowledge it; no write was begun (or nothing was added) */
    STORE_CONFLICT  /* the window is stored with another CRC; no write was begun */
};

NODISCARD gpufl_status store_write_begin(struct store *store, const struct store_identity *identity,
                                         struct store_write **out, enum store_delivery *delivery,
                                         struct problem *problem);
/* line: as log_line_decode fills it (channel set; batch or object). text: the line as sent, without LF; stored for
 * records, not needed for batches. *is_repeated (may be NULL): the line was stored already and adds nothing.
 * GPUFL_E_INVALID rejects lines of another session and leaves the write as it was. After any other failure the write
 * can only be aborted. */
NODISCARD gpufl_status store_write_line(struct store_write *write, const struct log_line *line, const char *text,
                                        size_t size, bool *is_repeated, struct problem *problem);
/* Names a write that was begun without a window id. Must precede the commit, which then detects a repeated delivery of
 * that name. Lines are still deduplicated separately. */
void store_write_name(struct store_write *write, const char *window_id, uint32_t crc);
struct store_written {
    enum store_delivery delivery; /* STORE_REPEATED, STORE_CONFLICT: another delivery of the window was faster */
    uint64_t lines, repeated_lines, rows;
    int64_t revision; /* of the session, after this write */
};
/* Ends the write, even if it fails. GPUFL_OK: on disk. */
NODISCARD gpufl_status store_write_commit(struct store_write *write, struct store_written *written,
                                          struct problem *problem);
void store_write_abort(struct store_write *write);

/* ---- reading ---- */

struct record_set {
    uint64_t bits[(RECORD_TYPE_COUNT + 63) / 64]; /* all zero: every type */
};
static inline void record_set_add(struct record_set *set, enum record_type type)
{
    set->bits[type / 64] |= UINT64_C(1) << (type % 64);
}
static inline bool record_set_has(const struct record_set *set, enum record_type type)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < sizeof set->bits / sizeof *set->bits; i++)
        any |= set->bits[i];
    return !any || (set->bits[type / 64] >> (type % 64) & 1);
}

struct store_range {
    const char *session_id;
    struct record_set types;
    /* Rows whose time (or time and duration) overlaps [from, to); both 0: all. Records that are not batches, and
     * batches without a time, are always delivered. */
    int64_t from_ns, to_ns;
    uint64_t columns; /* 1 << column of the catalogue: only these columns are present. 0: all. For a single type */
};
/* Delivers a consistent snapshot: job_start; then per channel (system, scope, device, sass) the records by type,
 * shutdown last; then the batches, scopes first. Each type comes in order of arrival, except that merged small
 * deliveries come together. Records of all channels come once. Batches have up to 64 K rows of many lines: batch_id 0,
 * seq -1; line->file is "", line->line 0. */
NODISCARD gpufl_status store_read(struct store *store, const struct store_range *range, log_line_fn on_line, void *user,
                                  struct problem *problem);

/* ---- maintenance ---- */

struct store_retention {
    /* Sessions whose last line arrived longer ago are deleted; 0: no limit. A session's own retention (store_catalog.h)
     * takes precedence. */
    int64_t age_ns;
    uint64_t bytes_max; /* then delete the oldest complete sessions until the rest fits; 0: no limit */
    int64_t now_ns;
};
struct store_retained {
    uint64_t sessions_deleted, bytes_deleted;
};
NODISCARD gpufl_status store_retain(struct store *store, const struct store_retention *policy,
                                    struct store_retained *result, struct problem *problem);
/* Runs compaction, scope rollups and the return of free pages, as the background thread does, until nothing is left to
 * do. */
NODISCARD gpufl_status store_maintain(struct store *store, struct problem *problem);
/* Makes a complete copy while writing continues; path must not exist. */
NODISCARD gpufl_status store_backup(struct store *store, const char *path, struct problem *problem);
/* Reads everything and checks structure, CRCs and counts; calls on_issue for each finding. */
typedef void (*store_issue_fn)(void *user, const char *text);
NODISCARD gpufl_status store_check(struct store *store, store_issue_fn on_issue, void *user, struct problem *problem);

struct store_stats {
    uint64_t bytes, free_bytes; /* of the database; free_bytes: inside it, reusable */
    uint64_t log_bytes;         /* write-ahead log */
    uint64_t sessions, segments, rows, segment_bytes;
    uint64_t small_segments; /* waiting for compaction */
    uint64_t commits, commit_groups, failed_commits, compactions;
    uint64_t queue_writes, queue_bytes; /* waiting for their commit */
    int64_t last_commit_ns;             /* wall clock; CELL_UNKNOWN: none since the start */
    int schema_version;
    const char *engine; /* "sqlite", "clickhouse" */
};
NODISCARD gpufl_status store_stats(struct store *store, struct store_stats *stats, struct problem *problem);
/* The status of the latest commit; GPUFL_OK before the first. Cheap: does not query the database. */
NODISCARD gpufl_status store_commit_state(struct store *store, struct problem *problem);

#endif
