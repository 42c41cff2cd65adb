/* SPDX-License-Identifier: Apache-2.0 */
/* Activity records of the look-alike CUPTI: which are wanted, how long they are
 * in the version it plays, and how the driver's events become records. */
#ifndef FAKES_CUPTI_RECORDS_H
#define FAKES_CUPTI_RECORDS_H

#include "cupti_fake.h"

enum { RECORD_BYTES_MAX = 256, CALL_ID_LIMIT = 1024 };

uint32_t cupti_version_played(void); /* cupti_release, or what FAKE_FAULTS says */
/* Bytes of a record of this kind; 0: not a kind of this version. */
size_t record_size(uint32_t kind);
bool record_is_wanted(const void *record);
bool kind_is_enabled(uint32_t kind);
void kind_enable(uint32_t kind, bool is_enabled);
/* kind: RUNTIME or DRIVER. */
void call_enable(uint32_t kind, uint32_t cbid, bool is_enabled);
void calls_enable(uint32_t kind, bool is_enabled);
/* Makes the nth absurd record; true when nothing after it in the buffer can be read. */
bool record_make_absurd(uint64_t n, void *record, size_t *size);
/* Asking for a buffer takes time, which CUPTI reports in the new buffer. */
void record_make_request_overhead(uint64_t start_ns, uint64_t end_ns, void *record, size_t *size);

/* A moment of the GPU by the clock of the registered function (cuptiActivityRegisterTimestampCallback in
 * cupti_activity.h: all records have it, CUPTI brings the GPU's times to it); 0 stays 0. */
uint64_t record_time(uint64_t wall_ns);
void records_set_clock(cupti_abi_timestamp_fn *now); /* NULL: CLOCK_REALTIME, as after cuptiFinalize */
void records_set_system_thread_ids(bool is_system);
void records_set_latency(bool is_enabled);
int external_push(uint32_t kind, uint64_t id);
int external_pop(uint32_t kind, uint64_t *last_id);

void record_call(const struct fake_call *call);
void record_work(const struct fake_work *work);
void record_sync(const struct fake_sync *sync);
void record_memory(const struct fake_memory *memory);
/* Writes out GPU work that has ended; with_running also the rest, with end 0. True: some is left. */
bool records_reap(bool with_running);
void works_forget(void);     /* cuptiFinalize: GPU work under way has no record */
void works_after_fork(void); /* in the child: locks of the parent's threads */

#endif
