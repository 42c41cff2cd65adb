/* SPDX-License-Identifier: Apache-2.0 */
/* Who the processes on the GPUs are: name, container and pod of a pid, from
 * /proc. Each process is looked up once and remembered while it stays on a GPU;
 * a pid that was given to another process is noticed by its start time. Fixed
 * size, one owner, not thread-safe. */
#ifndef GPUFL_MONITOR_PROCESS_TABLE_H
#define GPUFL_MONITOR_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor/cgroup.h"

enum { PROCESS_TABLE_MAX = 512 };

struct process_identity {
    uint32_t pid;
    uint64_t start_ticks; /* since boot, as the kernel counts; 0: not known */
    char name[64];        /* "": not known (another pid namespace, or already gone) */
    struct cgroup_identity cgroup;
};

struct process_table {
    const char *root; /* directory in which proc lies; borrowed. "" on a real system */
    struct process_identity entries[PROCESS_TABLE_MAX];
    uint32_t ages[PROCESS_TABLE_MAX]; /* the round in which an entry was last asked for */
    bool is_told[PROCESS_TABLE_MAX];  /* its record is written in this session */
    uint32_t count, round;
};

void process_table_init(struct process_table *table, const char *root);
/* A new round: what was not asked for in the round before is forgotten. */
void process_table_next_round(struct process_table *table);
/* Never NULL while fewer than PROCESS_TABLE_MAX processes are asked for in a round. */
struct process_identity *process_table_find(struct process_table *table, uint32_t pid);
/* Whether the entry is asked this for the first time since process_table_forget_told. */
bool process_table_tell(struct process_table *table, const struct process_identity *entry);
void process_table_forget_told(struct process_table *table);

#endif
