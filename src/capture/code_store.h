/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the code that ran: each cubin and AMDGPU code object once, as a code_object record in the sass channel, and
 * the text of the source files that its line table or a CPU stack names.
 *
 * code_store_add runs on the user's threads inside the driver's module load: it copies the bytes and returns. Our
 * own thread, with all signals blocked, does the rest. Both the queue and the stored bytes are bounded; the excess
 * is counted as lost. */
#ifndef GPUFL_CAPTURE_CODE_STORE_H
#define GPUFL_CAPTURE_CODE_STORE_H

#include "capture/recorder.h"

struct code_store; /* opaque */

struct code_store_options {
    struct log_writer *writer; /* borrowed until code_store_stop, as the recorder */
    struct recorder *recorder; /* for losses */
    const char *session_id;    /* copied */
    /* Returns CUPTI's key of a cubin; NULL or a result of 0: CRC-32C is used, as for AMD's code. Called on our
     * thread. */
    uint64_t (*crc)(void *user, const void *cubin, size_t size);
    void *crc_user;
    bool with_source;           /* enable_source_collection */
    uint64_t bytes_max;         /* cubins kept in a session; 0: 256 MiB */
    uint64_t waiting_bytes_max; /* copies in the queue; 0: 64 MiB */
    uint64_t source_bytes_max;  /* source text kept in a session; 0: 64 MiB */
};

NODISCARD gpufl_status code_store_make(struct code_store **out, const struct code_store_options *options,
                                       struct problem *problem);
/* Any thread; the bytes are copied. */
void code_store_add(struct code_store *store, const void *cubin, size_t size);
/* Stores the text of a file once, if source collection is on. Any thread; the path is copied. */
void code_store_add_source(struct code_store *store, const char *path);
void code_store_lose_source(struct code_store *store); /* counts a source file whose path could not be passed */
/* Writes the queue until the deadline, counts the rest as lost, and ends the thread. A thread that hangs while
 * reading a file (for example from an unreachable network file system) is abandoned together with the store. Later
 * additions are dropped. */
void code_store_stop(struct code_store *store, unsigned deadline_ms);
int64_t code_store_cpu_ns(const struct code_store *store);
size_t code_store_bytes(const struct code_store *store);
void code_store_free(struct code_store *store);    /* after code_store_stop, once no thread can add; NULL is a no-op */
void code_store_abandon(struct code_store *store); /* in a forked child: frees without joining or writing */

#endif
