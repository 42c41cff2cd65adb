/* SPDX-License-Identifier: Apache-2.0 */
#include "server/keys.h"

#include "base/clock.h"
#include "base/sha256.h"
#include "server/token_bucket.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

_Static_assert((int)SHA256_SIZE == (int)STORE_KEY_HASH_SIZE, "fingerprints fit the store");

enum { KEY_RANDOM_BYTES = 24, KEY_TEXT_BYTES_MIN = 20, KEYS_MAX = 100000, BURST_SECONDS = 2 };
#define DAY_NS (INT64_C(86400) * 1000000000)

struct key_entry {
    struct store_key key;
    char label[STORE_NAME_MAX + 32];
    bool is_fixed; /* not from the store */
    bool is_seen;  /* found by the current load */
    struct token_bucket requests, bytes;
    int64_t day; /* since 1970, of day_bytes */
    uint64_t day_bytes;
    int64_t used_ns, saved_ns;
};

struct key_ring {
    pthread_mutex_t lock;      /* guards everything below */
    pthread_mutex_t save_lock; /* one reader or writer of the store's keys at a time */
    struct key_limits limits;
    struct key_entry **entries; /* owned; entries do not move until the ring is closed */
    size_t count, capacity;
    struct key_counts counts;
    struct key_refusal refusals[KEY_REFUSALS_MAX + 1]; /* the last entry counts those that did not fit */
    size_t refusal_count;                              /* without the last */
};

static const struct {
    const char *name;
    int64_t scope;
} scopes[] = {{"ingest", KEY_SCOPE_INGEST}, {"read", KEY_SCOPE_READ}, {"admin", KEY_SCOPE_ADMIN}};

int64_t key_scope_parse(const char *text)
{
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
        if (!strcmp(text, scopes[i].name))
            return scopes[i].scope;
    return 0;
}

const char *key_scope_name(int64_t scope)
{
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
        if (scope == scopes[i].scope)
            return scopes[i].name;
    return "?";
}

gpufl_status key_describe(const char *text, size_t size, struct store_key *key, struct problem *problem)
{
    if (size < KEY_TEXT_BYTES_MIN)
        return problem_set(problem, GPUFL_E_INVALID, "a key has at least %d characters", KEY_TEXT_BYTES_MIN);
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, text, size);
    sha256_end(&hash, key->hash);
    snprintf(key->prefix, sizeof key->prefix, "%.*s", KEY_PREFIX_SIZE - 1, text);
    return GPUFL_OK;
}

gpufl_status key_make(char text[KEY_TEXT_SIZE], struct store_key *key, struct problem *problem)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t secret[KEY_RANDOM_BYTES];
    if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        return problem_set(problem, GPUFL_E_IO, "no random bytes for a key: %s", strerror(errno));
    char *out = text + snprintf(text, KEY_TEXT_SIZE, "gpfl_");
    for (size_t i = 0; i < sizeof secret; i += 3) {
        uint32_t bits = (uint32_t)secret[i] << 16 | (uint32_t)secret[i + 1] << 8 | secret[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6)
            *out++ = alphabet[bits >> shift & 63];
    }
    *out = '\0';
    explicit_bzero(secret, sizeof secret);
    *key = (struct store_key){.created_ns = clock_wall_ns(),
                              .expires_ns = CELL_UNKNOWN,
                              .revoked_ns = CELL_UNKNOWN,
                              .last_used_ns = CELL_UNKNOWN,
                              .rate_per_s = CELL_UNKNOWN,
                              .quota_bytes_per_day = CELL_UNKNOWN};
    return key_describe(text, KEY_TEXT_SIZE - 1, key, problem);
}

gpufl_status key_ring_open(struct key_ring **out, const struct key_limits *limits)
{
    struct key_ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return GPUFL_E_NO_MEMORY;
    pthread_mutex_init(&ring->lock, NULL);
    pthread_mutex_init(&ring->save_lock, NULL);
    ring->limits = *limits;
    *out = ring;
    return GPUFL_OK;
}

void key_ring_close(struct key_ring *ring)
{
    if (!ring)
        return;
    for (size_t i = 0; i < ring->count; i++)
        free(ring->entries[i]);
    free(ring->entries);
    pthread_mutex_destroy(&ring->save_lock);
    pthread_mutex_destroy(&ring->lock);
    free(ring);
}

/* Requires the lock. Returns the entry with the key's fingerprint, creating it if needed; NULL: no memory or too
 * many. */
static struct key_entry *entry_get(struct key_ring *ring, const struct store_key *key)
{
    for (size_t i = 0; i < ring->count; i++)
        if (!memcmp(ring->entries[i]->key.hash, key->hash, sizeof key->hash))
            return ring->entries[i];
    if (ring->count == KEYS_MAX)
        return NULL;
    if (ring->count == ring->capacity) {
        size_t capacity = ring->capacity * 2 + 16;
        struct key_entry **grown = realloc(ring->entries, capacity * sizeof(struct key_entry *));
        if (!grown)
            return NULL;
        ring->entries = grown;
        ring->capacity = capacity;
    }
    struct key_entry *entry = calloc(1, sizeof *entry);
    if (entry)
        ring->entries[ring->count++] = entry;
    return entry;
}

static void entry_set(struct key_entry *entry, const struct store_key *key)
{
    bool is_new = !entry->label[0];
    entry->key = *key;
    /* Threads that hold the entry read the label without the lock, so it is written only once. */
    if (is_new)
        snprintf(entry->label, sizeof entry->label, "%s%s%s", key->prefix, key->name[0] ? " " : "", key->name);
}

struct key_load {
    struct key_ring *ring;
    bool has_failed;
};

static bool load_one(void *user, const struct store_key *key)
{
    struct key_load *load = user;
    pthread_mutex_lock(&load->ring->lock);
    struct key_entry *entry = entry_get(load->ring, key);
    if (entry) {
        entry_set(entry, key);
        entry->is_seen = true;
    }
    pthread_mutex_unlock(&load->ring->lock);
    load->has_failed = !entry;
    return entry;
}

gpufl_status key_ring_load(struct key_ring *ring, struct store *store, struct problem *problem)
{
    struct key_load load = {.ring = ring};
    pthread_mutex_lock(&ring->save_lock);
    pthread_mutex_lock(&ring->lock);
    for (size_t i = 0; i < ring->count; i++)
        ring->entries[i]->is_seen = false;
    pthread_mutex_unlock(&ring->lock);
    gpufl_status status = store_keys(store, load_one, &load, problem);
    if (!status && load.has_failed)
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "too many keys in the store");
    pthread_mutex_lock(&ring->lock);
    for (size_t i = 0; !status && i < ring->count; i++) {
        struct key_entry *entry = ring->entries[i];
        if (!entry->is_seen && !entry->is_fixed && entry->key.revoked_ns == CELL_UNKNOWN)
            entry->key.revoked_ns = clock_wall_ns(); /* no longer in the store */
    }
    pthread_mutex_unlock(&ring->lock);
    pthread_mutex_unlock(&ring->save_lock);
    return status;
}

gpufl_status key_ring_add(struct key_ring *ring, const char *text, size_t size, int64_t scope, const char *name,
                          struct problem *problem)
{
    struct store_key key = {.scope = scope,
                            .created_ns = clock_wall_ns(),
                            .expires_ns = CELL_UNKNOWN,
                            .revoked_ns = CELL_UNKNOWN,
                            .last_used_ns = CELL_UNKNOWN,
                            .rate_per_s = CELL_UNKNOWN,
                            .quota_bytes_per_day = CELL_UNKNOWN};
    gpufl_status status = key_describe(text, size, &key, problem);
    if (status)
        return status;
    snprintf(key.name, sizeof key.name, "%s", name);
    pthread_mutex_lock(&ring->lock);
    struct key_entry *entry = entry_get(ring, &key);
    if (entry) {
        entry_set(entry, &key);
        entry->is_fixed = true;
    }
    pthread_mutex_unlock(&ring->lock);
    return entry ? GPUFL_OK : problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a key");
}

void key_ring_save_use(struct key_ring *ring, struct store *store)
{
    pthread_mutex_lock(&ring->save_lock);
    for (size_t i = 0;; i++) {
        pthread_mutex_lock(&ring->lock);
        struct key_entry *entry = i < ring->count ? ring->entries[i] : NULL;
        int64_t used_ns = entry && !entry->is_fixed && entry->used_ns != entry->saved_ns ? entry->used_ns : 0;
        uint8_t hash[STORE_KEY_HASH_SIZE];
        if (entry)
            memcpy(hash, entry->key.hash, sizeof hash);
        pthread_mutex_unlock(&ring->lock);
        if (!entry)
            break;
        if (used_ns && !store_key_use(store, hash, used_ns, NULL)) {
            pthread_mutex_lock(&ring->lock);
            entry->saved_ns = used_ns;
            pthread_mutex_unlock(&ring->lock);
        }
    }
    pthread_mutex_unlock(&ring->save_lock);
}

static bool key_is_active(const struct store_key *key, int64_t now_ns)
{
    return key->revoked_ns == CELL_UNKNOWN && (key->expires_ns == CELL_UNKNOWN || key->expires_ns > now_ns);
}

size_t key_ring_count(struct key_ring *ring, size_t *active)
{
    int64_t now_ns = clock_wall_ns();
    *active = 0;
    pthread_mutex_lock(&ring->lock);
    size_t count = ring->count;
    for (size_t i = 0; i < count; i++)
        *active += key_is_active(&ring->entries[i]->key, now_ns);
    pthread_mutex_unlock(&ring->lock);
    return count;
}

PRINTF_LIKE(3, 4)
static void refuse(struct http_access *access, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(access->reason, sizeof access->reason, format, args);
    va_end(args);
    access->status = status;
}

static double limit_of(int64_t own, uint64_t usual)
{
    return own == CELL_UNKNOWN || own < 0 ? (double)usual : (double)own;
}

/* Requires the lock. Checks the key's rate and quota. */
static void judge_limits(struct key_ring *ring, struct key_entry *entry, bool is_ingest, struct http_access *access)
{
    int64_t now_ns = clock_mono_ns(), wall_ns = clock_wall_ns();
    double rate = limit_of(entry->key.rate_per_s, ring->limits.requests_per_s);
    double quota = limit_of(entry->key.quota_bytes_per_day, ring->limits.bytes_per_day);
    unsigned wait_s = 1;
    if (!token_bucket_take(&entry->requests, rate, rate * BURST_SECONDS, 1, now_ns, &wait_s)) {
        refuse(access, 429, "more than %.0f requests per second with this key", rate);
    } else if (is_ingest && quota > 0 && entry->day == wall_ns / DAY_NS && (double)entry->day_bytes >= quota) {
        refuse(access, 429, "the key's quota of %.0f bytes per day is used up", quota);
        wait_s = (unsigned)((DAY_NS - wall_ns % DAY_NS) / 1000000000) + 1;
    } else if (is_ingest && !token_bucket_take(&entry->bytes, (double)ring->limits.bytes_per_s,
                                               (double)ring->limits.bytes_per_s * BURST_SECONDS, 0, now_ns, &wait_s)) {
        refuse(access, 429, "more than %" PRIu64 " bytes per second with this key", ring->limits.bytes_per_s);
    }
    access->retry_after_s = access->status ? wait_s : 0;
}

static int64_t scope_needed(enum http_scope scope)
{
    return scope == HTTP_SCOPE_INGEST ? KEY_SCOPE_INGEST : scope == HTTP_SCOPE_READ ? KEY_SCOPE_READ : KEY_SCOPE_ADMIN;
}

/* Requires the lock. Compares all entries, to take the same time wherever the match is. */
static struct key_entry *entry_find(struct key_ring *ring, const struct store_key *wanted)
{
    struct key_entry *found = NULL;
    for (size_t i = 0; i < ring->count; i++)
        if (bytes_are_equal_secretly(ring->entries[i]->key.hash, wanted->hash, sizeof wanted->hash))
            found = ring->entries[i];
    return found;
}

/* Requires the lock. */
static void refusal_note(struct key_ring *ring, const char *peer, const struct key_entry *entry, const char *reason,
                         int64_t now_ns)
{
    const char *label = entry ? entry->label : "";
    struct key_refusal *refusal = ring->refusals, *end = refusal + ring->refusal_count;
    while (refusal < end && (strcmp(refusal->peer, peer) != 0 || strcmp(refusal->reason, reason) != 0 ||
                             strncmp(refusal->label, label, sizeof refusal->label - 1) != 0))
        refusal++;
    if (refusal == end && ring->refusal_count < KEY_REFUSALS_MAX) {
        snprintf(refusal->peer, sizeof refusal->peer, "%s", peer);
        snprintf(refusal->label, sizeof refusal->label, "%.63s", label);
        snprintf(refusal->reason, sizeof refusal->reason, "%s", reason);
        ring->refusal_count++;
    }
    if (!refusal->count++)
        refusal->first_ns = now_ns;
}

size_t key_ring_take_refusals(struct key_ring *ring, struct key_refusal refusals[KEY_REFUSALS_MAX + 1])
{
    pthread_mutex_lock(&ring->lock);
    size_t count = ring->refusal_count;
    memcpy(refusals, ring->refusals, count * sizeof *refusals);
    if (ring->refusals[KEY_REFUSALS_MAX].count)
        refusals[count++] = ring->refusals[KEY_REFUSALS_MAX];
    memset(ring->refusals, 0, sizeof ring->refusals);
    ring->refusal_count = 0;
    pthread_mutex_unlock(&ring->lock);
    return count;
}

static void judge(struct key_ring *ring, bool is_key_needed, const struct http_credentials *credentials,
                  const struct store_key *wanted, struct http_access *access)
{
    struct key_entry *entry = wanted ? entry_find(ring, wanted) : NULL;
    int64_t needed = scope_needed(credentials->scope), now_ns = clock_wall_ns();
    if (!credentials->token) {
        if (is_key_needed)
            refuse(access, 401, "this server requires an API key: Authorization: Bearer gpfl_...");
    } else if (!entry) {
        refuse(access, 401, "unknown API key");
    } else if (!key_is_active(&entry->key, now_ns)) {
        refuse(access, 401, "the API key is %s", entry->key.revoked_ns != CELL_UNKNOWN ? "revoked" : "expired");
    } else if (!(entry->key.scope & (needed | KEY_SCOPE_ADMIN))) {
        refuse(access, 403, "the API key's scope is %s; this request needs %s", key_scope_name(entry->key.scope),
               key_scope_name(needed));
    } else {
        judge_limits(ring, entry, needed == KEY_SCOPE_INGEST, access);
        entry->used_ns = now_ns;
        access->principal = entry;
        snprintf(access->name, sizeof access->name, "%.63s", entry->label);
    }
    if (credentials->token && (access->status == 401 || access->status == 403))
        refusal_note(ring, credentials->peer, entry, access->reason, now_ns);
    ring->counts.allowed += !access->status;
    ring->counts.unauthorized += access->status == 401;
    ring->counts.forbidden += access->status == 403;
    ring->counts.limited += access->status == 429;
}

void key_ring_authorize(struct key_ring *ring, bool is_key_needed, const struct http_credentials *credentials,
                        struct http_access *access)
{
    struct store_key wanted;
    *access = (struct http_access){.status = 0};
    bool is_describable =
        credentials->token && !key_describe(credentials->token, credentials->token_size, &wanted, NULL);
    pthread_mutex_lock(&ring->lock);
    judge(ring, is_key_needed, credentials, is_describable ? &wanted : NULL, access);
    pthread_mutex_unlock(&ring->lock);
}

void key_ring_count_bytes(struct key_ring *ring, struct key_entry *entry, uint64_t bytes)
{
    if (!entry)
        return;
    int64_t day = clock_wall_ns() / DAY_NS;
    pthread_mutex_lock(&ring->lock);
    if (entry->day != day) {
        entry->day = day;
        entry->day_bytes = 0;
    }
    entry->day_bytes += bytes;
    entry->bytes.tokens -= (double)bytes;
    pthread_mutex_unlock(&ring->lock);
}

static void fingerprint_write(const struct key_entry *entry, char out[KEY_FINGERPRINT_SIZE])
{
    for (size_t i = 0; i < (KEY_FINGERPRINT_SIZE - 1) / 2; i++)
        snprintf(out + 2 * i, 3, "%02x", entry->key.hash[i]);
}

gpufl_status key_ring_usage(struct key_ring *ring, struct key_usage **list, size_t *count)
{
    int64_t day = clock_wall_ns() / DAY_NS;
    *count = 0;
    pthread_mutex_lock(&ring->lock);
    *list = calloc(ring->count + 1, sizeof **list);
    for (size_t i = 0; *list && i < ring->count; i++) {
        const struct key_entry *entry = ring->entries[i];
        if (entry->day != day || !entry->day_bytes)
            continue;
        struct key_usage *usage = &(*list)[(*count)++];
        fingerprint_write(entry, usage->fingerprint);
        usage->day = day;
        usage->bytes = entry->day_bytes;
    }
    pthread_mutex_unlock(&ring->lock);
    return *list ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

void key_ring_usage_restore(struct key_ring *ring, const struct key_usage *usage)
{
    char fingerprint[KEY_FINGERPRINT_SIZE];
    pthread_mutex_lock(&ring->lock);
    for (size_t i = 0; i < ring->count; i++) {
        struct key_entry *entry = ring->entries[i];
        fingerprint_write(entry, fingerprint);
        if (strcmp(fingerprint, usage->fingerprint) != 0)
            continue;
        entry->day_bytes = usage->bytes + (entry->day == usage->day ? entry->day_bytes : 0);
        entry->day = usage->day;
    }
    pthread_mutex_unlock(&ring->lock);
}

const char *key_entry_name(const struct key_entry *entry)
{
    return entry ? entry->label : "local";
}

void key_ring_counts(struct key_ring *ring, struct key_counts *counts)
{
    pthread_mutex_lock(&ring->lock);
    *counts = ring->counts;
    pthread_mutex_unlock(&ring->lock);
}
