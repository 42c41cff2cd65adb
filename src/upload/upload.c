/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/upload.h"

#include "base/clock.h"
#include "logfile/reader.h"
#include "logfile/session_dir.h"
#include "upload/cursor.h"
#include "upload/session_upload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The caller may be compiled against an older (shorter) or newer (longer) struct. */
static bool options_copy(gpufl_upload_options *copy, const gpufl_upload_options *given)
{
    memset(copy, 0, sizeof *copy);
    if (!given || given->struct_size < offsetof(gpufl_upload_options, config_file) || given->struct_size > 65536)
        return false;
    memcpy(copy, given, given->struct_size < sizeof *copy ? given->struct_size : sizeof *copy);
    return true;
}

static void result_copy(gpufl_upload_result *to, const gpufl_upload_result *from)
{
    uint32_t size = to->struct_size;
    if (size > sizeof *from)
        memset((char *)to + sizeof *from, 0, size - sizeof *from);
    memcpy(to, from, size < sizeof *from ? size : sizeof *from);
    to->struct_size = size;
}

static gpufl_status open_uploader(struct uploader *uploader, const gpufl_upload_options *options,
                                  struct problem *problem)
{
    int64_t timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : UPLOAD_TIMEOUT_DEFAULT_MS;
    const struct http_server server = {
        .url = options->backend_url,
        .api_path = options->api_path && *options->api_path ? options->api_path : UPLOAD_API_PATH_DEFAULT,
        .api_key = options->api_key,
        .ca_file = getenv("GPUFL_CA_FILE"),
    };
    return uploader_open(uploader, &server, clock_mono_ns() + timeout_ms * 1000000, problem);
}

/* Every finished session below the directory, oldest first. */
static gpufl_status upload_all(const char *base, struct uploader *uploader, struct upload_count *count,
                               uint64_t *running, struct problem *problem)
{
    struct session_list list;
    gpufl_status status = session_list_find(&list, base, problem);
    if (status)
        return status;
    if (!list.count)
        status = problem_set(problem, GPUFL_E_NOT_FOUND,
                             "there is no session in '%.300s'. Record one: gpufl trace -- CMD", base);
    uint64_t finished = 0;
    for (size_t i = list.count; i > 0 && !status; i--) {
        status = session_upload(list.paths[i - 1], uploader, count, problem);
        if (status == GPUFL_E_BUSY)
            ++*running;
        finished += status != GPUFL_E_BUSY;
        if (status == GPUFL_E_DAMAGED && !count->first.text[0]) {
            count->first = *problem;
            count->first_status = status;
        }
        if (status == GPUFL_E_BUSY || status == GPUFL_E_DAMAGED)
            status = GPUFL_OK;
    }
    if (!status && !finished)
        status = problem_set(problem, GPUFL_E_BUSY, "every session in %.300s is still being written", base);
    session_list_free(&list);
    return status;
}

static gpufl_status upload_path(const char *path, struct uploader *uploader, struct upload_count *count,
                                uint64_t *running, struct problem *problem)
{
    struct session_files files;
    gpufl_status status = session_files_list(&files, path, problem);
    if (status == GPUFL_E_NOT_FOUND)
        return upload_all(path, uploader, count, running, problem);
    if (status)
        return status;
    session_files_free(&files);
    return session_upload(path, uploader, count, problem);
}

static void append_count(struct bytes *out, uint64_t number, const char *word)
{
    bytes_append_format(out, "%" PRIu64 " %s%s", number, word, number == 1 ? "" : "s");
}

static void append_bytes(struct bytes *out, uint64_t bytes)
{
    const double megabyte = 1e6;
    double size = (double)bytes;
    if (size < megabyte)
        bytes_append_format(out, "%.1f kB", size / 1e3);
    else
        bytes_append_format(out, "%.1f MB", size / megabyte);
}

/* The page of the session on the server, or the list if there are several. A server with another API has other pages. */
static void append_page(struct bytes *out, const struct upload_count *count, const char *address)
{
    size_t size = strlen(address), api_size = strlen(UPLOAD_API_PATH_DEFAULT);
    if (!count->sessions || count->unconfirmed || size < api_size ||
        strcmp(address + size - api_size, UPLOAD_API_PATH_DEFAULT) != 0)
        return;
    bool has_page = count->sessions == 1 && session_id_is_valid(count->session_id);
    bytes_append_format(out, ". Look: %.*s/sessions%s%s", (int)(size - api_size), address, has_page ? "/" : "",
                        has_page ? count->session_id : "");
}

/* What was sent and what was not; nothing if there is neither. */
static void append_files(struct bytes *out, const struct upload_count *count, const char *lead)
{
    if (count->files_uploaded) {
        bytes_append_text(out, lead);
        append_count(out, count->files_uploaded, "file");
        bytes_append_text(out, " sent, ");
        append_count(out, count->events, "event");
        bytes_append_text(out, ", ");
        append_bytes(out, count->bytes);
        lead = ", ";
    }
    if (count->files_skipped) {
        bytes_append_text(out, lead);
        append_count(out, count->files_skipped, "file");
        bytes_append_text(out, " not sent");
    }
}

static void message_write(char *out, size_t size, const struct upload_count *count, const char *failure,
                          uint64_t running, const char *address)
{
    struct bytes text = {0};
    bytes_append_text(&text, failure);
    if (count->files_uploaded || *failure) {
        append_files(&text, count, *failure ? "; " : "");
    } else {
        bytes_append_text(&text, "nothing to send: ");
        if (!count->unconfirmed)
            bytes_append_format(&text, "%.160s has ", address);
        append_count(&text, count->sessions, "session");
        if (count->unconfirmed)
            bytes_append_format(&text, " %s already sent to %.160s (recorded in %s); remove that file to send again",
                                count->sessions == 1 ? "was" : "were", address, CURSOR_NAME);
        else
            bytes_append_text(&text, " already");
    }
    if (running) {
        bytes_append_text(&text, "; ");
        append_count(&text, running, "session");
        bytes_append_text(&text, " skipped because still being written");
    }
    if (count->rejected_lines) {
        bytes_append_text(&text, "; the server rejected ");
        append_count(&text, count->rejected_lines, "line");
        bytes_append_format(&text, "%s%s", count->rejected_reason[0] ? ": " : "", count->rejected_reason);
    }
    if (count->cursor_reason[0])
        bytes_append_format(&text, "; cannot save what was sent in the session's directory: %s", count->cursor_reason);
    if (!*failure)
        append_page(&text, count, address);
    snprintf(out, size, "%s", bytes_text(&text));
    bytes_free(&text);
}

gpufl_status gpufl_upload_run(const gpufl_upload_options *given, gpufl_upload_result *out)
{
    gpufl_upload_options options;
    gpufl_upload_result result = {0};
    struct problem problem = {""};
    struct uploader uploader = {0};
    struct upload_count count = {0};
    uint64_t running = 0;
    gpufl_status status = GPUFL_OK;
    if (!options_copy(&options, given))
        status =
            problem_set(&problem, GPUFL_E_INVALID, "invalid options: initialize them with GPUFL_UPLOAD_OPTIONS_INIT");
    else if (!options.log_path || !*options.log_path)
        status = problem_set(&problem, GPUFL_E_INVALID, "no session to upload: log_path is empty");
    else if (!options.backend_url || !*options.backend_url)
        status = problem_set(&problem, GPUFL_E_INVALID, "no server to upload to: set backend_url or GPUFL_BACKEND_URL");
    if (!status)
        status = open_uploader(&uploader, &options, &problem);
    if (!status) {
        status = upload_path(options.log_path, &uploader, &count, &running, &problem);
        if (!status && count.left_out_lines && !count.first.text[0])
            count.first_status = problem_set(&count.first, GPUFL_E_DAMAGED,
                                             "%" PRIu64 " damaged %s could not be sent; run 'gpufl verify' to list %s",
                                             count.left_out_lines, count.left_out_lines == 1 ? "line" : "lines",
                                             count.left_out_lines == 1 ? "it" : "them");
        const char *failure = status ? problem.text : count.first.text;
        message_write(result.message, sizeof result.message, &count, failure, running,
                      http_client_address(uploader.client));
        if (!status)
            status = count.first_status;
    } else {
        snprintf(result.message, sizeof result.message, "%s", problem.text);
    }
    result.success = status == GPUFL_OK;
    result.http_status = uploader.last_status;
    result.sessions = count.sessions;
    result.files_uploaded = count.files_uploaded;
    result.files_already_sent = count.files_already_sent;
    result.files_skipped = count.files_skipped;
    result.events_uploaded = count.events;
    result.bytes_sent = count.bytes;
    if (out)
        result_copy(out, &result);
    uploader_close(&uploader);
    return status;
}

gpufl_status gpufl_upload_check(const char *url, const char *api_path, struct problem *problem)
{
    struct http_client *client = NULL;
    const struct http_server server = {.url = url,
                                       .api_path = api_path && *api_path ? api_path : UPLOAD_API_PATH_DEFAULT};
    gpufl_status status = http_client_open(&client, &server, problem);
    http_client_close(client);
    return status;
}
