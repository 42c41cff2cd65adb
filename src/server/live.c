/* SPDX-License-Identifier: Apache-2.0 */
#include "server/live.h"

#include "format/json.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEY_SIZE = 160, TEXT_SIZE = 128, SNAPSHOT_BYTES_MAX = 192 << 10, TICK_EVENTS_MAX = 2048 };
#define NO_ENTRY UINT32_MAX

struct live_entry {
    char key[KEY_SIZE];
    char app[TEXT_SIZE], host[TEXT_SIZE], state[16]; /* sessions */
    uint64_t rows, kernels, bytes;
    int64_t at_ns;
    struct bytes json; /* GPUs; owned */
    uint64_t used;     /* last use, by the table's count of changes */
    uint32_t next;     /* in the chain of its hash */
    bool is_changed;
};

struct live_table {
    struct live_entry *entries; /* owned; grows up to `most` entries */
    uint32_t count, capacity, most;
    uint32_t *chains; /* owned; by hash */
    uint32_t chain_count;
    uint64_t changes;
};

struct live {
    pthread_mutex_t lock;
    struct http_server *server; /* borrowed */
    struct live_table sessions, gpus;
};

static bool table_open(struct live_table *table, uint32_t most)
{
    *table = (struct live_table){.most = most, .chain_count = most};
    table->chains = malloc(most * sizeof *table->chains);
    if (table->chains)
        memset(table->chains, 0xff, most * sizeof *table->chains);
    return table->chains;
}

static void table_close(struct live_table *table)
{
    for (uint32_t i = 0; i < table->count; i++)
        bytes_free(&table->entries[i].json);
    free(table->entries);
    free(table->chains);
}

static uint32_t *chain_of(struct live_table *table, const char *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * UINT64_C(0x100000001b3);
    return &table->chains[(hash ^ hash >> 32) % table->chain_count];
}

/* Removes the entry that was not touched for the longest time. */
static uint32_t oldest_take(struct live_table *table)
{
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < table->count; i++)
        if (table->entries[i].used < table->entries[oldest].used)
            oldest = i;
    uint32_t *link = chain_of(table, table->entries[oldest].key);
    while (*link != oldest)
        link = &table->entries[*link].next;
    *link = table->entries[oldest].next;
    return oldest;
}

static uint32_t place_make(struct live_table *table)
{
    if (table->count == table->most)
        return oldest_take(table);
    if (table->count == table->capacity) {
        uint32_t capacity = table->capacity ? table->capacity * 2 : 64;
        struct live_entry *grown = realloc(table->entries, capacity * sizeof *grown);
        if (!grown)
            return table->count ? oldest_take(table) : NO_ENTRY;
        memset(grown + table->capacity, 0, (capacity - table->capacity) * sizeof *grown);
        table->entries = grown;
        table->capacity = capacity;
    }
    return table->count++;
}

/* Returns the entry of the key, creating it if needed; NULL: no memory. */
static struct live_entry *table_entry(struct live_table *table, const char *key)
{
    uint32_t *chain = chain_of(table, key), at = *chain;
    while (at != NO_ENTRY && strcmp(table->entries[at].key, key) != 0)
        at = table->entries[at].next;
    if (at == NO_ENTRY) {
        at = place_make(table);
        if (at == NO_ENTRY)
            return NULL;
        struct live_entry *entry = &table->entries[at];
        struct bytes json = entry->json;
        *entry = (struct live_entry){.json = json, .next = *chain};
        bytes_clear(&entry->json);
        snprintf(entry->key, sizeof entry->key, "%s", key);
        *chain = at;
    }
    struct live_entry *entry = &table->entries[at];
    entry->used = ++table->changes;
    entry->is_changed = true;
    return entry;
}

gpufl_status live_open(struct live **out)
{
    struct live *live = calloc(1, sizeof *live);
    if (!live)
        return GPUFL_E_NO_MEMORY;
    pthread_mutex_init(&live->lock, NULL);
    if (!table_open(&live->sessions, LIVE_SESSIONS_MAX) || !table_open(&live->gpus, LIVE_GPUS_MAX)) {
        live_close(live);
        return GPUFL_E_NO_MEMORY;
    }
    *out = live;
    return GPUFL_OK;
}

void live_close(struct live *live)
{
    if (!live)
        return;
    table_close(&live->sessions);
    table_close(&live->gpus);
    pthread_mutex_destroy(&live->lock);
    free(live);
}

void live_attach(struct live *live, struct http_server *server)
{
    pthread_mutex_lock(&live->lock);
    live->server = server;
    pthread_mutex_unlock(&live->lock);
}

static void text_keep(char out[TEXT_SIZE], const char *text)
{
    if (text && *text)
        snprintf(out, TEXT_SIZE, "%s", text);
}

void live_session_changed(struct live *live, const struct live_change *change)
{
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "%s", change->session_id);
    pthread_mutex_lock(&live->lock);
    struct live_entry *entry = table_entry(&live->sessions, key);
    if (entry) {
        text_keep(entry->app, change->app);
        text_keep(entry->host, change->host);
        if (change->state && *change->state)
            snprintf(entry->state, sizeof entry->state, "%s", change->state);
        entry->rows += change->rows;
        entry->kernels += change->kernels;
        entry->bytes += change->bytes;
        entry->at_ns = change->at_ns;
    }
    pthread_mutex_unlock(&live->lock);
}

static void row_write(struct bytes *out, const char *session_id, const char *host, const struct batch_view *view,
                      uint32_t row)
{
    int64_t dt_ns = view->columns[DEVICE_METRIC_DT_NS].present ? view->columns[DEVICE_METRIC_DT_NS].cells[row] : 0;
    int64_t at_ns;
    bytes_clear(out);
    bytes_append_char(out, '{');
    json_key(out, "host");
    json_text(out, host);
    json_key(out, "session_id");
    json_text(out, session_id);
    json_key(out, "ts_ns");
    if (dt_ns == CELL_UNKNOWN || __builtin_add_overflow(view->base_time_ns, dt_ns, &at_ns))
        json_text(out, NULL);
    else
        json_int(out, at_ns);
    for (unsigned i = 0; i < view->info->column_count; i++) {
        const struct batch_column *column = &view->columns[i];
        if (i == DEVICE_METRIC_DT_NS || !column->present || column->cells[row] == CELL_UNKNOWN)
            continue;
        json_key(out, view->info->columns[i].name);
        if (view->info->columns[i].type == CELL_F64) {
            double value;
            memcpy(&value, &column->cells[row], sizeof value);
            json_double(out, value);
        } else if (view->info->columns[i].type == CELL_U64) {
            json_uint(out, (uint64_t)column->cells[row]);
        } else {
            json_int(out, column->cells[row]);
        }
    }
    bytes_append_char(out, '}');
}

void live_metrics_changed(struct live *live, const char *session_id, const char *host, const struct batch_view *view)
{
    const struct batch_column *devices = &view->columns[DEVICE_METRIC_DEVICE_ID];
    if (view->info->type != RECORD_DEVICE_METRIC_BATCH || !devices->present)
        return;
    enum { DEVICES_MAX = 64 };
    int64_t seen[DEVICES_MAX];
    unsigned seen_count = 0;
    pthread_mutex_lock(&live->lock);
    for (uint32_t row = view->row_count; row-- > 0 && seen_count < DEVICES_MAX;) {
        unsigned i = 0;
        while (i < seen_count && seen[i] != devices->cells[row])
            i++;
        if (i < seen_count)
            continue;
        seen[seen_count++] = devices->cells[row];
        char key[KEY_SIZE];
        snprintf(key, sizeof key, "%.120s/%" PRId64, session_id, devices->cells[row]);
        struct live_entry *entry = table_entry(&live->gpus, key);
        if (entry)
            row_write(&entry->json, session_id, host, view, row);
    }
    pthread_mutex_unlock(&live->lock);
}

static void session_write(struct bytes *out, const struct live_entry *entry)
{
    const struct {
        const char *name, *text;
    } texts[] = {{"session_id", entry->key}, {"app", entry->app}, {"host", entry->host}, {"state", entry->state}};
    bytes_clear(out);
    bytes_append_char(out, '{');
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_key(out, texts[i].name);
        json_text(out, texts[i].text[0] ? texts[i].text : NULL);
    }
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"rows_received", entry->rows}, {"kernels_received", entry->kernels}, {"bytes_received", entry->bytes}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        json_key(out, numbers[i].name);
        json_uint(out, numbers[i].value);
    }
    json_key(out, "changed_ns");
    json_int(out, entry->at_ns);
    bytes_append_char(out, '}');
}

struct live_kind {
    const char *topic, *name;
    bool is_session;
};
static const struct live_kind kinds[] = {{LIVE_SESSIONS, "session", true}, {LIVE_GPUS, "gpu", false}};

static struct live_table *table_of(struct live *live, const struct live_kind *kind)
{
    return kind->is_session ? &live->sessions : &live->gpus;
}

static const struct bytes *entry_text(struct live_entry *entry, const struct live_kind *kind, struct bytes *buffer)
{
    if (!kind->is_session)
        return &entry->json;
    session_write(buffer, entry);
    return buffer;
}

void live_tick(struct live *live)
{
    struct bytes buffer = {0};
    pthread_mutex_lock(&live->lock);
    for (size_t i = 0; live->server && i < sizeof kinds / sizeof *kinds; i++) {
        struct live_table *table = table_of(live, &kinds[i]);
        unsigned sent = 0;
        for (uint32_t j = 0; j < table->count && sent < TICK_EVENTS_MAX; j++) {
            struct live_entry *entry = &table->entries[j];
            if (!entry->is_changed)
                continue;
            const struct bytes *text = entry_text(entry, &kinds[i], &buffer);
            if (text->size && !text->failed)
                http_server_publish(live->server, kinds[i].topic, kinds[i].name, text->data, text->size);
            entry->is_changed = false;
            sent++;
        }
    }
    pthread_mutex_unlock(&live->lock);
    bytes_free(&buffer);
}

void live_subscribe(struct live *live, struct http_exchange *exchange, const char *topic)
{
    struct bytes first = {0}, buffer = {0};
    pthread_mutex_lock(&live->lock);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct live_table *table = table_of(live, &kinds[i]);
        if (*topic && strcmp(topic, kinds[i].topic) != 0)
            continue;
        for (uint32_t j = 0; j < table->count && first.size < SNAPSHOT_BYTES_MAX; j++) {
            const struct bytes *text = entry_text(&table->entries[j], &kinds[i], &buffer);
            if (text->size && !text->failed)
                http_event_append(&first, kinds[i].name, text->data, text->size);
        }
    }
    pthread_mutex_unlock(&live->lock);
    http_respond_events(exchange, topic, &first);
    bytes_free(&first);
    bytes_free(&buffer);
}
