/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/live_kernels.h"

#include "base/clock.h"
#include "format/json.h"
#include "logfile/log_line.h"
#include "logfile/session_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_AGAIN_NS INT64_C(5000000000)
enum { TICK_BYTES_MAX = 32 << 20, DESCRIPTORS_MAX = 4096, KERNELS_MAX = 1 << 20 };

void live_kernels_init(struct live_kernels *live, const char *root)
{
    *live = (struct live_kernels){.root = root};
}

static void program_forget(struct live_program *program)
{
    if (program->fd >= 0)
        close(program->fd);
    for (uint32_t i = 0; i < program->name_count; i++)
        free(program->names[i]);
    free(program->names);
    free(program->durations_ns);
    *program = (struct live_program){.fd = -1};
}

void live_kernels_free(struct live_kernels *live)
{
    for (uint32_t i = 0; i < live->count; i++)
        program_forget(&live->programs[i]);
    bytes_free(&live->text);
    batch_view_free(&live->view);
}

/* Whether a descriptor of the process is a session's live device channel; its id then. */
static bool descriptor_is_log(const char *path, char session_id[SESSION_ID_SIZE + 1])
{
    char target[PATH_MAX];
    static const char ending[] = "/device.log";
    ssize_t size = readlink(path, target, sizeof target - 1);
    size_t ending_size = sizeof ending - 1;
    if (size < (ssize_t)(ending_size + SESSION_ID_SIZE + 1))
        return false;
    target[size] = '\0';
    char *end = target + size - ending_size, *id = end - SESSION_ID_SIZE;
    if (strcmp(end, ending) != 0 || id[-1] != '/')
        return false;
    *end = '\0';
    memcpy(session_id, id, SESSION_ID_SIZE + 1);
    return session_id_is_valid(session_id);
}

/* Through the process's own descriptor: it may live where the file has another path. */
static void log_find(struct live_program *program, const char *root)
{
    char path[PATH_MAX], id[SESSION_ID_SIZE + 1];
    snprintf(path, sizeof path, "%s/proc/%u/fd", root, program->pid);
    DIR *directory = opendir(path);
    if (!directory)
        return;
    struct dirent *entry;
    for (int i = 0; program->fd < 0 && i < DESCRIPTORS_MAX && (entry = readdir(directory));) {
        if (entry->d_name[0] == '.')
            continue;
        i++;
        snprintf(path, sizeof path, "%s/proc/%u/fd/%.20s", root, program->pid, entry->d_name);
        if (!descriptor_is_log(path, id))
            continue;
        program->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        program->foreign_fd = (int)strtol(entry->d_name, NULL, 10);
        program->offset = 0;
        memcpy(program->session_id, id, sizeof id);
    }
    closedir(directory);
}

/* A full file is renamed and another one begins. */
static bool log_is_current(const struct live_program *program, const char *root)
{
    char path[PATH_MAX];
    struct stat theirs, ours;
    snprintf(path, sizeof path, "%s/proc/%u/fd/%d", root, program->pid, program->foreign_fd);
    return stat(path, &theirs) == 0 && fstat(program->fd, &ours) == 0 && theirs.st_ino == ours.st_ino &&
           theirs.st_dev == ours.st_dev;
}

static bool names_reserve(struct live_program *program, uint32_t id)
{
    if (id < program->name_count)
        return true;
    uint32_t count = id < 512 ? 1024 : id * 2;
    if (id >= KERNELS_MAX)
        return false;
    char **names = realloc(program->names, count * sizeof(char *));
    if (names)
        program->names = names;
    int64_t *durations = realloc(program->durations_ns, count * sizeof *durations);
    if (durations)
        program->durations_ns = durations;
    if (!names || !durations)
        return false;
    memset(names + program->name_count, 0, (count - program->name_count) * sizeof(char *));
    memset(durations + program->name_count, 0, (count - program->name_count) * sizeof *durations);
    program->name_count = count;
    return true;
}

static void names_take(struct live_program *program, const struct json_value *object)
{
    const struct json_value *table = json_member(object, "kernel_dict");
    for (const struct json_value *entry = table && table->kind == JSON_OBJECT ? table->child : NULL; entry;
         entry = entry->next) {
        char *end;
        unsigned long id = strtoul(entry->key, &end, 10);
        if (*end || !id || id >= KERNELS_MAX || entry->kind != JSON_STRING || !names_reserve(program, (uint32_t)id))
            continue;
        free(program->names[id]);
        program->names[id] = strdup(entry->text);
    }
}

static uint64_t kernels_take(struct live_program *program, const struct batch_view *view)
{
    const struct batch_column *ids = &view->columns[KERNEL_KERNEL_ID], *times = &view->columns[KERNEL_DURATION_NS];
    for (uint32_t row = 0; row < view->row_count && ids->present && times->present; row++) {
        int64_t id = ids->cells[row], duration_ns = times->cells[row];
        if (id > 0 && id < KERNELS_MAX && duration_ns > 0 && names_reserve(program, (uint32_t)id))
            program->durations_ns[id] += duration_ns;
    }
    return view->row_count;
}

/* Kernels in the whole lines of the text; *used: the bytes of those lines. */
static uint64_t lines_take(struct live_kernels *live, struct live_program *program, const char *text, size_t size,
                           size_t *used)
{
    uint64_t kernels = 0;
    *used = 0;
    for (const char *end; (end = memchr(text + *used, '\n', size - *used));) {
        const char *line_text = text + *used;
        size_t line_size = (size_t)(end - line_text);
        *used += line_size + 1;
        struct log_line line = {.channel = CHANNEL_DEVICE};
        struct json_document document = {0};
        char reason[LINE_REASON_SIZE];
        if (log_line_decode(&line, &live->view, &document, line_text, line_size, reason))
            continue;
        if (line.type == RECORD_KERNEL_EVENT_BATCH)
            kernels += kernels_take(program, line.batch);
        else if (line.type == RECORD_DICTIONARY_UPDATE)
            names_take(program, line.object);
        json_free(&document);
    }
    return kernels;
}

static bool text_read(struct live_kernels *live, const struct live_program *program, size_t size)
{
    bytes_clear(&live->text);
    if (!bytes_reserve(&live->text, size))
        return false;
    while (live->text.size < size) {
        ssize_t part = pread(program->fd, live->text.data + live->text.size, size - live->text.size,
                             program->offset + (off_t)live->text.size);
        if (part <= 0)
            break;
        live->text.size += (size_t)part;
    }
    return live->text.size > 0;
}

/* Reads what was written since the last tick. False: more than TICK_BYTES_MAX was written, and it is skipped. */
static bool program_drain(struct live_kernels *live, struct live_program *program, uint64_t *kernels)
{
    struct stat status;
    if (fstat(program->fd, &status) != 0 || status.st_size <= program->offset)
        return true;
    if (status.st_size - program->offset > TICK_BYTES_MAX) {
        program->offset = status.st_size; /* perhaps inside a line; its rest is not a valid line and is ignored */
        return false;
    }
    size_t used = 0;
    if (text_read(live, program, (size_t)(status.st_size - program->offset)))
        *kernels += lines_take(live, program, live->text.data, live->text.size, &used);
    program->offset += (off_t)used;
    return true;
}

static void window_begin(struct live_program *program, int64_t now_ns)
{
    program->window_ns = now_ns;
    program->window_kernels = 0;
    program->is_window_whole = true;
    if (program->durations_ns)
        memset(program->durations_ns, 0, program->name_count * sizeof *program->durations_ns);
}

/* Recorders hand kernels over about once a second: a rate over less would jump. */
static void window_tell(struct live_program *program, int64_t now_ns)
{
    if (now_ns - program->window_ns < LIVE_WINDOW_NS)
        return;
    program->top_kernel = 0;
    for (uint32_t id = 1; program->durations_ns && id < program->name_count; id++)
        if (program->durations_ns[id] > (program->top_kernel ? program->durations_ns[program->top_kernel] : 0))
            program->top_kernel = id;
    program->has_rate = program->is_window_whole;
    program->kernels_per_s = (double)program->window_kernels * 1e9 / (double)(now_ns - program->window_ns);
    window_begin(program, now_ns);
}

static void program_tick(struct live_kernels *live, struct live_program *program)
{
    uint64_t kernels = 0;
    bool is_whole = true, is_first = program->read_ns == 0;
    int64_t now_ns = clock_mono_ns();
    if (program->fd >= 0 && !log_is_current(program, live->root)) {
        is_whole = program_drain(live, program, &kernels);
        close(program->fd);
        program->fd = -1;
        program->looked_ns = 0;
    }
    if (program->fd < 0 && (!program->looked_ns || now_ns - program->looked_ns > LOOK_AGAIN_NS)) {
        program->looked_ns = now_ns;
        log_find(program, live->root);
    }
    if (program->fd < 0) {
        program->read_ns = 0;
        program->has_rate = false;
        program->top_kernel = 0;
        return;
    }
    is_whole = program_drain(live, program, &kernels) && is_whole;
    if (is_first) {
        program->has_rate = false;
        window_begin(program, now_ns);
    } else {
        program->window_kernels += kernels;
        program->is_window_whole &= is_whole;
        window_tell(program, now_ns);
    }
    program->read_ns = now_ns;
}

void live_kernels_begin(struct live_kernels *live)
{
    for (uint32_t i = 0; i < live->count; i++)
        live->programs[i].is_asked = false;
}

static struct live_program *program_of(struct live_kernels *live, uint32_t pid)
{
    for (uint32_t i = 0; i < live->count; i++)
        if (live->programs[i].pid == pid)
            return &live->programs[i];
    if (live->count == LIVE_PROGRAMS_MAX)
        return NULL;
    struct live_program *program = &live->programs[live->count++];
    *program = (struct live_program){.pid = pid, .fd = -1};
    return program;
}

const struct live_program *live_kernels_ask(struct live_kernels *live, uint32_t pid)
{
    struct live_program *program = program_of(live, pid);
    if (!program)
        return NULL;
    if (!program->is_asked) /* a process may be on several GPUs */
        program_tick(live, program);
    program->is_asked = true;
    return program->fd >= 0 ? program : NULL;
}

void live_kernels_end(struct live_kernels *live)
{
    for (uint32_t i = 0; i < live->count;) {
        if (live->programs[i].is_asked) {
            i++;
            continue;
        }
        program_forget(&live->programs[i]);
        live->programs[i] = live->programs[--live->count];
    }
}

const struct live_program *live_kernels_find(const struct live_kernels *live, uint32_t pid)
{
    for (uint32_t i = 0; i < live->count; i++)
        if (live->programs[i].pid == pid && live->programs[i].fd >= 0)
            return &live->programs[i];
    return NULL;
}

const char *live_kernel_name(const struct live_program *program, uint32_t id)
{
    return id < program->name_count ? program->names[id] : NULL;
}
