/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/session_upload.h"

#include "format/json.h"
#include "logfile/reader.h"
#include "logfile/session_source.h"
#include "upload/cursor.h"
#include "upload/envelope.h"
#include "upload/window.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct upload {
    struct uploader *uploader;
    struct upload_count *count;
    struct session_files files;
    struct cursor cursor;
    struct sender sender;
    uint64_t next_sequence[CHANNEL_COUNT]; /* of the windows */
    bool is_whole;                         /* the server has every file so far */
    bool is_refused;                       /* the server refused a part of the current file */
};

/* A body is accepted or refused as a whole, but older servers may reject single lines of it. */
static void note_rejected(struct upload *upload)
{
    struct upload_count *count = upload->count;
    char reason[sizeof count->rejected_reason];
    uint64_t rejected =
        answer_rejected_lines(upload->uploader->client, &upload->uploader->answer, reason, sizeof reason);
    if (rejected && !count->rejected_lines)
        memcpy(count->rejected_reason, reason, sizeof reason);
    count->rejected_lines += rejected;
}

static enum delivery deliver_window(struct upload *upload, const struct window *window, enum channel channel,
                                    uint64_t sequence)
{
    struct request_headers headers;
    char id[WINDOW_ID_SIZE + 1];
    window_id_make(id, upload->sender.session_id, channel, sequence);
    const struct window_name name = {
        .id = id, .channel = channel, .sequence = sequence, .coding = BODY_GZIP, .crc32 = window->crc32};
    headers_for_window(&headers, &upload->sender, &name);
    struct http_request request = {
        .path = "/events/stream", .headers = headers.list, .body = window->body.data, .size = window->body.size};
    enum delivery delivery = uploader_send(upload->uploader, &request);
    if (delivery == DELIVERY_DONE) {
        upload->count->events += window->events;
        upload->count->bytes += window->body.size;
        note_rejected(upload);
    }
    return delivery;
}

static void remember(struct upload *upload)
{
    if (cursor_save(&upload->cursor) && !upload->count->cursor_reason[0])
        snprintf(upload->count->cursor_reason, sizeof upload->count->cursor_reason, "%s", strerror(errno));
}

/* The server does not have the file, or only a part of it. */
static void skip_file(struct upload *upload, const struct session_file *file, const char *why)
{
    struct upload_count *count = upload->count;
    count->files_skipped++;
    upload->is_whole = false;
    if (!count->first.text[0])
        count->first_status = problem_set(&count->first, upload->is_refused ? GPUFL_E_IO : GPUFL_E_DAMAGED,
                                          "%.60s of session %s: %.300s", file->name, upload->sender.session_id, why);
}

/* Sends the file's windows that the server does not have. After a refusal the remaining windows are only counted,
 * because the numbers of the next file's windows follow theirs. *why: "" when everything was sent. */
static gpufl_status send_windows(struct upload *upload, struct window_source *source, enum channel channel,
                                 uint64_t number, struct problem *why)
{
    struct window window = {0};
    gpufl_status status = GPUFL_OK;
    uint64_t windows = 0;
    enum window_result result;
    while ((result = window_source_next(source, &window)) == WINDOW_READY || result == WINDOW_TOO_LARGE) {
        uint64_t sequence = upload->next_sequence[channel] + windows++;
        struct cursor_file *seen = cursor_file_get(&upload->cursor, channel, number);
        if (!seen) {
            status = problem_set(why, GPUFL_E_NO_MEMORY, "no memory");
            break;
        }
        if (seen->sent >= windows || why->text[0])
            continue;
        if (result == WINDOW_TOO_LARGE) {
            problem_set(why, GPUFL_E_LIMIT, "line %" PRIu64 " exceeds the server's size limit", source->line_number);
            continue;
        }
        enum delivery delivery = deliver_window(upload, &window, channel, sequence);
        if (delivery == DELIVERY_DONE) {
            seen->sent = windows;
            remember(upload);
        } else {
            upload->is_refused = true;
            *why = upload->uploader->problem;
        }
        if (delivery == DELIVERY_STOPPED) {
            status = upload->uploader->stop_status;
            break;
        }
    }
    if (!status && result == WINDOW_LATE)
        status = problem_set(why, GPUFL_E_IO, "the upload timed out");
    if (!status && result == WINDOW_FAILED && !why->text[0])
        problem_set(why, GPUFL_E_IO, "%s", source->reason);
    struct cursor_file *seen = status || !windows ? NULL : cursor_file_get(&upload->cursor, channel, number);
    if (seen && result == WINDOW_NO_MORE) {
        seen->windows = windows;
        seen->left_out = source->damaged_lines;
    }
    upload->next_sequence[channel] += windows;
    window_free(&window);
    return status;
}

static gpufl_status send_file(struct upload *upload, const struct session_file *file, uint64_t number)
{
    struct problem why = {""};
    struct cursor_file *seen = cursor_file_get(&upload->cursor, file->channel, number);
    if (seen && seen->windows && seen->sent == seen->windows) {
        upload->next_sequence[file->channel] += seen->windows;
        upload->count->left_out_lines += seen->left_out;
        upload->count->files_already_sent++;
        return GPUFL_OK;
    }
    const uint64_t first = upload->next_sequence[file->channel];
    upload->is_refused = false;
    struct window_source source;
    gpufl_status status = window_source_open(&source, &upload->files, file, &window_limits_of_server,
                                             upload->uploader->deadline_mono_ns, &why);
    if (!status) {
        status = send_windows(upload, &source, file->channel, number, &why);
        upload->count->left_out_lines += source.damaged_lines;
        window_source_close(&source);
    } else if (status == GPUFL_E_IO) {
        status = GPUFL_OK; /* a problem of this file only */
    }
    if (status)
        upload->uploader->problem = why;
    if (why.text[0])
        skip_file(upload, file, why.text);
    else if (upload->next_sequence[file->channel] != first) /* an empty file has nothing to send */
        upload->count->files_uploaded++;
    return status;
}

/* The file's number in its channel. The file being written gets the number under which it will be sealed, so that its
 * windows keep their numbers. */
static uint64_t file_number(const struct session_files *files, size_t index)
{
    const struct session_file *file = &files->items[index];
    if (file->index && file->kind != SESSION_FILE_FLAT)
        return file->index;
    uint64_t last = 0;
    for (size_t i = 0; i < index; i++) {
        const struct session_file *other = &files->items[i];
        if (other->channel == file->channel)
            last = file->kind == SESSION_FILE_FLAT ? last + 1 : other->index > last ? other->index : last;
    }
    return last + 1;
}

static gpufl_status send_files(struct upload *upload)
{
    const struct session_files *files = &upload->files;
    bool *is_shadowed = calloc(files->log_count + 1, sizeof *is_shadowed);
    if (!is_shadowed)
        return problem_set(&upload->uploader->problem, GPUFL_E_NO_MEMORY, "no memory to list the session");
    session_files_mark_shadowed(files, is_shadowed);
    for (int channel = 0; channel < CHANNEL_COUNT; channel++)
        upload->next_sequence[channel] = 1;
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < files->log_count; i++) {
        if (is_shadowed[i])
            continue;
        if (!status)
            status = send_file(upload, &files->items[i], file_number(files, i));
        else
            upload->count->files_skipped++;
    }
    free(is_shadowed);
    remember(upload);
    return status;
}

/* Whether our server answered that the session does not exist. Servers without this endpoint also answer 404. */
static bool is_session_unknown(const struct http_answer *answer)
{
    struct json_document document;
    if (answer->status != 404 || json_parse(&document, answer->text.data, answer->text.size, NULL))
        return false;
    const struct json_value *error = json_member(document.root, "error");
    bool is_unknown = error && !strcmp(json_get_text(error, "code", ""), "session_unknown");
    json_free(&document);
    return is_unknown;
}

/* The cursor can be outdated: the session was deleted on the server, or the server lost its data. A server that cannot
 * tell is not asked again in this call. */
static void check_cursor(struct upload *upload)
{
    char path[160];
    struct upload_count *count = upload->count;
    if (!cursor_has_sent(&upload->cursor))
        return;
    if (!count->unconfirmed) {
        snprintf(path, sizeof path, "/sessions/%.100s", upload->sender.session_id);
        uploader_get(upload->uploader, path);
        if (is_session_unknown(&upload->uploader->answer)) {
            cursor_forget(&upload->cursor);
            return;
        }
    }
    count->unconfirmed += count->unconfirmed || upload->uploader->answer.status != 200;
}

/* Declares the session complete. A server that refuses this detects the end by itself. */
static gpufl_status complete(struct upload *upload)
{
    struct request_headers headers;
    headers_for_completion(&headers, &upload->sender);
    struct http_request request = {.path = "/events/session-complete", .headers = headers.list};
    if (uploader_send(upload->uploader, &request) == DELIVERY_STOPPED && upload->uploader->answer.status / 100 != 4)
        return upload->uploader->stop_status;
    upload->cursor.current->is_complete = true;
    remember(upload);
    return GPUFL_OK;
}

gpufl_status session_upload(const char *dir, struct uploader *uploader, struct upload_count *count,
                            struct problem *problem)
{
    struct upload upload = {.uploader = uploader, .count = count, .is_whole = true};
    gpufl_status status = session_files_list(&upload.files, dir, problem);
    if (status)
        return status;
    if (session_lock_is_held(upload.files.dir_fd))
        status = problem_set(problem, GPUFL_E_BUSY,
                             "%.300s is still being written; upload it when its program has ended", dir);
    if (!status)
        status = sender_identify(&upload.sender, dir, problem);
    if (!status && cursor_load(&upload.cursor, upload.files.dir_fd, http_client_address(uploader->client)))
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to read %s", CURSOR_NAME);
    if (!status) {
        check_cursor(&upload);
        status = send_files(&upload);
        if (!status && upload.is_whole && !upload.cursor.current->is_complete)
            status = complete(&upload);
        if (status)
            *problem = uploader->problem;
        if (!status && upload.is_whole) {
            count->sessions++;
            snprintf(count->session_id, sizeof count->session_id, "%s", upload.sender.session_id);
        }
        cursor_free(&upload.cursor);
    }
    session_files_free(&upload.files);
    return status;
}
