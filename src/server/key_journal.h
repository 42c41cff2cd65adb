/* SPDX-License-Identifier: Apache-2.0 */
/* Records of keys that outlive the server: bytes per day in a file of the data directory, so that a restart does not
 * reset quotas; refused keys in the store's audit log. One thread at a time, except for key_journal_audit. */
#ifndef GPUFL_SERVER_KEY_JOURNAL_H
#define GPUFL_SERVER_KEY_JOURNAL_H

#include "server/keys.h"

/* Call after the ring has its keys. An unreadable file counts as missing: the problem has the reason. */
NODISCARD gpufl_status key_journal_load(struct key_ring *ring, const char *data_dir, struct problem *problem);
/* Writes the file if the sum of bytes differs from *saved_bytes, which is updated. */
NODISCARD gpufl_status key_journal_save(struct key_ring *ring, const char *data_dir, uint64_t *saved_bytes,
                                        struct problem *problem);
/* Adds the refusals since the last call to the audit log. Thread-safe. */
NODISCARD gpufl_status key_journal_audit(struct key_ring *ring, struct store *store, struct problem *problem);

#endif
