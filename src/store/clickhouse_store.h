/* SPDX-License-Identifier: Apache-2.0 */
/* The engine for a fleet: all data is in ClickHouse and none on this machine, so any number of servers on one cluster
 * act as one. Segments and sums are encoded exactly as in the SQLite engine; ClickHouse stores, finds and adds them.
 *
 * Exactly once, without transactions: a write inserts a claim (session, window, line numbers) and its data, then looks
 * for conflicting claims, then inserts a commit row or a void row. Rows count only if the commit row of their write
 * exists, so a crash at any moment leaves nothing visible. Of two conflicting claims at least one is seen by the other,
 * because each writer looks after it has inserted its claim: the claim with the larger id withdraws, the other one
 * waits for that. The claim of a server that died counts for CLAIM_LIFE_S; a running server commits within half of that
 * time or not at all.
 *
 * Private to the ClickHouse engine. */
#ifndef GPUFL_STORE_CLICKHOUSE_STORE_H
#define GPUFL_STORE_CLICKHOUSE_STORE_H

#include "store/clickhouse_client.h"
#include "store/segment_reader.h"
#include "store/store_engine.h"
#include "store/write_unit.h"

#include <pthread.h>

enum { CH_SCHEMA_VERSION = 1, CLAIM_LIFE_S = 30 };

/* write.state */
enum ch_write_state { WRITE_CLAIMED = 0, WRITE_COMMITTED = 1, WRITE_VOID = 2 };
/* change.what */
enum ch_change { CHANGE_TAGS = 1, CHANGE_KEEP = 2, CHANGE_END = 3, CHANGE_DELETE = 4 };

/* What is known of one session's machine: host name, and GPUs by device number. */
struct ch_machine {
    char host[FACT_TEXT_MAX];
    struct gpu_fact gpus[FACT_GPUS_MAX];
    unsigned gpu_count;
};

struct ch_write {
    struct store_write base;
    struct write_unit unit;
    struct store_written written;
    struct ch_machine machine; /* before this write */
    uint64_t write_id;
    uint32_t generation;
    int64_t begun_s;     /* ClickHouse's clock */
    int64_t received_ns; /* the server's clock; no two writes of a server have the same */
    int64_t bytes, segment_rows;
    uint32_t kernel_rows;
    enum ch_write_state verdict;
    gpufl_status status;
    struct problem problem;
    bool is_done;
    struct ch_write *next;
};

struct ch_layout {
    char *key; /* type and columns */
    struct layout *layout;
};

struct ch_store {
    struct store base;
    struct store_options options;
    struct ch_client *client;
    char database[CH_NAME_MAX + 1], cluster[CH_NAME_MAX + 1];
    _Atomic int64_t leftovers_ns; /* time of the last search for rows of deleted sessions */

    pthread_mutex_t mutex; /* guards everything below */
    pthread_cond_t changed, done;
    struct ch_write *first, *last; /* queue of the writer thread */
    uint64_t queue_count, queue_bytes;
    bool is_closing, has_writer;
    pthread_t writer_thread;
    struct ch_layout *layouts; /* a layout never changes once it is here */
    size_t layout_count, layout_capacity;
    int64_t last_ns, last_us;
    uint64_t commits, commit_groups, failed_commits;
    int64_t last_commit_ns;
    gpufl_status commit_status; /* of the latest commit */
    struct problem commit_problem;
};

static inline struct ch_store *ch_store_of(struct store *store)
{
    return (struct ch_store *)store; /* the first member */
}
static inline struct ch_write *ch_write_of(struct store_write *write)
{
    return (struct ch_write *)write; /* the first member */
}

/* The current time; later than every value returned before. */
int64_t ch_unique_ns(struct ch_store *store);
/* The same in microseconds, for numbers that people and JSON handle: ids of keys and audit entries. */
int64_t ch_unique_us(struct ch_store *store);
/* NULL with a problem: no memory. */
const struct layout *ch_layout_get(struct ch_store *store, const char *type_name, const char *columns,
                                   struct problem *problem);
/* GPUFL_E_DAMAGED when an answer did not have the requested form. */
gpufl_status ch_rows_end(const struct ch_rows *rows, struct problem *problem);
/* The generation of the session that counts: it grows when the session is deleted. GPUFL_E_NOT_FOUND: no writes. */
NODISCARD gpufl_status ch_session_find(struct ch_store *store, const char *session_id, uint32_t *generation,
                                       struct problem *problem);
/* Appends " WHERE session_id=... AND state=1 AND generation=...": the writes of a session that count. */
void ch_session_where(struct bytes *sql, const char *session_id, uint32_t generation);
/* Deletes rows that are no longer needed; ClickHouse does it in the background. is_shared: the table is on every
 * host. */
void ch_forget(struct ch_store *store, const char *table, bool is_shared, const char *condition);

/* clickhouse_schema.c */
NODISCARD gpufl_status ch_schema_prepare(struct ch_store *store, struct problem *problem);
NODISCARD gpufl_status ch_schema_version(struct ch_store *store, int *version, struct problem *problem);

void *ch_writer_main(void *store); /* clickhouse_write.c */
/* clickhouse_commit.c: commits all writes of the list together; sets the status of each. */
void ch_group_commit(struct ch_store *store, struct ch_write *first);
/* clickhouse_ranges.c: encodes the line numbers of a write, and decodes them (added to sets). */
void ch_ranges_encode(const struct sequence_set added[SEQUENCE_KINDS], struct bytes *out);
NODISCARD gpufl_status ch_ranges_add(struct sequence_set sets[SEQUENCE_KINDS], const void *data, size_t size);
/* True when a number is in both; also true for damaged bytes. */
bool ch_ranges_meet(const struct sequence_set added[SEQUENCE_KINDS], const void *data, size_t size);
/* clickhouse_sums.c: rows of segments, kernels, metrics and GPUs of the writes, one batch each. */
enum { DATA_BATCHES = 4 };
void ch_data_make(struct ch_write *first, struct ch_batch batches[DATA_BATCHES]);
void ch_machine_learn(struct ch_machine *machine, const char *host, size_t host_size);
void ch_machine_learn_gpu(struct ch_machine *machine, int64_t device_id, const char *uuid, size_t uuid_size);

/* The engine's functions, by file. */
gpufl_status ch_write_begin(struct store *store, const struct store_identity *identity, struct store_write **out,
                            enum store_delivery *delivery, struct problem *problem);
gpufl_status ch_write_line(struct store_write *write, const struct log_line *line, const char *text, size_t size,
                           bool *is_repeated, struct problem *problem);
void ch_write_name(struct store_write *write, const char *window_id, uint32_t crc);
gpufl_status ch_write_commit(struct store_write *write, struct store_written *written, struct problem *problem);
void ch_write_abort(struct store_write *write);

gpufl_status ch_read(struct store *store, const struct store_range *range, log_line_fn on_line, void *user,
                     struct problem *problem);
gpufl_status ch_timeline(struct store *store, const char *session_id, int64_t from_ns, int64_t to_ns, unsigned shift,
                         struct timeline *timeline, struct problem *problem);
gpufl_status ch_check(struct store *store, store_issue_fn on_issue, void *user, struct problem *problem);

gpufl_status ch_sessions(struct store *store, const struct store_session_filter *filter, store_session_fn on_session,
                         void *user, char next[STORE_CURSOR_MAX], struct problem *problem);
gpufl_status ch_session(struct store *store, const char *session_id, store_session_fn on_session, void *user,
                        struct problem *problem);
/* The catalog of sessions as a subquery in parentheses; where restricts the rows of the underlying tables. */
void ch_session_table(struct bytes *sql, const char *where);
gpufl_status ch_gpus(struct store *store, const char *host, store_gpu_fn on_gpu, void *user, struct problem *problem);

gpufl_status ch_session_delete(struct store *store, const char *session_id, struct problem *problem);
gpufl_status ch_session_tag(struct store *store, const char *session_id, const char *const *tags, size_t tag_count,
                            struct problem *problem);
gpufl_status ch_session_keep(struct store *store, const char *session_id, int64_t retention_ns,
                             struct problem *problem);
gpufl_status ch_session_end(struct store *store, const char *session_id, struct problem *problem);
gpufl_status ch_retain(struct store *store, const struct store_retention *policy, struct store_retained *result,
                       struct problem *problem);
gpufl_status ch_maintain(struct store *store, struct problem *problem);
gpufl_status ch_backup(struct store *store, const char *path, struct problem *problem);
gpufl_status ch_stats(struct store *store, struct store_stats *stats, struct problem *problem);
gpufl_status ch_commit_state(struct store *store, struct problem *problem);

gpufl_status ch_key_put(struct store *store, struct store_key *key, struct problem *problem);
gpufl_status ch_key_find(struct store *store, const uint8_t hash[STORE_KEY_HASH_SIZE], struct store_key *key,
                         struct problem *problem);
gpufl_status ch_key_use(struct store *store, const uint8_t hash[STORE_KEY_HASH_SIZE], int64_t used_ns,
                        struct problem *problem);
gpufl_status ch_keys(struct store *store, store_key_fn on_key, void *user, struct problem *problem);
gpufl_status ch_config_put(struct store *store, const char *name, const char *text, size_t size,
                           int64_t expected_revision, int64_t *revision, struct problem *problem);
gpufl_status ch_configs(struct store *store, const char *name, store_config_fn on_config, void *user,
                        struct problem *problem);
gpufl_status ch_config_delete(struct store *store, const char *name, int64_t expected_revision,
                              struct problem *problem);
gpufl_status ch_audit_add(struct store *store, const struct store_audit *entry, struct problem *problem);
gpufl_status ch_audits(struct store *store, int64_t before_id, unsigned limit, store_audit_fn on_entry, void *user,
                       struct problem *problem);

gpufl_status ch_kernels(struct store *store, const char *session_id, store_kernel_fn on_kernel, void *user,
                        struct problem *problem);
gpufl_status ch_kernel_search(struct store *store, const char *text, unsigned limit, store_kernel_fn on_kernel,
                              void *user, struct problem *problem);
gpufl_status ch_scopes(struct store *store, const char *session_id, store_scope_fn on_scope, void *user,
                       struct problem *problem);
gpufl_status ch_metrics(struct store *store, const char *host, const char *gpu_uuid, int64_t from_ns, int64_t to_ns,
                        store_metric_fn on_metric, void *user, struct problem *problem);

#endif
