/* SPDX-License-Identifier: Apache-2.0 */
/* API keys: how they are made, kept and checked, and how much each may ask for. The store holds fingerprints; the ring
 * holds them in memory, so that a request is judged without a look at the disk. A key's text exists where it is made,
 * for the one who asked, and nowhere else. Any thread. */
#ifndef GPUFL_SERVER_KEYS_H
#define GPUFL_SERVER_KEYS_H

#include "http/http_server.h"
#include "store/store_catalog.h"

enum { KEY_TEXT_SIZE = 38, KEY_PREFIX_SIZE = 9 }; /* "gpfl_" and 32 characters; the prefix is its first 8 */

/* Bits of store_key.scope. Admin may do everything. */
enum { KEY_SCOPE_INGEST = 1, KEY_SCOPE_READ = 2, KEY_SCOPE_ADMIN = 4 };
/* "ingest", "read", "admin"; 0: none of them. */
int64_t key_scope_parse(const char *text);
const char *key_scope_name(int64_t scope);

/* A new key: its text for its owner, and what the store keeps of it. GPUFL_E_IO: the system gives no randomness. */
NODISCARD gpufl_status key_make(char text[KEY_TEXT_SIZE], struct store_key *key, struct problem *problem);
/* Fingerprint and prefix of a key that exists elsewhere. GPUFL_E_INVALID: too short to be a secret. */
NODISCARD gpufl_status key_describe(const char *text, size_t size, struct store_key *key, struct problem *problem);

struct key_limits {
    uint64_t requests_per_s, bytes_per_s, bytes_per_day; /* per key; 0: no limit */
};

struct key_ring;  /* opaque */
struct key_entry; /* opaque: the principal of a request; lives as long as the ring */

NODISCARD gpufl_status key_ring_open(struct key_ring **ring, const struct key_limits *limits);
void key_ring_close(struct key_ring *ring); /* NULL is a no-op */
/* Reads the store's keys anew. On failure the ring stays as it was. */
NODISCARD gpufl_status key_ring_load(struct key_ring *ring, struct store *store, struct problem *problem);
/* A key beside those of the store, from a file or the environment. */
NODISCARD gpufl_status key_ring_add(struct key_ring *ring, const char *text, size_t size, int64_t scope,
                                    const char *name, struct problem *problem);
/* Writes the times at which keys were last used, those that changed. Errors wait for the next time. */
void key_ring_save_use(struct key_ring *ring, struct store *store);
/* All keys that ever were, and of them those that are neither revoked nor expired. */
size_t key_ring_count(struct key_ring *ring, size_t *active);

/* is_key_needed: false lets requests without a key pass. A wrong one is refused either way. Never waits. */
void key_ring_authorize(struct key_ring *ring, bool is_key_needed, const struct http_credentials *credentials,
                        struct http_access *access);
/* After a body: what it counts against the key's rate and quota. entry NULL: nobody's. */
void key_ring_count_bytes(struct key_ring *ring, struct key_entry *entry, uint64_t bytes);
/* "prefix name" for logs and audit entries; entry NULL: "local". Valid as long as the ring. */
const char *key_entry_name(const struct key_entry *entry);

/* What a key sent on a day, to be kept across restarts. */
enum { KEY_FINGERPRINT_SIZE = 17 };
struct key_usage {
    char fingerprint[KEY_FINGERPRINT_SIZE]; /* the first hexadecimal digits of the hash */
    int64_t day;                            /* since 1970, UTC */
    uint64_t bytes;
};
/* Those of today that are not 0; the caller frees the list. GPUFL_E_NO_MEMORY. */
NODISCARD gpufl_status key_ring_usage(struct key_ring *ring, struct key_usage **list, size_t *count);
/* Adds what was sent before the start; keys that are not there are ignored. */
void key_ring_usage_restore(struct key_ring *ring, const struct key_usage *usage);

/* Refused keys, the same ones of a peer counted together. Requests without a key are not among them. */
enum { KEY_REFUSALS_MAX = 16 };
struct key_refusal {
    char peer[64];  /* "": those that found no place in the list, count is all that is known of them */
    char label[64]; /* "prefix name" of a key that is known; never a part of one that is not */
    char reason[160];
    int64_t first_ns;
    uint64_t count;
};
/* Since the last call; the number of entries, at most KEY_REFUSALS_MAX + 1. */
size_t key_ring_take_refusals(struct key_ring *ring, struct key_refusal refusals[KEY_REFUSALS_MAX + 1]);

struct key_counts {
    uint64_t allowed, unauthorized, forbidden, limited;
};
void key_ring_counts(struct key_ring *ring, struct key_counts *counts);

#endif
