/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that an engine implements: those of store.h, store_catalog.h and store_rollup.h, with arguments already
 * checked (no NULL where the header forbids it, no names or ids that are too long). struct store and struct store_write
 * are the first members of the engine's structs. Private to src/store. */
#ifndef GPUFL_STORE_STORE_ENGINE_H
#define GPUFL_STORE_STORE_ENGINE_H

#include "store/store_catalog.h"
#include "store/store_rollup.h"

struct store_engine {
    void (*close)(struct store *);
    gpufl_status (*write_begin)(struct store *, const struct store_identity *, struct store_write **,
                                enum store_delivery *, struct problem *);
    gpufl_status (*write_line)(struct store_write *, const struct log_line *, const char *, size_t, bool *,
                               struct problem *);
    void (*write_name)(struct store_write *, const char *, uint32_t);
    gpufl_status (*write_commit)(struct store_write *, struct store_written *, struct problem *);
    void (*write_abort)(struct store_write *);
    gpufl_status (*read)(struct store *, const struct store_range *, log_line_fn, void *, struct problem *);
    gpufl_status (*sessions)(struct store *, const struct store_session_filter *, store_session_fn, void *,
                             char[STORE_CURSOR_MAX], struct problem *);
    gpufl_status (*session)(struct store *, const char *, store_session_fn, void *, struct problem *);
    gpufl_status (*session_delete)(struct store *, const char *, struct problem *);
    gpufl_status (*session_tag)(struct store *, const char *, const char *const *, size_t, struct problem *);
    gpufl_status (*session_keep)(struct store *, const char *, int64_t, struct problem *);
    gpufl_status (*session_end)(struct store *, const char *, struct problem *);
    gpufl_status (*gpus)(struct store *, const char *, store_gpu_fn, void *, struct problem *);
    gpufl_status (*key_put)(struct store *, struct store_key *, struct problem *);
    gpufl_status (*key_find)(struct store *, const uint8_t[STORE_KEY_HASH_SIZE], struct store_key *, struct problem *);
    gpufl_status (*key_use)(struct store *, const uint8_t[STORE_KEY_HASH_SIZE], int64_t, struct problem *);
    gpufl_status (*keys)(struct store *, store_key_fn, void *, struct problem *);
    gpufl_status (*config_put)(struct store *, const char *, const char *, size_t, int64_t, int64_t *,
                               struct problem *);
    gpufl_status (*configs)(struct store *, const char *, store_config_fn, void *, struct problem *);
    gpufl_status (*config_delete)(struct store *, const char *, int64_t, struct problem *);
    gpufl_status (*audit_add)(struct store *, const struct store_audit *, struct problem *);
    gpufl_status (*audits)(struct store *, int64_t, unsigned, store_audit_fn, void *, struct problem *);
    gpufl_status (*kernels)(struct store *, const char *, store_kernel_fn, void *, struct problem *);
    gpufl_status (*kernel_search)(struct store *, const char *, unsigned, store_kernel_fn, void *, struct problem *);
    gpufl_status (*scopes)(struct store *, const char *, store_scope_fn, void *, struct problem *);
    gpufl_status (*metrics)(struct store *, const char *, const char *, int64_t, int64_t, store_metric_fn, void *,
                            struct problem *);
    gpufl_status (*timeline)(struct store *, const char *, int64_t, int64_t, unsigned shift, struct timeline *,
                             struct problem *);
    gpufl_status (*retain)(struct store *, const struct store_retention *, struct store_retained *, struct problem *);
    gpufl_status (*maintain)(struct store *, struct problem *);
    gpufl_status (*backup)(struct store *, const char *, struct problem *);
    gpufl_status (*check)(struct store *, store_issue_fn, void *, struct problem *);
    gpufl_status (*stats)(struct store *, struct store_stats *, struct problem *);
    gpufl_status (*commit_state)(struct store *, struct problem *);
};

struct store {
    const struct store_engine *engine;
    bool is_read_only;
};
struct store_write {
    struct store *store;
};

/* sqlite_store.c */
NODISCARD gpufl_status sqlite_store_open(struct store **out, const char *directory, const struct store_options *options,
                                         struct problem *problem);
/* clickhouse_store.c */
NODISCARD gpufl_status clickhouse_store_open(struct store **out, const char *url, const struct store_options *options,
                                             struct problem *problem);

#endif
