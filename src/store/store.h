/* SPDX-License-Identifier: Apache-2.0 */
/* Where the server keeps sessions. One narrow interface, one engine per kind of database: a directory opens the
 * embedded SQLite engine; other engines answer to a URL and implement store_engine.h.
 *
 *   lines in   store_write_begin, store_write_line ..., store_write_commit (durable when it returns GPUFL_OK)
 *   lines out  store_read: struct log_line as log_read delivers them, so that src/analysis runs on them unchanged
 *   catalog    sessions, hosts, GPUs, keys, configurations, audit entries    (store_catalog.h)
 *   rollups    per kernel, scope path, metric and minute; timeline buckets   (store_rollup.h)
 *
 * What the catalog knows of a session (application, host, state, counts, losses) is taken from the lines by the store
 * itself: whoever writes lines has no other upkeep to do.
 *
 * Exactly once: a line that carries a seq counts once per (session, channel, seq), whatever window brings it; a batch
 * without seq in a write without window identity counts once per (session, record type, batch_id); and a whole window
 * counts once by its identity. Two deliveries of the same lines at the same moment: one is kept, the other's commit
 * answers GPUFL_E_BUSY and finds them already there when it is sent again.
 *
 * Threads: a store is used from any number of threads; one write belongs to one thread at a time. Begin and write never
 * touch the disk for longer than a look-up; commit waits for the writer thread and its fsync. Memory: bounded by the
 * options. The store owns everything it hands to callbacks, valid during the call, and callbacks must not call back
 * into the store except to read.
 *
 * Status: GPUFL_E_LIMIT a size limit of the options; GPUFL_E_BUSY try again soon; GPUFL_E_IO disk full or unreadable
 * (nothing of the write is kept; it works again when there is room); GPUFL_E_DAMAGED the database is damaged;
 * GPUFL_E_VERSION it was written by a newer gpufl; GPUFL_E_NOT_FOUND no such session, key, configuration. */
#ifndef GPUFL_STORE_STORE_H
#define GPUFL_STORE_STORE_H

#include "logfile/reader.h"

struct store;       /* opaque */
struct store_write; /* opaque; owned by the store between begin and commit or abort */

enum { STORE_SESSION_ID_MAX = 128, STORE_WINDOW_ID_MAX = 128 };

struct store_options {
    bool is_read_only;        /* writing calls answer GPUFL_E_PERMISSION; no background work */
    uint64_t bytes_max;       /* of the database; writes beyond answer GPUFL_E_LIMIT. 0: as the disk allows */
    uint64_t write_bytes_max; /* memory of one write; 0: 64 MiB */
    uint64_t queue_bytes_max; /* memory of all writes that wait for their commit; 0: 256 MiB */
    unsigned readers_max;     /* database connections kept for readers; 0: 8 */
    bool no_background;       /* compaction and scope rollups only by store_maintain: for tests and tools */
};

/* location: a directory (made when missing) or an engine's URL: clickhouse://[user[:password]@]host:port[,host:port...]/
 * database[?cluster=NAME]. One writing process per directory; any number of them share a URL. */
NODISCARD gpufl_status store_open(struct store **out, const char *location, const struct store_options *options,
                                  struct problem *problem);
/* A password stands in it: it must not be shown, nor have come from a command line. */
bool store_location_has_secret(const char *location);
/* Waits for commits under way. Writes that are still open are aborted by their owner before this. */
void store_close(struct store *store);

/* ---- writing ---- */

/* What a delivery is. window_id "" : none, each line is told apart by itself. */
struct store_identity {
    const char *session_id;
    const char *window_id; /* unique per session and channel: the agent's window id, or its first seq as text */
    enum channel channel;  /* CHANNEL_COUNT: mixed */
    uint32_t crc;          /* of the window as sent */
};
enum store_delivery {
    STORE_NEW,
    STORE_REPEATED, /* the window is there already: acknowledge it; no write was begun (or: nothing was added) */
    STORE_CONFLICT  /* the identity is there with another CRC; no write was begun */
};

NODISCARD gpufl_status store_write_begin(struct store *store, const struct store_identity *identity,
                                         struct store_write **out, enum store_delivery *delivery,
                                         struct problem *problem);
/* line: as log_line_decode fills it (channel set; batch or object). text: the line as sent, without LF; kept for
 * records, not needed for batches. *is_repeated (may be NULL): the line was there already and adds nothing. Lines of
 * another session than the identity's are refused with GPUFL_E_INVALID. After any failure the write can only be
 * aborted, except after GPUFL_E_INVALID, which leaves it as it was. */
NODISCARD gpufl_status store_write_line(struct store_write *write, const struct log_line *line, const char *text,
                                        size_t size, bool *is_repeated, struct problem *problem);
/* Names a write that was begun without a window id, at the latest before its commit, which then finds a delivery of the
 * same name. Lines are told apart by themselves all the same. */
void store_write_name(struct store_write *write, const char *window_id, uint32_t crc);
struct store_written {
    enum store_delivery delivery; /* STORE_REPEATED, STORE_CONFLICT: another delivery of the window was faster */
    uint64_t lines, repeated_lines, rows;
    int64_t revision; /* of the session, after this write */
};
/* Ends the write, also when it fails. GPUFL_OK: on disk. */
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
    /* Rows whose time (or time and duration) meets [from, to); both 0: all. Records that are no batches, and batches
     * without a time, always come. */
    int64_t from_ns, to_ns;
    uint64_t columns; /* 1 << column of the catalogue: other columns are not present. 0: all. For a single type */
};
/* A consistent picture: job_start, then per channel (system, scope, device, sass) the records by type, shutdown last,
 * and then the batches, scopes first; each type in the order of arrival, except that small deliveries which were melted
 * come together. Records of all channels come once. Batches have up to 64 K rows of many lines: batch_id 0, seq -1;
 * line->file is "", line->line 0. */
NODISCARD gpufl_status store_read(struct store *store, const struct store_range *range, log_line_fn on_line, void *user,
                                  struct problem *problem);

/* ---- maintenance ---- */

struct store_retention {
    int64_t age_ns;     /* sessions whose last line came longer ago are deleted; 0: no limit. A session's own
                         * retention (store_catalog.h) takes precedence */
    uint64_t bytes_max; /* then the oldest complete ones until the sessions' bytes fit; 0: no limit */
    int64_t now_ns;
};
struct store_retained {
    uint64_t sessions_deleted, bytes_deleted;
};
NODISCARD gpufl_status store_retain(struct store *store, const struct store_retention *policy,
                                    struct store_retained *result, struct problem *problem);
/* Compaction, scope rollups and giving free pages back, as the background does, until there is nothing left to do. */
NODISCARD gpufl_status store_maintain(struct store *store, struct problem *problem);
/* A complete copy, made while writing goes on; path must not exist. */
NODISCARD gpufl_status store_backup(struct store *store, const char *path, struct problem *problem);
/* Reads everything and checks structure, CRCs and counts; on_issue is called per finding. */
typedef void (*store_issue_fn)(void *user, const char *text);
NODISCARD gpufl_status store_check(struct store *store, store_issue_fn on_issue, void *user, struct problem *problem);

struct store_stats {
    uint64_t bytes, free_bytes; /* of the database; free: inside it, to be used again */
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
/* How the latest commit ended; GPUFL_OK before the first. Costs nothing: the database is not asked. */
NODISCARD gpufl_status store_commit_state(struct store *store, struct problem *problem);

#endif
