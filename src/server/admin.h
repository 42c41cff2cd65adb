/* SPDX-License-Identifier: Apache-2.0 */
/* What an administrator can do with a store, with or without a running server: keys, backup, check. One JSON object in,
 * one out. Thread-safe. */
#ifndef GPUFL_SERVER_ADMIN_H
#define GPUFL_SERVER_ADMIN_H

#include "base/server_library.h"
#include "store/store_catalog.h"

#include "base/bytes.h"

/* Writes the request of a command line. */
void admin_request_write(const struct server_command *command, struct bytes *request);
/* Appends {"answer":...} or {"error":{"status":N,"message":"..."}}. True: keys have changed. Only the answer to
 * keys.create and keys.rotate contains the new key's text. */
bool admin_execute(struct store *store, const char *request, size_t size, struct bytes *answer);
/* True when the action writes. */
bool admin_action_writes(enum server_action action);

#endif
