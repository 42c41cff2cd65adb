/* SPDX-License-Identifier: Apache-2.0 */
/* What keys did, kept where it outlives the server: bytes of the day in a file of the data directory, so that a restart
 * gives nobody a second quota; refused keys in the store's audit log. One thread at a time, but for
 * the audit. */
#ifndef GPUFL_SERVER_KEY_JOURNAL_H
#define GPUFL_SERVER_KEY_JOURNAL_H

#include "server/keys.h"

/* After the ring has its keys. A file that cannot be read counts as none: the problem says why. */
NODISCARD gpufl_status key_journal_load(struct key_ring *ring, const char *data_dir, struct problem *problem);
/* Writes the file, when something has changed since *saved_bytes (their sum; updated). */
NODISCARD gpufl_status key_journal_save(struct key_ring *ring, const char *data_dir, uint64_t *saved_bytes,
                                        struct problem *problem);
/* Refusals since the last call become entries of the audit log. Any thread. */
NODISCARD gpufl_status key_journal_audit(struct key_ring *ring, struct store *store, struct problem *problem);

#endif
