/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the lines of a request. Handles bodies, lines and windows; of HTTP only the status codes of its protocol
 * (ingest_routes.c has the rest). A body is decoded and written as it arrives, into one write of the store that is
 * committed at the end or aborted; rejected data goes to quarantine.
 *
 * struct ingest: thread-safe. struct ingest_body: one thread at a time; ingest_body_data never waits, ingest_body_end
 * does. */
#ifndef GPUFL_SERVER_INGEST_H
#define GPUFL_SERVER_INGEST_H

#include "logfile/log_line.h"
#include "server/body_decoder.h"
#include "server/ingest_quarantine.h"
#include "server/live.h"
#include "store/store.h"

#include <stdatomic.h>

enum { INGEST_HOST_SIZE = 128, INGEST_ERRORS_MAX = 20, INGEST_HELD_BYTES_MAX = 256 << 10 };

struct ingest_limits {
    uint64_t body_bytes_max; /* of a body as sent */
    struct body_limits body;
    uint64_t flight_bytes_max; /* of all bodies being received, decoded; a single body may be larger */
};
extern const struct ingest_limits ingest_limits_usual;

struct ingest_counters {
    atomic_uint_fast64_t bodies, bodies_repeated, bodies_refused;
    atomic_uint_fast64_t lines, lines_repeated, lines_rejected, rows;
    atomic_uint_fast64_t bytes_sent, bytes_plain;
};

struct ingest {
    struct store *store; /* borrowed */
    struct live *live;   /* borrowed; NULL: no live updates */
    struct ingest_limits limits;
    struct ingest_quarantine quarantine;
    struct ingest_counters counters;
    struct body_decoder_pool decoders;
    bool has_decoders;
    atomic_uint_fast64_t flight_bytes;
};

/* data_dir: contains the quarantine. limits NULL: ingest_limits_usual. */
NODISCARD gpufl_status ingest_open(struct ingest *ingest, struct store *store, struct live *live, const char *data_dir,
                                   const struct ingest_limits *limits, struct problem *problem);
void ingest_close(struct ingest *ingest);

/* Identifies the sender and the delivery. */
struct ingest_head {
    char session_id[STORE_SESSION_ID_MAX + 1];
    char window_id[STORE_WINDOW_ID_MAX + 1]; /* "": none */
    char host[INGEST_HOST_SIZE];
    char sender[96];      /* key and address, for quarantine */
    enum channel channel; /* CHANNEL_COUNT: by each record's type */
    bool has_crc32;       /* always, if there is a window_id */
    uint32_t crc32;       /* of the body as sent */
    enum content_coding coding;
};

/* Session and window ids are part of file names, URLs and logs: only letters, digits and - . _ : are allowed. */
bool ingest_id_is_valid(const char *text, size_t size_max);

struct ingest_error {
    uint64_t line;
    char type[48], reason[LINE_REASON_SIZE];
};

/* The result of a body. */
struct ingest_answer {
    int status;             /* 202 all lines, 200 some, else nothing was stored */
    const char *code;       /* of an error; stable words */
    char message[320];      /* of an error */
    unsigned retry_after_s; /* 0: none */
    uint64_t accepted, repeated, rejected;
    int64_t revision; /* of the session */
    struct ingest_error errors[INGEST_ERRORS_MAX];
    unsigned error_count;
    char quarantined[64]; /* file name; "": not quarantined */
};

struct ingest_body; /* opaque */

/* On failure the answer has the reason. */
NODISCARD gpufl_status ingest_body_open(struct ingest_body **body, struct ingest *ingest,
                                        const struct ingest_head *head, struct ingest_answer *answer);
/* An error is kept and reported by ingest_body_end. */
void ingest_body_data(struct ingest_body *body, const void *data, size_t size);
/* Each of these ends the body. */
void ingest_body_end(struct ingest_body *body, struct ingest_answer *answer);
void ingest_body_abort(struct ingest_body *body);

#endif
