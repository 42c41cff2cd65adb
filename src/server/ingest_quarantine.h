/* SPDX-License-Identifier: Apache-2.0 */
/* Rejected data, kept for inspection: one file per request in DIR/quarantine, with the reason and the received bytes,
 * as far as they were kept. Bounded: the oldest files are deleted. Thread-safe. */
#ifndef GPUFL_SERVER_INGEST_QUARANTINE_H
#define GPUFL_SERVER_INGEST_QUARANTINE_H

#include "base/bytes.h"
#include "base/status.h"

#include <pthread.h>

struct ingest_quarantine {
    int dir_fd;
    pthread_mutex_t lock;
    uint64_t bytes_max, files_max;
    uint64_t files_added, files_failed; /* since the start */
};

enum { QUARANTINE_FILE_BYTES_MAX = 4 << 20 };

/* dir: the data directory. */
NODISCARD gpufl_status ingest_quarantine_open(struct ingest_quarantine *quarantine, const char *dir,
                                              struct problem *problem);
void ingest_quarantine_close(struct ingest_quarantine *quarantine);
/* about: a JSON object that describes the request and the reason; content: follows it in the file. name, for the answer
 * and the log: at least 64 bytes, "" if the file could not be written. */
void ingest_quarantine_add(struct ingest_quarantine *quarantine, const struct bytes *about, const void *content,
                           size_t size, char *name, size_t name_size);

#endif
