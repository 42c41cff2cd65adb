/* SPDX-License-Identifier: Apache-2.0 */
/* API keys: creating, storing and checking them, and their limits. The store has fingerprints; the ring caches them in
 * memory, so that requests are checked without reading the disk. A key's text exists only where it is created, for
 * whoever requested it. Thread-safe. */
#ifndef GPUFL_SERVER_KEYS_H
#define GPUFL_SERVER_KEYS_H

#include "http/http_server.h"
#include "store/store_catalog.h"

enum { KEY_TEXT_SIZE = 38, KEY_PREFIX_SIZE = 9 }; /* "gpfl_" and 32 characters; the prefix is its first 8 */

/* Bits of store_key.scope. Admin allows everything. */
enum { KEY_SCOPE_INGEST = 1, KEY_SCOPE_READ = 2, KEY_SCOPE_ADMIN = 4 };
/* "ingest", "read", "admin"; 0: anything else. */
int64_t key_scope_parse(const char *text);
const char *key_scope_name(int64_t scope);

/* Creates a key: its text for its owner, and what the store keeps. GPUFL_E_IO: no random bytes available. */
NODISCARD gpufl_status key_make(char text[KEY_TEXT_SIZE], struct store_key *key, struct problem *problem);
/* Fingerprint and prefix of an existing key. GPUFL_E_INVALID: too short to be a secret. */
NODISCARD gpufl_status key_describe(const char *text, size_t size, struct store_key *key, struct problem *problem);

struct key_limits {
    uint64_t requests_per_s, bytes_per_s, bytes_per_day; /* per key; 0: no limit */
};

struct key_ring;  /* opaque */
struct key_entry; /* opaque: the principal of a request; lives as long as the ring */

NODISCARD gpufl_status key_ring_open(struct key_ring **ring, const struct key_limits *limits);
void key_ring_close(struct key_ring *ring); /* NULL is a no-op */
/* Reads the store's keys again. On failure the ring is unchanged. */
NODISCARD gpufl_status key_ring_load(struct key_ring *ring, struct store *store, struct problem *problem);
/* Adds a key that is not in the store, from a file or the environment. */
NODISCARD gpufl_status key_ring_add(struct key_ring *ring, const char *text, size_t size, int64_t scope,
                                    const char *name, struct problem *problem);
/* Writes the times of last use that have changed. Failed writes are retried the next time. */
void key_ring_save_use(struct key_ring *ring, struct store *store);
/* The number of all keys; *active: of those neither revoked nor expired. */
size_t key_ring_count(struct key_ring *ring, size_t *active);

/* is_key_needed false: requests without a key are allowed; a wrong key is always rejected. Never waits. */
void key_ring_authorize(struct key_ring *ring, bool is_key_needed, const struct http_credentials *credentials,
                        struct http_access *access);
/* Counts a body against the key's rate and quota. entry NULL: no key. */
void key_ring_count_bytes(struct key_ring *ring, struct key_entry *entry, uint64_t bytes);
/* "prefix name" for logs and audit entries; entry NULL: "local". Valid as long as the ring. */
const char *key_entry_name(const struct key_entry *entry);

/* The bytes that a key sent in one day, saved across restarts. */
enum { KEY_FINGERPRINT_SIZE = 17 };
struct key_usage {
    char fingerprint[KEY_FINGERPRINT_SIZE]; /* the first hexadecimal digits of the hash */
    int64_t day;                            /* since 1970, UTC */
    uint64_t bytes;
};
/* Today's entries that are not 0; the caller frees the list. GPUFL_E_NO_MEMORY. */
NODISCARD gpufl_status key_ring_usage(struct key_ring *ring, struct key_usage **list, size_t *count);
/* Adds bytes that were sent before the start; ignores unknown keys. */
void key_ring_usage_restore(struct key_ring *ring, const struct key_usage *usage);

/* Refused keys; equal refusals of one peer are counted together. Requests without a key are not included. */
enum { KEY_REFUSALS_MAX = 16 };
struct key_refusal {
    char peer[64];  /* "": those that did not fit into the list; only their count is known */
    char label[64]; /* "prefix name" of a known key; never a part of an unknown one */
    char reason[160];
    int64_t first_ns;
    uint64_t count;
};
/* Refusals since the last call; returns the number of entries, at most KEY_REFUSALS_MAX + 1. */
size_t key_ring_take_refusals(struct key_ring *ring, struct key_refusal refusals[KEY_REFUSALS_MAX + 1]);

struct key_counts {
    uint64_t allowed, unauthorized, forbidden, limited;
};
void key_ring_counts(struct key_ring *ring, struct key_counts *counts);

#endif
