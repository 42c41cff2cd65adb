/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ingest.h"

#include "base/clock.h"
#include "base/sha256.h"
#include "format/json.h"
#include "logfile/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

enum { REJECTED_BYTES_MAX = 1 << 20, REJECTED_TEXT_MAX = 64 << 10, METRICS_LINE_MAX = 256 << 10 };
/* Parsing a shorter line needs little memory, whatever it contains. */
enum { LARGE_LINE_BYTES = 1 << 20 };

const struct ingest_limits ingest_limits_usual = {
    .body_bytes_max = (uint64_t)64 << 20,
    .body = {.plain_bytes_max = (uint64_t)512 << 20,
             .ratio_max = 250,
             .ratio_free_bytes = (uint64_t)8 << 20,
             .line_bytes_max = LINE_SIZE_MAX},
    .flight_bytes_max = (uint64_t)1 << 30,
};

struct ingest_body {
    struct ingest *ingest;
    struct ingest_head head;
    struct body_decoder decoder;
    struct store_write *write; /* NULL: the window is stored already, or the write failed */
    bool is_repeated; /* its lines are only checked, so that the answer equals the one that may have been lost */
    bool has_failed;  /* answer has the reason; the rest of the body is ignored */
    struct ingest_answer answer;
    struct batch_view view;
    struct bytes held;     /* the body's first bytes, for quarantine */
    struct bytes rejected; /* lines, in quarantine format */
    struct bytes metrics;  /* the last device_metric_batch, for live updates */
    uint32_t crc32;
    struct sha256 hash;    /* of the body as sent, if it has no window id */
    uint64_t flight_bytes; /* this body's part of ingest->flight_bytes */
    uint64_t rows, kernels;
    char app[128];
    const char *state;
};

bool ingest_id_is_valid(const char *text, size_t size_max)
{
    size_t size = strlen(text);
    static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
    return size && size <= size_max && strspn(text, signs) == size;
}

gpufl_status ingest_open(struct ingest *ingest, struct store *store, struct live *live, const char *data_dir,
                         const struct ingest_limits *limits, struct problem *problem)
{
    memset(ingest, 0, sizeof *ingest);
    ingest->store = store;
    ingest->live = live;
    ingest->limits = limits ? *limits : ingest_limits_usual;
    body_decoder_pool_open(&ingest->decoders);
    ingest->has_decoders = true;
    return ingest_quarantine_open(&ingest->quarantine, data_dir, problem);
}

void ingest_close(struct ingest *ingest)
{
    ingest_quarantine_close(&ingest->quarantine);
    if (ingest->has_decoders)
        body_decoder_pool_close(&ingest->decoders);
    ingest->has_decoders = false;
}

PRINTF_LIKE(4, 5)
static void refuse(struct ingest_answer *answer, int status, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(answer->message, sizeof answer->message, format, args);
    va_end(args);
    answer->status = status;
    answer->code = code;
    answer->retry_after_s = status == 503 ? 1 : 0;
}

/* Translates a failure of the store into the protocol. */
static void refuse_by_store(struct ingest_answer *answer, gpufl_status status, const struct problem *problem)
{
    switch (status) {
    case GPUFL_E_BUSY:
        refuse(answer, 503, "store_busy", "%s", problem->text);
        break;
    case GPUFL_E_LIMIT:
        refuse(answer, 503, "store_full", "%s", problem->text);
        answer->retry_after_s = 60;
        break;
    case GPUFL_E_NO_MEMORY:
        refuse(answer, 503, "out_of_memory", "no memory for this body now");
        break;
    case GPUFL_E_INVALID:
        refuse(answer, 400, "bad_identity", "%s", problem->text);
        break;
    default:
        refuse(answer, 503, "store_unavailable", "%s",
               problem->text[0] ? problem->text : "the store cannot be written");
        answer->retry_after_s = 5;
    }
}

static void refuse_conflict(struct ingest_answer *answer, const struct ingest_head *head)
{
    refuse(answer, 409, "window_identity_conflict",
           "window %s of session %s is stored already with another CRC32 than %" PRIu32, head->window_id,
           head->session_id, head->crc32);
}

static void body_free(struct ingest_body *body)
{
    if (body->write)
        store_write_abort(body->write);
    atomic_fetch_sub(&body->ingest->flight_bytes, body->flight_bytes);
    body_decoder_close(&body->decoder);
    batch_view_free(&body->view);
    bytes_free(&body->held);
    bytes_free(&body->rejected);
    bytes_free(&body->metrics);
    free(body);
}

gpufl_status ingest_body_open(struct ingest_body **out, struct ingest *ingest, const struct ingest_head *head,
                              struct ingest_answer *answer)
{
    *answer = (struct ingest_answer){.status = 0};
    struct ingest_body *body = calloc(1, sizeof *body);
    if (!body || body_decoder_open(&body->decoder, head->coding, &ingest->limits.body, &ingest->decoders)) {
        free(body);
        refuse(answer, 503, "out_of_memory", "no memory for this body now");
        return GPUFL_E_NO_MEMORY;
    }
    body->ingest = ingest;
    body->head = *head;
    body->held.limit = INGEST_HELD_BYTES_MAX;
    body->rejected.limit = REJECTED_BYTES_MAX;
    body->metrics.limit = METRICS_LINE_MAX;
    sha256_begin(&body->hash);
    struct problem problem = {""};
    enum store_delivery delivery = STORE_NEW;
    const struct store_identity identity = {
        .session_id = head->session_id, .window_id = head->window_id, .channel = head->channel, .crc = head->crc32};
    gpufl_status status = store_write_begin(ingest->store, &identity, &body->write, &delivery, &problem);
    if (status || delivery == STORE_CONFLICT) {
        body->write = NULL;
        if (status)
            refuse_by_store(answer, status, &problem);
        else
            refuse_conflict(answer, head);
        body_free(body);
        return status ? status : GPUFL_E_INVALID;
    }
    body->is_repeated = delivery == STORE_REPEATED;
    *out = body;
    return GPUFL_OK;
}

static void line_reject(struct ingest_body *body, uint64_t number, const char *type, const char *reason,
                        const char *text, size_t size)
{
    struct ingest_answer *answer = &body->answer;
    answer->rejected++;
    if (answer->error_count < INGEST_ERRORS_MAX) {
        struct ingest_error *error = &answer->errors[answer->error_count++];
        error->line = number;
        snprintf(error->type, sizeof error->type, "%s", type);
        snprintf(error->reason, sizeof error->reason, "%s", reason);
    }
    size_t before = body->rejected.size;
    bytes_append_format(&body->rejected, "{\"line\":%" PRIu64 ",\"reason\":", number);
    json_text(&body->rejected, reason);
    json_key(&body->rejected, "text");
    json_string(&body->rejected, text, size < REJECTED_TEXT_MAX ? size : REJECTED_TEXT_MAX);
    bytes_append_text(&body->rejected, "}\n");
    if (body->rejected.failed) {
        body->rejected.size = before; /* out of memory: keep what is there */
        body->rejected.failed = false;
        body->rejected.limit = before ? before : 1;
    }
}

/* Notes what live updates need from a line. */
static void line_note(struct ingest_body *body, const struct log_line *line, const char *text, size_t size)
{
    if (line->batch) {
        body->rows += line->batch->row_count;
        if (line->type == RECORD_KERNEL_EVENT_BATCH)
            body->kernels += line->batch->row_count;
        if (line->type == RECORD_DEVICE_METRIC_BATCH && body->ingest->live) {
            bytes_clear(&body->metrics);
            bytes_append(&body->metrics, text, size);
        }
    } else if (line->type == RECORD_JOB_START) {
        snprintf(body->app, sizeof body->app, "%s", json_get_text(line->object, "app", ""));
        const char *host = json_get_text(line->object, "hostname", "");
        if (*host)
            snprintf(body->head.host, sizeof body->head.host, "%s", host);
        body->state = body->state ? body->state : "live";
    } else if (line->type == RECORD_SHUTDOWN) {
        body->state = json_get_bool(line->object, "crashed", false) ? "crashed" : "complete";
    }
}

/* Adds to the total of all bodies in progress; false if it exceeds the limit. own: this body's part; a single body may
 * exceed the limit. */
static bool flight_add(struct ingest_body *body, uint64_t bytes, uint64_t own)
{
    uint64_t all = atomic_fetch_add(&body->ingest->flight_bytes, bytes) + bytes;
    if (all <= body->ingest->limits.flight_bytes_max || all <= own)
        return true;
    if (!body->has_failed)
        refuse(&body->answer, 503, "server_busy", "too many bodies are being received now");
    body->has_failed = true;
    return false;
}

static void line_read(struct ingest_body *body, enum body_line kind, uint64_t number, const char *text, size_t size)
{
    struct log_line line = {.line = number, .file = "", .type_name = ""};
    struct json_document document = {0};
    char reason[LINE_REASON_SIZE];
    gpufl_status decoded = log_line_decode(&line, &body->view, &document, text, size, reason);
    if (decoded == GPUFL_E_NO_MEMORY) {
        body->has_failed = true;
        refuse_by_store(&body->answer, decoded, &(struct problem){""});
    } else if (decoded) {
        line_reject(body, number, record_catalogue[line_type_guess(text, size)].name,
                    kind == BODY_LINE_UNENDED ? "the line is truncated" : reason, text, size);
    }
    if (decoded) {
        json_free(&document);
        return;
    }
    if (body->is_repeated) {
        if (log_line_session(&line, body->head.session_id) == LINE_SESSION_OTHER)
            line_reject(body, number, line.type_name, "a line of another session", text, size);
        json_free(&document);
        return;
    }
    enum channel channel = record_catalogue[line.type].channel;
    line.channel = body->head.channel != CHANNEL_COUNT ? body->head.channel
                   : channel != CHANNEL_COUNT          ? channel
                                                       : CHANNEL_SYSTEM;
    struct problem problem = {""};
    bool is_repeated = false;
    gpufl_status status = store_write_line(body->write, &line, text, size, &is_repeated, &problem);
    if (status == GPUFL_E_INVALID) {
        line_reject(body, number, line.type_name, problem.text, text, size);
    } else if (status) {
        body->has_failed = true;
        refuse_by_store(&body->answer, status, &problem);
        if (status == GPUFL_E_LIMIT)
            refuse(&body->answer, 413, "window_too_large", "line %" PRIu64 ": %s", number, problem.text);
    } else {
        body->answer.accepted++;
        body->answer.repeated += is_repeated;
        if (!is_repeated)
            line_note(body, &line, text, size);
    }
    json_free(&document);
}

static void line_take(void *user, enum body_line kind, uint64_t number, const char *text, size_t size)
{
    struct ingest_body *body = user;
    if (body->has_failed)
        return;
    if (kind == BODY_LINE_TOO_LONG) {
        line_reject(body, number, "", "the line exceeds the server's limit", "", 0);
        return;
    }
    uint64_t values = size < LARGE_LINE_BYTES ? 0 : json_memory_max(size);
    if (!values || flight_add(body, values, body->flight_bytes + values))
        line_read(body, kind, number, text, size);
    atomic_fetch_sub(&body->ingest->flight_bytes, values);
}

static void take_result(struct ingest_body *body, enum body_result result)
{
    if (result == BODY_GOOD || body->has_failed)
        return;
    body->has_failed = true;
    if (result == BODY_DAMAGED)
        refuse(&body->answer, 422, "body_damaged", "%s", body->decoder.reason);
    else if (result == BODY_TOO_LARGE)
        refuse(&body->answer, 413, "body_too_large", "%s", body->decoder.reason);
    else
        refuse(&body->answer, 503, "out_of_memory", "%s", body->decoder.reason);
}

/* Updates this body's part of the total of all bodies in progress. */
static void count_flight(struct ingest_body *body)
{
    uint64_t bytes = body->decoder.plain_bytes + body_decoder_memory(&body->decoder);
    uint64_t before = body->flight_bytes;
    if (bytes <= before)
        return;
    body->flight_bytes = bytes;
    (void)flight_add(body, bytes - before, bytes);
}

void ingest_body_data(struct ingest_body *body, const void *data, size_t size)
{
    body->crc32 = (uint32_t)crc32_z(body->crc32, data, size);
    if (!body->head.window_id[0])
        sha256_add(&body->hash, data, size);
    size_t room = INGEST_HELD_BYTES_MAX - body->held.size;
    bytes_append(&body->held, data, size < room ? size : room);
    if (body->has_failed) {
        body->decoder.sent_bytes += size;
        return;
    }
    take_result(body, body_decoder_feed(&body->decoder, data, size, line_take, body));
    count_flight(body);
}

static void quarantine(struct ingest_body *body, const char *what, const void *content, size_t size)
{
    const struct ingest_head *head = &body->head;
    const struct {
        const char *name, *text;
    } texts[] = {{"what", what},
                 {"code", body->answer.code},
                 {"reason", body->answer.message},
                 {"session_id", head->session_id},
                 {"window_id", head->window_id},
                 {"channel", head->channel == CHANNEL_COUNT ? "" : channel_names[head->channel]},
                 {"host", head->host},
                 {"sender", head->sender}};
    struct bytes about = {0};
    bytes_append_char(&about, '{');
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_key(&about, texts[i].name);
        json_text(&about, texts[i].text);
    }
    json_key(&about, "body_bytes");
    json_uint(&about, body->decoder.sent_bytes);
    json_key(&about, "kept_bytes");
    json_uint(&about, size);
    json_key(&about, "received_ns");
    json_int(&about, clock_wall_ns());
    bytes_append_char(&about, '}');
    ingest_quarantine_add(&body->ingest->quarantine, &about, content, size, body->answer.quarantined,
                          sizeof body->answer.quarantined);
    bytes_free(&about);
}

/* Publishes the commit to live updates. */
static void announce(struct ingest_body *body)
{
    struct live *live = body->ingest->live;
    if (!live)
        return;
    const struct live_change change = {.session_id = body->head.session_id,
                                       .app = body->app,
                                       .host = body->head.host,
                                       .state = body->state ? body->state : "",
                                       .rows = body->rows,
                                       .kernels = body->kernels,
                                       .bytes = body->decoder.sent_bytes,
                                       .at_ns = clock_wall_ns()};
    live_session_changed(live, &change);
    if (body->metrics.size && !body->metrics.failed &&
        !batch_decode(&body->view, body->metrics.data, body->metrics.size, NULL))
        live_metrics_changed(live, body->head.session_id, body->head.host, &body->view);
}

static void commit(struct ingest_body *body)
{
    struct ingest_answer *answer = &body->answer;
    struct store_written written = {.delivery = STORE_NEW};
    struct problem problem = {""};
    if (!body->head.window_id[0]) {
        /* Single records have no identity: the same bytes are the same delivery. */
        char name[SHA256_HEX_SIZE];
        sha256_end_hex(&body->hash, name);
        store_write_name(body->write, name, body->crc32);
    }
    /* The commit waits for others: free the memory that is no longer needed first. */
    body_decoder_rest(&body->decoder);
    gpufl_status status = store_write_commit(body->write, &written, &problem);
    body->write = NULL;
    if (status) {
        refuse_by_store(answer, status, &problem);
    } else if (written.delivery == STORE_CONFLICT) {
        refuse_conflict(answer, &body->head);
    } else {
        answer->status = answer->rejected ? 200 : 202;
        answer->revision = written.revision;
        body->is_repeated = written.delivery == STORE_REPEATED;
        if (!body->is_repeated)
            announce(body);
    }
}

/* Everything has arrived: checks it against its head. */
static void judge(struct ingest_body *body)
{
    struct ingest_answer *answer = &body->answer;
    if (!body->has_failed)
        take_result(body, body_decoder_finish(&body->decoder, line_take, body));
    if (body->has_failed)
        return;
    if (body->head.has_crc32 && body->head.crc32 != body->crc32)
        refuse(answer, 422, "body_crc_mismatch",
               "the body's CRC32 is %" PRIu32 ", not %" PRIu32 " as X-GpuFlight-Window-CRC32 says", body->crc32,
               body->head.crc32);
    else if (body->is_repeated)
        answer->status = answer->rejected ? 200 : 202;
    else if (!answer->accepted && !answer->rejected)
        refuse(answer, 400, "body_empty", "the body has no lines");
    else if (!answer->accepted)
        refuse(answer, 422, "no_line_accepted", "no line of the body is valid; line %" PRIu64 ": %s",
               answer->errors[0].line, answer->errors[0].reason);
    else
        commit(body);
}

static void count(struct ingest_body *body)
{
    struct ingest_counters *counters = &body->ingest->counters;
    const struct ingest_answer *answer = &body->answer;
    bool is_kept = answer->status < 300;
    atomic_fetch_add(&counters->bodies, is_kept);
    atomic_fetch_add(&counters->bodies_refused, !is_kept);
    atomic_fetch_add(&counters->bodies_repeated, is_kept && body->is_repeated);
    atomic_fetch_add(&counters->bytes_sent, body->decoder.sent_bytes);
    atomic_fetch_add(&counters->bytes_plain, body->decoder.plain_bytes);
    atomic_fetch_add(&counters->lines_rejected, body->is_repeated ? 0 : answer->rejected);
    if (!is_kept)
        return;
    atomic_fetch_add(&counters->lines, answer->accepted);
    atomic_fetch_add(&counters->lines_repeated, answer->repeated);
    atomic_fetch_add(&counters->rows, body->rows);
}

void ingest_body_end(struct ingest_body *body, struct ingest_answer *answer)
{
    judge(body);
    /* Refusals that a retry may change are not quarantined: the sender still has the body. */
    int status = body->answer.status;
    if (status >= 400 && status < 500)
        quarantine(body, "body", body->held.data, body->held.size);
    else if (status == 200 && !body->is_repeated)
        quarantine(body, "lines", body->rejected.data, body->rejected.size);
    if (status >= 400)
        body->answer.accepted = body->answer.repeated = 0;
    count(body);
    *answer = body->answer;
    body_free(body);
}

void ingest_body_abort(struct ingest_body *body)
{
    body_free(body);
}
