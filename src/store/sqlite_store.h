/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded engine: one SQLite database in a directory. The writer thread makes all changes, many deliveries per
 * transaction (one fsync). Readers have their own connections and see the last commit. A background thread merges small
 * segments and computes scope sums. Private to the SQLite engine. */
#ifndef GPUFL_STORE_SQLITE_STORE_H
#define GPUFL_STORE_SQLITE_STORE_H

#include "store/segment_reader.h"
#include "store/sqlite_connection.h"
#include "store/store_engine.h"
#include "store/write_unit.h"

#include <pthread.h>
#include <sys/types.h>

enum { SCHEMA_VERSION = 5, TILE_SHIFTS = 64, MADE_LAYOUTS_MAX = 256 };

struct sqlite_store;

/* A change, run by the writer thread in a transaction. Any result other than GPUFL_OK undoes it. */
typedef gpufl_status (*change_fn)(struct sqlite_store *store, struct connection *connection, void *arg,
                                  struct problem *problem);
struct change {
    change_fn run;
    void *arg;
    uint64_t bytes;
    bool may_use_reserve;
    gpufl_status status;
    struct problem problem;
    bool is_done;
    pthread_cond_t done; /* signals the owner alone, not all waiting threads */
    struct change *next;
};

/* Disk space reserved for deletions. */
enum reserve_state {
    RESERVE_NONE, /* not supported by the file system, or a limit forbids it */
    RESERVE_HELD,
    RESERVE_SPENT /* the disk was full: only deletions are written until the reserve is held again */
};

struct made_layout {
    enum record_type type;
    uint64_t columns;
    int64_t layout, type_id;
};

struct sqlite_store {
    struct store base;
    struct store_options options;
    char path[4096]; /* of the database */
    int lock_fd;
    struct connection writer;
    off_t reserve_bytes;
    enum reserve_state reserve; /* writer thread only */
    int64_t next_position;      /* of segments; writer thread only */
    struct made_layout
        made_layouts[MADE_LAYOUTS_MAX]; /* writer thread only: found or made since the last undone change */
    unsigned made_layout_count;

    pthread_mutex_t mutex; /* guards everything below */
    pthread_cond_t changed;
    struct change *first, *last; /* queue of the writer thread */
    uint64_t queue_count, queue_bytes;
    bool is_closing;        /* stops the background thread */
    bool is_writer_closing; /* then stops the writer, once its queue is empty */
    bool has_writer, has_background;
    pthread_t writer_thread, background_thread;
    pthread_cond_t background_wake;
    bool has_background_work;
    struct connection *idle_readers;
    unsigned reader_count;
    struct layout **layouts; /* owned; those read so far, by number; a layout never changes once it is here */
    size_t layout_count, layout_capacity;
    uint64_t commits, commit_groups, failed_commits, compactions;
    int64_t last_commit_ns;
    gpufl_status commit_status; /* of the latest commit */
    struct problem commit_problem;
};

static inline struct sqlite_store *sqlite_store_of(struct store *store)
{
    return (struct sqlite_store *)store; /* the first member */
}

/* sqlite_schema.c */
NODISCARD gpufl_status schema_version(struct connection *connection, int *version, struct problem *problem);
NODISCARD gpufl_status schema_prepare(struct connection *connection, struct problem *problem);

/* Passes a change to the writer thread and waits until it is on disk. */
NODISCARD gpufl_status store_change(struct sqlite_store *store, change_fn run, void *arg, uint64_t bytes,
                                    struct problem *problem);
/* The same for changes that free space, and for their audit entries: these are also written when the disk is full. */
NODISCARD gpufl_status store_change_reserved(struct sqlite_store *store, change_fn run, void *arg,
                                             struct problem *problem);

/* sqlite_reserve.c, writer thread only. Chooses the sizes of the reserve and of the write-ahead log for this disk. */
void reserve_plan(struct sqlite_store *store);
/* Holds the reserve if there is enough space. */
void reserve_take(struct sqlite_store *store);
/* Releases the reserve; false: none is held. */
bool reserve_spend(struct sqlite_store *store);
/* Returns free pages to the file system until the reserve can be held again. */
void reserve_restore(struct sqlite_store *store);
/* Takes a reader's connection, inside a read transaction, and returns it. */
NODISCARD gpufl_status reader_begin(struct sqlite_store *store, struct connection **out, struct problem *problem);
void reader_end(struct sqlite_store *store, struct connection *reader);
/* Finds the session's number; GPUFL_E_NOT_FOUND. */
NODISCARD gpufl_status session_find(struct connection *connection, const char *session_id, int64_t *session,
                                    struct problem *problem);
NODISCARD gpufl_status session_drop(struct connection *connection, int64_t session, struct problem *problem);

/* sqlite_layout.c. The store owns the layout until it closes. */
NODISCARD gpufl_status layout_get(struct sqlite_store *store, struct connection *reader, int64_t layout,
                                  const struct layout **out, struct problem *problem);
/* Writer thread only: finds or makes a layout. columns: 1 << column; 0 for records that are not batches. */
NODISCARD gpufl_status layout_make(struct sqlite_store *store, struct connection *connection, enum record_type type,
                                   uint64_t columns, int64_t *layout, int64_t *type_id, struct problem *problem);

/* sqlite_read.c: lists the segments of a session in delivery order. */
NODISCARD gpufl_status segments_list(struct sqlite_store *store, struct connection *reader, int64_t session,
                                     const struct record_set *types, struct stored_segments *out,
                                     struct problem *problem);
/* Points at the segment's bytes until the next step of the underlying statement. */
NODISCARD gpufl_status segment_fetch(struct connection *reader, const struct stored_segment *segment, const void **data,
                                     size_t *size, struct problem *problem);
struct segment_source segment_source_of(struct connection *reader);
/* Decodes a batch's rows. */
NODISCARD gpufl_status segment_rows(struct connection *reader, struct column_coder *coder,
                                    const struct stored_segment *segment, uint64_t wanted, struct row_buffer *rows,
                                    struct problem *problem);

/* sqlite_write.c: inserts segments of a write or of a compaction; adds their size to *bytes. */
NODISCARD gpufl_status segment_insert(struct sqlite_store *store, struct connection *connection, int64_t session,
                                      int64_t position, const struct segment *segment, int64_t *bytes,
                                      struct problem *problem);

/* The engine's functions, by file. */
gpufl_status sqlite_write_begin(struct store *store, const struct store_identity *identity, struct store_write **out,
                                enum store_delivery *delivery, struct problem *problem);
gpufl_status sqlite_write_line(struct store_write *write, const struct log_line *line, const char *text, size_t size,
                               bool *is_repeated, struct problem *problem);
gpufl_status sqlite_write_commit(struct store_write *write, struct store_written *written, struct problem *problem);
void sqlite_write_name(struct store_write *write, const char *window_id, uint32_t crc);
void sqlite_write_abort(struct store_write *write);
gpufl_status sqlite_write_sums(struct sqlite_store *store, struct connection *connection, int64_t session,
                               const struct write_unit *unit, int64_t now_ns,
                               struct problem *problem); /* sqlite_sums.c */

gpufl_status sqlite_read(struct store *store, const struct store_range *range, log_line_fn on_line, void *user,
                         struct problem *problem);

gpufl_status sqlite_sessions(struct store *store, const struct store_session_filter *filter,
                             store_session_fn on_session, void *user, char next[STORE_CURSOR_MAX],
                             struct problem *problem);
gpufl_status sqlite_session(struct store *store, const char *session_id, store_session_fn on_session, void *user,
                            struct problem *problem);
gpufl_status sqlite_session_delete(struct store *store, const char *session_id, struct problem *problem);
gpufl_status sqlite_session_tag(struct store *store, const char *session_id, const char *const *tags, size_t tag_count,
                                struct problem *problem);
gpufl_status sqlite_session_keep(struct store *store, const char *session_id, int64_t retention_ns,
                                 struct problem *problem);
gpufl_status sqlite_session_end(struct store *store, const char *session_id, struct problem *problem);
gpufl_status sqlite_gpus(struct store *store, const char *host, store_gpu_fn on_gpu, void *user,
                         struct problem *problem);

gpufl_status sqlite_key_put(struct store *store, struct store_key *key, struct problem *problem);
gpufl_status sqlite_key_find(struct store *store, const uint8_t hash[STORE_KEY_HASH_SIZE], struct store_key *key,
                             struct problem *problem);
gpufl_status sqlite_key_use(struct store *store, const uint8_t hash[STORE_KEY_HASH_SIZE], int64_t used_ns,
                            struct problem *problem);
gpufl_status sqlite_keys(struct store *store, store_key_fn on_key, void *user, struct problem *problem);
gpufl_status sqlite_config_put(struct store *store, const char *name, const char *text, size_t size,
                               int64_t expected_revision, int64_t *revision, struct problem *problem);
gpufl_status sqlite_configs(struct store *store, const char *name, store_config_fn on_config, void *user,
                            struct problem *problem);
gpufl_status sqlite_config_delete(struct store *store, const char *name, int64_t expected_revision,
                                  struct problem *problem);
gpufl_status sqlite_audit_add(struct store *store, const struct store_audit *entry, struct problem *problem);
gpufl_status sqlite_audits(struct store *store, int64_t before_id, unsigned limit, store_audit_fn on_entry, void *user,
                           struct problem *problem);

gpufl_status sqlite_kernels(struct store *store, const char *session_id, store_kernel_fn on_kernel, void *user,
                            struct problem *problem);
gpufl_status sqlite_kernel_search(struct store *store, const char *text, unsigned limit, store_kernel_fn on_kernel,
                                  void *user, struct problem *problem);
gpufl_status sqlite_scopes(struct store *store, const char *session_id, store_scope_fn on_scope, void *user,
                           struct problem *problem);
gpufl_status sqlite_metrics(struct store *store, const char *host, const char *gpu_uuid, int64_t from_ns, int64_t to_ns,
                            store_metric_fn on_metric, void *user, struct problem *problem);
gpufl_status sqlite_timeline(struct store *store, const char *session_id, int64_t from_ns, int64_t to_ns,
                             unsigned shift, struct timeline *timeline, struct problem *problem);

gpufl_status sqlite_retain(struct store *store, const struct store_retention *policy, struct store_retained *result,
                           struct problem *problem);
gpufl_status sqlite_maintain(struct store *store, struct problem *problem);
gpufl_status sqlite_backup(struct store *store, const char *path, struct problem *problem);
gpufl_status sqlite_check(struct store *store, store_issue_fn on_issue, void *user, struct problem *problem);
gpufl_status sqlite_stats(struct store *store, struct store_stats *stats, struct problem *problem);
gpufl_status sqlite_commit_state(struct store *store, struct problem *problem);

/* False: damaged. */
bool histogram_decode(const void *data, size_t size, uint64_t bins[STORE_HISTOGRAM_BINS]);
/* sqlite_scopes.c: computes the sums of the next complete session after *after whose stored sums are not of its latest
 * revision, and advances *after; *is_done when there is none. */
NODISCARD gpufl_status scopes_refresh(struct sqlite_store *store, int64_t *after, bool *is_done,
                                      struct problem *problem);
/* sqlite_compaction.c: a group of small segments that may be merged. Complete sessions are left alone until settle_ns
 * after their last line. */
struct merge_candidate {
    int64_t session, type;
    enum channel channel;
    int64_t rows_below; /* merge only segments with fewer rows */
    int64_t count;      /* number of its small segments */
};
struct compaction {
    struct column_coder coder;
    int64_t settle_ns;
    struct merge_candidate *candidates; /* owned; found by the last search */
    size_t candidate_count, candidate_next;
    size_t merged_count;             /* of these */
    int64_t find_cpu_ns;             /* CPU time of the search */
    struct merge_candidate *skipped; /* owned, sorted; merging them gains nothing. count INT64_MAX: cannot be read */
    size_t skipped_count;
};
NODISCARD gpufl_status compaction_open(struct compaction *compaction, int64_t settle_ns, struct problem *problem);
void compaction_close(struct compaction *compaction);
NODISCARD gpufl_status compaction_find(struct sqlite_store *store, struct compaction *compaction,
                                       struct problem *problem);
/* Merges the next candidates. */
NODISCARD gpufl_status compaction_step(struct sqlite_store *store, struct compaction *compaction,
                                       struct problem *problem);
/* sqlite_upkeep.c: returns some free pages to the file system; *is_done when at most kept_percent of the pages are
 * free. */
NODISCARD gpufl_status store_give_back(struct sqlite_store *store, unsigned kept_percent, bool *is_done,
                                       struct problem *problem);
void *background_main(void *store);
/* Wakes the background thread. */
void background_wake(struct sqlite_store *store);

#endif
