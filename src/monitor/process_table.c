/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/process_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_SIZE_MAX = 8192 };

void process_table_init(struct process_table *table, const char *root)
{
    memset(table, 0, sizeof *table);
    table->root = root;
}

/* Reads the beginning of <root>/proc/<pid>/<name>, NUL-terminated; returns its size, 0 if it cannot be read. */
static size_t file_read(const struct process_table *table, uint32_t pid, const char *name, char text[FILE_SIZE_MAX])
{
    char path[512];
    int path_size = snprintf(path, sizeof path, "%s/proc/%u/%s", table->root, pid, name);
    text[0] = '\0';
    int fd = path_size > 0 && (size_t)path_size < sizeof path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0)
        return 0;
    size_t size = 0;
    while (size < FILE_SIZE_MAX - 1) {
        ssize_t got = read(fd, text + size, FILE_SIZE_MAX - 1 - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    close(fd);
    text[size] = '\0';
    return size;
}

/* Field 22 of /proc/PID/stat. The process name before it may contain anything, so fields are counted from the last
 * parenthesis. */
static uint64_t start_ticks_read(const struct process_table *table, uint32_t pid)
{
    char text[FILE_SIZE_MAX];
    file_read(table, pid, "stat", text);
    const char *at = strrchr(text, ')');
    if (!at)
        return 0;
    at++;
    for (int field = 3; field < 22; field++) {
        at += strspn(at, " ");
        at += strcspn(at, " \n");
    }
    return strtoull(at, NULL, 10);
}

static void identify(const struct process_table *table, struct process_identity *entry)
{
    char text[FILE_SIZE_MAX];
    file_read(table, entry->pid, "comm", text);
    text[strcspn(text, "\n")] = '\0';
    snprintf(entry->name, sizeof entry->name, "%.*s", (int)sizeof entry->name - 1, text);
    size_t size = file_read(table, entry->pid, "cgroup", text);
    cgroup_identify(&entry->cgroup, text, size);
}

void process_table_next_round(struct process_table *table)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->ages[i] != table->round)
            continue;
        table->entries[kept] = table->entries[i];
        table->ages[kept] = table->ages[i];
        table->is_recorded[kept++] = table->is_recorded[i];
    }
    table->count = kept;
    table->round++;
}

struct process_identity *process_table_find(struct process_table *table, uint32_t pid)
{
    uint64_t start_ticks = start_ticks_read(table, pid);
    uint32_t at = 0;
    while (at < table->count && table->entries[at].pid != pid)
        at++;
    bool is_new = at == table->count;
    if (at == PROCESS_TABLE_MAX)
        return NULL;
    struct process_identity *entry = &table->entries[at];
    if (is_new || entry->start_ticks != start_ticks) {
        *entry = (struct process_identity){.pid = pid, .start_ticks = start_ticks};
        identify(table, entry);
        table->is_recorded[at] = false;
        table->count += is_new;
    }
    table->ages[at] = table->round;
    return entry;
}

bool process_table_mark_recorded(struct process_table *table, const struct process_identity *entry)
{
    bool *is_recorded = &table->is_recorded[entry - table->entries];
    bool is_first = !*is_recorded;
    *is_recorded = true;
    return is_first;
}

void process_table_forget_recorded(struct process_table *table)
{
    memset(table->is_recorded, 0, sizeof table->is_recorded);
}
