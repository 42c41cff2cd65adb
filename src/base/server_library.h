/* SPDX-License-Identifier: Apache-2.0 */
/* Finds libgpufl-server.so, which implements `gpufl serve` and `gpufl view` and is loaded only by them: all other
 * commands work without HTTP, TLS and SQL libraries. */
#ifndef GPUFL_BASE_SERVER_LIBRARY_H
#define GPUFL_BASE_SERVER_LIBRARY_H

#include "base/status.h"

#include <stdint.h>

enum server_action {
    SERVER_RUN,
    SERVER_KEYS_CREATE,
    SERVER_KEYS_LIST,
    SERVER_KEYS_ROTATE,
    SERVER_KEYS_REVOKE,
    SERVER_BACKUP,
    SERVER_CHECK,
    SERVER_AUDIT,
    SERVER_VIEW
};

/* A parsed command line. NULL and -1: not given. */
struct server_command {
    enum server_action action;
    const char *listen, *data, *store, *tls_cert, *tls_key, *config, *allow_hosts, *cors_origins, *admin_key_file;
    int64_t retention_days, retention_bytes;
    bool is_verbose, is_json;
    const char *operand;              /* of backup: the file; of rotate, revoke: the key; of view: the session */
    const char *key_name, *key_scope; /* of create */
    int64_t expires_days, grace_hours, rate_per_s, quota_bytes; /* of create and rotate */
    int64_t limit;                                              /* of audit: how many entries */
    /* For view, whose operand is a session directory and whose data is an empty directory that the caller removes:
     * called once when the session can be viewed. url: of the session's page. */
    void (*on_ready)(void *user, const char *url);
    void *user;
};

/* Prints text or JSON, and returns the exit code (cli/command.h). */
typedef int (*server_main_fn)(const struct server_command *command);

/* Like upload_library_find. */
server_main_fn server_library_find(const void *address, struct problem *problem);

#endif
