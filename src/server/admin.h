/* SPDX-License-Identifier: Apache-2.0 */
/* What an administrator asks of a store, the same whether a server runs on it or not: keys, backup, check. One JSON
 * object in, one out. Any thread. */
#ifndef GPUFL_SERVER_ADMIN_H
#define GPUFL_SERVER_ADMIN_H

#include "base/server_library.h"
#include "store/store_catalog.h"

#include "base/bytes.h"

/* The request of a command line. */
void admin_request_write(const struct server_command *command, struct bytes *request);
/* Appends {"answer":...} or {"error":{"status":N,"message":"..."}}. True: keys have changed. The answer to keys.create
 * and keys.rotate holds the new key's text, this once. */
bool admin_execute(struct store *store, const char *request, size_t size, struct bytes *answer);
/* Whether the action writes. */
bool admin_action_writes(enum server_action action);

#endif
