/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that use an AMD GPU: compute processes as KFD lists them, and those that hold its device file open,
 * as /proc shows them. All of /proc is rarely scanned; in between only the known open files are read again. */
#include "base/clock.h"
#include "driver/amdgpu_table.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROCESS_MAX = 512, DRM_PATH_SIZE = 9 };

static const int64_t search_interval_ns = 10000000000;

struct process_list {
    struct gpu_process *processes;
    int capacity, count;
    uint32_t pids[PROCESS_MAX]; /* including processes that do not fit in the list */
};

static bool pid_parse(const char *name, uint32_t *pid)
{
    uint64_t number;
    if (!amd_number_parse(name, &number) || !number || number > INT32_MAX || name[0] == '0')
        return false;
    *pid = (uint32_t)number;
    return true;
}

/* The process's entry, added if it is new; NULL when the list is full, which still counts the process. */
static struct gpu_process *process_of(struct process_list *list, uint32_t pid)
{
    for (int i = 0; i < list->count; i++)
        if (list->pids[i] == pid)
            return i < list->capacity ? &list->processes[i] : NULL;
    if (list->count >= PROCESS_MAX)
        return NULL;
    int at = list->count++;
    list->pids[at] = pid;
    if (at >= list->capacity)
        return NULL;
    list->processes[at] = (struct gpu_process){.pid = pid};
    return &list->processes[at];
}

static void kfd_processes_add(const struct amdgpu *amdgpu, const struct amd_device *device, struct process_list *list)
{
    char directory[AMD_PATH_MAX], process_path[AMD_PATH_MAX + 288], name[32];
    if (!device->kfd_gpu_id)
        return;
    snprintf(directory, sizeof directory, "%s/sys/class/kfd/kfd/proc", amdgpu->root);
    snprintf(name, sizeof name, "vram_%" PRIu32, device->kfd_gpu_id);
    DIR *entries = opendir(directory);
    if (!entries)
        return;
    for (struct dirent *entry; (entry = readdir(entries));) {
        uint32_t pid;
        uint64_t bytes;
        struct gpu_process *process;
        if (!pid_parse(entry->d_name, &pid))
            continue;
        snprintf(process_path, sizeof process_path, "%s/%s", directory, entry->d_name);
        /* Every KFD process has this file for every GPU; a process without memory on this GPU does not use it. */
        if (!amd_number_read(process_path, name, &bytes) || !bytes || !(process = process_of(list, pid)))
            continue;
        process->has_used_bytes = true;
        process->used_bytes = bytes;
    }
    closedir(entries);
}

static bool is_drm_file(int directory_fd, const char *name)
{
    char target[64];
    ssize_t size = readlinkat(directory_fd, name, target, sizeof target - 1);
    if (size < DRM_PATH_SIZE)
        return false;
    target[size] = '\0';
    return !strncmp(target, "/dev/dri/", DRM_PATH_SIZE);
}

static void process_search(struct amdgpu *amdgpu, uint32_t pid)
{
    char path[AMD_PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/%" PRIu32 "/fd", amdgpu->root, pid);
    DIR *entries = opendir(path);
    if (!entries) /* another user's process */
        return;
    for (struct dirent *entry; amdgpu->client_count < AMD_CLIENT_MAX && (entry = readdir(entries));) {
        uint64_t fd;
        if (amd_number_parse(entry->d_name, &fd) && fd <= INT32_MAX && is_drm_file(dirfd(entries), entry->d_name))
            amdgpu->clients[amdgpu->client_count++] = (struct amd_client){pid, (uint32_t)fd};
    }
    closedir(entries);
}

static void clients_search(struct amdgpu *amdgpu)
{
    char directory[AMD_PATH_MAX];
    int64_t now_ns = clock_mono_ns();
    if (amdgpu->searched_ns && now_ns - amdgpu->searched_ns < search_interval_ns)
        return;
    amdgpu->searched_ns = now_ns;
    amdgpu->client_count = 0;
    snprintf(directory, sizeof directory, "%s/proc", amdgpu->root);
    DIR *entries = opendir(directory);
    if (!entries)
        return;
    for (struct dirent *entry; amdgpu->client_count < AMD_CLIENT_MAX && (entry = readdir(entries));) {
        uint32_t pid;
        if (pid_parse(entry->d_name, &pid))
            process_search(amdgpu, pid);
    }
    closedir(entries);
}

/* The value of "key:<white space>value" in an fdinfo; NULL when it is missing. */
static const char *fdinfo_find(const char *text, const char *key)
{
    size_t key_size = strlen(key);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, key, key_size) != 0 || line[key_size] != ':')
            continue;
        line += key_size + 1;
        return line + strspn(line, " \t");
    }
    return NULL;
}

/* "262144 KiB"; without a unit the value is in bytes. */
static bool size_parse(const char *text, uint64_t *bytes)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    uint64_t value = strtoull(text, &end, 10);
    end += strspn(end, " \t");
    unsigned shift = !strncmp(end, "KiB", 3) ? 10 : !strncmp(end, "MiB", 3) ? 20 : 0;
    *bytes = value << shift;
    return *bytes >> shift == value;
}

/* An open file of a process; several may belong to the same client, which must be counted once. */
struct seen_client {
    uint32_t pid;
    uint64_t client_id;
};

static void client_add(const struct amd_device *device, const struct amd_client *client, const char *text,
                       struct seen_client *seen, size_t *seen_count, uint64_t *sums, struct process_list *list)
{
    const char *slot = fdinfo_find(text, "drm-pdev"), *id = fdinfo_find(text, "drm-client-id");
    size_t slot_size = strlen(device->info.pci_bus_id);
    if (!slot || !id || strncmp(slot, device->info.pci_bus_id, slot_size) != 0 || slot[slot_size] != '\n')
        return;
    struct seen_client now = {client->pid, strtoull(id, NULL, 10)};
    for (size_t i = 0; i < *seen_count; i++)
        if (seen[i].pid == now.pid && seen[i].client_id == now.client_id)
            return;
    seen[(*seen_count)++] = now;
    struct gpu_process *process = process_of(list, client->pid);
    const char *memory = fdinfo_find(text, "drm-memory-vram");
    uint64_t bytes;
    if (!memory)
        memory = fdinfo_find(text, "drm-resident-vram");
    if (!process || !memory || !size_parse(memory, &bytes))
        return;
    /* Memory that KFD allocated may be included here too, so the larger number is used, not the sum. */
    uint64_t *sum = &sums[process - list->processes];
    if (__builtin_add_overflow(*sum, bytes, sum))
        return;
    if (!process->has_used_bytes || *sum > process->used_bytes)
        process->used_bytes = *sum;
    process->has_used_bytes = true;
}

static void drm_processes_add(struct amdgpu *amdgpu, const struct amd_device *device, struct process_list *list)
{
    struct seen_client seen[AMD_CLIENT_MAX];
    uint64_t sums[PROCESS_MAX] = {0};
    size_t seen_count = 0;
    for (uint32_t i = 0; i < amdgpu->client_count; i++) {
        char path[AMD_PATH_MAX], text[4096];
        snprintf(path, sizeof path, "%s/proc/%" PRIu32 "/fdinfo/%" PRIu32, amdgpu->root, amdgpu->clients[i].pid,
                 amdgpu->clients[i].fd);
        int fd = amd_file_open(path);
        if (fd < 0)
            continue;
        if (amd_file_read(fd, text, sizeof text) > 0)
            client_add(device, &amdgpu->clients[i], text, seen, &seen_count, sums, list);
        close(fd);
    }
}

int amdgpu_device_processes(struct amdgpu *amdgpu, uint32_t index, struct gpu_process *processes, int capacity)
{
    if (index >= amdgpu->device_count)
        return -1;
    struct process_list list = {.processes = processes, .capacity = capacity};
    clients_search(amdgpu);
    kfd_processes_add(amdgpu, &amdgpu->devices[index], &list);
    if (!amdgpu->devices[index].info.partition) /* an open file refers to the whole GPU */
        drm_processes_add(amdgpu, &amdgpu->devices[index], &list);
    return list.count;
}
