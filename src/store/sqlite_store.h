/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded engine: one SQLite database in a directory. One thread of its own makes all changes, many deliveries in
 * one transaction (one fsync); readers have their own connections and see the last commit; a background thread melts
 * small segments together and makes scope sums. Private to the SQLite engine. */
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

/* A change, run by the writer thread inside a transaction. GPUFL_OK keeps what it did, anything else undoes it. */
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
    pthread_cond_t done; /* its owner waits: one wake-up for each, not all for all */
    struct change *next;
};

/* Room on the disk that is kept for deletions. */
enum reserve_state {
    RESERVE_NONE, /* the file system, or a limit, allows none */
    RESERVE_HELD,
    RESERVE_SPENT /* the disk was full: only deletions are made until it can be held again */
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
    enum reserve_state reserve;                        /* the writer's */
    int64_t next_position;                             /* of segments; the writer's */
    struct made_layout made_layouts[MADE_LAYOUTS_MAX]; /* the writer's: found or made since the last undone change */
    unsigned made_layout_count;

    pthread_mutex_t mutex; /* everything below */
    pthread_cond_t changed;
    struct change *first, *last; /* waiting for the writer */
    uint64_t queue_count, queue_bytes;
    bool is_closing;        /* the background thread ends */
    bool is_writer_closing; /* and then, when nothing is left to write, the writer */
    bool has_writer, has_background;
    pthread_t writer_thread, background_thread;
    pthread_cond_t background_wake;
    bool has_background_work;
    struct connection *idle_readers;
    unsigned reader_count;
    struct layout **layouts; /* owned; read so far, by number; never changed once in */
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

/* Hands a change to the writer thread and waits until it is on disk. */
NODISCARD gpufl_status store_change(struct sqlite_store *store, change_fn run, void *arg, uint64_t bytes,
                                    struct problem *problem);
/* The same for what gives room back, and for the record of it: it is also made on a full disk. */
NODISCARD gpufl_status store_change_reserved(struct sqlite_store *store, change_fn run, void *arg,
                                             struct problem *problem);

/* sqlite_reserve.c, the writer's. How large the reserve is to be on this disk, and how large the log of changes may be. */
void reserve_plan(struct sqlite_store *store);
/* Holds the reserve if there is room for it. */
void reserve_take(struct sqlite_store *store);
/* Gives the reserve up; false: there is none. */
bool reserve_spend(struct sqlite_store *store);
/* Gives free pages back to the disk until the reserve can be held again. */
void reserve_restore(struct sqlite_store *store);
/* A reader's connection inside a read transaction, and back. */
NODISCARD gpufl_status reader_begin(struct sqlite_store *store, struct connection **out, struct problem *problem);
void reader_end(struct sqlite_store *store, struct connection *reader);
/* The session's number, GPUFL_E_NOT_FOUND. */
NODISCARD gpufl_status session_find(struct connection *connection, const char *session_id, int64_t *session,
                                    struct problem *problem);
NODISCARD gpufl_status session_drop(struct connection *connection, int64_t session, struct problem *problem);

/* sqlite_layout.c. The layout is the store's, until the store closes. */
NODISCARD gpufl_status layout_get(struct sqlite_store *store, struct connection *reader, int64_t layout,
                                  const struct layout **out, struct problem *problem);
/* The writer's: found or made. columns: 1 << column; 0 for records that are no batches. */
NODISCARD gpufl_status layout_make(struct sqlite_store *store, struct connection *connection, enum record_type type,
                                   uint64_t columns, int64_t *layout, int64_t *type_id, struct problem *problem);

/* sqlite_read.c: the segments of a session, in the order in which they are delivered. */
NODISCARD gpufl_status segments_list(struct sqlite_store *store, struct connection *reader, int64_t session,
                                     const struct record_set *types, struct stored_segments *out,
                                     struct problem *problem);
/* Points at the segment's bytes until the next step of the statement behind it. */
NODISCARD gpufl_status segment_fetch(struct connection *reader, const struct stored_segment *segment, const void **data,
                                     size_t *size, struct problem *problem);
struct segment_source segment_source_of(struct connection *reader);
/* A batch's rows. */
NODISCARD gpufl_status segment_rows(struct connection *reader, struct column_coder *coder,
                                    const struct stored_segment *segment, uint64_t wanted, struct row_buffer *rows,
                                    struct problem *problem);

/* sqlite_write.c: segments of a write or of a compaction into the tables; *bytes grows by what they take. */
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
/* sqlite_scopes.c: sums of the next complete session behind *after that has none of its latest revision; *after moves
 * on to it; *is_done when there is none. */
NODISCARD gpufl_status scopes_refresh(struct sqlite_store *store, int64_t *after, bool *is_done,
                                      struct problem *problem);
/* sqlite_compaction.c: where small segments wait to be melted. Complete sessions are left alone until settle_ns after
 * their last line. */
struct melting_place {
    int64_t session, type;
    enum channel channel;
    int64_t rows_below; /* only segments with fewer rows */
    int64_t count;      /* of its small segments */
};
struct compaction {
    struct column_coder coder;
    int64_t settle_ns;
    struct melting_place *places; /* owned; what was found */
    size_t place_count, place_next;
    size_t melted_count;          /* of these */
    int64_t find_cpu_ns;          /* what finding them took */
    struct melting_place *rested; /* owned, sorted; nothing was gained there. INT64_MAX as count: cannot be read */
    size_t rested_count;
};
NODISCARD gpufl_status compaction_open(struct compaction *compaction, int64_t settle_ns, struct problem *problem);
void compaction_close(struct compaction *compaction);
NODISCARD gpufl_status compaction_find(struct sqlite_store *store, struct compaction *compaction,
                                       struct problem *problem);
/* Melts at the next ones of the places. */
NODISCARD gpufl_status compaction_step(struct sqlite_store *store, struct compaction *compaction,
                                       struct problem *problem);
/* sqlite_upkeep.c: some free pages back to the file system; *is_done when no more than that share is free. */
NODISCARD gpufl_status store_give_back(struct sqlite_store *store, unsigned kept_percent, bool *is_done,
                                       struct problem *problem);
void *background_main(void *store);
/* There is something to do for later. */
void background_wake(struct sqlite_store *store);

#endif
