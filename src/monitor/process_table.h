/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies the processes on the GPUs: name, container and pod of a pid, from /proc. Each process is looked up once
 * and remembered while it uses a GPU; a reused pid is detected by its start time. Fixed size, one owner, not
 * thread-safe. */
#ifndef GPUFL_MONITOR_PROCESS_TABLE_H
#define GPUFL_MONITOR_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor/cgroup.h"

enum { PROCESS_TABLE_MAX = 512 };

struct process_identity {
    uint32_t pid;
    uint64_t start_ticks; /* clock ticks since boot; 0: not known */
    char name[64];        /* "": not known (another pid namespace, or already ended) */
    struct cgroup_identity cgroup;
};

struct process_table {
    const char *root; /* directory that contains proc; borrowed. "" on a real system */
    struct process_identity entries[PROCESS_TABLE_MAX];
    uint32_t ages[PROCESS_TABLE_MAX];    /* the round in which an entry was last used */
    bool is_recorded[PROCESS_TABLE_MAX]; /* its record is in this session */
    uint32_t count, round;
};

void process_table_init(struct process_table *table, const char *root);
/* Starts a new round: entries that were not used in the previous round are removed. */
void process_table_next_round(struct process_table *table);
/* Returns NULL only if PROCESS_TABLE_MAX other processes were used in this round. */
struct process_identity *process_table_find(struct process_table *table, uint32_t pid);
/* Marks the entry as recorded. Returns whether it was not yet recorded in this session. */
bool process_table_mark_recorded(struct process_table *table, const struct process_identity *entry);
void process_table_forget_recorded(struct process_table *table);

#endif
