/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/code_store.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/intern_cache.h"
#include "base/own_thread.h"
#include "base/stages.h"
#include "base/watch.h"
#include "base/queue.h"
#include "base/timed_lock.h"
#include "code/line_table.h"
#include "code/source_text.h"
#include "format/json.h"
#include "logfile/line.h"
#include "logfile/packed_bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    WAITING_COUNT_MAX = 1024,
    LINE_KEPT_BYTES = 1 << 20,
    KEY_BYTES_MAX = 8 << 20,
    SOURCE_LINES_MAX = 100000, /* readers reject lines with more values than they can hold */
    JOIN_GRACE_MS = 1000,
    DISK_LOOK_MS = 100
};

static const uint64_t bytes_max_default = (uint64_t)256 << 20, waiting_bytes_max_default = (uint64_t)64 << 20,
                      source_bytes_max_default = (uint64_t)64 << 20;

struct waiting_item {
    bool is_path; /* path of a source file, with its end; otherwise a code image */
    size_t size;
    uint8_t bytes[];
};

/* Identifies one content. */
struct image_key {
    uint64_t crc, size;
    uint64_t is_cupti; /* 64 bits like the others: the key has no padding */
};

struct code_store {
    struct code_store_options options;
    char session_id[40];
    struct queue waiting; /* of struct waiting_item */
    struct queue_slot slots[WAITING_COUNT_MAX];
    _Atomic uint64_t waiting_bytes;
    sem_t work; /* posted for each addition, and to stop */
    atomic_bool is_stopping;
    _Atomic int64_t deadline_mono_ns; /* once is_stopping */
    pthread_t thread;
    bool has_thread;
    /* Held by the worker while it works, except while it reads a file, which may hang on a network file system. Such
     * a worker is abandoned, and touches only its own memory when it returns. */
    pthread_mutex_t working;
    _Atomic bool is_left;
    _Atomic int64_t cpu_ns;
    _Atomic size_t bytes;

    /* Used by the worker only. */
    struct intern_cache keys;  /* code seen */
    struct intern_cache paths; /* source files seen; their ids are the source_file_ids */
    char *directory;           /* base of relative paths: the session's working directory; NULL: not known */
    uint64_t bytes_kept, source_bytes_kept;
    struct bytes line;
};

static bool is_out_of_time(const struct code_store *store)
{
    return atomic_load(&store->is_stopping) && clock_mono_ns() >= atomic_load(&store->deadline_mono_ns);
}

static struct bytes *line_begin(struct code_store *store, enum record_type type)
{
    struct bytes *line = &store->line;
    if (line->capacity > LINE_KEPT_BYTES)
        bytes_free(line);
    line->limit = LINE_SIZE_MAX - LINE_TRAILER_MAX;
    bytes_clear(line);
    bytes_append_format(line, "{\"version\":%d,\"type\":\"%s\",\"session_id\":\"%s\"", record_catalogue[type].version,
                        record_catalogue[type].name, store->session_id);
    return line;
}

/* Code is read faster than a slow disk can write it: this thread waits, so that its lines do not fill the writer's
 * memory. */
static void wait_for_disk(struct code_store *store)
{
    while (!log_writer_settle(store->options.writer, DISK_LOOK_MS) && !atomic_load(&store->is_stopping)) {
    }
}

/* The writer counts lines that it could not write. */
static void line_end(struct code_store *store, enum record_type type, enum channel channel)
{
    wait_for_disk(store);
    (void)log_writer_line(store->options.writer, channel, type, &store->line, 1);
}

static struct bytes *code_line_begin(struct code_store *store, const struct image_key *key,
                                     const struct code_image *image)
{
    struct bytes *line = line_begin(store, RECORD_CODE_OBJECT);
    bytes_append_format(line, ",\"ts_ns\":%" PRId64 ",\"cubin_crc\":\"%" PRIu64 "\",\"crc_source\":\"%s\",\"arch\":",
                        clock_log_ns(), key->crc, key->is_cupti ? "cupti" : "crc32c");
    json_text(line, image ? image->arch : NULL);
    json_key(line, "bytes");
    json_uint(line, key->size);
    json_key(line, "function_count");
    if (image)
        json_uint(line, image->function_count);
    else
        json_text(line, NULL);
    return line;
}

static void skipped_write(struct code_store *store, const struct image_key *key, const struct code_image *image,
                          enum loss_reason loss, const char *reason)
{
    struct bytes *line = code_line_begin(store, key, image);
    bytes_append_text(line, ",\"skipped\":{\"reason\":");
    json_text(line, reason);
    bytes_append_char(line, '}');
    line_end(store, RECORD_CODE_OBJECT, CHANNEL_SASS);
    recorder_lose_because(store->options.recorder, loss, 1, reason);
}

static void image_write(struct code_store *store, const struct image_key *key, const struct code_image *image)
{
    struct problem problem = {""};
    if (key->size > store->options.bytes_max - store->bytes_kept) {
        snprintf(problem.text, sizeof problem.text, "more than %" PRIu64 " bytes of code in the session",
                 store->options.bytes_max);
        skipped_write(store, key, image, LOSS_CODE_LIMIT, problem.text);
        return;
    }
    struct bytes *line = code_line_begin(store, key, image);
    bytes_append_text(line, ",\"encoding\":\"" PACKED_BYTES_ENCODING "\",\"data\":\"");
    gpufl_status status = packed_bytes_append(line, image->bytes, image->size, &problem);
    if (status) {
        skipped_write(store, key, image, status == GPUFL_E_LIMIT ? LOSS_CODE_LIMIT : LOSS_CODE_MEMORY, problem.text);
        return;
    }
    bytes_append_char(line, '"');
    line_end(store, RECORD_CODE_OBJECT, CHANNEL_SASS);
    store->bytes_kept += key->size;
}

static void source_write(struct code_store *store, uint32_t id, const char *path, const struct source_text *source)
{
    struct bytes *line = line_begin(store, RECORD_DICTIONARY_UPDATE);
    bytes_append_format(line, ",\"%s\":{\"%" PRIu32 "\":", dictionary_catalogue[DICTIONARY_SOURCE_FILE].name, id);
    json_text(line, path);
    bytes_append_char(line, '}');
    line_end(store, RECORD_DICTIONARY_UPDATE, CHANNEL_SCOPE);
    line = line_begin(store, RECORD_SOURCE_FILE_CONTENT);
    json_key(line, "source_file_id");
    json_uint(line, id);
    json_key(line, "path");
    json_text(line, path);
    json_key(line, "lines");
    bytes_append_char(line, '[');
    for (uint32_t i = 0; i < source->line_count; i++) {
        if (i)
            bytes_append_char(line, ',');
        json_string(line, source->lines[i].text, source->lines[i].size);
    }
    bytes_append_char(line, ']');
    line_end(store, RECORD_SOURCE_FILE_CONTENT, CHANNEL_SASS);
    store->source_bytes_kept += source->size;
}

/* False: the worker was abandoned meanwhile. */
static bool source_read(struct code_store *store, const char *path, struct source_text *source, gpufl_status *status)
{
    pthread_mutex_unlock(&store->working);
    *status = source_text_read(source, path, store->directory, NULL);
    pthread_mutex_lock(&store->working);
    if (store->is_left && *status == GPUFL_OK)
        source_text_free(source);
    return !store->is_left;
}

/* A file that was seen before is already written; the report gives the reason for a file that cannot be read. */
static void source_store(struct code_store *store, const char *path)
{
    bool is_new = false;
    uint32_t id = intern_cache_id(&store->paths, path, strlen(path), &is_new);
    struct source_text source;
    gpufl_status status;
    if (!id)
        recorder_lose(store->options.recorder, LOSS_SOURCE_LIMIT, 1);
    if (!id || !is_new || !source_read(store, path, &source, &status) || status != GPUFL_OK)
        return;
    if (source.size > store->options.source_bytes_max - store->source_bytes_kept ||
        source.line_count > SOURCE_LINES_MAX)
        recorder_lose(store->options.recorder, LOSS_SOURCE_LIMIT, 1);
    else
        source_write(store, id, path, &source);
    source_text_free(&source);
}

/* Stores the files of a line table. */
static void sources_store(struct code_store *store, const struct code_image *image)
{
    struct line_table table;
    if (line_table_open(&table, image, LINE_TABLE_SOURCE, NULL))
        return;
    for (uint32_t i = 1; i <= table.paths.count && !store->is_left && !is_out_of_time(store); i++)
        source_store(store, intern_text(&table.paths, i));
    line_table_close(&table);
}

static struct image_key key_of(const struct code_store *store, const struct waiting_item *item)
{
    uint64_t crc = 0;
    if (store->options.crc && image_vendor_of(item->bytes, item->size) == IMAGE_NVIDIA)
        crc = store->options.crc(store->options.crc_user, item->bytes, item->size);
    bool is_cupti = crc != 0;
    return (struct image_key){is_cupti ? crc : crc32c(0, item->bytes, item->size), item->size, is_cupti};
}

static void image_store(struct code_store *store, const struct waiting_item *item)
{
    struct image_key key = key_of(store, item);
    bool is_new; /* also if memory is exhausted or it was evicted: a duplicate is better than a gap */
    (void)intern_cache_id(&store->keys, &key, sizeof key, &is_new);
    if (!is_new)
        return;
    struct code_image image;
    struct problem problem = {""};
    if (image_open(&image, item->bytes, item->size, &problem)) {
        skipped_write(store, &key, NULL, LOSS_CODE_INVALID, problem.text);
        return;
    }
    image_write(store, &key, &image);
    if (store->options.with_source)
        sources_store(store, &image);
    image_close(&image);
}

static struct waiting_item *item_take(struct code_store *store)
{
    struct waiting_item *item = queue_pop(&store->waiting);
    if (item)
        atomic_fetch_sub(&store->waiting_bytes, item->size);
    return item;
}

static void item_store(struct code_store *store, const struct waiting_item *item)
{
    if (is_out_of_time(store))
        recorder_lose(store->options.recorder, item->is_path ? LOSS_SOURCE_LIMIT : LOSS_CODE_UNWRITTEN, 1);
    else if (item->is_path)
        source_store(store, (const char *)item->bytes);
    else
        image_store(store, item);
}

static void waiting_free(struct code_store *store)
{
    for (struct waiting_item *item; (item = queue_pop(&store->waiting));)
        free(item);
}

/* Stores what is in the queue; false: the worker was abandoned. */
static bool work_round(struct code_store *store)
{
    struct waiting_item *item;
    pthread_mutex_lock(&store->working);
    while (!store->is_left && (item = item_take(store))) {
        item_store(store, item);
        free(item);
    }
    bool is_left = store->is_left;
    atomic_store(&store->cpu_ns, clock_thread_cpu_ns());
    atomic_store(&store->bytes,
                 intern_cache_bytes(&store->keys) + intern_cache_bytes(&store->paths) + store->line.capacity);
    pthread_mutex_unlock(&store->working);
    return !is_left;
}

static void *worker_main(void *argument)
{
    struct code_store *store = argument;
    for (;;) {
        bool is_last = atomic_load(&store->is_stopping);
        if (!work_round(store) || is_last)
            return NULL;
        while (sem_wait(&store->work) && errno == EINTR)
            continue;
    }
}

static bool worker_start(struct code_store *store)
{
    store->has_thread = own_thread_start(&store->thread, "gpufl-code", OWN_THREAD_STACK_SMALL, worker_main, store);
    return store->has_thread;
}

static uint64_t or_default(uint64_t value, uint64_t standard)
{
    return value ? value : standard;
}

gpufl_status code_store_make(struct code_store **out, const struct code_store_options *options, struct problem *problem)
{
    struct code_store *store = calloc(1, sizeof *store);
    if (!store)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to keep code");
    store->options = *options;
    store->options.session_id = NULL;
    store->options.bytes_max = or_default(options->bytes_max, bytes_max_default);
    store->options.waiting_bytes_max = or_default(options->waiting_bytes_max, waiting_bytes_max_default);
    store->options.source_bytes_max = or_default(options->source_bytes_max, source_bytes_max_default);
    snprintf(store->session_id, sizeof store->session_id, "%s", options->session_id);
    store->keys.bytes_max = store->paths.bytes_max = KEY_BYTES_MAX;
    queue_init(&store->waiting, store->slots, WAITING_COUNT_MAX);
    sem_init(&store->work, 0, 0);
    pthread_mutex_init(&store->working, NULL);
    store->directory = getcwd(NULL, 0);
    if (!worker_start(store)) {
        code_store_free(store);
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no thread to keep code");
    }
    *out = store;
    return GPUFL_OK;
}

static void item_add(struct code_store *store, const void *bytes, size_t size, bool is_path)
{
    if (!size || atomic_load(&store->is_stopping))
        return;
    int saved_errno = errno;
    struct waiting_item *item = NULL;
    uint64_t before = atomic_fetch_add(&store->waiting_bytes, size);
    if (before <= store->options.waiting_bytes_max && size <= store->options.waiting_bytes_max - before)
        item = malloc(sizeof *item + size);
    if (item) {
        *item = (struct waiting_item){.is_path = is_path, .size = size};
        memcpy(item->bytes, bytes, size);
    }
    if (item && queue_push(&store->waiting, item)) {
        sem_post(&store->work);
    } else {
        free(item);
        atomic_fetch_sub(&store->waiting_bytes, size);
        recorder_lose(store->options.recorder, is_path ? LOSS_SOURCE_LIMIT : LOSS_CODE_MEMORY, 1);
    }
    errno = saved_errno;
}

void code_store_add(struct code_store *store, const void *cubin, size_t size)
{
    item_add(store, cubin, size, false);
}

void code_store_add_source(struct code_store *store, const char *path)
{
    if (store->options.with_source && source_text_is_name(path))
        item_add(store, path, strlen(path) + 1, true);
}

void code_store_lose_source(struct code_store *store)
{
    if (store->options.with_source)
        recorder_lose(store->options.recorder, LOSS_SOURCE_LIMIT, 1);
}

int64_t code_store_cpu_ns(const struct code_store *store)
{
    return atomic_load(&store->cpu_ns);
}

size_t code_store_bytes(const struct code_store *store)
{
    return sizeof *store + atomic_load(&store->waiting_bytes) + atomic_load(&store->bytes);
}

/* The worker may be reading a file, with the mutex free. Otherwise it is in a write, and continues. */
static void worker_leave(struct code_store *store)
{
    bool is_locked = mutex_lock_in_time(&store->working, INT64_C(1000000000));
    atomic_store(&store->is_left, true);
    recorder_lose_because(store->options.recorder, LOSS_SOURCE_LIMIT, 1, "a source file could not be read in time");
    if (is_locked)
        pthread_mutex_unlock(&store->working);
}

void code_store_stop(struct code_store *store, unsigned deadline_ms)
{
    if (!store->has_thread)
        return;
    const char *call;
    int64_t now_ns = clock_mono_ns();
    int64_t wait_ns = stages_until_ns((deadline_ms + INT64_C(1) * JOIN_GRACE_MS) * 1000000) - now_ns;
    int64_t until_ns = now_ns + wait_ns;
    /* Even a short wait leaves some time for the file that is being read. */
    int64_t grace_ns = JOIN_GRACE_MS * INT64_C(1000000) < wait_ns / 3 ? JOIN_GRACE_MS * INT64_C(1000000) : wait_ns / 3;
    atomic_store(&store->deadline_mono_ns, deadline_ms ? until_ns - grace_ns : now_ns);
    atomic_store(&store->is_stopping, true);
    sem_post(&store->work);
    store->has_thread = false;
    enum watch_end end = watch_join(store->thread, until_ns, until_ns, &call);
    if (end == WATCH_HUNG) { /* it will never release the mutex */
        atomic_store(&store->is_left, true);
        recorder_lose_because(store->options.recorder, LOSS_CODE_UNWRITTEN, 1, call);
    } else if (end == WATCH_BUSY) {
        worker_leave(store);
    }
}

void code_store_free(struct code_store *store)
{
    if (!store || store->is_left) /* its thread may still use it */
        return;
    waiting_free(store);
    sem_destroy(&store->work);
    pthread_mutex_destroy(&store->working);
    intern_cache_free(&store->keys);
    intern_cache_free(&store->paths);
    bytes_free(&store->line);
    free(store->directory);
    free(store);
}

void code_store_abandon(struct code_store *store)
{
    if (!store)
        return;
    /* Not the worker's own tables: it may have been changing them when the process forked. */
    waiting_free(store);
    free(store);
}
