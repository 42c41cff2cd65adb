/* SPDX-License-Identifier: Apache-2.0 */
/* The store's catalog: sessions, hosts and GPUs, API keys, named configurations, the audit log. Unknown values are ""
 * or CELL_UNKNOWN. Strings passed to callbacks are valid during the call. Callbacks return false to stop. */
#ifndef GPUFL_STORE_STORE_CATALOG_H
#define GPUFL_STORE_STORE_CATALOG_H

#include "store/store.h"

/* ---- sessions ---- */

enum store_session_state { STORE_SESSION_LIVE, STORE_SESSION_COMPLETE, STORE_SESSION_CRASHED };
#define STORE_KEEP_FOREVER INT64_MAX

struct store_gpu_ref {
    const char *uuid, *name;
    int64_t device_id;
};

struct store_session {
    const char *session_id, *app, *host, *kind, *engine; /* engine as in the log: nvidia.trace */
    enum store_session_state state;
    int64_t start_ns, end_ns;         /* job_start (else the earliest time seen) and the latest time seen */
    int64_t received_ns, created_ns;  /* server's clock: last and first delivery */
    int64_t kernels, kernel_ns;       /* kernel_ns: sum of durations; overlapping kernels each count */
    int64_t rows, lines, lost, bytes; /* bytes: in the store */
    int64_t expected_rows;            /* according to the shutdown record; CELL_UNKNOWN: it has no count */
    bool has_unknown_loss;            /* more than `lost` is missing, by an unknown amount */
    int64_t retention_ns;             /* CELL_UNKNOWN: the server's setting; STORE_KEEP_FOREVER */
    int64_t revision;                 /* grows whenever the session's contents change */
    const char *const *tags;
    size_t tag_count;
    const struct store_gpu_ref *gpus;
    size_t gpu_count;
};
typedef bool (*store_session_fn)(void *user, const struct store_session *session);

enum store_sort {
    STORE_SORT_START, /* default */
    STORE_SORT_RECEIVED,
    STORE_SORT_KERNELS,
    STORE_SORT_KERNEL_TIME,
    STORE_SORT_BYTES,
    STORE_SORT_LOST,
    STORE_SORT_COUNT
};
enum { STORE_CURSOR_MAX = 64, STORE_PAGE_MAX = 1000 };

/* NULL or "": any. All filters must match. */
struct store_session_filter {
    const char *app, *host, *gpu_uuid, *engine, *kind, *tag;
    const char *text;       /* part of application, host, session id or tag, case-insensitive in ASCII */
    int64_t from_ns, to_ns; /* sessions that overlap [from, to); both 0: any */
    int state;              /* -1: any */
    enum store_sort sort;
    bool is_ascending;  /* default: largest or newest first */
    const char *cursor; /* of the previous page; NULL or "": first page */
    unsigned limit;     /* page size; 0: 100 */
};
/* next: the cursor of the next page, "" if this is the last. GPUFL_E_INVALID: invalid cursor. */
NODISCARD gpufl_status store_sessions(struct store *store, const struct store_session_filter *filter,
                                      store_session_fn on_session, void *user, char next[STORE_CURSOR_MAX],
                                      struct problem *problem);
/* Delivers one session; GPUFL_E_NOT_FOUND. */
NODISCARD gpufl_status store_session(struct store *store, const char *session_id, store_session_fn on_session,
                                     void *user, struct problem *problem);
NODISCARD gpufl_status store_session_delete(struct store *store, const char *session_id, struct problem *problem);
/* Replaces all tags (at most 32 of at most 64 bytes each). */
NODISCARD gpufl_status store_session_tag(struct store *store, const char *session_id, const char *const *tags,
                                         size_t tag_count, struct problem *problem);
NODISCARD gpufl_status store_session_keep(struct store *store, const char *session_id, int64_t retention_ns,
                                          struct problem *problem);
/* The sender reports that nothing more will come. Later lines are still accepted. */
NODISCARD gpufl_status store_session_end(struct store *store, const char *session_id, struct problem *problem);

/* ---- hosts and GPUs ---- */

struct store_gpu {
    const char *host;
    const char *uuid, *name; /* uuid "": the host itself; its sample is of host_metric_batch */
    int64_t device_id;       /* NVML's index on that host; CELL_UNKNOWN for the host */
    int64_t first_seen_ns, last_seen_ns;
    int64_t sample_ns;              /* of the latest sample; CELL_UNKNOWN: none */
    const struct record_info *type; /* device_metric_batch or host_metric_batch */
    const int64_t *sample;          /* [type->column_count], CELL_UNKNOWN where unknown; [0] is sample_ns */
    const char *session_id;         /* of the latest sample */
};
typedef bool (*store_gpu_fn)(void *user, const struct store_gpu *gpu);
/* host NULL: all; ordered by host, then device. */
NODISCARD gpufl_status store_gpus(struct store *store, const char *host, store_gpu_fn on_gpu, void *user,
                                  struct problem *problem);

/* ---- API keys: the server decides what scopes and hashes mean ---- */

enum { STORE_KEY_HASH_SIZE = 32, STORE_KEY_PREFIX_MAX = 15, STORE_NAME_MAX = 128 };
struct store_key {
    int64_t key_id; /* 0: new */
    uint8_t hash[STORE_KEY_HASH_SIZE];
    char prefix[STORE_KEY_PREFIX_MAX + 1], name[STORE_NAME_MAX + 1];
    int64_t scope;
    int64_t created_ns, expires_ns, revoked_ns, last_used_ns; /* CELL_UNKNOWN: never */
    int64_t rate_per_s, quota_bytes_per_day;                  /* CELL_UNKNOWN: the server's default */
};
typedef bool (*store_key_fn)(void *user, const struct store_key *key);
/* Creates a key (key_id 0, which is then set) or replaces it. A revocation is never undone and last_used_ns never
 * decreases, so a caller with outdated data does no harm. GPUFL_E_INVALID: another key has this hash. */
NODISCARD gpufl_status store_key_put(struct store *store, struct store_key *key, struct problem *problem);
/* GPUFL_E_NOT_FOUND. */
NODISCARD gpufl_status store_key_find(struct store *store, const uint8_t hash[STORE_KEY_HASH_SIZE],
                                      struct store_key *key, struct problem *problem);
/* Changes only last_used_ns, so it cannot undo a concurrent revocation. GPUFL_E_NOT_FOUND. */
NODISCARD gpufl_status store_key_use(struct store *store, const uint8_t hash[STORE_KEY_HASH_SIZE], int64_t used_ns,
                                     struct problem *problem);
NODISCARD gpufl_status store_keys(struct store *store, store_key_fn on_key, void *user, struct problem *problem);

/* ---- named configurations ---- */

struct store_config {
    const char *name, *text; /* text: JSON, unchanged */
    size_t size;
    int64_t revision, changed_ns;
};
typedef bool (*store_config_fn)(void *user, const struct store_config *config);
/* expected_revision: -1 any, 0 it must not exist, else the current one; GPUFL_E_BUSY when it differs. *revision: the
 * new one. */
NODISCARD gpufl_status store_config_put(struct store *store, const char *name, const char *text, size_t size,
                                        int64_t expected_revision, int64_t *revision, struct problem *problem);
/* name NULL: all, by name. GPUFL_E_NOT_FOUND: no such name. */
NODISCARD gpufl_status store_configs(struct store *store, const char *name, store_config_fn on_config, void *user,
                                     struct problem *problem);
NODISCARD gpufl_status store_config_delete(struct store *store, const char *name, int64_t expected_revision,
                                           struct problem *problem);

/* ---- audit log ---- */

struct store_audit {
    int64_t audit_id; /* increasing; set by the store */
    int64_t ts_ns;
    const char *actor;  /* key prefix and name, or "local" */
    const char *action; /* stable word: key.create, session.delete, ... */
    const char *subject, *detail;
};
typedef bool (*store_audit_fn)(void *user, const struct store_audit *entry);
NODISCARD gpufl_status store_audit_add(struct store *store, const struct store_audit *entry, struct problem *problem);
/* Newest first, older than before_id (0: from the newest). The newest 100,000 are kept. */
NODISCARD gpufl_status store_audits(struct store *store, int64_t before_id, unsigned limit, store_audit_fn on_entry,
                                    void *user, struct problem *problem);

#endif
