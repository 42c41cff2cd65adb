/* SPDX-License-Identifier: Apache-2.0 */
/* Finds libgpufl-server.so, which is all of `gpufl serve` and `gpufl view`. It is loaded only by
 * these: no other command carries HTTP, TLS and SQL, or fails to start
 * without them. */
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

/* A command line. NULL and -1: not given. */
struct server_command {
    enum server_action action;
    const char *listen, *data, *store, *tls_cert, *tls_key, *config, *allow_hosts, *cors_origins, *admin_key_file;
    int64_t retention_days, retention_bytes;
    bool is_verbose, is_json;
    const char *operand;              /* of backup: the file; of rotate, revoke: the key; of view: the session */
    const char *key_name, *key_scope; /* of create */
    int64_t expires_days, grace_hours, rate_per_s, quota_bytes; /* of create and rotate */
    int64_t limit;                                              /* of audit: how many entries */
    /* Of view, whose operand is a session directory and whose data is an empty one that the caller removes: called once,
     * when the session can be looked at. url: of the session's page. */
    void (*on_ready)(void *user, const char *url);
    void *user;
};

/* Prints for people or machines, and returns the exit code (cli/command.h). */
typedef int (*server_main_fn)(const struct server_command *command);

/* As upload_library_find. */
server_main_fn server_library_find(const void *address, struct problem *problem);

#endif
