/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of `gpufl serve`: command line options override the config file, which overrides defaults. Owns what it
 * read; borrows the command. Read-only once loaded. */
#ifndef GPUFL_SERVER_SERVER_CONFIG_H
#define GPUFL_SERVER_SERVER_CONFIG_H

#include "base/server_library.h"
#include "format/json.h"
#include "server/keys.h"

enum { SERVER_HOSTS_MAX = 64 };
#define SERVER_LISTEN_DEFAULT "127.0.0.1:8080"

struct server_config {
    const char *listen, *data, *store; /* store: "" for the embedded engine in data */
    const char *tls_cert, *tls_key;    /* NULL: no TLS */
    const char *admin_key_file;        /* NULL: none */
    const char *allow_hosts[SERVER_HOSTS_MAX + 1], *cors_origins[SERVER_HOSTS_MAX + 1]; /* NULL-terminated */
    int64_t retention_days, retention_bytes;                                            /* 0: for ever, without limit */
    struct key_limits limits;
    int64_t connections_max, connections_peer_max, cache_bytes; /* 0: the part's default */
    int64_t head_timeout_ms, idle_timeout_ms, body_timeout_ms;  /* 0: the part's default */
    bool is_verbose;
    bool is_view; /* one session, read-only, for users of this machine: no keys, no control socket */
    /* Owned. */
    char *text_memory, *host_memory, *origin_memory;
    struct json_document document;
};

/* GPUFL_E_INVALID, GPUFL_E_NOT_FOUND, GPUFL_E_IO: the problem has file, line and reason. */
NODISCARD gpufl_status server_config_load(struct server_config *config, const struct server_command *command,
                                          struct problem *problem);
void server_config_free(struct server_config *config);

#endif
